"""A hostile service on a real socket: responses that grow in memory, and responses that contain our secrets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import socketserver
import struct
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from sqlshell.client.http.decompress import (
    BYTES_PER_ROW,
    BYTES_PER_VALUE,
    ERROR_BYTES,
    MOST_BYTES,
    UNANNOUNCED_BYTES,
    UNCOUNTED_BYTES,
    count_values,
    size_limit,
)
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.trace import Trace
from sqlshell.client.http.transport import Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.secret_values import Secrets
from sqlshell.client.statements.polling import StatementsClient, Submission
from sqlshell.client.statements.protocol import COLUMN_LIMIT, PARTITION_LIMIT
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import ServiceError, ShellError

TOKEN = "tok-Zf3+q/9Xw_7Lr~k2"
STATEMENT = "11111111-2222-3333-4444-555555555555"
MIB = 1 << 20


@contextlib.contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """A server that gives these answers, whole with their heads, one for each connection; the last for ever."""
    given = list(answers)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            length = 0
            while (line := self.rfile.readline()) not in {b"\r\n", b""}:
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            self.rfile.read(length)
            with contextlib.suppress(OSError):
                self.wfile.write(given.pop(0) if len(given) > 1 else given[0])

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def whole(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *lines])
    return head.encode() + b"\r\n\r\n" + body


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""])


def bomb(piece: bytes, times: int, around: tuple[bytes, bytes] = (b"", b""), *, gzip: bool = False) -> bytes:
    """What `piece`, so many times, is when it is compressed: it is compressed once."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    # A flush that is full ends on a byte, and what follows refers to nothing before it.
    first, middle = (packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH) for part in (around[0], piece))
    packed = first + middle * times + packer.compress(around[1]) + packer.flush()
    check, ended = (zlib.crc32, 0) if gzip else (zlib.adler32, 1)
    for part in (around[0], *[piece] * times, around[1]):
        ended = check(part, ended)
    if gzip:
        size = len(piece) * times + sum(map(len, around))
        return b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + packed + struct.pack("<II", ended, size)
    return b"\x78\x9c" + packed + struct.pack(">I", ended)


def zeros(mebibytes: int, around: tuple[bytes, bytes] = (b"", b"")) -> bytes:
    return bomb(b"0" * MIB, mebibytes, around, gzip=True)


def result(rows: list[list[str | None]], **more: Any) -> dict[str, Any]:
    columns = [{"name": f"c{number}", "type": "VARCHAR", "nullable": True} for number in range(len(rows[0]))]
    metadata = {"encoding": "json", "partitionInfo": [{"rowCount": len(rows)}], "columns": columns}
    return {"sqlState": "00000", "statementID": STATEMENT, "createdOn": 1, "metadata": metadata, "data": rows} | more


def run(url: str, token: str = TOKEN, level: int = 0, **network: Any) -> tuple[list[list[str | None]], str, str]:
    """The rows, the error in words, and all that was told."""
    told: list[str] = []

    async def work() -> tuple[list[list[str | None]], str]:
        trace = Trace(told.append, lambda: level)
        transport = Transport(
            parse(url), token, network=NetworkOptions(retries=0, **network), trace=trace, say=told.append
        )
        statements = StatementsClient(transport, ResultFactory(transport))
        rows: list[list[str | None]] = []
        try:
            async for given in statements.run(Submission("select 1", repeatable=True), SessionContext()):
                async for batch in given.batches:
                    rows += batch.rows
        except ShellError as error:
            return rows, f"{error.message} | {error.hint}"
        finally:
            await statements.aclose()
        return rows, ""

    rows, error = asyncio.run(work())
    return rows, error, "\n".join(told)


def listing(columns: int, partitions: int) -> bytes:
    """A response with so many columns and partitions, compressed to a few KiB."""
    head = b'{"sqlState":"00000","statementID":"' + STATEMENT.encode() + b'","metadata":{"partitionInfo":['
    listed = [b",".join([b'{"rowCount":0}'] * partitions), b",".join([b'{"name":"c","type":"VARCHAR"}'] * columns)]
    return whole(gzip.compress(head + b'],"columns":['.join(listed) + b']},"data":[]}'), Content_Encoding="gzip")


def row_of(values: int) -> bytes:
    head = b'{"sqlState":"00000","statementID":"' + STATEMENT.encode() + b'","metadata":{},"data":[['
    return whole(gzip.compress(head + b",".join([b'""'] * values) + b"]]}"), Content_Encoding="gzip")


