"""Tables for a terminal: records instead of a table that is too wide, blocks of columns, or rows that keep arriving."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from sqlshell.interface.types import Kind
from sqlshell.output.text.cells import cells, printable
from sqlshell.output.text.lines import wrapped
from sqlshell.output.text.nesting import is_nested, over_lines
from sqlshell.output.writer import Look, Summary, Writer, WriterOptions, written
from sqlshell.output.writers.records import MOST_ROWS, RecordWriter, TransposedWriter
from sqlshell.output.writers.table import SampledWriter, TableWriter
from sqlshell.result import Batch, Column, Rows

SHORTEST = 12
"""The cells that a text keeps at least when it is cut so that a table fits."""
NARROWEST = 24
"""The cells that a nested value has at least when it gets several lines."""

AROUND = 8
"""The lines around the rows of a table: its frame and names, what is said about it, and the prompts."""

CUT = 20
"""The cells of a text in a table that leaves columns out."""

STEP_SECONDS = 0.1
RATE_SECONDS = 2.0
FRAME_LINES = 7
"""Lines of a live view that are not rows: the table's frame, the status, the line of the cursor."""


T = TypeVar("T")


class AutoWriter(SampledWriter):
    """A table if its first rows fit into `width` cells, otherwise a few records side by side, or one below the other.

    Nested values of several rows get more lines first, and if the screen allows it, long texts are cut; then a table of
    records that do not fit on the screen leaves columns out in the middle.
    """

    def __init__(self, options: WriterOptions, width: int) -> None:
        super().__init__()
        self._options = options
        self._width = width
        self._chosen: Writer | None = None
        self._turned = False

    @property
    def buffering(self) -> bool:
        return super().buffering if self._chosen is None else self._chosen.buffering

    @property
    def look(self) -> Look:
        return Look() if self._chosen is None else replace(self._chosen.look, turned=self._turned)

    def write(self, batch: Batch) -> Iterable[bytes]:
        return super().write(batch) if self._chosen is None else self._chosen.write(batch)

    def settle(self) -> Iterable[bytes]:
        return self._choose() if self._chosen is None else self._chosen.settle()

    def end(self, summary: Summary) -> Iterable[bytes]:
        first = list(self._choose(whole=True)) if self._chosen is None else []
        assert self._chosen is not None
        return [*first, *self._chosen.end(summary)]

    def _choose(self, *, whole: bool = False) -> Iterable[bytes]:
        """Choose the writer by the sample; `whole` is whether it has all rows."""
        writer = self._fitting(whole=whole) or (self._transposed() if whole else None)
        if writer is None and not (whole and self._fits_as_records()):
            writer = self._narrowed()
        self._turned = writer is None or isinstance(writer, TransposedWriter)
        writer = self._chosen = writer or RecordWriter(self._options)
        sample, self._sample = self._sample, []
        begun = list(writer.begin(self._columns))
        return [*begun, *(writer.write(Batch(len(self._columns), rows=sample)) if sample else [])]

    def _fitting(self, *, whole: bool) -> Writer | None:
        """A table that fits, if there is one; long texts have several lines if all rows fit on the screen then."""
        screen = self._options.screen
        if screen is None:
            fits = table_width(self._options, self._columns, self._sample) <= self._width
            return TableWriter(self._options) if fits else None
        for types in sorted({screen.types, False}, reverse=True):
            options = replace(self._options, screen=replace(screen, types=types))
            widths = TableWriter(options).measured(self._columns, self._sample)
            if self._excess(widths) <= 0:
                return TableWriter(options)
            if len(self._sample) == 1:
                # A record has more room.
                continue
            folded = self._folded(options, widths)
            if whole:
                caps = self._caps(widths, folded, self._words(), cuts=screen.cuts)
                if caps is not None and self._fits_wrapped(caps):
                    return TableWriter(options, caps, wraps=True)
            caps = self._caps(widths, folded, cuts=screen.cuts)
            if caps is not None:
                return TableWriter(options, caps)
        return None

    def _words(self) -> dict[int, int]:
        """The cells of the longest word in each column of texts, as far as the screen can show the rows."""
        rows = self._sample[: shutil.get_terminal_size().lines]
        return {
            at: max((cells(word) for row in rows for word in (row[at] or "").split()), default=0)
            for at, column in enumerate(self._columns)
            if column.kind is Kind.TEXT
        }

    def _fits_wrapped(self, caps: Mapping[int, int]) -> bool:
        """Whether the screen has room for all lines of values in columns of these widths, and for the rules between."""
        left = shutil.get_terminal_size().lines - AROUND - (2 * len(self._sample) - 1)
        for row in self._sample if left >= 0 else ():
            values = [(row[at] or "", cap, is_nested(self._columns[at])) for at, cap in caps.items()]
            texts = [(over_lines(value, cap) if nested else value, cap) for value, cap, nested in values]
            left -= max((wrapped(text, cap).count("\n") for text, cap in texts), default=0)
        return left >= 0

    def _excess(self, widths: Sequence[int]) -> int:
        """The cells by which a table is too wide."""
        return sum(width + 3 for width in widths) + 1 - self._width

    def _folded(self, options: WriterOptions, widths: Sequence[int]) -> dict[int, int]:
        """The widths that nested values need when they have several lines and nothing of them is cut."""
        wide = [
            at
            for at, (column, width) in enumerate(zip(self._columns, widths, strict=True))
            if width > NARROWEST and is_nested(column)
        ]
        columns = [self._columns[at] for at in wide]
        rows: Rows = [
            [value and over_lines(value, NARROWEST) for value in (row[at] for at in wide)] for row in self._sample
        ]
        needed = TableWriter(options).measured(columns, rows) if wide else []
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

    def _fits_as_records(self) -> bool:
        """Whether a person finds each record on one of two screens."""
        lines = len(self._sample) * (len(self._columns) + 1)
        return lines <= 2 * shutil.get_terminal_size().lines

    def _narrowed(self) -> Writer | None:
        """A table of the first and the last columns, if some of them fit."""
        screen = self._options.screen
        if screen is None or not screen.cuts:
            return None
        widths = TableWriter(self._options).measured(self._columns, self._sample)
        caps = {
            at: CUT
            for at, column in enumerate(self._columns)
            if widths[at] > CUT and column.kind in {Kind.TEXT, Kind.NESTED} and column.display_hint != "nowrap"
        }
        # The column that stands for those that are left out has one cell.
        left, shown = self._width - 5, set[int]()
        both_ends = (at for pair in zip(range(len(widths)), reversed(range(len(widths))), strict=True) for at in pair)
        for at in both_ends:
            needed = min(widths[at], caps.get(at, widths[at])) + 3
            if needed > left:
                break
            left -= needed
            shown.add(at)
        for at in sorted(shown & caps.keys()):
            more = min(left, widths[at] - caps[at])
            caps[at] += more
            left -= more
        return NarrowedWriter(self._options, sorted(shown), caps) if len(shown) > 1 else None

    def _caps(
        self, widths: Sequence[int], folded: Mapping[int, int], words: Mapping[int, int] = {}, *, cuts: bool
    ) -> dict[int, int] | None:
        """The widths of columns with which the table fits; None if they would be too narrow, also for `words`.

        Nested values get lines before texts are cut, and the widest column becomes narrower first.
        """
        names = [cells(printable(column.name)) for column in self._columns]
        floors = {at: min(widths[at], max(NARROWEST, need, names[at])) for at, need in folded.items()}
        texts = {
            at: min(width, max(SHORTEST if column.kind is Kind.TEXT else NARROWEST, name, words.get(at, 0)))
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


class NarrowedWriter(Writer):
    """A table of some of the columns, `shown` by their numbers; `caps` are the widths of some of them in cells.

    A column of ellipses stands for those that are left out.
    """

    def __init__(self, options: WriterOptions, shown: Sequence[int], caps: Mapping[int, int]) -> None:
        self._shown = shown
        self._ellipsis = options.screen.ellipsis if options.screen is not None else "…"
        self._gap = next((at for at, number in enumerate(shown) if at != number), len(shown))
        places = [*shown[: self._gap], -1, *shown[self._gap :]]
        changed = frozenset((row, places.index(number)) for row, number in options.changed if number in shown)
        narrow = {at: caps[number] for at, number in enumerate(places) if number in caps}
        self._table = TableWriter(replace(options, changed=changed), narrow)
        self._left_out = 0

    @property
    def buffering(self) -> bool:
        return self._table.buffering

    @property
    def look(self) -> Look:
        return replace(self._table.look, left_out=self._left_out)

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._left_out = len(columns) - len(self._shown)
        return self._table.begin(self._with_gap(columns, Column(self._ellipsis, "")))

    def write(self, batch: Batch) -> Iterable[bytes]:
        rows = [self._with_gap(row, self._ellipsis) for row in batch.rows]
        return self._table.write(Batch(len(self._shown) + 1, rows=rows))

    def settle(self) -> Iterable[bytes]:
        return self._table.settle()

    def end(self, summary: Summary) -> Iterable[bytes]:
        return self._table.end(summary)

    def _with_gap(self, values: Sequence[T], gap: T) -> list[T]:
        chosen = [values[at] for at in self._shown]
        return [*chosen[: self._gap], gap, *chosen[self._gap :]]


class FoldWriter(SampledWriter):
    """A table in blocks of as many columns as fit into `width` cells, below each other, for some rows at a time."""

    def __init__(self, options: WriterOptions, width: int) -> None:
        super().__init__()
        self._options = options
        self._width = width
        self._any = False

    def settle(self) -> Iterable[bytes]:
        rows, self._sample = self._sample, []
        chunks: list[bytes] = []
        for first, last in self._parts(rows):
            if self._any or chunks:
                chunks.append(b"\n")
            part = [row[first:last] for row in rows]
            chunks.append(written(TableWriter(self._options), self._columns[first:last], part))
        self._any = True
        return chunks

    def end(self, summary: Summary) -> Iterable[bytes]:
        return self.settle() if self._sample or not self._any else []

    def _parts(self, rows: Rows) -> Iterable[tuple[int, int]]:
        """Start and end of each block of columns."""
        table = TableWriter(self._options)
        widths = table.measured(self._columns, rows)
        ends, _ = table.edges
        first, used = 0, 0
        for at, width in enumerate(widths):
            # Two adjacent columns share an edge.
            if at > first and used + width + ends - 1 > self._width:
                yield first, at
                first, used = at, 0
            used += width + ends - (1 if at > first else 0)
        if self._columns:
            yield first, len(self._columns)


def table_width(options: WriterOptions, columns: Sequence[Column], rows: Rows) -> int:
    """Return the width of a table in cells."""
    table = TableWriter(options)
    widths = table.measured(columns, rows)
    ends, between = table.edges
    return ends + sum(widths) + between * max(0, len(widths) - 1)


class LiveTableWriter(Writer):
    """Draws the last screenful of rows that keep arriving, with the total and the rate below it, on a terminal, at most
    ten times a second."""

    def __init__(self, options: WriterOptions) -> None:
        self._options = options
        self._columns: Sequence[Column] = ()
        self._rows: deque[list[str | None]] = deque(maxlen=max(1, shutil.get_terminal_size().lines - FRAME_LINES))
        self._total = 0
        self._lines = 0
        self._began = time.monotonic()
        self._drawn = 0.0
        self._counts: deque[tuple[float, int]] = deque()
        self._ended = False

    @property
    def buffering(self) -> bool:
        """The rate changes even if no row arrives."""
        return not self._ended

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._columns = columns
        return self.settle()

    def write(self, batch: Batch) -> Iterable[bytes]:
        self._rows.extend(batch.rows)
        self._total += len(batch.rows)
        return self.settle() if time.monotonic() - self._drawn >= STEP_SECONDS else []

    def settle(self) -> Iterable[bytes]:
        self._drawn = time.monotonic()
        text = written(TableWriter(self._options), self._columns, list(self._rows)).decode()
        lines = text.split("\n")[:-1]
        height = max(2, shutil.get_terminal_size().lines - 1)
        if not self._ended:
            lines = [*lines[: height - 1], f"\x1b[7m{self._status()}\x1b[0m"]
        up = f"\x1b[{self._lines}A" if self._lines else ""
        self._lines = len(lines)
        # Without wrapping: the terminal cuts off lines that are too wide.
        return [f"\x1b[?7l{up}\r\x1b[J".encode(), "\r\n".join(lines).encode(), b"\r\n\x1b[?7h"]

    def end(self, summary: Summary) -> Iterable[bytes]:
        self._ended = True
        return self.settle()

    def _status(self) -> str:
        now = time.monotonic()
        self._counts.append((now, self._total))
        while len(self._counts) > 2 and now - self._counts[0][0] > RATE_SECONDS:
            self._counts.popleft()
        since, had = self._counts[0]
        rate = (self._total - had) / (now - since) if now > since else 0.0
        seconds = int(now - self._began)
        clock = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f" {self._total:,} rows │ {rate:,.0f} rows/s │ {clock} │ Ctrl-C to stop "
