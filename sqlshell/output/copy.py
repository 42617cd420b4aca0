"""The only loop from a Result to bytes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator

from sqlshell.errors import OutputError
from sqlshell.output.sinks.sink import OutputClosed, Sink
from sqlshell.output.writer import Summary, Writer
from sqlshell.result import Batch, FileResult, FileUnavailable, Partitions, Result, Table
from sqlshell.runtime.event_loops import await_thread

ResultHandler = Callable[[Result], Awaitable[Summary]]
"""Something that reads a result to its end, or as far as the user wants."""

LARGE = 1 << 20
"""Bytes that are written at once."""

SETTLE_SECONDS = 0.1
"""How long a writer may hold rows back, in seconds."""

LOOK_SECONDS = 0.05
"""How often, in seconds, to check whether a reader such as a pager has exited while no rows arrive."""

Received = Callable[[int, int], None]
"""Called with the rows and bytes of each response."""


async def copy(
    result: Result, writer: Writer, sink: Sink, received: Received | None = None, *, to_end: bool = False
) -> Summary:
    """Write all rows of `result`, and close its batches. The summary is not complete if the reader left; with `to_end`
    all batches are read nevertheless.

    The sink stays open. Raises OutputError, and the errors of reading the batches; rows before an error are written.
    """
    rows = size = 0
    at_line_start = True
    slow = writer if writer.by_sql == "table" else None
    if result.whole is not None and writer.by_sql == "lines":
        result.whole.choose(writer.line)
    coming = _NextBatch(result.batches, writer, sink, endless=result.endless is not None, to_end=to_end)
    try:
        at_line_start = await _write(sink, writer.begin(result.columns)) in {b"", b"\n"}
        batches: object = result.batches
        # Otherwise somebody else reads the batches too.
        if slow is not None and result.whole is not None and result.whole is batches:
            try:
                if (whole := await _from_table(result, result.whole, slow, sink)) is not None:
                    return whole
            except FileUnavailable as error:
                rows = error.rows
                await result.whole.skip(rows)
        while (batch := await coming.next()) is not None:
            size += batch.size
            chunks = writer.write(batch)
            count = len(batch.rows) if batch.announced is None else batch.announced
            rows += count
            if received is not None:
                received(count, batch.size)
            # The source of an unbounded result must not wait for our reader.
            last = await _write(sink, chunks, apart=result.endless is not None, slow=slow)
            at_line_start = last == b"\n" or (at_line_start and not last)
        await _write(sink, writer.end(Summary(rows, True)), slow=slow)
        await _finish(sink)
        return Summary(rows, True, size)
    except OutputClosed:
        await _finish(sink)
        while to_end and await anext(result.batches, None) is not None:
            pass
        return Summary(rows, False, size)
    except BaseException as error:
        if not (at_line_start or sink.blocking):
            # The error message begins a line, and so does the next result.
            with contextlib.suppress(OutputClosed, OutputError):
                sink.write(b"\n")
        if isinstance(error, Exception):
            # A pager still shows the rows that arrived before the error.
            await _finish(sink)
        raise
    finally:
        await result.batches.aclose()


class _NextBatch:
    """Waits for the next batch; meanwhile the writer writes rows that it holds back, and an exit of the reader is
    noticed.
    """

    def __init__(self, batches: Partitions, writer: Writer, sink: Sink, *, endless: bool, to_end: bool) -> None:
        self._batches = batches
        self._writer = writer
        self._sink = sink
        self._endless = endless
        self._to_end = to_end
        self._settle_at: float | None = None

    async def next(self) -> Batch | None:
        if not self._writer.buffering:
            self._settle_at = None
            if not self._watched:
                return await anext(self._batches, None)
        elif self._settle_at is None:
            self._settle_at = asyncio.get_running_loop().time() + SETTLE_SECONDS
        coming = asyncio.ensure_future(anext(self._batches, None))
        try:
            while not coming.done():
                await asyncio.wait([coming], timeout=self._time_left())
                if self._watched and self._sink.closed:
                    raise OutputClosed
                if self._settle_at is not None and self._time_left() == 0:
                    await _write(self._sink, self._writer.settle())
                    again = asyncio.get_running_loop().time() + SETTLE_SECONDS
                    self._settle_at = again if self._writer.buffering else None
            return coming.result()
        finally:
            if not coming.done():
                coming.cancel()
                await asyncio.wait([coming])

    @property
    def _watched(self) -> bool:
        """Whether the reader may exit long before the next batch."""
        return self._endless or (self._sink.blocking and not self._to_end)

    def _time_left(self) -> float | None:
        """Seconds until the next action; None if there is none."""
        left = None if self._settle_at is None else max(0.0, self._settle_at - asyncio.get_running_loop().time())
        if not self._watched:
            return left
        return LOOK_SECONDS if left is None else min(left, LOOK_SECONDS)


async def _from_table(result: Result, whole: FileResult, writer: Writer, sink: Sink) -> Summary | None:
    """Write a large result from its file; None if the service has none.

    Raises FileUnavailable if only the partitions have the other rows.
    """
    table = await whole.table(typed=True)
    if table is None:
        return None
    try:
        await _write(sink, writer.from_table(table), slow=table)
    finally:
        table.close()
    await _finish(sink)
    return Summary(sum(result.row_counts or ()), True, table.size)


async def _write(
    sink: Sink, chunks: Iterable[bytes], *, apart: bool = False, slow: Writer | Table | None = None
) -> bytes:
    """Write the chunks, small ones together, and return the last byte; those that are `slow` come from a thread."""
    last = b""
    gathered = _in_larger_chunks(chunks)
    while (data := await _next(gathered, slow)) is not None:
        if sink.blocking or apart:
            # A pager that is not being scrolled must not block the event loop.
            await asyncio.to_thread(sink.write, data)
        else:
            sink.write(data)
            if sink.blocking:
                # The pager that this has started may not have read all of it.
                await asyncio.to_thread(sink.write, b"")
        last = data[-1:]
    return last


async def _next(chunks: Iterator[bytes], slow: Writer | Table | None) -> bytes | None:
    if slow is None:
        return next(chunks, None)
    making = asyncio.ensure_future(asyncio.to_thread(next, chunks, None))
    return await await_thread(making, slow.interrupt)


def _in_larger_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in larger chunks, none of them empty; a large chunk is not copied."""
    held: list[bytes] = []
    size = 0
    try:
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
    except FileUnavailable:
        if size:
            yield b"".join(held)
        raise
    if size:
        yield b"".join(held)


async def _finish(sink: Sink) -> None:
    if sink.blocking:
        await asyncio.to_thread(sink.finish)
