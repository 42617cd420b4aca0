"""The catalog of a context: cached on disk, reloaded in the background, never waited for.

It is loaded from information_schema and the system tables, or with LIST and DESCRIBE. What a service does not support
is left out, so that names seen in results remain.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from sqlshell.client.statements.client import Client
from sqlshell.client.statements.polling import new_session_id
from sqlshell.context import SessionContext
from sqlshell.errors import ShellError
from sqlshell.humanize import format_count
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Rows
from sqlshell.runtime.background_tasks import start_in_background
from sqlshell.shell.metadata.service_queries import fetch_rows
from sqlshell.sql import keywords
from sqlshell.sql.completion.catalog import CachedCatalog, Catalog, Column, ForeignKey, Function, Relation, key
from sqlshell.sql.completion.signatures import KNOWN, Form, signature_of
from sqlshell.sql.engine_types import engine_types
from sqlshell.sql.identifiers import qualified

LOADING_SECONDS = 60.0
LISTED_KINDS = {
    "database": "DATABASES",
    "schema": "SCHEMAS",
    "store": "STORES",
    "pool": "COMPUTE_POOLS",
    "role": "ROLES",
    "organization": "ORGANIZATIONS",
    "query": "QUERIES",
    "entity": "ENTITIES",
}
"""The kinds of names, and the words for them in LIST."""

SYSTEM = "deltastream"
"""The database of the system tables, which completion knows without loading."""

DESCRIBED = 50
"""Maximum relations whose columns are requested one by one, if no table lists them all."""

_COLUMNS = (
    "SELECT table_catalog, table_schema, table_name, column_name, data_type FROM information_schema.columns "
    "ORDER BY table_catalog, table_schema, table_name, ordinal_position"
)
FUNCTIONS = (
    "SELECT DISTINCT function_name, to_json(parameters)::VARCHAR, to_json(parameter_types)::VARCHAR, return_type, "
    "varargs IS NOT NULL, function_type LIKE 'table%' FROM duckdb_functions()"
    " WHERE function_name SIMILAR TO '[a-z][a-z0-9_]*' AND function_type <> 'pragma' ORDER BY ALL"
)
_KEYS = (
    "SELECT constraint_name, database_name, schema_name, table_name, referenced_table, "
    "to_json(constraint_column_names)::VARCHAR, to_json(referenced_column_names)::VARCHAR "
    "FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY'",
    "SELECT r.constraint_name, k.table_catalog, k.table_schema, k.table_name, t.table_name, k.column_name, "
    "t.column_name FROM information_schema.referential_constraints r "
    "JOIN information_schema.key_column_usage k ON k.constraint_name = r.constraint_name "
    "AND k.constraint_schema = r.constraint_schema "
    "JOIN information_schema.key_column_usage t ON t.constraint_name = r.unique_constraint_name "
    "AND t.constraint_schema = r.unique_constraint_schema AND t.ordinal_position = k.position_in_unique_constraint "
    "ORDER BY r.constraint_name, k.ordinal_position",
)
"""Foreign keys: with lists of their columns, or with a row for each."""
_USER_OBJECTS = (
    "SELECT 'sequence', sequence_name FROM duckdb_sequences()"
    " UNION ALL SELECT 'index', index_name FROM duckdb_indexes()"
    " UNION ALL SELECT 'user type', type_name FROM duckdb_types() WHERE NOT internal"
    " UNION ALL SELECT DISTINCT 'macro', function_name FROM duckdb_functions() WHERE NOT internal"
)
"""Kinds with the names of user-defined objects."""
_SYSTEM_COLUMNS = (
    "SELECT database_name, schema_name, table_name, column_name, data_type FROM duckdb_columns() "
    "WHERE internal AND database_name = 'system' ORDER BY ALL"
)
"""The columns of the relations that describe the database."""
SYSTEM_SCHEMAS = ("pg_catalog", "information_schema")
"""The schemas of these relations on a server."""
_ENGINES_RELATIONS = "LIST ENGINE RELATIONS"
_ENGINES_COLUMNS = "LIST ENGINE COLUMNS"
_ENGINES_FUNCTIONS = "LIST ENGINE FUNCTIONS"
_ENGINES_TYPES = "LIST ENGINE TYPES"
_ENGINES_KEYS = "LIST ENGINE FOREIGN_KEYS"
_OTHERS = ("sequence", "index")
"""Relations of an engine that are not read from, which are names of their own kind."""
_ECHO_REQUEST = "SELECT 1"
_DECODE = msgspec.json.Decoder(list[str]).decode
_DECODE_SOME = msgspec.json.Decoder(list[str | None]).decode
_RELATIONS = 'SELECT * FROM deltastream.sys."relations"'


class CatalogLoader:
    """Keeps `catalog` up to date. `context` returns the current context; if `folder` is None, nothing is stored."""

    def __init__(
        self,
        client: Client,
        context: Callable[[], SessionContext],
        target: str,
        folder: Path | None,
        catalog: Catalog | None = None,
        *,
        request_echo: bool = False,
        adopt: Callable[[ContextEcho | None], None] = lambda echo: None,
        changed: Callable[[], None] = lambda: None,
        engine: Callable[[], str] = lambda: "",
    ) -> None:
        """With `request_echo` the service is asked for its context by a statement of its own, before the names are
        loaded. `adopt` is called with each context that the service echoes, `changed` when the catalog has changed.
        `engine` returns the name of the service's engine, "" for DuckDB.
        """
        self.catalog = catalog or Catalog()
        self._client = client
        self._context = context
        self._target = target
        self._folder = folder
        self._task: asyncio.Task[None] | None = None
        self._wanted = False
        self._loaded_for: tuple[str, str] = ("", "")
        self._has_engine = False
        """Whether the service's engine is a server, whose own objects LIST ENGINE shows."""
        self._echo_received = asyncio.Event()
        self._request_echo = request_echo
        self._adopt = adopt
        self._changed = changed
        self._engine = engine

    def begin(self) -> None:
        """Read the cache at once; load the catalog of the service in the background."""
        path = self._path()
        if path is not None:
            with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self.catalog.replace(msgspec.json.decode(path.read_bytes(), type=CachedCatalog))
        self.refresh()

    def use_connection(self, client: Client, target: str, folder: Path | None, *, request_echo: bool = False) -> None:
        """Switch to another service and its names."""
        self._client, self._target, self._folder = client, target, folder
        self._request_echo = request_echo
        self._loaded_for = ("", "")
        self._echo_received = asyncio.Event()
        self.catalog.replace(CachedCatalog([], {}, [], {}))
        self.catalog.seen.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.begin()

    def refresh(self) -> None:
        """Reload; a load in progress may have missed new names, so another one follows it."""
        self._wanted = True
        if self._task is None or self._task.done():
            self._task = start_in_background(self._load_while_wanted())

    def context_changed(self) -> None:
        """The context has changed: another organization or role sees other names."""
        context = self._context()
        if self._loaded_for[0] and self._loaded_for != (context.organization, context.role):
            self.refresh()

    async def wait_for_echo(self, seconds: float) -> None:
        """Wait, for at most that many seconds, until the service has reported its context once."""
        if self._echo_received.is_set():
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._echo_received.wait(), seconds)

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _load_while_wanted(self) -> None:
        while self._wanted:
            self._wanted = False
            await self._load()

    async def _load(self) -> None:
        # A load that use_connection() canceled ends later, and says nothing about the new service.
        echo_received = self._echo_received
        try:
            await self._load_contents()
        finally:
            echo_received.set()

    async def _load_contents(self) -> None:
        # In a separate session, so that no statement of the user waits for these.
        context = self._context().in_session(new_session_id())
        with contextlib.suppress(TimeoutError, ShellError):
            async with asyncio.timeout(LOADING_SECONDS), self._temporary_session(context.session_id):
                if self._request_echo and not self._echo_received.is_set():
                    await self._rows(_ECHO_REQUEST, context)
                contents = await self._contents(context)
                if contents.relations or any(contents.names.values()) or contents.functions:
                    self.catalog.replace(contents)
                    self._save(contents)
                now = self._context()
                self._loaded_for = (now.organization, now.role)
                self._changed()

    @contextlib.asynccontextmanager
    async def _temporary_session(self, session_id: str) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._client.end_sessions([session_id])

    async def _contents(self, context: SessionContext) -> CachedCatalog:
        contents = CachedCatalog()
        by_key: dict[str, Relation] = {}
        # Before the columns: a relation that is created meanwhile is then listed with its columns, or not at all.
        relations = await self._relations(context)
        contents.has_interface = not self._has_engine
        columns, of_engine = await self._table(_ENGINES_COLUMNS, context) if self._has_engine else ([], [])
        for relation in _add_columns(contents, of_engine if columns else await self._rows(_COLUMNS, context)):
            by_key[key(relation)] = relation
        for relation in relations:
            word = next((word for word in _OTHERS if word in relation.kind), "")
            if word:
                contents.names.setdefault(word, []).append(relation.name)
            else:
                by_key[key(relation)] = relation
        contents.relations = [item for item in by_key.values() if item.database != SYSTEM]
        if contents.relations and not contents.columns:
            await self._describe(contents, context)
        listed = [f"{_ENGINES_COLUMNS} IN SCHEMA {schema}" for schema in SYSTEM_SCHEMAS if self._has_engine]
        for sql in listed or [_SYSTEM_COLUMNS]:
            contents.system += _add_columns(contents, await self._rows(sql, context))
        contents.keys = await self._keys(context)
        if self._has_engine:
            columns, rows = await self._table(_ENGINES_FUNCTIONS, context)
            contents.functions, contents.names["macro"] = engines_functions(columns, rows)
        else:
            contents.functions = functions_of(await self._rows(FUNCTIONS, context))
        for kind, plural in LISTED_KINDS.items():
            rows = await self._rows(f"LIST {plural}", context)
            contents.names[kind] = [row[0] for row in rows if row and row[0]]
        if self._has_engine:
            types = await self._rows(_ENGINES_TYPES, context)
            contents.names["type"] = engine_types(self._engine())
            contents.names["user type"] = [row[1] for row in types if len(row) > 1 and row[1]]
            return contents
        for row in await self._rows(_USER_OBJECTS, context):
            if len(row) > 1 and row[0] and row[1]:
                contents.names.setdefault(row[0], []).append(row[1])
        return contents

    async def _relations(self, context: SessionContext) -> list[Relation]:
        columns, rows = await self._table(_RELATIONS, context)
        self._has_engine = False
        if not columns:
            columns, rows = await self._table(_ENGINES_RELATIONS, context)
            self._has_engine = bool(columns)
        if not columns:
            columns, rows = await self._table("LIST RELATIONS", context)
        low = [name.lower() for name in columns]

        def at(*names: str) -> int | None:
            return next((low.index(name) for name in names if name in low), None)

        name, kind = at("name", "relation_name", "table_name"), at("type", "relation_type", "kind")
        database, schema = at("database_name", "database"), at("schema_name", "schema")
        if name is None:
            return []

        def value(row: list[str | None], place: int | None) -> str:
            return (row[place] or "") if place is not None else ""

        return [Relation(value(row, database), value(row, schema), value(row, name), value(row, kind)) for row in rows]

    async def _keys(self, context: SessionContext) -> list[ForeignKey]:
        keys: dict[tuple[str, str], ForeignKey] = {}
        queries = ((False, _ENGINES_KEYS),) if self._has_engine else zip((True, False), _KEYS, strict=True)
        for lists, sql in queries:
            columns, rows = await self._table(sql, context)
            for row in rows:
                if len(row) < 7 or None in row[:7]:
                    continue
                constraint, database, schema, name, target, mine, its = (value or "" for value in row[:7])
                here, there = (key(Relation(database, schema, table)) for table in (name, target))
                item = keys.setdefault((constraint, here), ForeignKey(here, [], there, []))
                with contextlib.suppress(msgspec.DecodeError):
                    item.columns.extend(_DECODE(mine) if lists else [mine])
                    item.target_columns.extend(_DECODE(its) if lists else [its])
            if columns:
                break
        return list(keys.values())

    async def _describe(self, contents: CachedCatalog, context: SessionContext) -> None:
        for relation in contents.relations[:DESCRIBED]:
            name = qualified(*filter(None, (relation.database, relation.schema, relation.name)))
            rows = await self._rows(f"DESCRIBE RELATION COLUMNS {name}", context)
            contents.columns[key(relation)] = [
                Column(row[0] or "", (row[1] or "") if len(row) > 1 else "") for row in rows if row and row[0]
            ]

    def _note_echo(self, echo: ContextEcho | None) -> None:
        self._adopt(echo)
        self._echo_received.set()

    async def _rows(self, sql: str, context: SessionContext) -> Rows:
        return (await self._table(sql, context))[1]

    async def _table(self, sql: str, context: SessionContext) -> tuple[list[str], Rows]:
        """The columns and rows of a statement; none if the service does not support it."""
        with contextlib.suppress(ShellError):
            columns, rows = await fetch_rows(self._client, sql, context, self._note_echo)
            return [column.name for column in columns], rows
        return [], []

    def _path(self) -> Path | None:
        if self._folder is None:
            return None
        context = self._context()
        named = "\0".join((self._target, context.organization, context.role))
        return self._folder / f"{hashlib.sha256(named.encode()).hexdigest()[:32]}.json"

    def _save(self, contents: CachedCatalog) -> None:
        path = self._path()
        if path is None:
            return
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = path.with_name(f"{path.name}.{os.getpid()}")
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(contents))
            part.replace(path)


