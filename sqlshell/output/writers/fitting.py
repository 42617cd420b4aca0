"""Tables that fit the screen: records in the place of a table that is too wide, or a table below another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from sqlshell.output.text.cells import cells
from sqlshell.output.writer import Summary, Writer, WriterOptions
from sqlshell.output.writers.table import TableWriter, sample_complete
from sqlshell.output.writers.vertical import VerticalWriter
from sqlshell.result import Batch, Column, Rows


class AutoWriter:
    """A table where its first rows fit into `width` cells, else a record per row."""

    def __init__(self, options: WriterOptions, width: int) -> None:
        self._options = options
        self._width = width
        self._columns: Sequence[Column] = ()
        self._sample: Rows = []
        self._chosen: Writer | None = None

    @property
    def buffering(self) -> bool:
        return bool(self._sample) if self._chosen is None else self._chosen.buffering

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._columns = columns
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        if self._chosen is not None:
            return self._chosen.write(batch)
        self._sample += batch.rows
        return self._choose() if sample_complete(self._sample) else []

    def settle(self) -> Iterable[bytes]:
        return self._choose() if self._chosen is None else self._chosen.settle()

    def end(self, summary: Summary) -> Iterable[bytes]:
        first = list(self._choose()) if self._chosen is None else []
        assert self._chosen is not None
        return [*first, *self._chosen.end(summary)]

    def _choose(self) -> Iterable[bytes]:
        fits = table_width(self._options, self._columns, self._sample) <= self._width
        writer: Writer = TableWriter(self._options) if fits else VerticalWriter(self._options)
        self._chosen = writer
        sample, self._sample = self._sample, []
        begun = list(writer.begin(self._columns))
        return [*begun, *(writer.write(Batch(len(self._columns), rows=sample)) if sample else [])]


class FoldWriter:
    """A table in blocks of as many columns as fit into `width` cells, one below the other, some rows at a time."""

    def __init__(self, options: WriterOptions, width: int) -> None:
        self._options = options
        self._width = width
        self._columns: Sequence[Column] = ()
        self._rows: Rows = []
        self._any = False

    @property
    def buffering(self) -> bool:
        return bool(self._rows)

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._columns = columns
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        self._rows += batch.rows
        return self._blocks() if sample_complete(self._rows) else []

    def settle(self) -> Iterable[bytes]:
        return self._blocks() if self._rows else []

    def end(self, summary: Summary) -> Iterable[bytes]:
        return self._blocks() if self._rows or not self._any else []

    def _blocks(self) -> Iterable[bytes]:
        rows, self._rows = self._rows, []
        chunks: list[bytes] = []
        for first, last in self._parts(rows):
            columns = self._columns[first:last]
            part = [row[first:last] for row in rows]
            writer = TableWriter(self._options)
            if self._any or chunks:
                chunks.append(b"\n")
            chunks += [*writer.begin(columns), *writer.write(Batch(len(columns), rows=part))]
            chunks += writer.end(Summary(len(part), True))
        self._any = True
        return chunks

    def _parts(self, rows: Rows) -> Iterable[tuple[int, int]]:
        """Where each block begins and ends."""
        plain = replace(self._options, paint=None)
        alone = [table_width(plain, [column], [[row[at]] for row in rows]) for at, column in enumerate(self._columns)]
        first, used = 0, 0
        for at, width in enumerate(alone):
            # Two neighbors share an edge.
            if at > first and used + width - 1 > self._width:
                yield first, at
                first, used = at, 0
            used += width - (1 if at > first else 0)
        if self._columns:
            yield first, len(self._columns)


def table_width(options: WriterOptions, columns: Sequence[Column], rows: Rows) -> int:
    """The cells of a table's widest line."""
    writer = TableWriter(replace(options, paint=None))
    chunks = [*writer.begin(columns), *writer.write(Batch(len(columns), rows=list(rows)))]
    text = b"".join([*chunks, *writer.settle()]).decode("utf-8", "replace")
    return max((cells(line) for line in text.split("\n")), default=0)
