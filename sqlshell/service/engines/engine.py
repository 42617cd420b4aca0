"""The protocol between the service and an engine. The service knows no engine by name."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.failure import Failure

NO_CONTINUOUS_QUERIES = "DuckDB does not support continuous queries"
"""The reason why queries that run continuously over a stream are not supported."""

SYSTEM_DATABASE: Final = "deltastream"
"""The service's own database, with its system relations."""

SYSTEM_FOLDER: Final = "system"
"""The folder of an organization's system relations: files that the service replaces."""

SPOOL: Final = "spool"
"""The folder where the engine writes large results, which the service moves away as soon as they are complete."""

RESULTS: Final = "results"
"""The folder of complete results, which the engine's process cannot name."""

RENDERING: Final = "rendering"
"""The folder for temporary files of the process that renders results."""

FOLDERS: Final = ("databases", "copies", SPOOL, SYSTEM_FOLDER)
"""The folders of an organization whose files the engine may open, besides that of temporary files."""

CANCELED_BEFORE_START = "the statement was canceled before it started"


class Rights(enum.IntEnum):
    """The rights of a role; each value includes the smaller ones."""

    READ = 1
    DATA = 2
    OBJECTS = 3

    @property
    def role(self) -> str:
        """The name of the role with these rights."""
        return {Rights.READ: "reader", Rights.DATA: "writer", Rights.OBJECTS: "owner"}[self]


class Sink(Protocol):
    """Receives the rows of a result: as text by keep(), or in a file of the engine's format at file()."""

    def keep(self, rows: Sequence[str]) -> None:
        """Add rows; each is a JSON array of strings and nulls."""

    def file(self) -> Path | None:
        """Return the path to which the engine may write the whole result in its own format; None to require text."""

    def grown(self, size: int) -> None:
        """Count the bytes that the file of the result has now. Raises Failure if there is not enough space."""

    def finish(self, filed: Sequence[tuple[int, int]] | None = None) -> None:
        """Store the rows where they are found later; `filed` is that of the Outcome. It blocks, and raises OSError."""


class Outcome(Struct, frozen=True):
    """The result of a statement except its rows.

    `zoned` are the columns that contain instants, rendered in UTC, each with their positions in its values: True for
    the whole value, {"each": …} for the items of a list, {"key": …, "each": …} for a map, {"parts": […]} for a struct,
    False for none. `filed` are the rows and approximate bytes of each partition of the sink's file, None if rows were
    stored as text. `written` is the number of rows of such a file, while its partitions are not known. `secret` is a
    value that the statement's sender gets once and that is not stored, and `secret_name` the name of its object.
    """

    columns: list[ColumnInfo] | None = None
    zoned: tuple[tuple[int, Any], ...] = ()
    message: str = ""
    sql_state: str = "00000"
    filed: Sequence[tuple[int, int]] | None = None
    written: int | None = None
    secret: str = ""
    secret_name: str = ""


Relation = tuple[str, str, str]
"""Database, schema and name, as the engine spells them."""


class Listing(Struct, frozen=True):
    """Rows of the service for the engine: columns as (name, interface type), and rows of strings. Instants are in UTC;
    an unknown instant is ""."""

    columns: list[tuple[str, str]]
    rows: list[list[str]]


class CatalogQuery(Struct, frozen=True):
    """The databases, schemas, relations or functions (`kind`), except those in `hidden` databases.

    "" is every database and every schema, and every relation for `name`. `streams` are the relations that are streams.
    The kinds "relation" and "function" ask whether there is one of this name, of any kind: built in, or temporary.
    """

    kind: str
    database: str = ""
    schema: str = ""
    name: str = ""
    streams: Collection[Relation] = ()
    hidden: Collection[str] = ()