def _add_columns(contents: CachedCatalog, rows: Rows) -> list[Relation]:
    """Add columns, each with its database, schema and relation; returns the relations."""
    relations: dict[str, Relation] = {}
    for row in rows:
        if len(row) < 5 or None in row[:4]:
            continue
        database, schema, name, column, kind = (value or "" for value in row[:5])
        relation = Relation(database, schema, name, "table")
        relations.setdefault(key(relation), relation)
        contents.columns.setdefault(key(relation), []).append(Column(column, kind))
    return list(relations.values())


def functions_of(rows: Rows) -> list[Function]:
    """The functions of rows of FUNCTIONS; a row that is not one of them is left out."""
    forms: dict[str, list[Form]] = {}
    tables = {row[0] for row in rows if row[5:] == ["true"]}
    for row in rows:
        if len(row) < 5 or not row[0]:
            continue
        with contextlib.suppress(msgspec.DecodeError):
            names, types = (_DECODE_SOME(text or "[]") for text in row[1:3])
            # Macros have no types.
            known = {at: kind or "" for at, kind in enumerate(types)}
            form = Form(
                tuple(name or "" for name in names),
                tuple(known.get(at, "") for at in range(len(names))),
                row[3] or "",
                row[4] == "true",
            )
            forms.setdefault(row[0], []).append(form)
    signatures = {name: signature_of(listed) for name, listed in forms.items()} | KNOWN if forms else {}
    return [Function(name, signature, name in tables) for name, signature in signatures.items()]


