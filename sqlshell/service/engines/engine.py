"""What the service asks of an engine. The service knows no engine by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlshell.interface.models import ColumnInfo


class Failure(Exception):
    """A statement failed: its sqlState and the engine's own message."""

    def __init__(self, sql_state: str, message: str) -> None:
        super().__init__(message)
        self.sql_state = sql_state
        self.message = message


Keep = Callable[[Sequence[str]], None]
"""Takes the rows of one partition, each a JSON array as text."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement gave beside its rows. `zoned` are the columns whose values are instants, rendered in UTC."""

    columns: list[ColumnInfo] | None = None
    zoned: tuple[int, ...] = ()
    message: str = ""
    sql_state: str = "00000"


@dataclass(frozen=True, slots=True)
class Options:
    """How a statement is run: IANA zone, rows of a partition, and the row at which a SELECT stops (None: never)."""

    timezone: str = "UTC"
    partition_rows: int = 10_000
    row_limit: int | None = field(default=None)


class Connection(Protocol):
    """One session of the engine. Everything but interrupt() and progress() is called from one thread at a time."""

    @property
    def database(self) -> str: ...

    @property
    def schema(self) -> str: ...

    def run(self, sql: str, options: Options, keep: Keep) -> Outcome:
        """Run one statement and hand its rows to `keep`, a partition at a time. Raises Failure."""

    def use(self, database: str, schema: str) -> None:
        """Go to a database and a schema of it, "" being the present or first one. Raises Failure."""

    def interrupt(self) -> None:
        """End what runs, soon; nothing happens if nothing does."""

    def progress(self) -> float | None:
        """The share done of what runs, 0 to 1, where that is known."""

    def close(self) -> None: ...


class Engine(Protocol):
    def connect(self) -> Connection: ...

    def close(self) -> None: ...
