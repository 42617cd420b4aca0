"""What the service asks of an engine. The service knows no engine by name."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from sqlshell.interface.models import ColumnInfo

TOGETHER_SECONDS = 0.05
"""How long statements that were handed over together go on without asking."""

CONTINUOUS = "continuous queries need an engine that is made for them, which DuckDB is not"
"""Why what goes on over a stream is not done."""

ENDED_EARLY = "the statement was ended before it began"


class Failure(Exception):
    """A statement failed: its sqlState and the engine's own message; `missing` names the schema that is not there,
    behind its database where that is named."""

    def __init__(self, sql_state: str, message: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.sql_state = sql_state
        self.message = message
        self.missing = missing

    def about(self, message: str) -> Failure:
        """The same failure in other words."""
        return Failure(self.sql_state, message, self.missing)


class Rights(enum.IntEnum):
    """What a role may do; each includes the ones before it."""

    READ = 1
    DATA = 2
    OBJECTS = 3

    @property
    def role(self) -> str:
        """The name of the role that may do so much."""
        return {Rights.READ: "reader", Rights.DATA: "writer", Rights.OBJECTS: "owner"}[self]


class Sink(Protocol):
    """Takes the rows of a result: as text by keep(), or as a file of the engine's own at file(), where it takes one."""

    def keep(self, rows: Sequence[str]) -> None:
        """Some more rows; each is a JSON array of strings and nulls."""

    def file(self) -> Path | None:
        """Where the engine may write the whole result in its own form, for read() to read; None where it takes text
        alone."""


class Kept(Sink, Protocol):
    """A sink that says what became of the rows."""

    @property
    def small(self) -> bool:
        """Whether the whole result is held, for it is not large."""

    def finish(self, filed: Sequence[tuple[int, int]] | None = None) -> None:
        """No more rows come; `filed` is as Outcome has it. Raises OSError."""


class Outcome(Struct, frozen=True):
    """What a statement gave beside its rows.

    `zoned` are the columns that hold instants, rendered in UTC, each with where they are in its values: True for the
    whole value, {"each": …} for a list's items, {"key": …, "each": …} for a map's, {"parts": […]} for a struct's, False
    where there is none. `filed` are the partitions of the sink's file, the rows and about the bytes of each, None where
    rows were kept as text. `secret` is a value that its statement's sender gets once and that is kept nowhere, and
    `secret_name` what it belongs to.
    """

    columns: list[ColumnInfo] | None = None
    zoned: tuple[tuple[int, Any], ...] = ()
    message: str = ""
    sql_state: str = "00000"
    filed: Sequence[tuple[int, int]] | None = None
    secret: str = ""
    secret_name: str = ""


Relation = tuple[str, str, str]
"""Database, schema and name, as the engine has them."""


class Listed(Struct, frozen=True):
    """Rows of the service's own for the engine: columns as (name, interface type), and rows of texts. An instant is in
    UTC, and one that is not known is ""."""

    columns: list[tuple[str, str]]
    rows: list[list[str]]


class Options(Struct, frozen=True):
    """How a statement is run: IANA zone, rows and bytes of a partition, the row at which a SELECT stops (None: never),
    columns that a result may have, rights.

    `streams` are relations that are only added to, and `stores` databases that nobody changes.
    """

    timezone: str = "UTC"
    partition_rows: int = 10_000
    partition_bytes: int = 8 << 20
    row_limit: int | None = None
    columns: int = 1 << 62
    rights: Rights = Rights.OBJECTS
    streams: tuple[Relation, ...] = ()
    stores: tuple[str, ...] = ()


class Limits(Struct, frozen=True):
    """What one instance may take: threads (0: one per core), memory ("" is DuckDB's own, 80 % of the machine's), bytes
    that statements write while they run and of the results that are made (None: as much as there is), and seconds that
    the evaluation of some rows of a stream may take (0: any time)."""

    threads: int = 0
    memory: str = ""
    spill: int | None = None
    results: int | None = None
    seconds: float = 0.0


class Feed(Struct, frozen=True):
    """An endless SELECT over one stream: what the engine evaluates over new rows, the columns that come of it, and
    whether it begins with the stream's first row."""

    stream: Relation
    columns: list[ColumnInfo]
    sql: str
    from_earliest: bool = False


class Plan(Struct, frozen=True):
    """What a statement would do: the columns of the relation that it makes or adds to, the relations that it reads, and
    the engine's own plan, JSON."""

    columns: list[ColumnInfo]
    reads: list[Relation]
    tree: str


