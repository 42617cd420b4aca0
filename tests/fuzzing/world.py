"""An organization's engine with objects of all kinds, and a comparison of its state before and after."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
from msgspec import Struct

from sqlshell.service.engines.duckdb.connection import DuckdbConnection
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.duckdb.published import PublishedRelations
from sqlshell.service.engines.engine import FOLDERS, SPOOL, SYSTEM_FOLDER, Limits, Listing, Rights, RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard

CONTENT = "what nobody may read"
"""The content of a file that is none of the organization's."""

SECONDS = 5
"""After which a statement is interrupted."""

MADE = (
    "create table t as select range as a, 'x' || range as b from range(3)",
    "create sequence s",
    "create table d (id int default nextval('s'), v varchar)",
    "create table k (i int primary key, j varchar)",
    "insert into k values (1, 'one'), (2, 'two')",
    "create index at_j on k (j)",
    "create view w as select a from t",
    "create schema aside",
    "create table aside.u as select 1 as a",
    "create table other.main.t as select 7 as a",
)
MADE_RARE = (
    "create macro plus(x) as x + 1",
    "create macro series(x) as table from range(x)",
    "create macro counted(x) as (select count(*) from range(x))",
    "create type mood as enum ('good', 'bad')",
)

_CATALOG = (
    "SELECT database_name, schema_name, table_name, sql FROM duckdb_tables() WHERE NOT temporary",
    "SELECT database_name, schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal AND NOT temporary",
    "SELECT database_name, schema_name, sequence_name, start_value, increment_by FROM duckdb_sequences()",
    "SELECT database_name, schema_name, index_name, sql FROM duckdb_indexes()",
    "SELECT database_name, schema_name, '' FROM duckdb_schemas() WHERE NOT internal",
    "SELECT database_name, schema_name, trigger_name FROM duckdb_triggers()",
)
_RARE = (
    "SELECT database_name, schema_name, function_name, macro_definition FROM duckdb_functions() "
    "WHERE NOT internal AND database_name <> 'temp'",
    "SELECT database_name, schema_name, type_name FROM duckdb_types() WHERE NOT internal AND database_name <> 'temp'",
)
_MACHINE = (
    "SELECT database_name, path FROM duckdb_databases()",
    "SELECT name, value FROM duckdb_settings() WHERE name NOT IN ('TimeZone', 'search_path', 'schema', "
    "'enable_progress_bar', 'enable_progress_bar_print')",
)
_SEQUENCES = "SELECT database_name, schema_name, sequence_name, last_value FROM duckdb_sequences()"
_UNFILED = (
    "SELECT database_name, schema_name, sequence_name, CAST(last_value AS VARCHAR) FROM duckdb_sequences() "
    "UNION ALL SELECT database_name, path, '', '' FROM duckdb_databases() "
    "UNION ALL SELECT database_name, schema_name, table_name, sql FROM duckdb_tables() "
    "WHERE database_name = 'deltastream' "
    "UNION ALL SELECT 'rows', CAST(count(*) AS VARCHAR), CAST(sum(hash(it)) AS VARCHAR), '' "
    "FROM deltastream.sys.tables it"
)
"""What changes without a trace in a file: the values of sequences, and the database that is in memory."""

KEPT = frozenset({"deltastream", "st", "system"})
"""Databases that nobody changes."""


class State(Struct, frozen=True):
    """`catalog`, `rare` (macros and types) and `rows` of the databases that may change, `kept` of those that may not,
    `sequences` and how far each is, `machine`: databases and settings, `outside`: the files that are none of the
    organization's, `inside`: the names of those that are."""

    catalog: frozenset[tuple[object, ...]]
    rare: frozenset[tuple[object, ...]]
    rows: frozenset[tuple[object, ...]]
    kept: frozenset[tuple[object, ...]]
    sequences: frozenset[tuple[object, ...]]
    machine: frozenset[tuple[object, ...]]
    outside: frozenset[tuple[str, int, int]]
    inside: frozenset[str]


