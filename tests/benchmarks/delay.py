"""A slow network: a TCP proxy that delays all data in both directions."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit


@contextlib.contextmanager
def away(url: str, seconds: float) -> Iterator[str]:
    """The URL of a service that is `seconds` farther away than `url`, each way."""
    parts = urlsplit(url)
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    found: list[int] = []

    async def serve() -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_connection(parts.hostname, parts.port)
            host = f"Host: 127.0.0.1:{found[0]}".encode(), f"Host: {parts.netloc}".encode()
            await asyncio.gather(_pass(reader, back, seconds, *host), _pass(there, writer, seconds))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        found.append(server.sockets[0].getsockname()[1])
        ready.set()

    def work() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve())
        loop.run_forever()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(10)
    try:
        yield f"http://127.0.0.1:{found[0]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float, message: bytes = b"", meant: bytes = b""
) -> None:
    """Each piece goes on when its time has come, however many are on their way; `said` becomes `meant` in it."""
    due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def give() -> None:
        with contextlib.suppress(OSError):
            while True:
                at, data = await due.get()
                await asyncio.sleep(at - loop.time())
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

    giving = asyncio.ensure_future(give())
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            due.put_nowait((loop.time() + seconds, data.replace(message, meant) if message else data))
    due.put_nowait((loop.time() + seconds, b""))
    await giving
