"""Limits of connections: what one client may send, keep open and leave unread, without an effect on others."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import ServerState

from sqlshell.service.http.budget import Budget
from sqlshell.service.http.connections import Connection, Connections, NoteResponses, fitting_connections
from sqlshell.service.settings import Settings
from tests.conftest import Served, clean_environment, serve, stop
from tests.service.client import Client
from tests.service.waiting import until

STATEMENTS = "POST /v2/statements HTTP/1.1"
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with small bounds."""
    settings: dict[str, float] = {"header_size": 8 << 10, "url_size": 2 << 10}
    settings |= {"header_seconds": 0.7, "body_seconds": 0.7, "write_seconds": 1.0}
    options = ("--max-bodies-size", "16", "--max-unread-size", "4")
    running = serve(tmp_path_factory.mktemp("wire"), *options, settings=settings)
    yield running
    stop(running)


@contextlib.contextmanager
def dial(served: Served) -> Iterator[socket.socket]:
    parts = urlsplit(served.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20) as wire:
        yield wire


def head(served: Served, first: str, *lines: str, token: str | None = None) -> bytes:
    known = {line.partition(":")[0].lower() for line in lines}
    own = [] if "host" in known else [f"Host: {urlsplit(served.url).netloc}"]
    own += [f"Authorization: Bearer {served.token if token is None else token}"]
    return "\r\n".join([first, *own, *lines, "", ""]).encode()


