"""What a service has: relations, indexes, functions, types.

A service of ours lists and describes them in its engine's own terms, by LIST ENGINE and DESCRIBE ENGINE. Others list
their relations, and describe the columns of one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sqlshell.client.service import LISTS_ENGINES
from sqlshell.errors import ShellError, StatementError, Where
from sqlshell.interface import sqlstate
from sqlshell.result import Column, Rows
from sqlshell.shell.metadata.service_queries import engine_of, query_service
from sqlshell.shell.results.rows import column_index, in_quotes, value
from sqlshell.shell.session import Session
from sqlshell.sql.identifiers import Pattern, name_parts, qualified, quoted

NAMED = re.compile(r'(?:"(?:[^"]|"")++"|[^\W\d][\w$]*+)(?:\.(?:"(?:[^"]|"")++"|[^\W\d][\w$]*+))*+')
"""A name as written in a statement, and nothing else."""

_SCHEMA = re.compile(r'("(?:[^"]|"")++"|[A-Za-z_][\w$]*+)\.[^.]++\Z')
"""A pattern with one schema, which may be one of the engine's own."""

_HIDDEN = frozenset({"visible", "own", "internal", "parameters", "parametertypes", "variadic"})
"""Columns that say which rows a list shows, or how, rather than something to be shown."""

RELATIONS = ('SELECT * FROM deltastream.sys."relations"', "LIST RELATIONS")
"""The lists of relations that other services have."""

_OTHERS = ("Database", "Schema", "Name", "Type", "Visible")
PHASES = ("sequence", "table", "stream", "changelog", "view")
"""The kinds of relations in the order in which a script creates them; others follow."""


class Objects(Struct):
    """A list of objects: its columns, and all rows."""

    columns: list[Column]
    rows: Rows

    def at(self, *names: str) -> int | None:
        """The position of the first of these columns."""
        return column_index(self.columns, *names)

    def matching(self, pattern: str) -> Objects:
        """The objects whose names match; without a schema in the pattern, those that are found by their name alone.

        If no schema has the name in `name.object`, it is that of a database.
        """
        wanted = Pattern(pattern or "*")
        visible, name = self.at("visible"), self.at("name") or 0
        places = [at for at in (self.at("database"), self.at("schema")) if at is not None]
        by_schema, by_database = (
            [row for row in self.rows if wanted.matches(*(value(row, at) for at in chosen), value(row, name))]
            for chosen in (places, places[:1])
        )
        if not wanted.qualified:
            return Objects(self.columns, [row for row in by_schema if visible is None or value(row, visible) == "true"])
        return Objects(self.columns, by_schema or by_database)

    def shown(self, *, database: bool) -> tuple[list[Column], Rows]:
        """The columns that are shown, with their rows; perhaps with the database."""
        hidden = _HIDDEN if database else _HIDDEN | {"database"}
        kept = [at for at, column in enumerate(self.columns) if column.name.lower() not in hidden]
        return [self.columns[at] for at in kept], [[value(row, at) or None for at in kept] for row in self.rows]


class Description(Struct):
    """One relation: its kind and its full name as SQL, "" if the service does not tell them; a row for each column; and
    its other properties, as (heading, name, text)."""

    kind: str
    name: str
    titles: list[str]
    rows: Rows
    notes: list[tuple[str, str, str]]


async def lists_objects(session: Session) -> bool:
    """Whether the service is one of ours, which lists the objects of its engine."""
    with contextlib.suppress(ShellError):
        service = session.service
        return LISTS_ENGINES in await service.extensions() or bool(await service.engine())
    return False


async def listed(session: Session, what: str, pattern: str = "", *, details: bool = False) -> Objects:
    """The objects of a kind, a word of LIST ENGINE, that match a pattern. Raises the errors of the client."""
    if what == "RELATIONS" and not await lists_objects(session):
        return (await _relations_of_others(session)).matching(pattern)
    match = _SCHEMA.match(pattern)
    place = f" IN SCHEMA {match[1]}" if match else ""
    columns, rows = await query_service(session, f"LIST ENGINE {what}{place}{' WITH DETAILS' if details else ''}")
    return Objects(columns, rows).matching(pattern)


async def _relations_of_others(session: Session) -> Objects:
    columns, rows = await query_service(session, *RELATIONS)
    context = session.context
    here = [context.database.lower(), context.schema.lower()]
    name = column_index(columns, "name", "relationname", "tablename") or 0
    kind = column_index(columns, "type", "relationtype", "kind")
    database, schema = column_index(columns, "databasename", "database"), column_index(columns, "schemaname", "schema")
    relations: set[tuple[str, ...]] = set()
    for row in rows:
        place = [value(row, database) or context.database, value(row, schema) or context.schema]
        what = value(row, kind).lower().replace("_", " ")
        visible = what.startswith("temporary") or [part.lower() for part in place] == here
        relations.add((*place, value(row, name), what, str(visible).lower()))
    return Objects([Column(title) for title in _OTHERS], [list(row) for row in sorted(relations)])