BOMB = (b'{"sqlState":"00000","statementID":"' + STATEMENT.encode() + b'","data":[["', b'"]]}')


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (lambda: whole(zeros(400, BOMB), Content_Encoding="gzip"), "64 MiB"),
        (lambda: whole(zeros(400), "500 Failed", Content_Encoding="gzip"), "1 MiB"),
        (lambda: whole(zeros(400), "404 Not Found", Content_Encoding="x-gzip"), "1 MiB"),
        (lambda: whole(bomb(b"[" * MIB, 300), Content_Encoding="deflate"), "64 MiB"),
        (lambda: whole(bomb(b"[]," * MIB, 10, (b'{"data":[', b"")), Content_Encoding="deflate"), "values"),
        (
            lambda: whole(bomb(b"{}," * MIB, 10, (b'{"metadata":{"columns":[', b"")), Content_Encoding="deflate"),
            "values",
        ),
        (lambda: whole(bomb(b'","' * MIB, 10, (b'{"statementIDs":["', b"")), Content_Encoding="deflate"), "values"),
        (lambda: listing(COLUMN_LIMIT + 1, 1), "more than 100,000 columns"),
        (lambda: listing(1_000_000, 1), "more than 100,000 columns"),
        (lambda: listing(1, PARTITION_LIMIT + 1), "more than 1,000,000 partitions"),
        (lambda: row_of(COLUMN_LIMIT + 1), "a row with more than 100,000 values"),
        (lambda: whole(b"\x28\xb5\x2f\xfd", Content_Encoding="zstd"), "unsupported"),
        (lambda: whole(b"\x1b\x03", Content_Encoding="br"), "unsupported"),
    ],
)
def test_no_answer_takes_more_memory_than_its_bound(answer: Callable[[], bytes], names: str) -> None:
    with answering(answer()) as url:
        tracemalloc.start()
        try:
            rows, error, _ = run(url)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert rows == []
    assert names in error
    assert any(word in error for word in ("answer_limit", "unsupported", "500", "404", "more than"))
    # A buffer that grows is there twice for a moment.
    assert peak < 2.5 * UNANNOUNCED_BYTES, f"{peak:,} bytes"


def test_the_bound_is_the_persons_where_they_give_one() -> None:
    big = whole(json.dumps(result([["x" * 3 * MIB]])).encode())
    with answering(big) as url:
        assert run(url)[1] == ""
        assert "2 MiB" in run(url, answer_limit=2 * MIB)[1]
    assert size_limit(0, None) == UNANNOUNCED_BYTES
    assert size_limit(0, 1_000) == UNANNOUNCED_BYTES + 1_000 * BYTES_PER_ROW
    assert size_limit(0, 10**12) == MOST_BYTES
    assert size_limit(5, 10**12) == 5
    assert ERROR_BYTES < UNANNOUNCED_BYTES
    assert UNCOUNTED_BYTES >= UNANNOUNCED_BYTES // BYTES_PER_VALUE // 4
    assert count_values(b'{"data":[["a",null]]}') == 4


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