def rest(wire: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while chunk := wire.recv(1 << 16):
            found += chunk
    return found


def exchange(served: Served, *sent: bytes) -> bytes:
    with dial(served) as wire:
        with contextlib.suppress(ConnectionError):
            for part in sent:
                wire.sendall(part)
        return rest(wire)


def expected(answer: bytes) -> tuple[int, str]:
    """The status of an answer, and its message."""
    top, _, body = answer.partition(b"\r\n\r\n")
    return int(top.split(b" ")[1]), str(json.loads(body)["message"])


def closing(served: Served, *lines: str) -> bytes:
    return head(served, *lines, "Connection: close")


def works(served: Served) -> bool:
    with Client(served) as client:
        return client.rows("select 1") == [["1"]]


@pytest.mark.parametrize(
    ("sent", "status", "named"),
    [
        ([f"X-A: {'a' * 9000}"], 431, "8192 bytes"),
        ([f"X-{number}: a" for number in range(200)], 431, "100 headers"),
        ([f"X-{'a' * 9000}: a"], 431, "8192 bytes"),
    ],
)
def test_headers_are_bounded(small: Served, sent: list[str], status: int, named: str) -> None:
    found = expected(exchange(small, head(small, "GET /v2/version HTTP/1.1", *sent)))
    assert (found[0], named in found[1]) == (status, True), found


def test_a_long_url_is_refused(small: Served) -> None:
    found = expected(exchange(small, head(small, f"GET /v2/version?{'a' * 3000} HTTP/1.1")))
    assert (found[0], "2048 bytes" in found[1]) == (414, True)


@pytest.mark.parametrize("begun", [b"GET /", b"GET / HTTP/1.1\r\nX-A: ", b"GET / HTTP/1.1\r\nX-"])
def test_headers_without_end_are_not_kept(small: Served, begun: bytes) -> None:
    sent = 0
    with dial(small) as wire:
        wire.sendall(begun)
        with contextlib.suppress(ConnectionError):
            for _ in range(400):
                sent += wire.send(b"a" * (1 << 20))
        assert rest(wire)[:12] in {b"HTTP/1.1 431", b"HTTP/1.1 414", b""}
    assert sent < 120 << 20
    status = Path("/proc", str(small.process.pid), "status")
    if status.exists():
        assert int(status.read_text().partition("VmHWM:")[2].split()[0]) < 700 << 10


@pytest.mark.slow("starts a service")
@pytest.mark.parametrize("sent", [b"", b"POST / HT", b"POST / HTTP/1.1\r\nHost: x\r\n"])
def test_headers_that_stand_still_are_closed(small: Served, sent: bytes) -> None:
    assert expected(exchange(small, sent)) == (408, "timed out while receiving the request")


@pytest.mark.slow("waits for a limit of time")
def test_blank_lines_are_no_headers(small: Served) -> None:
    with dial(small) as wire:
        stop = threading.Event()

        def drip() -> None:
            with contextlib.suppress(OSError):
                while not stop.wait(0.05):
                    wire.sendall(b"\r\n")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            assert rest(wire).startswith(b"HTTP/1.1 408")
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize("more", [b"Content-Length: 5", b"Transfer-Encoding: chunked"])
def test_a_handshake_with_a_body_is_refused(small: Served, more: bytes) -> None:
    with dial(small) as wire:
        wire.sendall(upgrade(small).replace(b"\r\n\r\n", b"\r\n" + more + b"\r\n\r\n"))
        assert expected(rest(wire)) == (400, "the handshake of a websocket has no body")


@pytest.mark.slow("waits for a limit of time")
def test_a_handshake_that_nobody_answers_is_closed(small: Served) -> None:
    """The package websockets has no response to a request that it does not understand."""
    with dial(small) as wire:
        wire.sendall(upgrade(small).replace(b"\r\n\r\n", b"\r\nContent-Length: 00\r\n\r\n"))
        assert rest(wire) == b""


@pytest.mark.slow("waits for a limit of time")
def test_a_body_that_stands_still_is_closed(small: Served) -> None:
    answer = expected(exchange(small, head(small, STATEMENTS, JSON, "Content-Length: 9"), b"{"))
    assert answer == (408, "timed out while receiving the request")


@pytest.mark.parametrize(
    ("size", "first", "lines", "status"),
    [
        (3 << 20, STATEMENTS, [], 401),
        (20 << 20, STATEMENTS, [], 401),
        (3 << 20, "POST http://evil.example/v2/statements HTTP/1.1", [], 400),
        (3 << 20, STATEMENTS, ["Transfer-Encoding: gzip"], 501),
        (3 << 20, STATEMENTS, [f"X-A: {'a' * 9000}"], 431),
        (3 << 20, f"POST /{'a' * 3000} HTTP/1.1", [], 414),
    ],
)
def test_an_answer_is_read_though_the_body_was_not(
    small: Served, size: int, first: str, lines: list[str], status: int
) -> None:
    """A sender that looks for the answer when it has sent all finds it, and no broken pipe."""
    length = [] if lines and lines[0].startswith("T") else [f"Content-Length: {size}"]
    with dial(small) as wire:
        wire.sendall(head(small, first, JSON, *length, *lines, token="wrong"))
        for _ in range(size >> 16):
            wire.sendall(b" " * (1 << 16))
        assert expected(rest(wire))[0] == status


def test_the_refusal_of_a_large_form_is_read(small: Served) -> None:
    form: list[Any] = [("request", (None, '{"statement":"select 1"}')), ("attachments", ("a", b"x" * (3 << 20)))]
    answer = httpx.post(f"{small.url}/v2/statements", files=form, timeout=60, trust_env=False)
    assert (answer.status_code, answer.json()) == (401, {"message": "a bearer token is required"})


@pytest.mark.parametrize(
    ("first", "lines", "token", "status", "goes_on"),
    [
        (STATEMENTS, [JSON], "wrong", 401, False),
        (STATEMENTS, [JSON, "Host: elsewhere"], None, 421, False),
        (STATEMENTS, [JSON, "Origin: http://elsewhere"], None, 403, False),
        (STATEMENTS, ["Content-Type: text/plain"], None, 415, True),
        (STATEMENTS, [JSON, "Content-Encoding: gzip"], None, 415, True),
        (STATEMENTS, ["Content-Type: multipart/form-data"], None, 400, True),
        ("POST /v2/version HTTP/1.1", [JSON], None, 405, True),
        ("POST /v2/nothing HTTP/1.1", [JSON], None, 404, True),
    ],
)
def test_what_is_in_the_body_of_a_refused_request_is_no_request(
    small: Served, first: str, lines: list[str], token: str | None, status: int, goes_on: bool
) -> None:
    """The connection goes on behind it, or is closed."""
    asked = head(small, "GET /v2/version HTTP/1.1")
    body = asked * 2000
    with dial(small) as wire:
        wire.sendall(head(small, first, *lines, f"Content-Length: {len(body)}", token=token) + body)
        wire.sendall(asked.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        found = rest(wire)
    statuses = [int(part[:3]) for part in found.split(b"HTTP/1.1 ")[1:]]
    assert statuses == ([status, 200] if goes_on else [status])


@pytest.mark.parametrize(
    ("lines", "body", "status"),
    [
        (["Content-Length: 5", "Transfer-Encoding: chunked"], b"0\r\n\r\n", 400),
        (["Content-Length: 5", "Content-Length: 6"], b"xxxxxx", 400),
        (["Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n", 501),
        (["Transfer-Encoding: chunked"], b"1;" + b"e" * 1_000_000 + b"\r\n{\r\n0\r\n\r\n", 400),
        (["Transfer-Encoding: chunked"], b"1\r\n \r\n" * 100_000, 400),
        (["Transfer-Encoding: chunked"], b"z\r\n", 400),
        (["Transfer-Encoding: chunked"], b"ffffffffffffffffff\r\n", 400),
        (["Transfer-Encoding: chunked"], b"1\r\n{\r\n0\r\nX: " + b"a" * 400_000 + b"\r\n\r\n", 400),
        (["Content-Length: 2\rX-A: b"], b"{}", 400),
    ],
    ids=["both", "two", "gzip", "extension", "tiny", "bad", "huge", "trailer", "bare"],
)
def test_odd_framing_is_refused(small: Served, lines: list[str], body: bytes, status: int) -> None:
    answer = exchange(small, head(small, STATEMENTS, JSON, *lines), body)
    assert expected(answer)[0] == status, answer[:200]


def test_trailers_are_no_headers(small: Served) -> None:
    body = b'18\r\n{"statement":"select 1"}\r\n0\r\nContent-Type: text/plain\r\nHost: x\r\n\r\n'
    answer = exchange(small, closing(small, STATEMENTS, JSON, "Transfer-Encoding: chunked"), body)
    assert answer.startswith(b"HTTP/1.1 200") or answer.startswith(b"HTTP/1.1 202"), answer


@pytest.mark.parametrize(
    ("url", "status"), [("http://evil.example/v2/version", 400), ("http://{host}/v2/version", 200), ("*", 404)]
)
def test_other_forms_of_a_url(small: Served, url: str, status: int) -> None:
    named = url.format(host=urlsplit(small.url).netloc)
    answer = exchange(small, closing(small, f"GET {named} HTTP/1.1"))
    assert answer.startswith(b"HTTP/1.1 %d" % status), answer


@pytest.mark.parametrize("method", ["OPTIONS", "CONNECT", "TRACE", "DELETE"])
def test_methods_that_are_none(small: Served, method: str) -> None:
    answer = exchange(small, closing(small, f"{method} /v2/version HTTP/1.1"))
    assert answer.startswith((b"HTTP/1.1 405", b"HTTP/1.1 400")), answer


def test_http_1_0_and_head(small: Served) -> None:
    assert exchange(small, head(small, "GET /v2/version HTTP/1.0")).startswith(b"HTTP/1.1 200")
    answer = exchange(small, closing(small, "HEAD /v2/version HTTP/1.1"))
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"\r\n\r\n")


def test_a_body_that_was_not_asked_for_is_no_request(small: Served) -> None:
    """Behind an answer to Expect: 100-continue nobody knows whether a body comes: the connection ends."""
    first = head(small, STATEMENTS, "Content-Type: text/plain", "Content-Length: 40", "Expect: 100-continue")
    answer = exchange(small, first, head(small, "GET /v2/version HTTP/1.1"))
    assert answer.count(b"HTTP/1.1") == 1
    assert expected(answer)[0] == 415
    body = b'{"statement":"select 1"}'
    with dial(small) as wire:
        wire.sendall(head(small, STATEMENTS, JSON, f"Content-Length: {len(body)}", "Expect: 100-continue"))
        assert wire.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.sendall(body)
        assert rest(wire).startswith(b"HTTP/1.1 20")


def test_requests_that_are_sent_ahead_are_answered_in_turn(small: Served) -> None:
    answer = exchange(
        small, *[head(small, f"GET /{number} HTTP/1.1") for number in range(500)], closing(small, "GET /z HTTP/1.1")
    )
    named = [json.loads(part.partition(b"\r\n\r\n")[2])["message"] for part in answer.split(b"HTTP/1.1 404")[1:]]
    assert [one.rpartition("/")[2] for one in named] == [*map(str, range(500)), "z"]


def test_requests_whose_answers_are_not_read_are_hardly_read(small: Served) -> None:
    """The answers to the first requests, which the client does not read, hold back what follows."""
    asked = head(small, "GET /openapi.json HTTP/1.1") * 5000
    sent = 0
    with dial(small) as wire, contextlib.suppress(OSError):
        wire.settimeout(2)
        while sent < 40 << 20:
            sent += wire.send(asked)
    assert sent < 40 << 20
    assert works(small)


def test_what_is_wrong_is_said_in_its_turn(small: Served) -> None:
    answer = exchange(small, head(small, "GET /v2/version HTTP/1.1"), b"nonsense\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert (answer.count(b"HTTP/1.1 200"), answer.count(b"HTTP/1.1 400")) == (1, 1)


@pytest.mark.slow("large bodies")
def test_compressed_bodies_are_refused(small: Served) -> None:
    bomb = gzip.compress(b" " * (50 << 20))
    with Client(small) as client:
        for kind in ("application/json", "multipart/form-data; boundary=X"):
            headers = {"Content-Type": kind, "Content-Encoding": "gzip"}
            answer = client.http.post("/v2/statements", content=bomb, headers=headers)
            assert (answer.status_code, "Content-Encoding" in answer.json()["message"]) == (415, True)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"statement":"select 1","x":' + b"[" * 500_000 + b"]" * 500_000 + b"}", 400),
        (b'{"statement":"select 1","x":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}", 413),
        (b'{"statement":"select 1",' + b",".join(b'"k%d":1' % number for number in range(50_000)) + b"}", 413),
        (b'{"statements":[' + b",".join([b'"\\\\"'] * 100_000) + b"]}", 413),
        (b'{"statement":"select 1","parameters":{"rowLimit":' + b"9" * 500_000 + b"}}", 400),
        (b'{"statement":"select 1","x":' + b"9" * 100_000 + b"}", 413),
        (b'{"statement":"select 1"' + b" " * 100_000 + b"}", 413),
    ],
    ids=["deep", "objects", "keys", "statements", "digits", "more", "blanks"],
)
def test_hostile_json_is_refused(small: Served, body: bytes, status: int) -> None:
    with Client(small) as client:
        for headers, content in (
            ({"Content-Type": "application/json"}, body),
            (
                {"Content-Type": "multipart/form-data; boundary=X"},
                b'--X\r\nContent-Disposition: form-data; name="request"\r\n\r\n' + body + b"\r\n--X--\r\n",
            ),
        ):
            answer = client.http.post("/v2/statements", content=content, headers=headers)
            assert (answer.status_code, "request" in answer.json()["message"]) == (status, True), answer.text[:200]


@pytest.mark.parametrize(
    ("part", "status"),
    [
        (b'--X\r\nContent-Disposition: form-data; name="o"\r\n\r\n\r\n' * 5000, 413),
        (b'--X\r\nContent-Disposition: form-data; name="' + b"n" * 20_000 + b'"\r\n\r\n\r\n', 400),
        (b"--X\r\n" + b"X-A: b\r\n" * 5000 + b"\r\n\r\n", 400),
    ],
    ids=["parts", "name", "headers"],
)
def test_hostile_forms_are_refused(small: Served, part: bytes, status: int) -> None:
    with Client(small) as client:
        headers = {"Content-Type": "multipart/form-data; boundary=X"}
        answer = client.http.post("/v2/statements", content=part + b"--X--\r\n", headers=headers)
        assert answer.status_code == status, answer.text


def test_bodies_that_arrive_share_their_memory(small: Served) -> None:
    """A fourth of 16 MiB for the organization, half of that for one: what is more together is told to come again."""
    with Client(small) as client:
        for kind, body in (
            ("application/json", json.dumps({"statement": "select '" + "x" * (3 << 20) + "'"}).encode()),
            (
                "multipart/form-data; boundary=X",
                b'--X\r\nContent-Disposition: form-data; name="request"\r\n\r\n' + b" " * (3 << 20) + b"\r\n--X--\r\n",
            ),
        ):
            answer = client.http.post("/v2/statements", content=body, headers={"Content-Type": kind})
            assert (answer.status_code, "--max-bodies-size" in answer.json()["message"]) == (413, True)
        with contextlib.ExitStack() as stack:
            wires = [stack.enter_context(dial(small)) for _ in range(4)]
            for wire in wires:
                wire.sendall(head(small, STATEMENTS, JSON, "Content-Length: 2000000") + b" " * 1_900_000)
            answers = [expected(rest(wire)) for wire in wires]
            assert {status for status, _ in answers} == {503, 408}
            assert any("--max-bodies-size" in words for _, words in answers)
        half = json.dumps({"statement": "select 1 -- " + "x" * (1 << 20)}).encode()
        for _ in range(5):
            answer = client.http.post("/v2/statements", content=half, headers={"Content-Type": "application/json"})
            assert answer.status_code in {200, 202}, answer.text


def silent(served: Served, path: str, number: int) -> Sequence[socket.socket]:
    parts = urlsplit(served.url)
    wires = []
    for _ in range(number):
        wire = socket.socket()
        # The system would take some MB in the reader's place.
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.settimeout(20)
        wire.connect((parts.hostname or "", parts.port or 0))
        wire.sendall(head(served, f"GET {path} HTTP/1.1"))
        wires.append(wire)
    return wires


def memory(served: Served) -> int:
    text = Path("/proc", str(served.process.pid), "status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) << 10


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_readers_that_do_not_read_hold_little_and_are_cut(small: Served) -> None:
    with Client(small) as client:
        answer = client.run("select repeat('x', 30000000) as x")
        path = f"/v2/statements/{answer['statementID']}"
        before = memory(small)
        wires = silent(small, path, 4)
        try:
            for wire in wires:
                wire.recv(1, socket.MSG_PEEK)
            assert memory(small) - before < 60 << 20
            # They have the room of their organization, until they are cut.
            assert len(client.http.get(path).json()["data"][0][0]) == 30_000_000
            for wire in wires:
                assert len(rest(wire)) < 30_000_000
        finally:
            for wire in wires:
                wire.close()


@pytest.mark.slow("a slow reader")
def test_a_slow_reader_gets_everything(small: Served) -> None:
    with Client(small) as client:
        answer = client.run("select repeat('x', 12000000) as x")
        (wire,) = silent(small, f"/v2/statements/{answer['statementID']}", 1)
        with wire:
            found = 0
            end = time.monotonic() + 2.5
            while time.monotonic() < end:
                found += len(wire.recv(4096))
                # The pace of the reader.
                time.sleep(0.1)
            while found < 12_000_000:
                chunk = wire.recv(1 << 20)
                assert chunk
                found += len(chunk)


def upgrade(served: Served, path: str = "/v2/streams/00000000-0000-0000-0000-000000000000") -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    lines = ("Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13")
    return head(served, f"GET {path} HTTP/1.1", *lines)


def frame(opcode: int, data: bytes = b"", *, last: bool = True) -> bytes:
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2)
    return bytes([opcode | (0x80 if last else 0)]) + size + b"\0\0\0\0" + data


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (frame(1, b"x" * 10, last=False) + frame(0, last=False) * 10_000, 1008),
        (frame(9) * 20_000, 1008),
        (frame(1, b"x" * 20_000), 1009),
        (frame(2, b"x" * 10) * 10_000, 1008),
    ],
    ids=["frames", "pings", "long", "flood"],
)
def test_a_websocket_that_sends_much_is_closed(small: Served, frames: bytes, code: int) -> None:
    with dial(small) as wire:
        wire.sendall(upgrade(small))
        assert wire.recv(1000).startswith(b"HTTP/1.1 101")
        with contextlib.suppress(ConnectionError):
            wire.sendall(frames)
        found = rest(wire)
        assert code.to_bytes(2) in found or not found


