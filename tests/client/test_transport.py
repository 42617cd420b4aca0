"""Requests to one origin: retries, limits of bodies, certificates, proxies, traces."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.server
import itertools
import json
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from sqlshell.client.http import retries, trace
from sqlshell.client.http.decompress import BodyReader
from sqlshell.client.http.failures import connection_failed
from sqlshell.client.http.network import open_socket
from sqlshell.client.http.options import NetworkOptions, proxy_for
from sqlshell.client.http.retries import Retries, retry_after
from sqlshell.client.http.trace import Trace
from sqlshell.client.http.transport import Response, Transport
from sqlshell.client.target import parse
from sqlshell.errors import (
    ConnectionBroken,
    ConnectionFailed,
    NotAuthenticated,
    ProtocolError,
    ServiceError,
    TooLarge,
    Unreachable,
    UsageError,
)
from sqlshell.sql.analysis.secrets import redacted
from tests.client.test_statements import done, run, scripted
from tests.http_servers import QuietHandler, listening

Found = TypeVar("Found")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)


def using(url: str, work: Callable[[Transport], Awaitable[Found]], token: str = "tok", **options: Any) -> Found:
    async def whole() -> Found:
        transport = Transport(parse(url), token, **options)
        try:
            return await work(transport)
        finally:
            await transport.aclose()

    return asyncio.run(whole())


def get(url: str, **options: Any) -> Response:
    return using(url, lambda transport: transport.get("/v2/version"), **options)


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_a_busy_service_is_asked_again(status: int) -> None:
    with scripted(*[(status, b"<html>")] * 3, (200, {})) as state:
        assert get(state.url).status == 200
    assert len(state.asked) == 4


def test_a_service_that_has_responded_before_is_worth_more_retries() -> None:
    async def twice(transport: Transport) -> None:
        await transport.get("/v2/version")
        await transport.get("/v2/version")

    network = NetworkOptions(retries=4)
    with scripted((200, {}), *[(0, "break")] * 4, (200, {})) as state:
        using(state.url, twice, network=network)
    assert len(state.asked) == 6
    with scripted((0, "break")) as state, pytest.raises(ConnectionBroken):
        using(state.url, twice, network=network)
    assert len(state.asked) == 3


def test_a_longer_wait_is_reported_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlshell.client.http.transport.REPORTED_SECONDS", 0)
    said: list[str] = []
    with scripted((503, {}), (200, "break"), (200, {})) as state:
        get(state.url, say=said.append, token=state.url)
    assert [text.rpartition(": ")[2].partition(" in ")[0] for text in said] == ["retrying", "retrying"]
    assert said[0].endswith("(attempt 1 of 5)")
    assert said[1].endswith("(attempt 2 of 5)")
    assert all(state.url not in text for text in said)


def test_a_preference_is_sent_with_each_request() -> None:
    async def work(transport: Transport) -> None:
        transport.prefer("count=none")
        await transport.get("/v2/version")

    with scripted((200, {})) as state:
        using(state.url, work)
    assert state.asked[0][2]["Prefer"] == "wait=0, count=none"


def test_a_plain_500_is_asked_once_more() -> None:
    with scripted((500, {}), (200, {})) as state:
        assert get(state.url).status == 200
    with scripted((500, {})) as state:
        assert get(state.url).status == 500
    assert len(state.asked) == 2


def test_as_often_as_is_allowed() -> None:
    with scripted((503, {})) as state:
        assert get(state.url, network=NetworkOptions(retries=2)).status == 503
    assert len(state.asked) == 3


@pytest.mark.parametrize("status", [400, 403, 404, 409, 418, 501])
def test_what_would_be_answered_again_stands(status: int) -> None:
    with scripted((status, {})) as state:
        assert get(state.url).status == status
    assert len(state.asked) == 1


@pytest.mark.parametrize(("sql", "count"), [("insert into t values (1)", 1), ("select 1", 2), ("create table t()", 1)])
@pytest.mark.parametrize("first", [(503, b""), (200, "break")])
def test_a_statement_that_writes_is_sent_once(sql: str, count: int, first: tuple[int, Any]) -> None:
    with scripted(first, (200, done(data=[["1"]]))) as state:
        if count == 2:
            assert run(state, sql=sql) == [[["1"]]]
        else:
            with pytest.raises(ServiceError) as caught:
                run(state, sql=sql)
            assert "may have run" in caught.value.hint
            assert "LIST QUERIES" in caught.value.hint
    assert len(state.asked) == count


def test_a_statement_that_writes_is_sent_again_where_nobody_received_it() -> None:
    tries = Retries(NetworkOptions(), idempotent=False, known=True)
    assert tries.after_error(ConnectionFailed("connection refused")) is not None
    assert tries.after_error(ConnectionBroken("broke")) is None
    assert tries.after_error(Unreachable("bad certificate")) is None
    assert tries.after_status(503, {}) is None


@pytest.mark.parametrize("sql", ["insert into t values (1)", "select 1"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_statement_that_the_service_says_was_not_run_is_sent_again(sql: str, status: int) -> None:
    later = {"Sqlshell-Not-Run": "true", "Retry-After": "0"}
    with scripted((status, {}), (status, {}), (200, done(data=[["1"]])), headers=later) as state:
        assert run(state, sql=sql) == [[["1"]]]
    assert len(state.asked) == 3
    with scripted((status, {}), headers=later) as state, pytest.raises(ServiceError) as caught:
        run(state, sql=sql)
    assert len(state.asked) == 6
    assert "may have run" not in caught.value.hint


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0.0), (" 120 ", 120.0), ("-1", None), ("soon", None), ("", None), ("1.5", None)]
)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert retry_after(text) == seconds


def test_retry_after_as_a_date() -> None:
    found = retry_after(time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 60)))
    assert found is not None
    assert 55 < found <= 61
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


def test_a_service_that_asks_for_more_than_there_is_time() -> None:
    assert (
        Retries(NetworkOptions(timeout=10), idempotent=True, known=True).after_status(503, {"retry-after": "3600"})
        is None
    )


def test_the_token_is_made_again_once() -> None:
    made: list[int] = []

    async def renew() -> str:
        made.append(1)
        return f"token-{len(made)}"

    with scripted((401, {}), (200, {})) as state:
        assert get(state.url, renew=renew).status == 200
    assert [item[2]["Authorization"] for item in state.asked] == ["Bearer tok", "Bearer token-1"]
    with scripted((401, {})) as state:
        assert get(state.url, token="", renew=renew).status == 401
    assert [item[2]["Authorization"] for item in state.asked] == ["Bearer token-2"]


def authorizations(*answers: tuple[int, Any], **options: Any) -> list[str]:
    async def work(transport: Transport) -> None:
        for _ in range(2):
            await transport.get("/v2/version")

    with scripted(*answers) as state:
        using(state.url, work, **options)
    return [item[2].get("Authorization", "").removeprefix("Bearer ") for item in state.asked]


def test_a_command_that_makes_tokens_is_asked_before_the_first_request_and_a_person_after_a_refusal() -> None:
    async def new() -> str:
        return "new"

    async def none() -> str:
        return ""

    fine: tuple[int, Any] = (200, {})
    refused: tuple[int, Any] = (401, {})
    assert authorizations(fine, token="", renew=new) == ["new", "new"]
    assert authorizations(fine, token="", refused=new) == ["", ""]
    assert authorizations(refused, fine, token="", refused=new) == ["", "new", "new"]
    assert authorizations(refused, fine, refused=new) == ["tok", "new", "new"]
    assert authorizations(refused, fine, refused=none) == ["tok", "tok"]
    assert authorizations(refused, fine, renew=none, refused=new) == ["tok", "new", "new"]
    assert authorizations(refused, fine) == ["tok", "tok"]
    assert authorizations((403, {}), fine, renew=new) == ["tok", "tok"]


def test_a_token_that_was_made_again_and_refused_is_not_sent_for_ever() -> None:
    made: list[int] = []

    async def same() -> str:
        made.append(1)
        return "tok"

    assert authorizations((401, {}), renew=same) == ["tok", "tok"]
    assert len(made) == 2


@pytest.mark.parametrize("token", ["tok", ""])
@pytest.mark.parametrize("refusals", [1, 2])
def test_a_stream_gets_another_token_once(token: str, refusals: int) -> None:
    made: list[str] = []

    async def renew() -> str:
        made.append(f"token-{len(made) + 1}")
        return made[-1]

    async def read(transport: Transport) -> tuple[int, bytes]:
        async with transport.stream("/v2/file", {}) as (response, _):
            return response.status_code, await response.aread()

    answers = [*[(401, {"message": "expired"})] * (refusals - (not token)), (200, {"rows": 1})]
    with scripted(*answers) as state:
        status, body = using(state.url, read, token=token, renew=renew)
    sent = [item[2]["Authorization"].removeprefix("Bearer ") for item in state.asked]
    # A token that was made for this request is not replaced.
    assert sent == ([*filter(None, [token]), "token-1"])
    assert (status, b"rows" in body) == ((200, True) if refusals == 1 else (401, False))
    assert made == ["token-1"]


def test_a_stream_is_not_repeated_without_another_token() -> None:
    async def none() -> str:
        return ""

    async def read(transport: Transport) -> int:
        async with transport.stream("/v2/file", {}) as (response, _):
            return response.status_code

    for renew in (None, none):
        with scripted((401, {}), (200, {})) as state:
            assert using(state.url, read, renew=renew) == 401
        assert len(state.asked) == 1


def test_requests_side_by_side_ask_for_one_token() -> None:
    made: list[int] = []

    async def new() -> str:
        made.append(1)
        # Until all three are sent and refused with the old token.
        while state.asked and len(state.asked) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        return "new"

    async def side_by_side(transport: Transport) -> None:
        await asyncio.gather(*(transport.get("/v2/version") for _ in range(3)))

    for token, answers in (("", ()), ("tok", [(401, {})] * 3)):
        made.clear()
        with scripted(*answers, (200, {})) as state:
            using(state.url, side_by_side, token=token, renew=new)
        sent = [item[2]["Authorization"].removeprefix("Bearer ") for item in state.asked]
        assert sent == ["tok"] * len(answers) + ["new"] * 3
        assert len(made) == 1


@pytest.mark.parametrize("given", ["", "other"])
def test_requests_that_were_refused_together_ask_once_whatever_the_answer(given: str) -> None:
    asked: list[int] = []

    async def renew() -> str:
        asked.append(1)
        await asyncio.sleep(0)
        return given

    async def work() -> list[bool]:
        transport = Transport(parse("http://127.0.0.1:1"), "tok", renew=renew)
        found = await asyncio.gather(*(transport._renew_token(renew, "tok") for _ in range(3)))
        if given:
            # One more, which was sent before the token was replaced and refused after it.
            found.append(await transport._renew_token(renew, "tok"))
        await transport.aclose()
        return found

    assert set(asyncio.run(work())) == {bool(given)}
    assert len(asked) == 1


def test_a_command_that_fails_is_asked_again_by_the_next_request() -> None:
    made: list[int] = []

    async def broken() -> str:
        made.append(1)
        raise UsageError("no token today")

    async def work(transport: Transport) -> None:
        for _ in range(2):
            with pytest.raises(UsageError, match="no token today"):
                await transport.get("/v2/version")

    with scripted((200, {})) as state:
        using(state.url, work, token="", renew=broken)
    assert (len(made), state.asked) == (2, [])


@pytest.mark.parametrize("token", ["é", "a\nb", "a\rb", "a\0b"])
def test_a_token_that_is_no_header(token: str) -> None:
    async def bad() -> str:
        return token

    with pytest.raises(UsageError, match="the token contains"):
        get("http://127.0.0.1:1", token=token)
    with scripted((200, {})) as state:
        with pytest.raises(UsageError, match="the token contains"):
            get(state.url, token="", renew=bad)
        assert state.asked == []


@pytest.mark.parametrize(
    ("url", "token", "warned"),
    [
        ("http://service.example", "tok", True),
        ("http://service.example", "", False),
        ("https://service.example", "tok", False),
        ("http://127.0.0.1:8080", "tok", False),
        ("http://localhost:8080", "tok", False),
    ],
)
def test_a_token_in_the_clear_is_warned_of(url: str, token: str, warned: bool) -> None:
    told: list[str] = []

    async def work(_: Transport) -> None:
        return None

    using(url, work, token=token, warn=told.append)
    assert [line for line in told if "sending the token unencrypted to http://service.example" in line] == told
    assert bool(told) is warned


def test_an_answer_that_came_twice_is_not_the_next_one() -> None:
    """The second copy lies in the connection when the next request is made."""

    class Twice(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.path.encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
            self.wfile.write((head + body) * 2)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Twice)
    with listening(server):
        found = using(f"http://127.0.0.1:{server.server_address[1]}", bodies)
    assert found == [f"/{number}".encode() for number in range(20)]


async def bodies(transport: Transport) -> list[bytes]:
    return [bytes((await transport.get(f"/{number}")).body) for number in range(20)]


def test_requests_share_a_connection() -> None:
    connections: list[int] = []

    class Kept(QuietHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.append(1)

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kept)
    with listening(server):
        using(f"http://127.0.0.1:{server.server_address[1]}", bodies)
    assert len(connections) == 1


@pytest.mark.parametrize(
    "packed",
    [gzip.compress(b"a" * 5_000_000, mtime=0), zlib.compress(b"a" * 5_000_000), gzip.compress(b"", mtime=0)],
    ids=["gzip", "zlib", "empty"],
)
def test_bodies_are_inflated_in_steps(packed: bytes) -> None:
    body = BodyReader("gzip", 1 << 23, "http://x")
    for start in range(0, len(packed), 100):
        body.take(packed[start : start + 100])
    assert body.end() in (b"a" * 5_000_000, b"")


def test_a_packed_answer() -> None:
    class Packed(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = gzip.compress(json.dumps({"encoding": self.headers["Accept-Encoding"]}).encode())
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Packed)
    with listening(server):
        port = server.server_address[1]
        assert json.loads(get(f"http://127.0.0.1:{port}").body) == {"encoding": "identity"}


def test_a_small_body_that_holds_a_giant_one() -> None:
    packed = gzip.compress(b"\0" * (1 << 28))
    body = BodyReader("gzip", 1 << 22, "http://x")
    with pytest.raises(TooLarge, match="larger than 4 MiB"):
        body.take(packed)
    assert len(body._whole) < 1 << 23


@pytest.mark.parametrize(
    ("encoding", "pieces", "error"),
    [
        ("gzip", [b"not gzip"], ProtocolError),
        ("gzip", [gzip.compress(b"abc")[:-4]], ConnectionBroken),
        ("gzip", [gzip.compress(b"abc") + b"tail"], ProtocolError),
        ("br", [], ProtocolError),
        ("gzip, gzip", [], ProtocolError),
    ],
)
def test_bodies_that_are_not_what_they_say(encoding: str, pieces: list[bytes], error: type[Exception]) -> None:
    with pytest.raises(error):
        body = BodyReader(encoding, 1000, "http://x")
        for piece in pieces:
            body.take(piece)
        body.end()


@pytest.fixture(params=[False, True], ids=["server certificate", "client certificate too"])
def secure(request: pytest.FixtureRequest, authority: Path) -> Iterator[tuple[str, bool]]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    class Quiet(http.server.ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            return

    server = Quiet(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    if request.param:
        context.load_verify_locations(authority / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with listening(server):
        yield f"https://127.0.0.1:{server.server_address[1]}", bool(request.param)


def test_certificates(secure: tuple[str, bool], authority: Path) -> None:
    url, mutual = secure
    ours = NetworkOptions(
        ca_file=str(authority / "ca.pem"),
        client_cert=str(authority / "client.pem"),
        client_key=str(authority / "client.key"),
        retries=0,
    )
    assert get(url, network=ours).status == 200
    with pytest.raises(Unreachable, match="cannot verify the certificate of"):
        get(url, network=NetworkOptions(retries=0))
    without = NetworkOptions(ca_file=str(authority / "ca.pem"), retries=0)
    if mutual:
        with pytest.raises(ConnectionFailed):
            get(url, network=without)
    else:
        assert get(url, network=without).status == 200
        assert get(url, network=NetworkOptions(insecure=True, retries=0)).status == 200


@contextlib.contextmanager
def handshakes(context: ssl.SSLContext | None) -> Iterator[int]:
    """The port of a service that makes TLS handshakes and nothing more; without a context it answers in plain text."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                if context is None:
                    self.request.recv(1 << 16)
                    self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                    return
                with self.request.dup() as kept:
                    try:
                        context.wrap_socket(self.request, server_side=True).close()
                    except ssl.SSLError:
                        # Unread data would reset the connection, and the client would not read why it was refused.
                        while kept.recv(1 << 16):
                            pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def refused(url: str, network: NetworkOptions) -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        get(url, network=network)
    return caught.value


