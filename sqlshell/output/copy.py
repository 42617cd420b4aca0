"""The only loop from a Result to bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from sqlshell.output.formats import Summary, Writer
from sqlshell.output.sink import Closed, Sink
from sqlshell.result import Batch, Result

SETTLE_SECONDS = 0.1
"""How long a writer may hold rows back while no others come."""


async def copy(result: Result, writer: Writer, sink: Sink) -> Summary:
    """Write all rows of `result`, and close its batches. The summary is not complete when the reader left.

    Raises OutputError, and what reading the batches raises.
    """
    rows = 0
    batches = result.batches
    try:
        await _put(sink, writer.begin(result.columns))
        while True:
            batch = await _next(result, writer, sink)
            if batch is None:
                break
            chunks = writer.write(batch)
            rows += len(batch.rows) if batch.announced is None else batch.announced
            await _put(sink, chunks)
        await _put(sink, writer.end(Summary(rows, True)))
        return Summary(rows, True)
    except Closed:
        return Summary(rows, False)
    finally:
        await batches.aclose()


async def _next(result: Result, writer: Writer, sink: Sink) -> Batch | None:
    if not writer.holding:
        return await anext(result.batches, None)
    coming = asyncio.ensure_future(anext(result.batches, None))
    try:
        await asyncio.wait([coming], timeout=SETTLE_SECONDS)
        if not coming.done():
            await _put(sink, writer.settle())
        return await coming
    finally:
        coming.cancel()


async def _put(sink: Sink, chunks: Iterable[bytes]) -> None:
    data = b"".join(chunks)
    if not data:
        return
    if sink.blocking:
        # A pager that nobody scrolls must not stop the event loop.
        await asyncio.to_thread(sink.write, data)
    else:
        sink.write(data)


def warn_of_names(result: Result, warn: Callable[[str], None]) -> None:
    """Tell of column names that a format for programs has to change."""
    from sqlshell.output.names import renamed

    changed = renamed(result.columns)
    if changed:
        told = ", ".join(f"{old} is {new}" for old, new in changed[:5])
        warn(f"several columns have the same name: {told}{', …' if len(changed) > 5 else ''}")