def test_a_websocket_with_bad_headers_is_closed(small: Served) -> None:
    with dial(small) as wire:
        wire.sendall(upgrade(small).replace(b"Sec-WebSocket-Key: ", b"Sec-WebSocket-Key: !"))
        assert rest(wire).startswith(b"HTTP/1.1 400")
    assert works(small)


def is_open(wire: socket.socket) -> bool:
    """Whether the service has its end of a connection open, as Linux says."""
    ends = f":{wire.getpeername()[1]:04X}", f":{wire.getsockname()[1]:04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines())
    return any((row[1][-5:], row[2][-5:], row[3]) == (*ends, "01") for row in rows)


@pytest.mark.skipif(sys.platform != "linux", reason="connections are read from /proc")
@pytest.mark.slow("waits for a limit of time")
def test_a_stream_reader_that_reads_nothing_is_cut(small: Served) -> None:
    with Client(small) as client:
        client.rows("create stream silent (t varchar)")
        asked = client.run("select * from silent")["metadata"]["dataplaneRequest"]
        parts = urlsplit(small.url)
        with socket.socket() as wire:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.settimeout(20)
            wire.connect((parts.hostname or "", parts.port or 0))
            wire.sendall(upgrade(small, urlsplit(asked["uri"]).path))
            # A frame that comes with the request is not read.
            assert wire.recv(1000).startswith(b"HTTP/1.1 101")
            token: dict[str, Any] = {"type": "auth", "accessToken": asked["token"], "sessionId": ""}
            wire.sendall(frame(1, json.dumps(token).encode()))
            client.rows("insert into silent select repeat('x', 1000000) from range(20)")
            assert is_open(wire)
            until(lambda: not is_open(wire))
            assert b'"metadata"' in (found := rest(wire))
            assert len(found) < 20_000_000