async def learn_connection(session: Session) -> Mapping[str, str]:
    """The session's connection to the engine's server, by lower-case column of LIST ENGINE CONNECTIONS; empty if the
    engine has none or does not tell. The session keeps it, and has its database in its context.
    """
    connection: dict[str, str] = {}
    with contextlib.suppress(ShellError):
        if await engine_of(session):
            columns, rows = await query_service(session, "LIST ENGINE CONNECTIONS")
            connection = {column.name.lower(): value(rows[0], at) for at, column in enumerate(columns) if rows}
        elif not session.context.database and LISTS_ENGINES in await session.service.extensions():
            # The response contains the context of the session.
            await query_service(session, "LIST ENGINES")
        session.state.server = connection
    return connection


def names_of(objects: Objects, *, with_database: bool) -> list[tuple[str, str]]:
    """The full names of listed objects, as SQL, with their kinds."""
    database, schema, name, kind = (objects.at(column) for column in ("database", "schema", "name", "type"))
    names = []
    for row in objects.rows:
        # A temporary relation is found by its name alone.
        temporary = value(row, kind).startswith("temporary") or not value(row, schema)
        places = () if temporary else (database, schema) if with_database else (schema,)
        parts = [value(row, at) for at in places if value(row, at)]
        names.append((qualified(*parts, value(row, name)), value(row, kind)))
    return names


async def described(session: Session, name: str, kind: str = "", *, details: bool) -> Description:
    """The description of the relation with this name, which is SQL; of a `kind` if it is known. Raises the errors of
    the client.
    """
    if not await lists_objects(session):
        shown = ".".join(quoted(part) for part in name_parts(name)[-2:]) if kind else ""
        return Description(kind, shown, ["name", "type", "nullable"], await _columns_of_others(session, name), [])
    more = " WITH DETAILS" if details else ""
    _, notes = await query_service(session, f"DESCRIBE ENGINE RELATION {name}{more}")
    columns, rows = await query_service(session, f"DESCRIBE ENGINE RELATION COLUMNS {name}{more}")
    texts = [(value(note, 0), value(note, 1), value(note, 2)) for note in notes]
    kind, full, _ = texts[0] if texts else ("relation", name, "")
    return Description(
        kind, full, [column.name for column in columns], [[item or None for item in row] for row in rows], texts[1:]
    )


async def _columns_of_others(session: Session, name: str) -> Rows:
    """Name, type and nullability of each column."""
    _, rows = await query_service(session, f"DESCRIBE RELATION COLUMNS {name}")
    if not rows:
        raise StatementError(f"relation {in_quotes(name)} does not exist", where=Where(sqlstate.NO_RELATION))
    return [[value(row, 0), value(row, 1), value(row, 2).lower() or None] for row in rows]


async def creating(session: Session, names: Sequence[tuple[str, str]]) -> list[str]:
    """The statements that create relations, names with kinds, in an order in which they can be run. Raises the errors
    of the client.
    """
    order: dict[str, tuple[int, int]] = {}
    for name, kind in names:
        if not await lists_objects(session):
            phase = next((at for at, word in enumerate(PHASES) if word in kind), len(PHASES))
            order[_composed(name, kind, await _columns_of_others(session, name))] = (phase, 0)
            continue
        _, rows = await query_service(session, f"DESCRIBE ENGINE RELATION SQL {name}")
        for at, age, *sql in rows:
            order.setdefault(value(sql, 0), (_number(at), _number(age)))
    return sorted(order, key=lambda sql: order[sql])


def _composed(name: str, kind: str, columns: Rows) -> str:
    """A statement that creates a relation with these columns."""
    parts = name_parts(name)[-2:]
    shown = ".".join(map(quoted, parts[1:] if parts[0] == "main" else parts))
    lines = [
        f"{quoted(value(row, 0))} {value(row, 1)}{' NOT NULL' if value(row, 2) == 'false' else ''}" for row in columns
    ]
    return f"CREATE {(kind or 'table').upper()} {shown} (\n  " + ",\n  ".join(lines) + "\n)"


async def function(session: Session, name: str) -> list[str]:
    """The statements that create the functions of this name, which is SQL, perhaps with the types of arguments in
    parentheses. Raises the errors of the client.
    """
    _, rows = await query_service(session, f"DESCRIBE ENGINE FUNCTION SQL {name}")
    return [value(row, 0) for row in rows]


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() else 0
