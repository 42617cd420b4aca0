"""A result whose rows go to a second place while they are read: what \\tee does."""

from __future__ import annotations

from sqlshell.output.sinks.sink import Closed, Sink
from sqlshell.output.writer import Summary, Writer
from sqlshell.result import Batch, Result


class Copied:
    """The batches of a result; each is written to `sink` before it is given. A sink that nobody reads is left alone."""

    def __init__(self, result: Result, writer: Writer, sink: Sink) -> None:
        self._batches = result.batches
        self._columns = result.columns
        self._writer: Writer | None = writer
        self._sink = sink
        self._rows = 0
        self._begun = False

    def __aiter__(self) -> Copied:
        return self

    async def __anext__(self) -> Batch:
        try:
            batch = await anext(self._batches)
        except StopAsyncIteration:
            self._write(None)
            raise
        self._write(batch)
        return batch

    async def aclose(self) -> None:
        await self._batches.aclose()

    def _write(self, batch: Batch | None) -> None:
        if self._writer is None:
            return
        chunks = [] if self._begun else list(self._writer.begin(self._columns))
        self._begun = True
        if batch is None:
            chunks += self._writer.end(Summary(self._rows, True))
        else:
            self._rows += len(batch.rows)
            chunks += self._writer.write(batch)
        try:
            self._sink.write(b"".join(chunks))
        except Closed:
            self._writer = None