def test_connections_without_a_token_make_room(tmp_path: Path) -> None:
    running = serve(tmp_path, "--max-connections", "20", "--max-token-connections", "10")
    try:
        with Client(running) as client, contextlib.ExitStack() as stack:
            assert client.rows("select 1") == [["1"]]
            for _ in range(100):
                stack.enter_context(dial(running))
            # Those that have shown no token make room, and the one that has stays.
            assert client.rows("select 1") == [["1"]]
            assert works(running)
            clients = [stack.enter_context(Client(running)) for _ in range(12)]
            answers = [one.http.get("/v2/version") for one in clients]
            assert [answer.status_code for answer in answers] == [200] * 9 + [429] * 3
            assert "--max-token-connections" in answers[-1].json()["message"]
    finally:
        assert stop(running) == 0


class Counted:
    """A connection that only tells when it is closed."""

    def __init__(self, name: str, ended: list[str]) -> None:
        self.name = name
        self.ended = ended

    def abort(self) -> None:
        self.ended.append(self.name)


def test_connections_make_room_by_whose_they_are() -> None:
    connections = Connections(Settings(connections=4, token_connections=3))
    ended: list[str] = []

    def enter(name: str, token: str = "") -> bool:
        made: Any = Counted(name, ended)
        entered = connections.enter(made)
        if entered and token:
            assert connections.note_token(made, token) == ""
        return entered

    assert all([enter("a", "t"), enter("b"), enter("c"), enter("d", "u"), enter("e")])
    assert ended == ["b"]
    assert enter("f", "t")
    assert enter("g", "t")
    assert ended == ["b", "c", "e"]
    # None is without a token.
    assert not enter("h", "v")