def test_why_tls_failed(authority: Path) -> None:
    ours = NetworkOptions(ca_file=str(authority / "ca.pem"), retries=0)
    with_certificate = NetworkOptions(
        ca_file=ours.ca_file,
        client_cert=str(authority / "client.pem"),
        client_key=str(authority / "client.key"),
        retries=0,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    with handshakes(context) as port:
        stranger = refused(f"https://127.0.0.1:{port}", NetworkOptions(retries=0))
        assert stranger.message.startswith(f"cannot verify the certificate of https://127.0.0.1:{port}: ")
        assert stranger.hint == "use --ca-file FILE if it was issued by a private CA"
        assert refused(f"https://localhost:{port}", ours).hint == "check the host name in the URL"

    with handshakes(None) as port:
        assert refused(f"https://127.0.0.1:{port}", ours).hint == "the service may not use TLS: try http://"

    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with handshakes(context) as port:
        error = refused(f"https://127.0.0.1:{port}", ours)
        assert error.message == f"TLS handshake with https://127.0.0.1:{port} failed: handshake failure"
        assert error.hint == ""

    context.set_ciphers("DEFAULT")
    context.verify_mode = ssl.CERT_REQUIRED
    with handshakes(context) as port:
        error = refused(f"https://127.0.0.1:{port}", with_certificate)
        assert error.message == f"https://127.0.0.1:{port} requires a valid client certificate: unknown CA"
        assert error.hint == "use --client-cert FILE"

    context.maximum_version = ssl.TLSVersion.TLSv1_3
    with handshakes(context) as port:
        error = refused(f"https://127.0.0.1:{port}", ours)
        assert error.message == f"https://127.0.0.1:{port} requires a client certificate"
        assert error.hint == "use --client-cert FILE"
        error = refused(f"https://127.0.0.1:{port}", with_certificate)
        assert error.message == f"https://127.0.0.1:{port} requires a valid client certificate: unknown CA"


def test_a_statement_that_writes_is_not_in_doubt_where_a_client_certificate_is_missing(authority: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    network = NetworkOptions(ca_file=str(authority / "ca.pem"))
    with handshakes(context) as port, pytest.raises(Unreachable) as caught:
        using(
            f"https://127.0.0.1:{port}",
            lambda transport: transport.call(
                "POST", "/v2/statements", lambda answer: answer, content=b"{}", idempotent=False
            ),
            network=network,
        )
    assert caught.value.message.endswith(" requires a client certificate")
    assert caught.value.hint == "use --client-cert FILE"


@pytest.mark.parametrize(
    ("scheme", "content", "message"),
    [
        ("http", b"", "no data from {name} for 0.2 s"),
        ("http", bytes(32 << 20), "sending the request to {name} timed out"),
        ("https", b"", "connection to {name} timed out after 0.1 s"),
    ],
    ids=["response", "request", "TLS handshake"],
)
def test_a_service_that_does_nothing_is_not_waited_for(scheme: str, content: bytes, message: str) -> None:
    network = NetworkOptions(connect_timeout=0.1, read_timeout=0.2, retries=0)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(ConnectionFailed) as caught:
        name = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        using(
            name, lambda transport: transport.call("POST", "/", lambda answer: answer, content=content), network=network
        )
    assert caught.value.message == message.format(name=name)


@contextlib.contextmanager
def dripping(*drops: bytes) -> Iterator[str]:
    """The URL of a service that sends the drops, and the last one again and again."""

    class Dripping(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                for drop in [*drops, *itertools.repeat(drops[-1], 2000)]:
                    self.request.sendall(drop)
                    time.sleep(0.01)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dripping)
    with listening(server):
        yield f"http://127.0.0.1:{server.server_address[1]}"


BEGUN = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"


@pytest.mark.parametrize(
    "drops",
    [[b"HTTP/1.1 100 Continue\r\n\r\n"], [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"], [BEGUN, b" "]],
)
def test_a_request_ends_after_its_time_whatever_arrives(drops: list[bytes]) -> None:
    network = NetworkOptions(timeout=0.2, read_timeout=60)

    async def stream(transport: Transport) -> None:
        async with transport.stream("/", {}) as (response, moved):
            async for piece in response.aiter_raw():
                moved(len(piece))

    with dripping(*drops) as url:
        for work in (lambda transport: transport.call("POST", "/", lambda answer: answer, content=b"{}"), stream):
            with pytest.raises(ConnectionBroken) as caught:
                using(url, work, network=network)
            assert caught.value.message == f"no complete response from {url} within 0.2 s"
            assert caught.value.hint == "use a longer --retry-timeout"


def test_a_slow_response_that_goes_on_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlshell.client.http.transport.SLOWEST", 1)
    network = NetworkOptions(timeout=0.7, read_timeout=0.7)
    with dripping(BEGUN, b" ") as url:
        assert len(get(url, network=network).body) == 100


def test_a_connection_to_a_silent_service_is_closed_at_once(authority: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    left = threading.Event()

    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            # Read without TLS after the handshake, because TLS would answer the client's close_notify.
            with self.request.dup() as plain, context.wrap_socket(self.request, server_side=True):
                plain.settimeout(20)
                with contextlib.suppress(ConnectionResetError):
                    while plain.recv(1 << 16):
                        pass
                left.set()

    server = socketserver.TCPServer(("127.0.0.1", 0), Silent)
    network = NetworkOptions(ca_file=str(authority / "ca.pem"), read_timeout=0.2, retries=0)
    with listening(server), pytest.raises(ConnectionBroken, match="no data from"):
        get(f"https://127.0.0.1:{server.server_address[1]}", network=network)
    assert left.is_set()


def test_a_connection_that_is_reset_is_said_to_be_lost() -> None:
    class Resets(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1)
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.request.close()

    server = socketserver.TCPServer(("127.0.0.1", 0), Resets)
    with listening(server), pytest.raises(ConnectionBroken) as caught:
        name = f"http://127.0.0.1:{server.server_address[1]}"
        get(name, network=NetworkOptions(retries=0))
    assert caught.value.message == f"the connection to {name} was lost: connection reset by peer"


def test_a_key_that_has_a_passphrase(authority: Path, tmp_path: Path) -> None:
    certificate, locked = authority / "client.pem", tmp_path / "locked.key"
    lock = ["openssl", "pkey", "-aes256", "-passout", "pass:x", "-in", str(authority / "client.key")]
    subprocess.run([*lock, "-out", str(locked)], check=True, capture_output=True)
    with pytest.raises(UsageError) as caught:
        NetworkOptions(client_cert=str(certificate), client_key=str(locked)).tls()
    assert caught.value.message == f"cannot use the client certificate {certificate} {locked}: the key has a passphrase"
    assert caught.value.hint == "the certificate and key must be PEM files, and the key must not have a passphrase"


def test_an_expired_certificate_needs_no_private_authority() -> None:
    expired = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED]")
    expired.verify_code, expired.verify_message = 10, "certificate has expired"
    error = connection_failed("https://x", expired)
    assert (error.message, error.hint) == ("cannot verify the certificate of https://x: certificate has expired", "")


@pytest.mark.parametrize(
    "network",
    [
        NetworkOptions(ca_file="nowhere.pem"),
        NetworkOptions(ca_file=__file__),
        NetworkOptions(client_cert="nowhere.pem"),
        NetworkOptions(client_key="nowhere.key"),
    ],
)
def test_files_that_hold_no_certificates(network: NetworkOptions) -> None:
    with pytest.raises(UsageError):
        get("https://127.0.0.1:1", network=network)


def test_which_authorities_are_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, authority: Path) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
    assert NetworkOptions().tls().cert_store_stats()["x509_ca"] == 1
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nowhere"))
    assert NetworkOptions(ca_file=str(authority / "ca.pem")).tls().cert_store_stats()["x509_ca"] == 1
    context = NetworkOptions().tls()
    assert context.cert_store_stats()["x509_ca"] > 20
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    context = NetworkOptions(insecure=True).tls()
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)


@pytest.mark.parametrize(
    ("environ", "url", "expected"),
    [
        ({"HTTPS_PROXY": "http://p:1"}, "https://host/v2", "http://p:1"),
        ({"https_proxy": "p:1"}, "https://host/v2", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "http://host/v2", ""),
        ({"HTTP_PROXY": "http://p:1"}, "http://host/v2", "http://p:1"),
        ({"ALL_PROXY": "socks5://p:1"}, "https://host/v2", "socks5://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "host,other"}, "https://host/v2", ""),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example"}, "https://a.example/v2", ""),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "https://host/v2", ""),
        ({"HTTP_PROXY": "http://p:1"}, "http://127.0.0.1:5/v2", ""),
        ({"HTTP_PROXY": "http://p:1"}, "http://localhost:5/v2", ""),
    ],
)
def test_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], url: str, expected: str
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(parse(url)) == expected


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://user:s3cret@p:1", "unsupported proxy scheme ftp://"),
        ("http://user:s3cret@p:wrong", "cannot use the proxy p:wrong: "),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str, message: str
) -> None:
    for name in ("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", url)
    with pytest.raises(UsageError) as caught:
        get("http://sql.invalid/v2")
    assert caught.value.message.startswith(message)
    assert "s3cret" not in f"{caught.value.message} {caught.value.hint}"


def test_a_request_goes_by_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted((200, {})) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert get("http://sql.invalid/v2").status == 200
    assert proxy.asked[0][1] == "http://sql.invalid/v2/version"


@contextlib.contextmanager
def generous() -> Iterator[tuple[str, list[int]]]:
    """A server whose first answer in a connection comes with a second that nobody asked for: its URL, and how many
    requests came over each connection."""
    whole = b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    came: list[int] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            came.append(0)
            number = len(came) - 1
            with contextlib.suppress(OSError):
                while any(list(iter(lambda: self.rfile.readline().strip(), b""))):
                    came[number] += 1
                    self.wfile.write(whole % 200 + whole % 299)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", came
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("by_proxy", [False, True])
def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next(
    by_proxy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(transport: Transport) -> list[int]:
        return [(await transport.get("/v2/version")).status for _ in range(3)]

    with generous() as (url, came):
        if by_proxy:
            monkeypatch.setenv("http_proxy", url)
            monkeypatch.delenv("no_proxy", raising=False)
            monkeypatch.delenv("NO_PROXY", raising=False)
            url = "http://sql.invalid/v2"
        assert using(url, work) == [200, 200, 200]
    assert came == [1, 1, 1]


def test_redirects_are_not_followed() -> None:
    with scripted((307, b"")) as state, pytest.raises(ServiceError, match="redirects"):
        run(state)
    assert len(state.asked) == 1


def test_refused_tokens_are_told_as_that() -> None:
    with scripted((401, {"message": "no"})) as state, pytest.raises(NotAuthenticated):
        run(state)


def traced(level: int, *answers: tuple[int, Any], sql: str) -> str:
    told: list[str] = []

    async def work(transport: Transport) -> None:
        body = json.dumps({"statement": sql}).encode()
        await transport.call(
            "POST", "/v2/statements", lambda answer: answer, content=body, content_type="application/json"
        )

    with scripted(*answers) as state:
        using(state.url, work, token="s3cr3t-token", trace=Trace(told.append, lambda: level, redacted))
    return "\n".join(told)


def test_a_line_for_each_request() -> None:
    assert traced(0, (200, {}), sql="select 1") == ""
    text = traced(1, (200, done(data=[["1"]])), sql="select 1")
    assert len(text.splitlines()) == 1
    assert "POST" in text
    assert f" 200 {len(json.dumps(done(data=[['1']])))} bytes " in text
    assert "ms" in text
    assert done()["statementID"] in text


def test_requests_are_numbered_and_failures_are_traced() -> None:
    told: list[str] = []

    async def work(transport: Transport) -> None:
        await transport.get("/v2/version")
        with pytest.raises(ConnectionBroken):
            await transport.call("POST", "/v2/statements", lambda answer: answer, content=b"x")
        async with transport.stream("/v2/download/x", {}) as (response, _):
            assert await response.aread() == b"{}"

    with scripted((200, {}), (0, "break"), (200, {})) as state:
        using(state.url, work, trace=Trace(told.append, lambda: 1))
    first, second, third = told
    assert first.startswith(f"#1 GET {state.url}/v2/version 200 2 bytes ")
    assert second.startswith(f"#2 POST {state.url}/v2/statements failed after ")
    assert " ms: " in second
    assert "closed the connection without a response" in second
    assert third.startswith(f"#3 GET {state.url}/v2/download/x 200 0 bytes ")


def test_a_token_that_was_made_again_is_not_shown_either() -> None:
    async def renew() -> str:
        return "made-again-token-1"

    with scripted((401, {}), (200, {"message": "made-again-token-1"})) as state:
        assert json.loads(get(state.url, renew=renew).body) == {"message": "***"}


def test_a_connection_whose_response_was_not_read_to_its_end_is_closed() -> None:
    async def work(transport: Transport) -> None:
        async with transport.stream("/", {}) as (response, _):
            await anext(response.aiter_raw())
        assert transport._pool is not None
        assert transport._pool._pool.connections == []
        with pytest.raises(TooLarge, match="larger than"):
            await transport.get("/")
        assert transport._pool._pool.connections == []

    with scripted((200, bytes(8 << 20))) as state:
        using(state.url, work, network=NetworkOptions(retries=0, answer_limit=1 << 20))


def test_no_secret_is_shown() -> None:
    answer = done(
        data=[["row-secret", "kept"], [None, "kept too"]],
        metadata={
            "columns": [{"name": "api_token"}, {"name": "b"}],
            "dataplaneRequest": {"token": "plane-secret", "uri": "https://x/v2"},
        },
    )
    sql = "create store s with ('kafka.sasl.password' = 'sql-secret', 'uri' = 'shown')"
    text = traced(2, (200, answer), sql=sql)
    for secret in ("s3cr3t-token", "row-secret", "plane-secret", "sql-secret"):
        assert secret not in text
    for shown in ("kept too", "Authorization: ***", "create store s", "https://x/v2"):
        assert shown.lower() in text.lower()


def test_of_a_long_body_only_the_beginning_is_shown() -> None:
    body = b'{"token": "plane-secret", "metadata": {}, "data":[' + b'["row-secret"],' * 20_000
    text = trace.shown_body(body, redacted)
    assert len(text) < 3_000
    assert "plane-secret" not in text
    assert "row-secret" not in text


@pytest.mark.parametrize(("size", "whole"), [(trace.SHOWN_BYTES, True), (trace.SHOWN_BYTES + 1, False)])
def test_a_body_of_up_to_the_limit_is_shown_whole(size: int, whole: bool) -> None:
    body = json.dumps({"statement": "x" * (size - len('{"statement": ""}'))})
    assert len(body) == size
    assert (trace.shown_body(body.encode(), lambda sql: sql) == body) is whole


@pytest.mark.parametrize("rows", [1, 2_000])
def test_the_statements_of_a_batch_are_shown_without_their_secrets(rows: int) -> None:
    secret = "create secret s (password 'hunter2')"
    others = ["insert into t values ('long enough to fill a page')"] * rows
    body = json.dumps({"database": "d", "statements": [secret, *others]})
    shown = trace.shown_body(body.encode(), lambda sql: sql.replace("hunter2", "***"))
    assert "hunter2" not in shown
    assert "create secret" in shown


def test_retries_wait_longer_each_time_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.25)
    waits = [retries.backoff(attempt) for attempt in range(40)]
    assert all(
        first * 0.75 <= wait <= first * 1.25 for first, wait in zip((0.25, 0.5, 1, 2, 4, 8), waits, strict=False)
    )
    assert all(6 <= wait <= 10 for wait in waits[5:])
    assert len(set(waits)) > 30


def test_each_address_of_a_name_is_checked_before_any_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    found: list[str] = []

    def look_up(host: str, port: int, *_: object, flags: int = 0, **__: object) -> list[Any]:
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not an address")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    def check(address: str) -> None:
        checked.append(address)
        if address.startswith("10."):
            raise ServiceError("private")

    async def reach(addresses: list[str], port: int) -> str:
        found[:] = addresses
        checked.clear()
        with await open_socket("service.test", port, check) as sock:
            return str(sock.getpeername()[0])

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        # Nothing listens at the first address, on whatever system.
        assert asyncio.run(reach(["127.0.0.2", "127.0.0.1"], port)) == "127.0.0.1"
        assert checked == ["127.0.0.2", "127.0.0.1"]
        with pytest.raises(ServiceError, match="private"):
            asyncio.run(reach(["127.0.0.1", "10.0.0.1"], port))
        with pytest.raises(ConnectionRefusedError):
            asyncio.run(reach(["127.0.0.1", "127.0.0.1"], unused.getsockname()[1]))
