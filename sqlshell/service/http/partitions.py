"""Reads partitions of finished results; several are rendered at once, which takes half the time, for all readers."""

from __future__ import annotations

import asyncio
import uuid
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import BinaryIO

from sqlshell.runtime.idle import IdleTimer, in_thread
from sqlshell.runtime.unused_memory import return_unused_memory
from sqlshell.service.engines.duckdb.published import RENDERING
from sqlshell.service.http.budget import Budget
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.results.results import PARTITION_BYTES, Layout, open_engine_file
from sqlshell.service.results.time_zones import in_zone
from sqlshell.service.statements.statement import Statement

STRETCH_BYTES = 8 << 20
"""Partitions that begin within the same window of this many bytes of JSON, a stretch, are rendered together."""

KEPT_BYTES = 32 << 20
"""The maximum size of all rendered partitions in memory."""

REST_SECONDS = 2.0
"""How long after the last read the memory for readers is released."""


PIECE = 256 << 10
"""Bytes that are passed to a connection at once; the next piece follows when these are sent."""


class Rows:
    """Rows for one reader, `size` bytes in pieces: those of a partition as JSON separated by commas, or a whole file.

    They come from a `body` or from the next bytes of a file. close() releases their share of the memory for readers.
    """

    def __init__(self, size: int, body: bytes = b"", file: BinaryIO | None = None) -> None:
        self.size = size
        self._body = body
        self._file = file
        self.on_close: Callable[[], None] | None = None

    def limit(self, start: int, end: int) -> None:
        """Give only the bytes in [start, end) of what the file has from its start. Raises OSError."""
        assert self._file is not None
        self._file.seek(start)
        self.size = end - start

    async def pieces(self) -> AsyncIterator[bytes | memoryview]:
        """Raises OSError."""
        if self._file is None:
            whole = memoryview(self._body)
            for start in range(0, self.size, PIECE):
                yield whole[start : start + PIECE]
            return
        left = self.size
        while left:
            piece = await asyncio.to_thread(self._file.read, min(left, PIECE))
            if not piece:
                raise OSError("the file of the result is too short")
            left -= len(piece)
            yield piece

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        if self.on_close is not None:
            self.on_close()
            self.on_close = None