def test_a_token_has_a_number_of_connections() -> None:
    connections = Connections(Settings(token_connections=2))
    made: list[Any] = [Counted(str(number), []) for number in range(3)]
    assert all(map(connections.enter, made))
    told = [connections.note_token(one, "t") for one in made]
    assert (told[:2], "of this token: 2" in told[2]) == (["", ""], True)
    assert connections.note_token(made[2], "u") == connections.note_token(made[0], "t") == ""
    connections.leave(made[1])
    connections.leave(made[1])
    assert connections.note_token(made[2], "t") == ""


@pytest.mark.slow("a service of its own")
def test_few_descriptors_are_enough(tmp_path: Path) -> None:
    assert (fitting_connections(4000, 1 << 20), fitting_connections(4000, 1000), fitting_connections(4000, 64)) == (
        4000,
        800,
        1,
    )
    token = tmp_path / "token"
    token.write_text("test-token-0123456789")
    token.chmod(0o600)
    program = f"{shlex.quote(sys.executable)} -m sqlshell serve --port 0 --token-file token"
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"ulimit -Sn 100; ulimit -Hn 300; exec {program}"],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    running = Served(process.stdout.readline().removeprefix("listening on ").strip(), token.read_text(), process)
    try:
        with contextlib.ExitStack() as stack:
            for _ in range(400):
                stack.enter_context(dial(running))
            assert works(running)
    finally:
        assert stop(running) == 0