class ObjectQuery(Struct, frozen=True):
    """A query of LIST ENGINE or DESCRIBE ENGINE for the engine's objects, as its own tools show them.

    `kind` is what is listed, such as "types"; or "relation" or "function", for the one with these `names`. `part` is
    "columns", "sql" for the statements that create it, or "" for notes about it. `schema` limits a list; "" stands for
    all schemas that are not the engine's own. `details` adds columns and notes, which may take longer. `arguments` are
    the types of a function's arguments in parentheses; "" stands for all functions of its name. `kinds` are those of
    relations that the service keeps, and `hidden` are databases that are not listed.
    """

    kind: str
    part: str = ""
    names: Sequence[str] = ()
    schema: str = ""
    details: bool = False
    arguments: str = ""
    kinds: Mapping[Relation, str] = {}
    hidden: Collection[str] = ()


class RunOptions(Struct, frozen=True):
    """How a statement is run: IANA time zone ("" for the session's own), maximum rows and bytes of a partition, maximum
    rows of a SELECT (None: no limit; 0: a SELECT is not run, the outcome has its columns), maximum columns of a result
    and bytes of their names and types, rights.

    `streams` are append-only relations. `data` is a file with the data of COPY …
    FROM STDIN, for engines that read it.
    """

    timezone: str = "UTC"
    partition_rows: int = 10_000
    partition_bytes: int = 8 << 20
    row_limit: int | None = None
    columns: int = 1 << 62
    columns_size: int = 1 << 62
    rights: Rights = Rights.OBJECTS
    streams: tuple[Relation, ...] = ()
    data: Path | None = None


class Capabilities(Struct, frozen=True):
    """The optional capabilities of an engine; LIST ENGINES shows them.

    `transactions`: BEGIN, COMMIT and ROLLBACK in a session. `temporary_tables`: tables that a session's end removes.
    `streams`: SELECTs that continue as rows are appended. `applications`: several statements, all or nothing. `cancel`:
    running statements can be interrupted. `progress`: the share of a running statement that is done. `typed_results`:
    results as Parquet whose columns have types. `roles`: a statement can be restricted to the rights of a role.
    `databases`: the service creates and drops databases. `store_entities`: statements read the entities of stores.
    `attachments`: COPY … FROM an attachment. `plans`: what a CREATE or INSERT would do. `reattaching`: a
    running statement survives a restart of the service, which takes it up again.
    """

    transactions: bool = False
    temporary_tables: bool = False
    streams: bool = False
    applications: bool = False
    cancel: bool = False
    progress: bool = False
    typed_results: bool = False
    roles: bool = False
    databases: bool = False
    store_entities: bool = False
    attachments: bool = False
    plans: bool = False
    reattaching: bool = False

    def named(self, *, present: bool) -> list[str]:
        """Return the capabilities that the engine has, or those that it lacks, in words."""
        return [name.replace("_", " ") for name in self.__struct_fields__ if getattr(self, name) is present]


class Traits(Struct, frozen=True):
    """Facts about an engine.

    `initial_schema` is the one in which sessions begin, `default_timezone` the time zone of statements whose request
    has none ("": that of the engine's own session). `hidden_databases` are not shown, and `reserved_names`, in lower
    case, are names that users' databases and stores cannot have. `interface_sql`: statements may use the SQL of the
    interface, which the engine translates. `text_in_files`: files of results contain what the engine printed, of which
    convert() makes typed values.
    """

    initial_schema: str = "main"
    default_timezone: str = "UTC"
    hidden_databases: Collection[str] = ()
    reserved_names: Collection[str] = ()
    interface_sql: bool = False
    text_in_files: bool = False


class Limits(Struct, frozen=True):
    """Resource limits of one instance: threads (0: one per core), memory ("": DuckDB's default, 80 % of the machine's),
    bytes of temporary files and bytes of results that are being written (None: no limit)."""

    threads: int = 0
    memory: str = ""
    spill: int | None = None
    results: int | None = None


class StreamQuery(Struct, frozen=True):
    """A SELECT on one stream: the SQL that the engine evaluates for new rows, its columns, and whether it starts at the
    stream's first row."""

    stream: Relation
    columns: list[ColumnInfo]
    sql: str
    from_earliest: bool = False