class Partitions:
    """Reads partitions of records. Used from one event loop. `unread` is the budget for rows that are not sent yet."""

    def __init__(self, organizations: Organizations, unread: Budget) -> None:
        self._organizations = organizations
        self._unread = unread
        self._stretches: OrderedDict[tuple[str, int], asyncio.Future[list[bytes]]] = OrderedDict()
        self._sizes: dict[tuple[str, int], int] = {}
        self._idle = IdleTimer(REST_SECONDS, self._release_memory)

    async def rows(self, record: Statement, number: int, timezone: str, left: Callable[[], bool]) -> Rows:
        """The rows of a partition; close() them.

        Waits while slow readers use the organization's share of the memory, until its own reader has `left`. Raises
        Failure and OSError.
        """
        layout = record.spool.layout
        filed = layout.form == "text" and bool(layout.ends) and not _moved(record, timezone)
        size = self.size(record, number)
        taken = await self._unread.wait(record.organization, min(size, PIECE) if filed else size, left)
        rows = None
        try:
            if filed:
                self._idle.restart()
                file, size = await asyncio.to_thread(record.spool.open, number)
                rows = Rows(size, file=file)
            else:
                body = await self.partition(record, number, timezone)
                rows = Rows(len(body), body)
            rows.on_close = lambda: self._unread.give(record.organization, taken)
            return rows
        finally:
            if rows is None:
                self._unread.give(record.organization, taken)

    async def whole(self, record: Statement, left: Callable[[], bool], *, typed: bool) -> Rows:
        """The file of a result, or one made of a result that is kept as text; close() it. With `typed` also one made of
        a file that contains text.

        Waits as rows() does. Raises Failure and OSError.
        """
        taken = await self._unread.wait(record.organization, PIECE, left)
        rows = None
        try:
            server = self._organizations.server
            has_text = server is not None and server.traits.text_in_files
            if record.spool.layout.typed and not (typed and has_text):
                file, size = await asyncio.to_thread(record.spool.open_whole)
            else:
                file, size = await self._converted(record)
            rows = Rows(size, file=file)
            rows.on_close = lambda: self._unread.give(record.organization, taken)
            return rows
        finally:
            if rows is None:
                self._unread.give(record.organization, taken)

    async def _converted(self, record: Statement) -> tuple[BinaryIO, int]:
        """A file of the engine's format made of a result that is kept as text; it no longer has a name."""
        organization = await asyncio.to_thread(self._organizations.get, record.organization)
        outcome, spool = record.outcome, record.spool
        assert outcome is not None
        target = organization.folder(RENDERING) / str(uuid.uuid4())
        rows = target.with_suffix(".rows") if spool.path is None else await asyncio.to_thread(spool.local_path)
        numbers = [number for number, _ in outcome.zoned]
        try:
            if spool.path is None:
                await asyncio.to_thread(rows.write_bytes, spool.body)
            convert = organization.engine.convert
            await organization.run(convert, rows, spool.layout.ends, outcome.columns or [], numbers, target)
            return await asyncio.to_thread(open_engine_file, target)
        finally:
            target.unlink(missing_ok=True)
            if spool.path is None:
                rows.unlink(missing_ok=True)

    @asynccontextmanager
    async def held(self, record: Statement, number: int) -> AsyncIterator[None]:
        """Reserve memory for a partition from partition()."""
        taken = await self._unread.wait(record.organization, self.size(record, number))
        try:
            yield
        finally:
            self._unread.give(record.organization, taken)

    @staticmethod
    def size(record: Statement, number: int) -> int:
        """The approximate size of a partition, in bytes."""
        layout = record.spool.layout
        if layout.form == "record":
            return len(record.spool.body)
        if number >= len(layout.ends):
            return PARTITION_BYTES
        return layout.ends[number] - (layout.ends[number - 1] if number else 0)

    async def partition(self, record: Statement, number: int, timezone: str) -> bytes:
        """The rows of a partition as JSON separated by commas. Raises Failure and OSError."""
        layout = record.spool.layout
        if layout.form == "record":
            return await self._zoned(record, record.spool.partition(number), timezone)
        self._idle.restart()
        try:
            if layout.form == "text":
                rows = await asyncio.to_thread(record.spool.partition, number)
            else:
                rows = await self._from_engine(record, number)
            return await self._zoned(record, rows, timezone)
        finally:
            # Reading may have taken longer than REST_SECONDS.
            self._idle.restart()

    @staticmethod
    async def _zoned(record: Statement, rows: bytes, timezone: str) -> bytes:
        outcome = record.outcome
        if outcome is not None and _moved(record, timezone):
            return await asyncio.to_thread(in_zone, rows, outcome.zoned, timezone)
        return rows

    async def _from_engine(self, record: Statement, number: int) -> bytes:
        layout = record.spool.layout
        if not layout.rows:
            return b""
        first, last = stretch(layout, number)
        partitions = await asyncio.shield(self._stretch(record, first, last))
        return partitions[number - first]

    def _stretch(self, record: Statement, first: int, last: int) -> asyncio.Future[list[bytes]]:
        """The partitions of a stretch, rendered or being rendered."""
        key = (record.statement_id, first)
        rendering = self._stretches.get(key)
        if rendering is None:
            rendering = self._stretches[key] = asyncio.ensure_future(self._read(record, first, last))
            rendering.add_done_callback(partial(self._forget_failure, key))
        self._stretches.move_to_end(key)
        return rendering

    def _forget_failure(self, key: tuple[str, int], rendering: asyncio.Future[list[bytes]]) -> None:
        """The next reader tries again."""
        if (rendering.cancelled() or rendering.exception() is not None) and self._stretches.get(key) is rendering:
            del self._stretches[key]

    async def _read(self, record: Statement, first: int, last: int) -> list[bytes]:
        organization = await asyncio.to_thread(self._organizations.get, record.organization)
        path = await asyncio.to_thread(record.spool.local_path)
        counts = record.spool.layout.counts
        start = sum(counts[:first])
        partitions: list[bytes] = await organization.run(organization.engine.read, path, start, counts[first:last])
        self._sizes[record.statement_id, first] = sum(map(len, partitions))
        while sum(self._sizes.values()) > KEPT_BYTES and len(self._sizes) > 1:
            oldest = next((key for key in self._stretches if key in self._sizes), None)
            if oldest is None:
                break
            del self._stretches[oldest]
            del self._sizes[oldest]
        return partitions

    def _release_memory(self) -> None:
        """Release the memory for readers."""
        for key in list(self._sizes):
            self._stretches.pop(key, None)
            del self._sizes[key]
        engines = [organization.engine for organization in self._organizations.opened()]

        def release_memory() -> None:
            for engine in engines:
                engine.release_memory()
            return_unused_memory()

        in_thread(release_memory)


def _moved(record: Statement, timezone: str) -> bool:
    """Whether a result contains instants that must be converted from UTC."""
    return record.outcome is not None and bool(record.outcome.zoned) and timezone != "UTC"


def stretch(layout: Layout, number: int) -> tuple[int, int]:
    """The range of partitions that are rendered together with one: the first, and the last plus 1.

    The first partition, which comes with the statement's response, is rendered alone: the client may not need more, or
    fetch the others as a file.
    """
    if number == 0:
        return 0, 1
    ends = layout.ends
    if len(ends) <= number:
        # Stored by a version that did not record `ends`.
        return number, number + 1
    window = (ends[number - 1] if number else 0) // STRETCH_BYTES
    first = bisect_left(ends, window * STRETCH_BYTES) + 1 if window else 1
    return first, min(len(ends), bisect_left(ends, (window + 1) * STRETCH_BYTES) + 1)