def test_a_budget_has_a_share_for_each_holder() -> None:
    async def work() -> None:
        budget = Budget(400)
        assert budget.take("a", 80)
        waiting = asyncio.ensure_future(budget.wait("a", 100))
        await asyncio.sleep(0)
        # More than a share is served as one.
        assert (await asyncio.wait_for(budget.wait("b", 1000), 5)).size == 100
        assert not waiting.done()
        budget.give("a", 80)
        assert (await asyncio.wait_for(waiting, 5)).size == 100
        assert not budget.take("a", 1)

    asyncio.run(work())


@pytest.mark.parametrize("length", [1, 7, 4096])
def test_chunks_and_requests_are_whole_behind_the_steps(small: Served, length: int) -> None:
    """A body in chunks and requests behind each other are put together again from what each step parses."""
    body = json.dumps({"statement": f"select '{'x' * (10_000 if length > 1 else 2000)}' as x"}).encode()
    chunks = b"".join(
        b"%x\r\n%s\r\n" % (len(piece), piece)
        for piece in (body[start : start + length] for start in range(0, len(body), length))
    )
    kind = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    asked = head(small, "POST /v2/statements HTTP/1.1", *kind)
    with dial(small) as wire:
        wire.sendall((asked + chunks + b"0\r\n\r\n") * 3 + closing(small, "GET /v2/version HTTP/1.1"))
        found = rest(wire)
    # On a busy machine a statement may still be running when its request is answered.
    assert found.count(b"HTTP/1.1 20") == 4


