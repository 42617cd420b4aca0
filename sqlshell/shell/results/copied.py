"""Copies the rows of a result to a second place while they are read, for \\tee."""

from __future__ import annotations

from sqlshell.output.sinks.sink import OutputClosed, Sink
from sqlshell.output.writer import Summary, Writer
from sqlshell.result import Batch, BatchWrapper, Result


class CopiedBatches(BatchWrapper):
    """The batches of a result, each also written to `sink`, until the sink's reader leaves."""

    def __init__(self, result: Result, writer: Writer, sink: Sink) -> None:
        super().__init__(result.batches)
        self._columns = result.columns
        self._writer: Writer | None = writer
        self._sink = sink
        self._rows = 0
        self._begun = False

    def each(self, batch: Batch) -> Batch:
        self._write(batch)
        return batch

    def at_end(self) -> None:
        self._write(None)

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
        except OutputClosed:
            self._writer = None
