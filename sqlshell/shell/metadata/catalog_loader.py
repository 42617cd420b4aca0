"""The catalog of a context: cached on disk, reloaded in the background, never waited for.

It is loaded with LIST ENGINE, from a service of another kind with LIST and DESCRIBE. What a service does not support is
left out, so that names seen in results remain.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from sqlshell.client.statements.client import Client
from sqlshell.client.statements.polling import new_session_id
from sqlshell.context import SessionContext
from sqlshell.errors import ShellError
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Rows
from sqlshell.runtime.event_loops import start_in_background
from sqlshell.runtime.files import replace_private
from sqlshell.shell.metadata.objects import RELATIONS
from sqlshell.shell.metadata.service_queries import fetch_rows
from sqlshell.shell.results.rows import value
from sqlshell.sql import keywords
from sqlshell.sql.completion.catalog import CachedCatalog, Catalog, Column, ForeignKey, Function, Relation, key
from sqlshell.sql.completion.signatures import KNOWN, Form, signature_of
from sqlshell.sql.engine_types import engine_types
from sqlshell.sql.identifiers import qualified
from sqlshell.text import format_count

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
"""Maximum relations whose columns are requested one by one, if the service does not list them all."""

SYSTEM_SCHEMAS = (("system",), ("pg_catalog", "information_schema"))
"""Where the relations that describe the database are: in a database of DuckDB's, or in these schemas."""
_RELATIONS = "LIST ENGINE RELATIONS"
_COLUMNS = "LIST ENGINE COLUMNS"
_FUNCTIONS = "LIST ENGINE FUNCTIONS"
_TYPES = "LIST ENGINE TYPES"
_FOREIGN_KEYS = "LIST ENGINE FOREIGN_KEYS"
_OTHERS = ("sequence", "index")
"""Relations of an engine that are not read from, which are names of their own kind."""
_ECHO_REQUEST = "SELECT 1"
_DECODE = msgspec.json.Decoder(list[str | None]).decode


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
        self._lists_objects = False
        """Whether the service lists the objects of its engine."""
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
        # Before the columns: a relation that is created meanwhile is then listed with its columns, or not at all.
        relations = await self._relations(context)
        by_key: dict[str, Relation] = {}
        if self._lists_objects:
            by_key = {key(item): item for item in _add_columns(contents, await self._rows(_COLUMNS, context))}
        for relation in relations:
            word = next((word for word in _OTHERS if word in relation.kind), "")
            if word:
                contents.names.setdefault(word, []).append(relation.name)
            else:
                by_key[key(relation)] = relation
        contents.relations = [item for item in by_key.values() if item.database != SYSTEM]
        if contents.relations and not contents.columns:
            await self._describe(contents, context)
        if self._lists_objects:
            await self._add_objects(contents, context)
        for kind, plural in LISTED_KINDS.items():
            rows = await self._rows(f"LIST {plural}", context)
            contents.names[kind] = [row[0] for row in rows if row and row[0]]
        return contents

    async def _add_objects(self, contents: CachedCatalog, context: SessionContext) -> None:
        for schemas in SYSTEM_SCHEMAS:
            for schema in schemas if not contents.system else ():
                contents.system += _add_columns(contents, await self._rows(f"{_COLUMNS} IN SCHEMA {schema}", context))
        contents.keys = await self._keys(context)
        columns, rows = await self._table(_FUNCTIONS, context)
        contents.functions, contents.names["macro"] = functions_of(columns, rows)
        # The functions of the interface exist where the service translates SQL for its engine.
        contents.has_interface = not columns or "parameters" in map(str.lower, columns)
        columns, rows = await self._table(_TYPES, context)
        named = [*map(str.lower, columns), "name"].index("name")
        contents.names["user type"] = [name for row in rows if (name := value(row, named))]
        if types := engine_types(self._engine()):
            contents.names["type"] = types

    async def _relations(self, context: SessionContext) -> list[Relation]:
        columns, rows = await self._table(_RELATIONS, context)
        self._lists_objects = bool(columns)
        for sql in RELATIONS if not columns else ():
            columns, rows = await self._table(sql, context)
            if columns:
                break
        low = [name.lower() for name in columns]

        def at(*names: str) -> int | None:
            return next((low.index(name) for name in names if name in low), None)

        name, kind = at("name", "relation_name", "table_name"), at("type", "relation_type", "kind")
        database, schema = at("database_name", "database"), at("schema_name", "schema")
        if name is None:
            return []
        return [Relation(value(row, database), value(row, schema), value(row, name), value(row, kind)) for row in rows]

    async def _keys(self, context: SessionContext) -> list[ForeignKey]:
        keys: dict[tuple[str, str], ForeignKey] = {}
        for row in await self._rows(_FOREIGN_KEYS, context):
            if len(row) < 7 or None in row[:7]:
                continue
            constraint, database, schema, name, target, mine, its = (value or "" for value in row[:7])
            here, there = (key(Relation(database, schema, table)) for table in (name, target))
            item = keys.setdefault((constraint, here), ForeignKey(here, [], there, []))
            item.columns.append(mine)
            item.target_columns.append(its)
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
            replace_private(path, msgspec.json.encode(contents))


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


def functions_of(columns: list[str], rows: Rows) -> tuple[list[Function], list[str]]:
    """The functions that LIST ENGINE FUNCTIONS lists and that are found without a schema, and the names of the user's
    own. Without those that are part of the engine's works, unless they are usual in SQL.
    """
    low = [name.lower() for name in columns]
    forms: dict[str, list[Form]] = {}
    shown: dict[str, list[str]] = {}
    own, tables = set[str](), set[str]()
    for row in rows:
        listed = {name: value or "" for name, value in zip(low, row, strict=False)}
        name, result, arguments = listed.get("name", ""), listed.get("result", ""), listed.get("arguments")
        hidden = listed.get("internal") == "true" and name not in keywords.FUNCTIONS
        if not _PLAIN.fullmatch(name) or listed.get("visible", "true") != "true" or hidden:
            continue
        if listed.get("own") == "true":
            own.add(name)
        if result.startswith(("SETOF ", "TABLE(")) or listed.get("type", "").startswith("table"):
            tables.add(name)
        form = "" if arguments is None else f"({arguments}){f' -> {result}' if result else ''}"
        shown.setdefault(name, []).append(form)
        with contextlib.suppress(KeyError, msgspec.DecodeError):
            names, types = (_DECODE(listed[each] or "[]") for each in ("parameters", "parametertypes"))
            # Macros have no types.
            kinds = [*((kind or "") for kind in types), *([""] * len(names))]
            parameters = tuple(each or "" for each in names)
            variadic = listed.get("variadic") == "true"
            forms.setdefault(name, []).append(Form(parameters, tuple(kinds[: len(names)]), result, variadic))
    signatures = {
        name: f"{texts[0]} (+{format_count(len(texts) - 1, 'overload')})" if texts[1:] else texts[0]
        for name, texts in shown.items()
    }
    signatures |= {name: signature_of(each) for name, each in forms.items()} | (KNOWN if forms else {})
    return [Function(name, signature, name in tables) for name, signature in signatures.items()], sorted(own)


_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
