"""A proxy between client and service that breaks single exchanges."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

FAULTS = (
    "cut before the request is passed on",
    "cut after the request is passed on",
    "cut in the head",
    "cut in mid-body",
    "reset in mid-body",
    "truncate the body and its length",
    "duplicate the answer",
    "corrupt the head",
    "corrupt the body",
    "delay",
    "throttle",
    "answer 408",
    "answer 429 with Retry-After",
    "answer 500",
    "answer 502 with HTML",
    "answer 503",
    "answer 504",
    "storm of 503",
    "another partition's answer",
    "an empty answer",
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request that passes: `number` counts from 0."""

    number: int
    method: str
    path: str


Choose = Callable[[Exchange], str]
"""The fault of an exchange, "" for none."""


class Proxy:
    """Runs in a thread of its own. `passed` are the requests that the service was given."""

    def __init__(self, upstream: str, choose: Choose) -> None:
        parts = urlsplit(upstream)
        assert parts.hostname is not None
        assert parts.port is not None
        self._upstream = (parts.hostname, parts.port)
        self._choose = choose
        self._count = 0
        self._last = b""
        self.passed: list[str] = []
        self.seen: list[Exchange] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._ready.wait(10)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 24))
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        self._loop.run_forever()
        # A connection that was accepted is only closed if its task begins, and it does not begin after server.close().
        for listener in server.sockets:
            self._loop.remove_reader(listener.fileno())
        self._loop.run_until_complete(_turns())
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(_turns())
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                continue
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await _message(reader)
        method, path, _ = request.split(b"\r\n", 1)[0].decode().split(" ")
        exchange = Exchange(self._count, method, path)
        self._count += 1
        self.seen.append(exchange)
        fault = self._choose(exchange)
        if fault == "cut before the request is passed on":
            return False
        if fault.startswith("answer ") or fault == "storm of 503":
            writer.write(_refusal(fault))
            await writer.drain()
            return True
        answer = await self._asked(request)
        self.passed.append(f"{method} {path}")
        previous, self._last = self._last, answer
        return await _broken(fault, answer, previous, writer)

    async def _asked(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*self._upstream, limit=1 << 26)
        try:
            ours, theirs = self.url.removeprefix("http://"), f"{self._upstream[0]}:{self._upstream[1]}"
            writer.write(request.replace(ours.encode(), theirs.encode(), 1))
            await writer.drain()
            return await _message(reader)
        finally:
            writer.close()


async def _turns() -> None:
    """Lets the loop finish what it has begun, however late the thread is given its turn."""
    for _ in range(20):
        await asyncio.sleep(0)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return head + await reader.readexactly(int(line.partition(b":")[2]))
    return head


def _refusal(fault: str) -> bytes:
    code = {"storm of 503": "503"}.get(fault) or fault.split()[1]
    body = b"<html><title>Bad gateway</title></html>" if "HTML" in fault else b'{"message": "not now"}'
    kind = b"text/html" if "HTML" in fault else b"application/json"
    after = b"Retry-After: 0\r\n" if "Retry-After" in fault else b""
    return b"HTTP/1.1 %s No\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s" % (
        code.encode(),
        kind,
        after,
        len(body),
        body,
    )


async def _broken(fault: str, answer: bytes, previous: bytes, writer: asyncio.StreamWriter) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    half = len(head) + 4 + len(body) // 2
    match fault:
        case "cut after the request is passed on":
            return False
        case "cut in the head":
            writer.write(answer[: len(head) // 2])
            return False
        case "cut in mid-body":
            writer.write(answer[:half])
            return False
        case "reset in mid-body":
            writer.write(answer[:half])
            await writer.drain()
            given: socket.socket = writer.get_extra_info("socket")
            given.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        case "truncate the body and its length":
            writer.write(_with_body(head, body[: len(body) // 2]))
        case "duplicate the answer":
            writer.write(answer)
            writer.write(answer)
        case "corrupt the head":
            writer.write(b"\x16\x03\x01" + answer[3:])
        case "corrupt the body":
            middle = len(body) // 2
            writer.write(_with_body(head, body[:middle] + b"\xff\x00]" + body[middle + 3 :]))
        case "delay":
            await asyncio.sleep(0.05)
            writer.write(answer)
        case "throttle":
            step = max(1, len(answer) // 20)
            for start in range(0, len(answer), step):
                writer.write(answer[start : start + step])
                await asyncio.sleep(0.002)
        case "another partition's answer":
            writer.write(previous or answer)
        case "an empty answer":
            writer.write(_with_body(head, b""))
        case _:
            writer.write(answer)
    await writer.drain()
    return True


def _with_body(head: bytes, body: bytes) -> bytes:
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length:")]
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])


@contextmanager
def proxied(upstream: str, choose: Choose) -> Iterator[Proxy]:
    proxy = Proxy(upstream, choose)
    try:
        yield proxy
    finally:
        proxy.close()