class Plan(Struct, frozen=True):
    """A statement's plan: the columns of the relation that it creates or inserts into, the relations that it reads, and
    the engine's plan as JSON."""

    columns: list[ColumnInfo]
    reads: list[Relation]
    tree: str


Rows = list[tuple[str, ...]]
"""Rows of the engine's catalog, as strings; NULL is ""."""


class EngineSession(Protocol):
    """One session of the engine. All methods except cancel() and progress() are called from one thread at a time, and
    raise Failure."""

    @property
    def database(self) -> str: ...

    @property
    def schema(self) -> str: ...

    @property
    def transaction(self) -> str:
        """ "open", "failed" (only COMMIT and ROLLBACK are accepted), or "" for none."""

    @property
    def timezone(self) -> str:
        """The session's time zone: that of the latest request or of a later SET TimeZone. Before both it is ""."""

    def run(self, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        """Run one statement and pass its rows to `sink`. If the statement changes data and can be undone, the sink may
        be finished before it is committed."""

    def use(self, database: str, schema: str) -> None:
        """Change the database and schema; "" is the current database or its first schema."""

    def columns(self, relation: Relation, options: RunOptions) -> list[ColumnInfo]:
        """Return the columns of a relation."""

    def resolve(self, names: Sequence[str]) -> Relation:
        """Return the full name of a relation, completed with the current database and schema."""

    def lose_transaction(self) -> None:
        """Enter the state of a failed transaction: only COMMIT and ROLLBACK are accepted, and nothing is committed.
        Engines without transactions do nothing."""

    def cancel(self, *, force: bool = False) -> bool:
        """Interrupt the running statement, if any. A request between two steps of a statement may be lost, and is
        repeated. With `force`, which follows if that had no effect, end the statement with its connection or process.
        Returns whether that is possible. Never waits."""

    def progress(self) -> float | None:
        """Return the progress of the running statement, from 0 to 1, if known."""

    def close(self) -> None: ...


class LocalSession(EngineSession, Protocol):
    """A session of a LocalEngine. Methods are called if the engine has the capability that they name."""

    def load(self, names: Sequence[str], columns: Sequence[str], path: Path, options: RunOptions) -> Outcome:
        """Insert the rows of a Parquet file into a relation, all or none (`attachments`); no `columns` are all of them,
        in order.

        It is checked as an INSERT is. Messages do not contain the path. Raises Failure.
        """

    def plan(self, sql: str, options: RunOptions) -> Plan:
        """Return the effects that a CREATE or INSERT would have (`plans`); it is checked as if it ran. Raises
        Failure."""

    def stream_query(self, sql: str, streams: Collection[Relation], options: RunOptions) -> StreamQuery | None:
        """Return the query of a SELECT on a stream (`streams`), None for other statements. Raises Failure if it is not
        supported."""

    def rows(self, query: StreamQuery, start: int, end: int) -> list[str]:
        """Return the rows of a query for the stream's rows in [start, end), as JSON arrays (`streams`). Raises
        Failure, 54000 if they have too many characters."""

    def listed(self, sql: str) -> Rows:
        """Return the rows of the service's own query, as the session sees them. Raises Failure."""


class Engine(Protocol):
    """One organization's data, and the files of its results, which ResultFiles reads for every engine. Used from any
    thread."""

    @property
    def name(self) -> str:
        """The name of the engine: duckdb, postgresql, spark."""

    @property
    def version(self) -> str:
        """The product and its version, for people."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def traits(self) -> Traits: ...

    def connect(self) -> EngineSession:
        """Begin a session in the first database. Never waits for a server."""

    def catalog(self, query: CatalogQuery, seen: EngineSession | None = None) -> Rows:
        """Return the objects of a kind: databases as (name), schemas as (name, database), relations as (name, schema,
        type, database, primary key, comment), functions as (name, signature, type, database, schema), one relation
        as an ID that distinguishes it from earlier ones of its name ("" if it has none), one function as any row.
        `seen` is the session that asks, for an engine whose sessions have objects of their own. Raises Failure."""

    def objects(self, query: ObjectQuery, seen: EngineSession) -> Listing:
        """Return these objects, as the session `seen` sees them. The first note about a relation is its kind and full
        name. Its SQL is rows of: the phase of a script in which a statement is run, a number that is larger for
        relations that were created later, and the statement. Raises Failure, 0A000 for objects that the engine does
        not have."""

    def inline(self, rows: Listing) -> str:
        """Return SQL of a relation with these rows."""

    def read(self, path: Path, start: int, counts: Sequence[int]) -> list[bytes]:
        """Read partitions of `counts` rows, from row `start` on, of a result that run() wrote to `path`: rows separated
        by commas."""

    def convert(
        self, source: Path, ends: Sequence[int], columns: Sequence[ColumnInfo], instants: Sequence[int], target: Path
    ) -> None:
        """Write rows that are stored as text to a file in the engine's format. `ends` are the ends of the partitions in
        `source`, which may also be a file with text; `instants` are the numbers of the columns that contain instants.
        Raises Failure."""

    def trim_memory(self) -> None:
        """Return memory that statements, and readers of results, no longer use to the system. Called every few seconds,
        in any thread."""

    def close(self) -> None: ...


class LocalEngine(Engine, Protocol):
    """An engine whose data the service keeps. Methods are called if it has the capability that they name; publish() if
    it has the SQL of the interface, whose `deltastream.sys` has relations of the service."""

    @property
    def first_database(self) -> str:
        """The database in which sessions begin, which is not dropped."""

    def attach(self, name: str, path: Path | None) -> None:
        """Create a database, in a file or in memory (`databases`). Raises Failure."""

    def detach(self, name: str) -> None: ...

    def mount(self, store: str, copy: Path) -> None:
        """Attach a copy of a store, a file in the engine's format, read-only as database `store`, and replace the
        previous copy; statements that read it continue (`store_entities`). Raises Failure."""

    def head(self, stream: Relation, least: int = 0) -> int:
        """Return the position after a stream's last row, which is `least` or later (`streams`). Raises Failure."""

    def publish(self, tables: Mapping[str, Listing]) -> None:
        """Replace the system relations that have changed."""


class ExternalEngine(Engine, Protocol):
    """An engine whose server several processes of the service can share.

    The server may lose a session at any time. Its running statement then fails with 57P02, an open transaction is
    "failed", and the next statement makes the session again, with its database, schema and time zone.
    """

    def server(self) -> str:
        """Return what distinguishes the server, and its database, from others; it contains no secret. Raises
        Failure."""

    def operation(self, session: EngineSession) -> str:
        """Return the ID of the operation that the next statement of a session will be, for reattach() (`reattaching`).
        Never waits."""

    async def reattach(
        self, operation: str, options: RunOptions, sink: Sink, attached: Callable[[EngineSession], None]
    ) -> Outcome:
        """Wait for an operation that a session began, perhaps in another process, and pass all its rows to `sink`
        (`reattaching`). `attached` is called with the session that can interrupt it. Called from the
        service's event loop. Raises Failure.
        """


def completed(names: Sequence[str], database: str, schema: str) -> Relation:
    """Return the full name of a relation, completed with the database and schema; of more than three parts, the
    last."""
    return (
        names[-3] if len(names) > 2 else database,
        names[-2] if len(names) > 1 else schema,
        names[-1],
    )


def not_supported(engine: str, what: str) -> Failure:
    return Failure(sqlstate.UNSUPPORTED, f"the engine {engine} does not support {what}")


def check_supported(engine: Engine, capability: str) -> None:
    """Raises Failure (0A000) if an engine does not have a capability."""
    if not getattr(engine.capabilities, capability):
        raise not_supported(engine.name, capability.replace("_", " "))
