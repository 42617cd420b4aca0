"""The protocol of writers: their options, their methods, and the summary of what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol, TypeGuard

from msgspec import Struct

from sqlshell.result import Batch, Column, StoredColumn, Table

Role = Literal[
    "header",
    "null",
    "changed",
    "border",
    "dim",
    "digits",
    "negative",
    "boolean",
    "date",
    "id",
    "error",
    "warning",
    "help",
]
"""The meaning of a text, which determines its color: `digits` are every other three digits of a number."""


class Screen(Struct, frozen=True):
    """A terminal that tables are drawn for: `width` in cells, `unicode` whether it shows box-drawing characters.

    `types` adds a row with the types of the columns; `cuts` allows long texts to be cut so that a table fits.
    """

    width: int
    unicode: bool = True
    types: bool = True
    cuts: bool = False


class WriterOptions(Struct, frozen=True):
    """`null` is the text for NULL (None: the default of the format), `table_style` the style of tables.

    `paint` adds escape sequences to text in a given role; None draws without color. `changed` are cells to highlight,
    by row and column. `screen` draws tables and records for a terminal in the default style. `field_separator`,
    `record_separator`, `footer` and `expanded` apply to the unaligned format; `table` is the table of INSERT
    statements, written as in SQL, and `engine` the one whose SQL they are, "" for DuckDB.
    """

    null: str | None = None
    table_style: str = "auto"
    header: bool = True
    paint: Callable[[str, Role], str] | None = None
    changed: frozenset[tuple[int, int]] = frozenset()
    field_separator: str = "|"
    record_separator: str = "\n"
    footer: bool = True
    expanded: bool = False
    table: str = ""
    engine: str = ""
    spreadsheet_safe: bool = False
    screen: Screen | None = None


class Summary(Struct, frozen=True):
    """What was written: `complete` is False if the reader left before the last row; `size` is the number of bytes
    received.

    `waited` is the time in seconds that a pager or a command took to read, `shortened` the number of values that were
    cut. `turned` is whether the rows were too wide for a table, so that each has several lines.
    """

    rows: int
    complete: bool
    size: int = 0
    waited: float = 0.0
    shortened: int = 0
    turned: bool = False


class Writer(Protocol):
    """Converts columns and batches to byte chunks; owns no file.

    Call begin() first, then write() and settle() any number of times, then end() unless the reader left. A result
    without columns produces no bytes.
    """

    @property
    def buffering(self) -> bool:
        """Whether rows are held back that settle() would return."""

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]: ...

    def write(self, batch: Batch) -> Iterable[bytes]: ...

    def settle(self) -> Iterable[bytes]:
        """Return the rows that are held back, because no row has arrived for a while."""

    def end(self, summary: Summary) -> Iterable[bytes]: ...


class Unbuffered:
    """Part of a writer without rows that settle() could return: it writes each at once, or all at the end."""

    buffering = False

    def settle(self) -> Iterable[bytes]:
        return []


class LineWriter(Writer, Protocol):
    """A writer whose rows DuckDB can write, too."""

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        """A LineSql: the text of a row, with what separates it from the others."""


def written(writer: LineWriter, batch: Batch, write: Callable[[Batch], Iterable[bytes]]) -> Iterable[bytes]:
    """The rows as DuckDB writes them, or else as `write` does."""
    lines = batch.lines(writer.line)
    return write(batch) if lines is None else [lines]


class WholeWriter(Writer, Protocol):
    """A writer that takes the table of a whole result instead of its rows, and whose methods may take seconds.

    They can be called in a thread, where interrupt() ends them with an error.
    """

    def from_table(self, table: Table) -> Iterable[bytes]:
        """All bytes, instead of write() and end(), after begin().

        Raises OutputError, and FileUnavailable if DuckDB cannot read the file: write() has to follow for the rows that
        are not written.
        """

    def interrupt(self) -> None:
        """Stop what runs in another thread."""


def has_lines(writer: Writer) -> TypeGuard[LineWriter]:
    # isinstance() of a protocol takes longer than writing a small result.
    return hasattr(writer, "line")


def takes_whole(writer: Writer) -> TypeGuard[WholeWriter]:
    return hasattr(writer, "from_table")