class World:
    """`folder` holds the organization's files and, beside them, some that are not its own."""

    def __init__(self, folder: Path) -> None:
        self.own, self.out = folder / "own", folder / "out"
        for name in (*FOLDERS, "temporary"):
            (self.own / name).mkdir(parents=True)
        self.out.mkdir()
        (self.out / "secret.csv").write_text(f"a\n{CONTENT}\n")
        copy = self.own / "copies" / "copy.duckdb"
        with duckdb.connect(str(copy)) as made:
            made.execute('CREATE TABLE "a b.csv" AS SELECT 1 AS x')
        self.engine = DuckdbEngine(temporary=folder)
        databases = {name: self.own / "databases" / f"{name}.data" for name in ("local", "other")}
        self.engine.lock(self.own, databases, Limits(threads=1), {"tables": [("name", "VARCHAR")]})
        self.engine.mount("st", copy)
        PublishedRelations(self.own / SYSTEM_FOLDER).publish({"tables": Listing([("name", "VARCHAR")], [["t"]])})
        self._admin = self.engine.connect()._connection
        # It begins as restore() leaves it.
        self._clear(rare=True)
        self._make(MADE + MADE_RARE)
        self.before = self.state()
        self._traces = self._found_traces()

    def close(self) -> None:
        self.engine.close()

    def run(self, sql: str, rights: Rights, *, in_transaction: bool) -> tuple[State, str]:
        """What is there after a statement, and how it ended.

        It is looked at only if the statement left a trace: everything that is committed does, in a file. Settings are
        looked at after a statement that was done. state() looks at everything.

        What a statement that was refused has changed in spite of that is found after the next one.
        """
        connection = self.engine.connect()
        try:
            if in_transaction:
                self._answer(connection, "begin", rights)
            answer = self._answer(connection, sql, rights)
            if in_transaction:
                self._answer(connection, "commit", rights)
        finally:
            connection.close()
        if answer.startswith("42501"):
            return self.before, answer
        if (traces := self._found_traces()) != self._traces:
            self._traces = traces
            return self.state(), answer
        if answer == "00000" and self._machine() != self.before.machine:
            return self.state(), answer
        return self.before, answer

    def restore(self, after: State) -> None:
        """Make everything as it was before, from what is there `after` a statement."""
        rare = after.rare != self.before.rare
        self._clear(rare=rare)
        self._make(MADE + MADE_RARE if rare else MADE)
        self._traces = self._found_traces()

    def state(self) -> State:
        """Everything."""
        catalog = {row for sql in _CATALOG for row in self._rows(sql)}
        tables = [
            (database, schema, name)
            for database, schema, name in self._rows(
                "SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT temporary"
            )
        ]
        counted = " UNION ALL ".join(
            f"SELECT '{d}', '{s}', $${n}$$, count(*), sum(hash(it)) FROM {_quoted(d)}.{_quoted(s)}.{_quoted(n)} it"
            for d, s, n in tables
        )
        rows = set(self._rows(counted)) if counted else set()
        every = catalog | {("rows", *row) for row in rows}

        def kept(row: tuple[object, ...]) -> bool:
            return bool(KEPT & set(row[:2]))

        return State(
            frozenset(row for row in catalog if not kept(row)),
            frozenset(row for sql in _RARE for row in self._rows(sql)),
            frozenset(row for row in rows if not kept(row)),
            frozenset(row for row in every if kept(row)),
            frozenset(self._rows(_SEQUENCES)),
            self._machine(),
            frozenset(_files(self.out)),
            frozenset(path.name for path in self.own.rglob("*") if path.suffix not in {".wal", ".tmp"}),
        )

    def _found_traces(self) -> object:
        """What differs if something was changed: files, and what leaves no trace in them."""
        files = {*_files(self.own), *_files(self.out)}
        return files, frozenset(self._rows(_UNFILED))

    def _machine(self) -> frozenset[tuple[object, ...]]:
        return frozenset(row for sql in _MACHINE for row in self._rows(sql))

    def _rows(self, sql: str) -> list[tuple[object, ...]]:
        return [tuple(map(str, row)) for row in self._admin.execute(sql).fetchall()]

    def _answer(self, connection: DuckdbConnection, sql: str, rights: Rights) -> str:
        watch = threading.Timer(SECONDS, connection.cancel)
        watch.start()
        try:
            connection.run(sql, RunOptions(rights=rights), Nowhere(self.own / SPOOL))
        except Failure as failure:
            return f"{failure.sql_state} {failure.message}"
        except UnicodeError as error:
            # The wire lets no such text through.
            return f"22021 {error}"
        finally:
            watch.cancel()
        return "00000"

    def _make(self, statements: Iterable[str]) -> None:
        for sql in statements:
            self._admin.execute(sql)

    def _clear(self, *, rare: bool) -> None:
        for row in self._dropped(rare=rare):
            with contextlib.suppress(duckdb.Error):
                self._admin.execute(row)

    def _dropped(self, *, rare: bool) -> Iterator[str]:
        """DROP of all that may change; with `rare` of macros and types too."""
        for kind, listed in (("VIEW", "view"), ("TABLE", "table"), ("SEQUENCE", "sequence"), ("TYPE", "type")):
            if kind == "TYPE" and not rare:
                continue
            where = "" if kind == "SEQUENCE" else "WHERE NOT internal"
            for database, schema, name in self._rows(
                f"SELECT database_name, schema_name, {listed}_name FROM duckdb_{listed}s() {where}"
            ):
                if database not in KEPT:
                    place = f"{_quoted(database)}.{_quoted(schema)}.{_quoted(name)}"
                    yield f"DROP {kind} IF EXISTS {place} CASCADE"
        functions = (
            "SELECT DISTINCT database_name, schema_name, function_name FROM duckdb_functions() WHERE NOT internal"
        )
        for database, schema, name in self._rows(functions) if rare else ():
            place = f"{_quoted(database)}.{_quoted(schema)}.{_quoted(name)}"
            yield f"DROP MACRO IF EXISTS {place}"
            yield f"DROP MACRO TABLE IF EXISTS {place}"
        for database, schema in self._rows(
            "SELECT database_name, schema_name FROM duckdb_schemas() WHERE NOT internal AND schema_name <> 'main'"
        ):
            if database not in KEPT:
                yield f"DROP SCHEMA {_quoted(database)}.{_quoted(schema)} CASCADE"


class Nowhere(Discard):
    """A sink that forgets what it gets, except for large results, which the engine writes to a file.

    Nobody may get CONTENT.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "result.tmp"

    def keep(self, rows: Iterable[str]) -> None:
        assert not any(CONTENT in row for row in rows)

    def file(self) -> Path:
        return self._path


def broken(before: State, after: State, rights: Rights) -> str:
    """What changed that a role may not change, "" for nothing."""
    watched = {
        Rights.READ: ("catalog", "rare", "rows", "kept", "sequences", "machine", "outside", "inside"),
        Rights.DATA: ("catalog", "rare", "kept", "machine", "outside", "inside"),
        Rights.OBJECTS: ("kept", "machine", "outside", "inside"),
    }[rights]
    for name in watched:
        was, now = getattr(before, name), getattr(after, name)
        if was != now:
            return f"{name}: {sorted(map(str, was ^ now))}"
    return ""


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            yield str(path), path.stat().st_size, path.stat().st_mtime_ns


def _quoted(name: object) -> str:
    return '"' + str(name).replace('"', '""') + '"'