def engines_functions(columns: list[str], rows: Rows) -> tuple[list[Function], list[str]]:
    """The functions that LIST ENGINE FUNCTIONS lists and that are found without a schema, and the names of the user's
    own. Without those that are part of the engine's works, unless they are usual in SQL.
    """
    low = [name.lower() for name in columns]
    forms_by_name: dict[str, list[str]] = {}
    own, returning_rows = set[str](), set[str]()
    for row in rows:
        listed = dict(zip(low, row, strict=False))
        name = listed.get("name") or ""
        hidden = listed.get("internal") == "true" and name not in keywords.FUNCTIONS
        if not _PLAIN.fullmatch(name) or listed.get("visible", "true") != "true" or hidden:
            continue
        result = listed.get("result") or ""
        if listed.get("own") == "true":
            own.add(name)
        if result.startswith(("SETOF ", "TABLE(")):
            returning_rows.add(name)
        form = f"({listed['arguments'] or ''}){f' -> {result}' if result else ''}" if "arguments" in listed else ""
        forms_by_name.setdefault(name, []).append(form)
    functions = [
        Function(
            name,
            f"{forms[0]} (+{format_count(len(forms) - 1, 'overload')})" if forms[1:] else forms[0],
            name in returning_rows,
        )
        for name, forms in forms_by_name.items()
    ]
    return functions, sorted(own)


_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
