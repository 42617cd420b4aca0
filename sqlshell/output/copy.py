"""The only loop from a Result to bytes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator

from sqlshell.errors import OutputError
from sqlshell.output.sinks.command import OutputClosed
from sqlshell.output.sinks.sink import Sink
from sqlshell.output.writer import Summary, Writer
from sqlshell.output.writers.column_names import renamed
from sqlshell.result import Batch, Partitions, Result

Consumer = Callable[[Result], Awaitable[Summary]]
"""Reads a result to its end, or as far as somebody wants it."""

LARGE = 1 << 20
"""Bytes that are written at once."""

SETTLE_SECONDS = 0.1
"""How long a writer may hold rows back."""

LOOK_SECONDS = 0.05
"""How often a reader that may leave, such as a pager, is looked at while no rows come."""


async def copy(result: Result, writer: Writer, sink: Sink) -> Summary:
    """Write all rows of `result`, and close its batches. The summary is not complete when the reader left.

    The sink stays open. Raises OutputError, and what reading the batches raises; the rows before an error are written.
    """
    rows = size = 0
    at_line_start = True
    coming = _NextBatch(result.batches, writer, sink)
    try:
        at_line_start = await _put(sink, writer.begin(result.columns)) in {b"", b"\n"}
        while (batch := await coming.next()) is not None:
            size += batch.size
            chunks = writer.write(batch)
            rows += len(batch.rows) if batch.announced is None else batch.announced
            # Whoever feeds an endless result must not find us waiting for whoever reads it.
            last = await _put(sink, chunks, apart=result.endless is not None)
            at_line_start = last == b"\n" or (at_line_start and not last)
        await _put(sink, writer.end(Summary(rows, True)))
        await _finish(sink)
        return Summary(rows, True, size)
    except OutputClosed:
        await _finish(sink)
        return Summary(rows, False, size)
    except BaseException as error:
        if not (at_line_start or sink.blocking):
            # What is said of the error begins a line, and so does the next result.
            with contextlib.suppress(OutputClosed, OutputError):
                sink.write(b"\n")
        if isinstance(error, Exception):
            # Whoever reads in a pager goes on reading what came before the error.
            await _finish(sink)
        raise
    finally:
        await result.batches.aclose()


class _NextBatch:
    """Waits for the next batch; meanwhile the writer settles in time, and a reader that leaves is noticed."""

    def __init__(self, batches: Partitions, writer: Writer, sink: Sink) -> None:
        self._batches = batches
        self._writer = writer
        self._sink = sink
        self._due: float | None = None

    async def next(self) -> Batch | None:
        if not self._writer.buffering:
            self._due = None
            if not self._sink.blocking:
                return await anext(self._batches, None)
        elif self._due is None:
            self._due = asyncio.get_running_loop().time() + SETTLE_SECONDS
        coming = asyncio.ensure_future(anext(self._batches, None))
        try:
            while not coming.done():
                await asyncio.wait([coming], timeout=self._patience())
                if self._sink.blocking and self._sink.closed:
                    raise OutputClosed
                if self._due is not None and self._patience() == 0:
                    await _put(self._sink, self._writer.settle())
                    again = asyncio.get_running_loop().time() + SETTLE_SECONDS
                    self._due = again if self._writer.buffering else None
            return coming.result()
        finally:
            if not coming.done():
                coming.cancel()
                await asyncio.wait([coming])

    def _patience(self) -> float | None:
        """The seconds until something is to be done; None for as long as it takes."""
        left = None if self._due is None else max(0.0, self._due - asyncio.get_running_loop().time())
        if not self._sink.blocking:
            return left
        return LOOK_SECONDS if left is None else min(left, LOOK_SECONDS)


async def _put(sink: Sink, chunks: Iterable[bytes], *, apart: bool = False) -> bytes:
    """Write them, small ones together; the last byte of them."""
    last = b""
    for data in _gathered(chunks):
        if sink.blocking or apart:
            # A pager that nobody scrolls must not stop the event loop.
            await asyncio.to_thread(sink.write, data)
        else:
            sink.write(data)
        last = data[-1:]
    return last


def _gathered(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in larger chunks, none of them empty; a large chunk is not copied."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        if len(chunk) >= LARGE:
            if held:
                yield b"".join(held)
                held, size = [], 0
            yield chunk
            continue
        held.append(chunk)
        size += len(chunk)
        if size >= LARGE:
            yield b"".join(held)
            held, size = [], 0
    if size:
        yield b"".join(held)


async def _finish(sink: Sink) -> None:
    if sink.blocking:
        await asyncio.to_thread(sink.finish)


def warn_of_names(result: Result, warn: Callable[[str], None]) -> None:
    """Warn about column names that a format for programs has to change."""
    changed = renamed(result.columns)
    if changed:
        told = ", ".join(f"{old} to {new}" for old, new in changed[:5])
        warn(f"duplicate column names were changed: {told}{', …' if len(changed) > 5 else ''}")
