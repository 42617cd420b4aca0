"""Attacks below SQL: connections, headers, bodies, clients that do not read."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os

from tests.benchmarks.hostile.target import Attack, Target, Wire

LARGE = "select repeat('x', 100000000) as x"
"""A result of one row of 100 MB."""


async def _hold(target: Target, number: int, sent: bytes, drip: bytes = b"", every: float = 1.0) -> None:
    """Open connections, send something over each, then a little now and then, and read nothing."""
    held: list[Wire] = []
    try:
        left = iter(range(number))

        async def dial() -> None:
            for _ in left:
                if not target.going():
                    break
                with target.failures():
                    wire = await target.dial()
                    wire[1].write(sent)
                    held.append(wire)
                    target.count("opened")

        await asyncio.gather(*(dial() for _ in range(100)))
        while target.going():
            await asyncio.sleep(every)
            for _, writer in held:
                if drip and not writer.is_closing():
                    with target.failures():
                        writer.write(drip)
    finally:
        target.count("still open", sum(1 for reader, writer in held if not (reader.at_eof() or writer.is_closing())))
        for _, writer in held:
            writer.transport.abort()


async def slow_headers(target: Target) -> None:
    await _hold(target, 500, b"POST /v2/statements HTTP/1.1\r\nHost: x\r\n", b"X-A: b\r\n")


async def slow_bodies(target: Target) -> None:
    kind = ("Content-Type: application/json", "Content-Length: 1000000")
    await _hold(target, 500, target.head("POST /v2/statements HTTP/1.1", *kind) + b'{"statement":"', b"x")


async def slow_strangers(target: Target) -> None:
    """Bodies that drip in, with a token that nobody knows: their refusals wait for them."""
    kind = ("Content-Type: application/json", "Content-Length: 1000000")
    head = target.head("POST /v2/statements HTTP/1.1", *kind).replace(target.token.encode(), b"unknown")
    await _hold(target, 500, head + b'{"statement":"', b"x", 0.5)


async def slow_websockets(target: Target) -> None:
    key = base64.b64encode(os.urandom(16)).decode()
    lines = ("Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13")
    path = "/v2/streams/00000000-0000-0000-0000-000000000000"
    # A text frame that is not the last one of its message, and then empty ones.
    first = bytes([0x01, 0x80, 0, 0, 0, 0])
    await _hold(target, 500, target.head(f"GET {path} HTTP/1.1", *lines) + first, bytes([0x00, 0x80, 0, 0, 0, 0]) * 100)


async def idle_connections(target: Target) -> None:
    await _hold(target, 10_000, b"")


async def silent_readers(target: Target) -> None:
    """Eight connections that ask for 100 MB each, again and again, and take nothing."""
    async with target.client() as client:
        found = (await target.run(client, LARGE)).get("statementID", "")
    asked = target.head(f"GET /v2/statements/{found} HTTP/1.1")
    held: list[Wire] = []
    for _ in range(8):
        with target.failures():
            reader, writer = await target.dial()
            # asyncio reads ahead of who asks for it: stopped, so that nothing is taken.
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(asked * 4)
            held.append((reader, writer))
            target.count("opened")
    await target.rest()
    for _, writer in held:
        writer.transport.abort()


async def gzip_bombs(target: Target) -> None:
    bomb = gzip.compress(json.dumps({"statement": "select '" + " " * (50 << 20) + "'"}).encode(), 1)
    kind = ("Content-Type: application/json", "Content-Encoding: gzip", f"Content-Length: {len(bomb)}")

    async def send() -> None:
        await _exchange(target, target.head("POST /v2/statements HTTP/1.1", *kind), bomb)

    async with target.together(send, 4):
        pass


async def many_parts(target: Target) -> None:
    part = b'--X\r\nContent-Disposition: form-data; name="other"\r\n\r\n\r\n'
    await _post_form(target, part, 20_000)


async def long_part_headers(target: Target) -> None:
    name = (
        b'--X\r\nContent-Disposition: form-data; name="' + b"n" * 8000 + b'"\r\nX-A: ' + b"a;" * 3000 + b"\r\n\r\n\r\n"
    )
    await _post_form(target, name, 1_000)


async def _post_form(target: Target, part: bytes, number: int) -> None:
    body = part * number + b"--X--\r\n"
    kind = ("Content-Type: multipart/form-data; boundary=X", f"Content-Length: {len(body)}")

    async def send() -> None:
        await _exchange(target, target.head("POST /v2/statements HTTP/1.1", *kind), body)

    async with target.together(send, 4):
        pass


async def deep_json(target: Target) -> None:
    depth = 2_000_000
    await _post_json(target, b'{"statement":"select 1","x":' + b"[" * depth + b"]" * depth + b"}")


async def many_keys(target: Target) -> None:
    keys = b",".join(b'"k%d":%d' % (number, number) for number in range(1_000_000))
    await _post_json(target, b'{"statement":"select 1",' + keys + b"}")


async def _post_json(target: Target, body: bytes) -> None:
    kind = ("Content-Type: application/json", f"Content-Length: {len(body)}")

    async def send() -> None:
        await _exchange(target, target.head("POST /v2/statements HTTP/1.1", *kind), body)

    async with target.together(send, 4):
        pass


async def malformed_json(target: Target) -> None:
    """16 MiB of text that end in the middle of a string."""
    await _post_json(target, b'{"statement":"' + b"x" * (16 << 20))


async def strangers(target: Target) -> None:
    """Large bodies with a token that nobody knows."""
    body = json.dumps({"statements": [f"select {number}" for number in range(1000)], "x": "y" * (1 << 20)}).encode()
    head = target.head("POST /v2/statements HTTP/1.1", "Content-Type: application/json", f"Content-Length: {len(body)}")

    async def send() -> None:
        await _exchange(target, head.replace(target.token.encode(), b"unknown"), body)

    async with target.together(send, 8):
        pass


async def large_strangers(target: Target) -> None:
    """Bodies as large as are read before they are refused, with a token that nobody knows."""
    body = b" " * (15 << 20)
    head = target.head("POST /v2/statements HTTP/1.1", "Content-Type: application/json", f"Content-Length: {len(body)}")

    async def send() -> None:
        await _exchange(target, head.replace(target.token.encode(), b"unknown"), body)

    async with target.together(send, 4):
        pass


async def long_headers(target: Target) -> None:
    """A header without end, before any token."""
    piece = b"a" * (1 << 20)

    async def send() -> None:
        _, writer = await target.dial()
        try:
            writer.write(b"GET /v2/version HTTP/1.1\r\nHost: x\r\nX-A: ")
            for _ in range(100):
                if not target.going():
                    break
                writer.write(piece)
                await writer.drain()
                target.count("MiB")
        finally:
            writer.transport.abort()

    async with target.together(send, 4):
        pass


async def pipelined(target: Target) -> None:
    """Requests without end over each connection, whose answers nobody reads."""
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: %s\r\n\r\n" % f"{target.address[0]}:{target.address[1]}".encode()

    async def send() -> None:
        _, writer = await target.dial()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        try:
            while target.going():
                writer.write(asked * 5_000)
                target.count("requests", 5_000)
                async with asyncio.timeout(2):
                    await writer.drain()
        except TimeoutError:
            target.count("held back")
        finally:
            writer.transport.abort()

    async with target.together(send, 20):
        pass


async def requests(target: Target) -> None:
    """Small requests over many connections, each as soon as the last one is answered."""
    asked = target.head("GET /v2/version HTTP/1.1")

    async def send() -> None:
        reader, writer = await target.dial()
        try:
            while target.going():
                writer.write(asked)
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0]))
                target.count(head[9:12].decode())
        finally:
            writer.transport.abort()

    async with target.together(send, 200):
        pass


async def connection_storm(target: Target) -> None:
    """Connections that are opened and closed as fast as one process can."""

    async def dial() -> None:
        _, writer = await target.dial()
        target.count("opened")
        writer.transport.abort()

    async with target.together(dial, 50):
        pass


async def small_chunks(target: Target) -> None:
    """A body in chunks of one byte, with long extensions in between."""
    kind = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    piece = b"1\r\n \r\n" * 20_000 + b"1;" + b"e" * 200_000 + b"\r\n \r\n"

    async def send() -> None:
        await _exchange(target, target.head("POST /v2/statements HTTP/1.1", *kind), piece * 20)

    async with target.together(send, 4):
        pass


async def _exchange(target: Target, head: bytes, body: bytes) -> None:
    """Send one request and read the first line of its answer."""
    reader, writer = await target.dial()
    try:
        writer.write(head + body)
        async with asyncio.timeout(20):
            line = await reader.readline()
        target.count(line.split(b" ")[1].decode() if line else "cut off")
    except TimeoutError:
        target.count("no answer")
    finally:
        writer.transport.abort()


WIRE: dict[str, Attack] = {
    "slowloris, headers": slow_headers,
    "slowloris, bodies": slow_bodies,
    "slowloris, unknown tokens": slow_strangers,
    "slowloris, websockets": slow_websockets,
    "10,000 idle connections": idle_connections,
    "silent readers of 100 MB": silent_readers,
    "gzip bombs": gzip_bombs,
    "multipart, many parts": many_parts,
    "multipart, long headers": long_part_headers,
    "deep JSON": deep_json,
    "JSON of a million keys": many_keys,
    "malformed JSON": malformed_json,
    "unknown tokens": strangers,
    "unknown tokens, large bodies": large_strangers,
    "headers without end": long_headers,
    "pipelined requests": pipelined,
    "200 clients that ask at once": requests,
    "connection storm": connection_storm,
    "small chunks": small_chunks,
}
