"""A connection to a PostgreSQL server that can be made slow, or stopped."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

SOCKET = ".s.PGSQL.5432"


class SlowDatabase:
    """Passes on what clients and a server on a Unix socket send. `folder` is the directory of the client's socket."""

    def __init__(self, folder: Path, server: str) -> None:
        self.folder = folder
        self._server = f"{server}/{SOCKET}"
        self.seconds = 0.0
        """How long each response of the server takes longer."""
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._ended = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Pass on nothing more, and keep the connections open."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def go_on(self) -> None:
        self._loop.call_soon_threadsafe(self._flowing.set)

    @contextlib.contextmanager
    def running(self) -> Iterator[SlowDatabase]:
        ready = threading.Event()
        thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run(ready)))
        thread.start()
        ready.wait()
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._ended.set)
            thread.join()
            self._loop.close()

    async def _run(self, ready: threading.Event) -> None:
        self._flowing.set()
        listener = await asyncio.start_unix_server(self._connected, str(self.folder / SOCKET))
        ready.set()
        await self._ended.wait()
        listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(OSError):
            there, back = await asyncio.open_unix_connection(self._server)
            try:
                await asyncio.gather(self._passed(reader, back, slow=False), self._passed(there, writer, slow=True))
            finally:
                back.close()
                writer.close()

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, slow: bool) -> None:
        while data := await reader.read(1 << 16):
            if slow:
                await asyncio.sleep(self.seconds)
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
        writer.close()
