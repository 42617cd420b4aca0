"""What a format is written by: a Writer, its options, and the summary of what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from sqlshell.result import Batch, Column, Rows, StoredColumn, Table

Values = Sequence[str | None]
"""The values of a column or a row."""

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
    "sql",
]
"""The meaning of a text, which determines its color: `digits` are every other three digits of a number; the words of
`sql` have the colors of the prompt."""


class Screen(Struct, frozen=True):
    """A terminal that tables are drawn for: `width` in cells, `unicode` whether it shows box-drawing characters.

    `types` adds a row with the types of the columns; `cuts` allows long texts to be cut so that a table fits.
    """

    width: int
    unicode: bool = True
    types: bool = True
    cuts: bool = False

    @property
    def ellipsis(self) -> str:
        return "…" if self.unicode else "..."


class DisplayFormat(Struct, frozen=True):
    """How values change for people: `width` is the maximum width of a value in cells, 0 for no limit; `grouping` the
    separators of thousands and fractions.

    `zone` is the IANA name of a time zone, "" to leave times unchanged; `indent` formats nested values on several
    lines. `screen` says that a person reads a table at a terminal: values are cut between words, nested ones get
    spaces.
    """

    width: int = 0
    grouping: tuple[str, str] | None = None
    zone: str = ""
    indent: bool = False
    screen: bool = False
    ellipsis: str = "…"


class WriterOptions(Struct, frozen=True):
    """`null` is the text for NULL (None: the default of the format), `table_style` the style of tables.

    `paint` adds escape sequences to text in a given role; None draws without color. `changed` are cells to
    highlight, by row and column. `screen` draws tables and records for a terminal in the default style; `layout` is
    what becomes of a table that is wider than `width` cells, a view of rows that keep arriving, or the plan of
    EXPLAIN. `display` changes values for people. `field_separator`, `record_separator`, `footer` and `expanded`
    apply to the unaligned format; `table` is the table of INSERT statements, written as in SQL, and `engine` the
    one whose SQL they are, "" for DuckDB.
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
    layout: Literal["", "auto", "fold", "live", "plan"] = ""
    width: int = 0
    display: DisplayFormat | None = None


class Look(Struct, frozen=True):
    """How rows were drawn: `shortened` is the number of values that were cut, `turned` whether the rows are not a table
    because they were too wide.

    `frozen` are the lines and cells at the edges of a table to keep in view; `wraps` says that wide lines can be read
    wrapped, as those of records. `left_out` is the number of columns that a table had no room for. `plan` is whether
    the rows are the lines of one plan, whose number says nothing.
    """

    shortened: int = 0
    turned: bool = False
    left_out: int = 0
    frozen: tuple[int, int] = (0, 0)
    wraps: bool = False
    plan: bool = False


class Summary(Struct, frozen=True):
    """What was written: `complete` is False if the reader left before the last row; `size` is the number of bytes
    received.

    `waited` is the time in seconds that a pager or a command took to read, and `look` how the rows were drawn.
    """

    rows: int
    complete: bool
    size: int = 0
    waited: float = 0.0
    look: Look = Look()


class Change(Struct, frozen=True):
    """What becomes of the values of a column: `values` returns the same object if nothing changes.

    `stored` is the same in SQL; it returns None for a column that only Python can change.
    """

    values: Callable[[Values], Values]
    stored: Callable[[StoredColumn], StoredColumn | None] = lambda column: None


def each(change: Callable[[str], str]) -> Callable[[Values], Values]:
    """Return what changes each value of a column that is not NULL."""
    return lambda values: [value if value is None else change(value) for value in values]


class Writer:
    """Converts columns and batches to byte chunks; owns no file.

    Call begin() first, then write() and settle() any number of times, then end() unless the reader left. A result
    without columns produces no bytes.
    """

    by_sql: Literal["", "lines", "table"] = ""
    """What DuckDB can do with a result that the service has as a file: make the `lines` of its rows, by line(), or give
    all of it as a `table` to from_table()."""

    @property
    def buffering(self) -> bool:
        """Whether rows are held back that settle() would return."""
        return False

    @property
    def look(self) -> Look:
        """How the rows were drawn so far."""
        return Look()

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        """Return what is before the rows."""
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        """Return the rows, as far as they are not held back."""
        raise NotImplementedError

    def settle(self) -> Iterable[bytes]:
        """Return the rows that are held back, because no row has arrived for a while."""
        return []

    def end(self, summary: Summary) -> Iterable[bytes]:
        """Return the rest."""
        return []

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        """Return a LineSql: the text of a row, with what separates it from the others."""
        return None

    def from_table(self, table: Table) -> Iterable[bytes]:
        """Return all bytes, instead of write() and end(), after begin(); takes seconds, and may run in a thread.

        Raises OutputError, and FileUnavailable if DuckDB cannot read the file: write() has to follow for the rows that
        are not written.
        """
        raise NotImplementedError

    def interrupt(self) -> None:
        """Stop what runs in another thread, with an error there."""


def written(writer: Writer, columns: Sequence[Column], rows: Rows) -> bytes:
    """Return all bytes of rows in memory."""
    batch = Batch(len(columns), rows=rows)
    chunks = [*writer.begin(columns), *(writer.write(batch) if rows else [])]
    return b"".join([*chunks, *writer.end(Summary(len(rows), True))])


def encode(text: str) -> bytes:
    """Return the bytes of a text, whatever it contains."""
    return text.encode("utf-8", "surrogatepass")
