"""What every writer has in common: its options, its methods, and the summary of what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from sqlshell.result import Batch, Column

Role = Literal["header", "null", "changed"]


class WriterOptions(Struct, frozen=True):
    """`null` is the text for NULL (None: the format's own), `table_style` the looks of tables.

    `paint` puts escape sequences around a text that a format for people draws in that role; None draws without color.
    `changed` are cells, by row and column, to be marked.
    """

    null: str | None = None
    table_style: str = "psql"
    header: bool = True
    paint: Callable[[str, Role], str] | None = None
    changed: frozenset[tuple[int, int]] = frozenset()


class Summary(Struct, frozen=True):
    """What was written: `complete` is False when the reader left before the last row; `size` is the bytes that came.

    `waited` are the seconds that a pager or a command took to read.
    """

    rows: int
    complete: bool
    size: int = 0
    waited: float = 0.0


class Writer(Protocol):
    """Turns columns and batches into byte chunks; holds no file.

    begin() comes first, then any number of write() and settle(), then end() unless the reader left. A result without
    columns gives no bytes.
    """

    @property
    def buffering(self) -> bool:
        """Whether rows are held back that settle() would give."""

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]: ...

    def write(self, batch: Batch) -> Iterable[bytes]: ...

    def settle(self) -> Iterable[bytes]:
        """No row came for a while: give what is held back."""

    def end(self, summary: Summary) -> Iterable[bytes]: ...