def test_pipelined_requests_of_many_connections_are_answered(small: Served) -> None:
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(dial(small)) for _ in range(30)]
        for wire in wires:
            wire.sendall(head(small, "GET /v2/version HTTP/1.1") * 9 + closing(small, "GET /v2/version HTTP/1.1"))
        for wire in wires:
            assert rest(wire).count(b"HTTP/1.1 200 OK") == 10


def test_a_request_that_is_refused_while_its_response_is_sent_is_cut_off() -> None:
    """A refusal in the middle of a response could be taken for a part of it."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.set()

    ended = asyncio.Event()

    async def work() -> bytes:
        connections = Connections(Settings())
        config = Config(NoteResponses(app), ws="none", lifespan="off", log_config=None)
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(config, state, {}, connections=connections), "127.0.0.1", 0
        )
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
            found = await reader.readuntil(b"begun")
            writer.write(b"no chunk\r\n")
            with contextlib.suppress(ConnectionError):
                found += await reader.read()
            writer.close()
            await ended.wait()
        return found

    found = asyncio.run(work())
    assert (found.count(b"HTTP/1.1"), found.endswith(b"begun")) == (1, True)


def test_another_protocol_is_not_spoken(small: Served) -> None:
    """The request is answered in HTTP/1.1, and then nobody knows what comes."""
    lines = ("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__")
    asked = head(small, "GET /v2/version HTTP/1.1", *lines)
    answer = exchange(small, asked, head(small, "GET /v2/version HTTP/1.1"))
    assert (answer.count(b"HTTP/1.1 200"), b"connection: close" in answer) == (1, True)


def test_a_stream_counts_as_a_connection_of_its_token(tmp_path: Path) -> None:
    running = serve(tmp_path, "--max-token-connections", "2")
    try:
        with Client(running) as client, contextlib.ExitStack() as stack:
            client.rows("create stream counted (t varchar)")
            asked = client.run("select * from counted")["metadata"]["dataplaneRequest"]
            token = json.dumps({"type": "auth", "accessToken": asked["token"], "sessionId": ""}).encode()
            received = []
            for _ in range(2):
                wire = stack.enter_context(dial(running))
                wire.sendall(upgrade(running, urlsplit(asked["uri"]).path))
                assert wire.recv(1000).startswith(b"HTTP/1.1 101")
                wire.sendall(frame(1, token))
                received.append(wire.recv(1000))
            assert b'"metadata"' in received[0]
            assert (1013).to_bytes(2) in received[1]
    finally:
        stop(running)


def test_requests_begin_in_turn_by_token() -> None:
    order: list[str] = []

    async def ask(connections: Connections, token: str) -> None:
        await connections.take_turn(token)
        order.append(token)

    async def work() -> None:
        connections = Connections(Settings())
        left = asyncio.ensure_future(ask(connections, ""))
        await asyncio.gather(*(ask(connections, token) for token in "aaaaaaaaab"), ask(connections, ""), left)

    asyncio.run(work())
    assert (order.count("a"), order.count("b"), order.count("")) == (9, 1, 2)
    assert order.index("b") < 6 and order[-1] == "a"