class Connection(Protocol):
    """One session of the engine. Everything but interrupt() and progress() is called from one thread at a time."""

    @property
    def database(self) -> str: ...

    @property
    def schema(self) -> str: ...

    @property
    def transaction(self) -> str:
        """ "open", "failed" (only COMMIT and ROLLBACK are taken), or "" for none."""

    @property
    def timezone(self) -> str:
        """The session's zone: the one that a statement asked for, or of a later SET TimeZone; "" before any."""

    @property
    def in_transaction(self) -> bool: ...

    def run(self, sql: str, options: Options, sink: Sink, *, trusted: bool = False) -> Outcome:
        """Run one statement and hand its rows to `sink`. `trusted` is the service's own SQL, which may see all.

        Raises Failure.
        """

    def several(
        self,
        runs: Sequence[tuple[str, Kept]],
        options: Options,
        ended: Callable[[int, Outcome | Exception, float], None],
    ) -> None:
        """Run statements one after another, and finish the sink of each. `ended` is told what each came to (its
        number in `runs`, the outcome or what run() raised, seconds), before the next one is looked at by its caller.

        It ends early: behind a failure, behind a result that is not small, and when the statements have taken
        TOGETHER_SECONDS.
        """

    def run_all(self, statements: Sequence[str], options: Options, sink: Sink) -> None:
        """Run statements as one transaction within the present database, all or nothing. Raises Failure."""

    def use(self, database: str, schema: str) -> None:
        """Go to a database and a schema of it, "" being the present or first one. Raises Failure."""

    def feed(self, sql: str, streams: Collection[Relation], options: Options) -> Feed | None:
        """The feed that a SELECT asks for, None for what reads no stream. Raises Failure where it cannot be one."""

    def plan(self, sql: str, options: Options) -> Plan:
        """What a CREATE or INSERT would do, which is judged as if it ran. Raises Failure."""

    def columns(self, relation: Relation) -> list[ColumnInfo]:
        """The columns of a relation. Raises Failure."""

    def resolve(self, names: Sequence[str]) -> Relation:
        """A name as the statement wrote it, made whole by the present place."""

    def interrupt(self, number: int | None = None) -> None:
        """End what runs, soon; nothing happens if nothing does. `number` names one of several(), 0 is what runs alone:
        if it has not begun, it will not."""

    def abandon(self) -> bool:
        """Give up waiting for what does not end by interrupt(), with all that its engine runs; False where that cannot
        be done."""

    def progress(self) -> float | None:
        """The share done of what runs, 0 to 1, where that is known."""

    def close(self) -> None: ...


class Engine(Protocol):
    """One organization's data. Used from any thread."""

    @property
    def first_database(self) -> str:
        """The database that new connections are in."""

    @property
    def protections(self) -> str:
        """What keeps the engine from everything else on the machine, in words; "" where nothing does."""

    @property
    def broken(self) -> Mapping[str, str]:
        """Databases that could not be opened when the engine was, and why."""

    def connect(self) -> Connection: ...

    def read(self, path: Path, start: int, counts: Sequence[int]) -> list[bytes]:
        """Partitions of `counts` rows from row `start` on of a result that run() wrote to `path`: rows with commas
        between them."""

    def rest(self) -> None:
        """Nobody has read results for some time: let go what was held for that."""

    def attach(self, name: str, path: Path | None) -> None:
        """Make a new database, at a file or in memory. Raises Failure."""

    def detach(self, name: str) -> None: ...

    def mount(self, store: str, copy: Path) -> None:
        """Attach a copy of a store, a file of the engine's own form, read-only as database `store`, in the place of the
        copy before; what reads that one goes on. Raises Failure."""

    def view(self, store: str, entities: Mapping[str, Path]) -> None:
        """Make files readable where they are, as relations of the database `store`. For an engine that may read any
        file. Raises Failure."""

    def listing(
        self,
        what: str,
        database: str,
        schema: str,
        streams: Collection[Relation],
        hidden: Collection[str],
        name: str = "",
    ) -> str:
        """SQL that lists databases, schemas, relations or functions; `hidden` databases are left out. `name` is that
        of the only relation that is wanted."""

    def identity(self, relation: Relation) -> int | None:
        """A number that another table of the same name does not have while the engine is open; None for no table."""

    def exists(self, relation: Relation) -> bool: ...

    def read_listing(self, sql: str) -> list[tuple[str, ...]]:
        """The rows of a listing, as strings."""

    def inline(self, rows: Listed) -> str:
        """SQL of a relation that has these rows."""

    def publish(self, tables: Mapping[str, Listed]) -> None:
        """Replace system relations of `deltastream.sys`, but for those that are as they were."""

    def head(self, stream: Relation, least: int = 0) -> int:
        """The position behind a stream's last row, which is `least` or later. Raises Failure."""

    def rows(self, feed: Feed, start: int, end: int) -> list[str]:
        """What the feed gives of a stream's rows from position `start` to before `end`, as JSON arrays."""

    def close(self) -> None: ...