ECHOES = {
    "plain": TOKEN,
    "bearer": f"Bearer {TOKEN}",
    "url": quote(TOKEN, safe=""),
    "base64": b64(TOKEN),
    "base64 of the header": b64(f"Bearer {TOKEN}"),
    "basic": b64(f":{TOKEN}"),
    "basic with a user": b64(f"user1:{TOKEN}"),
    "base64 of more": b64(json.dumps({"authorization": f"Bearer {TOKEN}", "z": 1})),
    "base64 for URLs": base64.urlsafe_b64encode(f"x{TOKEN}".encode()).decode(),
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_a_value_is_found_as_it_may_be_written(echo: str) -> None:
    secrets = Secrets()
    secrets.add(TOKEN)
    shown = secrets.text(f"you are {echo}, or not")
    assert shown.startswith("you are ")
    assert "***" in shown
    assert shown.endswith(", or not")
    assert TOKEN[4:-4] not in shown
    assert echo not in shown
    assert secrets.body(f"you are {echo}, or not".encode()) == shown.encode()


def test_a_service_that_gives_our_token_back_does_not_get_it_shown() -> None:
    echo = " ".join(ECHOES.values())
    say = f"you are {echo}, or not"
    failed = {"sqlState": "42601", "message": say, "statementID": STATEMENT}
    answers = (
        whole(json.dumps(result([[say, "kept"]], message=say)).encode(), X_Echo=say),
        chunked(json.dumps(result([[say, "kept"]])).encode(), 7),
        whole(json.dumps(failed).encode()),
        whole(json.dumps({"message": say, "traceID": say}).encode(), "400 Bad Request"),
        whole(say.encode(), "500 Failed", Content_Type="text/plain"),
        whole(f"<html><title>{say}</title>".encode(), "502 Bad Gateway", Content_Type="text/html"),
        whole(b"", "307 Temporary Redirect", Location=f"https://elsewhere.example/{echo}"),
        whole(b"{}", "401 Unauthorized", WWW_Authenticate=f'Bearer realm="{echo}"'),
        whole(b"", f"200 {echo.replace(' ', '')}", Content_Encoding=echo),
        whole(json.dumps({"sqlState": "00000", "statementID": STATEMENT, "metadata": {"encoding": echo}}).encode()),
        b"HTTP/1.1 " + echo.encode() + b"\r\n\r\n",
        f"{echo}\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\n{echo}\r\n\r\n".encode(),
    )
    for number, answer in enumerate(answers):
        with answering(answer) as url:
            rows, error, told = run(url, level=2)
        shown = "\n".join([str(rows), error, told])
        for form in (*ECHOES.values(), b64(TOKEN)[:-4]):
            assert form not in shown, (number, form, shown)
        if number < 2:
            assert rows[0][1] == "kept"


def test_a_token_that_is_a_word_is_not_taken_out_of_rows() -> None:
    with answering(whole(json.dumps(result([["a statementID"]])).encode())) as url:
        assert run(url, token="statementID")[:2] == ([["a statementID"]], "")


def test_a_long_body_is_searched_too() -> None:
    rows: list[list[str | None]] = [["x" * 100, TOKEN]]
    rows += [["y" * 100, "z"]] * 2_000
    with answering(whole(json.dumps(result(rows)).encode())) as url:
        assert run(url)[0][0] == ["x" * 100, "***"]


def test_a_data_plane_may_be_named_again_with_the_token_that_it_has() -> None:
    secrets = Secrets()
    secrets.add("plane-token-1", from_service=True)
    secrets.add("api-token-1")
    answer = b'{"token":"plane-token-1","message":"api-token-1"}'
    assert secrets.body(answer, from_service=False) == b'{"token":"plane-token-1","message":"***"}'
    assert secrets.body(answer) == b'{"token":"***","message":"***"}'
    assert secrets.text(answer.decode()) == '{"token":"***","message":"***"}'


def test_which_values_are_looked_for() -> None:
    for value, in_text, in_rows in (
        ("abc", False, False),
        ("abcd", True, False),
        ("abcd-12", True, False),
        ("abcd-123", True, True),
        ("abcdefghi", True, False),
        ("123456789", True, False),
    ):
        secrets = Secrets()
        secrets.add(value)
        assert (secrets.text(f"[{value}]") == "[***]") is in_text
        assert (secrets.body(f"[{value}]".encode()) == b"[***]") is in_rows
    secrets = Secrets()
    secrets.add("api-token-1")
    secrets.add("api-token-1", from_service=True)
    secrets.add("plane-token-1", from_service=True)
    assert secrets.own() == ["api-token-1"]
    assert secrets.body(b"api-token-1 plane-token-1", from_service=False) == b"*** plane-token-1"
    assert Secrets().text("\udcff") == "\udcff"
    with pytest.raises(ServiceError) as caught, secrets.redacting():
        raise ServiceError("no api-token-1", "ask plane-token-1")
    assert (caught.value.message, caught.value.hint) == ("no ***", "ask ***")


def test_a_value_is_found_whatever_is_around_it() -> None:
    secrets = Secrets()
    secrets.add("a/b+c-1234")
    for form in (b"a/b+c-1234", b"a%2Fb%2Bc-1234"):
        assert secrets.body(b"<" + form + b"><" + form + b">") == b"<***><***>"
    untouched = b"\\\\u0061/b \\u0041 a/b+c-123"
    assert secrets.body(untouched) == untouched


def test_the_password_of_a_proxy_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = whole(f"you are p%40ss-word-1, {b64('u:p@ss-word-1')}".encode(), "407 Who")
    with answering(answer) as url:
        monkeypatch.setenv("http_proxy", url.replace("://", "://u:p%40ss-word-1@"))
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        _, error, told = run("http://sql.invalid", level=2)
    for secret in ("p@ss-word-1", "p%40ss-word-1", b64("u:p@ss-word-1")[4:-4]):
        assert secret not in error + told
