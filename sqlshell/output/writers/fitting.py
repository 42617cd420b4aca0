"""Tables that fit the screen: records instead of a table that is too wide, or blocks of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from sqlshell.interface.types import Kind
from sqlshell.output.text.cells import cells, printable
from sqlshell.output.text.nesting import is_nested, over_lines
from sqlshell.output.writer import Screen, Summary, Writer, WriterOptions
from sqlshell.output.writers.screen_records import ScreenRecordWriter
from sqlshell.output.writers.screen_table import ScreenTableWriter
from sqlshell.output.writers.screen_transposed import MOST_ROWS, TransposedWriter
from sqlshell.output.writers.table import TableWriter, sample_complete
from sqlshell.output.writers.vertical import VerticalWriter
from sqlshell.result import Batch, Column, Rows

SHORTEST = 24
"""The cells that a text keeps at least when it is cut so that a table fits."""


class AutoWriter:
    """A table if its first rows fit into `width` cells, otherwise a few records side by side, or one below the other.

    Nested values of several rows get more lines first, and if the screen allows it, long texts are cut; `shortened`
    counts these.
    """

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
        first = list(self._choose(whole=True)) if self._chosen is None else []
        assert self._chosen is not None
        return [*first, *self._chosen.end(summary)]

    def _choose(self, *, whole: bool = False) -> Iterable[bytes]:
        """Choose the writer by the sample; `whole` is whether it has all rows."""
        writer = self._chosen = self._fitting() or (self._transposed() if whole else None) or self._records()
        sample, self._sample = self._sample, []
        begun = list(writer.begin(self._columns))
        return [*begun, *(writer.write(Batch(len(self._columns), rows=sample)) if sample else [])]

    @property
    def shortened(self) -> int:
        return getattr(self._chosen, "shortened", 0)

    @property
    def turned(self) -> bool:
        """Whether the rows are not shown as a table."""
        return self._chosen is not None and not isinstance(self._chosen, TableWriter | ScreenTableWriter)

    @property
    def frozen(self) -> tuple[int, int]:
        return getattr(self._chosen, "frozen", (0, 0))

    @property
    def wraps(self) -> bool:
        """Whether lines that are too wide need not be scrolled to: those of records can be read wrapped."""
        return isinstance(self._chosen, VerticalWriter | ScreenRecordWriter)

    def _fitting(self) -> Writer | None:
        """A table that fits, if there is one."""
        screen = self._options.screen
        if screen is None:
            fits = table_width(self._options, self._columns, self._sample) <= self._width
            return TableWriter(self._options) if fits else None
        for types in sorted({screen.types, False}, reverse=True):
            shown = replace(screen, types=types)
            widths = ScreenTableWriter(self._options, shown).widths(self._columns, self._sample)
            if self._excess(widths) <= 0:
                return ScreenTableWriter(self._options, shown)
            if len(self._sample) == 1:
                # A record has more room.
                continue
            folded = self._folded(shown, widths)
            caps = self._caps(widths, folded, cuts=screen.cuts)
            if caps is not None:
                return ScreenTableWriter(self._options, shown, caps)
        return None

    def _excess(self, widths: Sequence[int]) -> int:
        """The cells by which a table is too wide."""
        return sum(width + 3 for width in widths) + 1 - self._width

    def _folded(self, screen: Screen, widths: Sequence[int]) -> dict[int, int]:
        """The widths that nested values need when they have several lines and nothing of them is cut."""
        wide = [
            at
            for at, (column, width) in enumerate(zip(self._columns, widths, strict=True))
            if width > SHORTEST and is_nested(column)
        ]
        columns = [self._columns[at] for at in wide]
        rows: Rows = [
            [value and over_lines(value, SHORTEST) for value in (row[at] for at in wide)] for row in self._sample
        ]
        needed = ScreenTableWriter(self._options, screen).widths(columns, rows) if wide else []
        return dict(zip(wide, needed, strict=True))

    def _transposed(self) -> Writer | None:
        """A few records side by side, if they fit."""
        screen = self._options.screen
        if screen is None or not self._options.header or not 1 < len(self._sample) <= MOST_ROWS:
            return None
        for types in sorted({screen.types, False}, reverse=True):
            writer = TransposedWriter(self._options, replace(screen, types=types), self._columns, self._sample)
            if writer.width <= self._width:
                return writer
        return None

    def _records(self) -> Writer:
        options = self._options
        return VerticalWriter(options) if options.screen is None else ScreenRecordWriter(options, options.screen)

    def _caps(self, widths: Sequence[int], folded: Mapping[int, int], *, cuts: bool) -> dict[int, int] | None:
        """The widths of columns with which the table fits; None if they would be too narrow.

        Nested values get lines before texts are cut, and the widest column becomes narrower first.
        """
        names = [cells(printable(column.name)) for column in self._columns]
        floors = {at: min(widths[at], max(SHORTEST, need, names[at])) for at, need in folded.items()}
        texts = {
            at: max(SHORTEST, name)
            for at, (column, width, name) in enumerate(zip(self._columns, widths, names, strict=True))
            if column.kind in {Kind.TEXT, Kind.NESTED} and column.display_hint != "nowrap" and width > SHORTEST
        }
        caps = {at: widths[at] for at in (*floors, *texts)}
        excess = self._excess(widths)
        for least in (floors, texts) if cuts else (floors,):
            while excess > 0 and least:
                at = max(least, key=lambda at: caps[at] - least[at] and caps[at])
                if caps[at] <= least[at]:
                    break
                caps[at] -= 1
                excess -= 1
        return {at: cap for at, cap in caps.items() if cap < widths[at]} if excess <= 0 else None


class FoldWriter:
    """A table in blocks of as many columns as fit into `width` cells, below each other, for some rows at a time."""

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
            writer = plain_or_screen(self._options)
            if self._any or chunks:
                chunks.append(b"\n")
            chunks += [*writer.begin(columns), *writer.write(Batch(len(columns), rows=part))]
            chunks += writer.end(Summary(len(part), True))
        self._any = True
        return chunks

    def _parts(self, rows: Rows) -> Iterable[tuple[int, int]]:
        """Start and end of each block of columns."""
        plain = replace(self._options, paint=None)
        alone = [table_width(plain, [column], [[row[at]] for row in rows]) for at, column in enumerate(self._columns)]
        first, used = 0, 0
        for at, width in enumerate(alone):
            # Two adjacent columns share an edge.
            if at > first and used + width - 1 > self._width:
                yield first, at
                first, used = at, 0
            used += width - (1 if at > first else 0)
        if self._columns:
            yield first, len(self._columns)


def plain_or_screen(options: WriterOptions) -> Writer:
    """The writer of a table: that of the terminal, or that of the chosen style."""
    return TableWriter(options) if options.screen is None else ScreenTableWriter(options, options.screen)


def table_width(options: WriterOptions, columns: Sequence[Column], rows: Rows) -> int:
    """The width of a table in cells."""
    if options.screen is not None:
        return sum(width + 3 for width in ScreenTableWriter(options, options.screen).widths(columns, rows)) + 1
    writer = TableWriter(replace(options, paint=None))
    chunks = [*writer.begin(columns), *writer.write(Batch(len(columns), rows=list(rows)))]
    text = b"".join([*chunks, *writer.settle()]).decode("utf-8", "replace")
    return max((cells(line) for line in text.split("\n")), default=0)
