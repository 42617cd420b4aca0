"""Objects of an engine that is an external server, in its own terms: LIST ENGINE and DESCRIBE ENGINE."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sqlshell.client.service import LISTS_ENGINES
from sqlshell.errors import ShellError
from sqlshell.result import Column, Rows
from sqlshell.shell.metadata.service_queries import ServiceSession, engine_of, query_service
from sqlshell.shell.results.rows import column_index, value
from sqlshell.sql.identifiers import Pattern, always_quoted, qualified

_SCHEMA = re.compile(r'("(?:[^"]|"")++"|[A-Za-z_][\w$]*+)\.[^.]++\Z')
"""A pattern with one schema, which may be one of the engine's own."""

_PLACES = frozenset({"database", "visible", "own", "internal"})
"""Columns that say which rows a list shows, rather than something to be shown."""


class Objects(Struct):
    """A list of objects: its columns, and all rows."""

    columns: list[Column]
    rows: Rows

    def at(self, *names: str) -> int | None:
        """The position of the first of these columns."""
        return column_index(self.columns, *names)

    def matching(self, pattern: str) -> Objects:
        """The objects whose names match; without a schema in the pattern, those that are found by their name alone."""
        wanted = Pattern(pattern or "*")
        visible, name = self.at("visible"), self.at("name") or 0
        places = [at for at in (self.at("database"), self.at("schema")) if at is not None]
        return Objects(
            self.columns,
            [
                row
                for row in self.rows
                if wanted.matches(*(value(row, at) for at in places), value(row, name))
                and (wanted.qualified or visible is None or value(row, visible) == "true")
            ],
        )

    def shown(self) -> tuple[list[Column], Rows]:
        """The columns that are shown, with their rows, in which nothing is NULL."""
        kept = [at for at, column in enumerate(self.columns) if column.name.lower() not in _PLACES]
        return [self.columns[at] for at in kept], [[value(row, at) or None for at in kept] for row in self.rows]


class Description(Struct):
    """One relation: its kind, its full name as SQL, a row for each column, and its other properties, as
    (heading, name, text)."""

    kind: str
    name: str
    titles: list[str]
    rows: Rows
    notes: list[tuple[str, str, str]]


async def listed(connected: ServiceSession, what: str, pattern: str = "", *, details: bool = False) -> Objects:
    """The objects of a kind, a word of LIST ENGINE, that match a pattern. Raises the errors of the client."""
    match = _SCHEMA.match(pattern)
    place = f" IN SCHEMA {match[1]}" if match else ""
    columns, rows = await query_service(connected, f"LIST ENGINE {what}{place}{' WITH DETAILS' if details else ''}")
    return Objects(columns, rows).matching(pattern)


async def learn_connection(connected: ServiceSession) -> Mapping[str, str]:
    """The session's connection to the engine's server, by lower-case column of LIST ENGINE CONNECTIONS; empty if the
    engine has none or does not tell. The session keeps it, and has its database in its context.
    """
    connection: dict[str, str] = {}
    with contextlib.suppress(ShellError):
        if await engine_of(connected):
            columns, rows = await query_service(connected, "LIST ENGINE CONNECTIONS")
            connection = {column.name.lower(): value(rows[0], at) for at, column in enumerate(columns) if rows}
        elif not connected.session.context.database and LISTS_ENGINES in await connected.service.extensions():
            # The response contains the context of the session.
            await query_service(connected, "LIST ENGINES")
        connected.session.state.server = connection
    return connection


def names_of(objects: Objects) -> list[str]:
    """The full names of listed objects, as SQL."""
    schema, name = objects.at("schema"), objects.at("name")
    return [
        qualified(value(row, schema), value(row, name)) if value(row, schema) else always_quoted(value(row, name))
        for row in objects.rows
    ]


async def described(connected: ServiceSession, name: str, *, details: bool) -> Description:
    """The engine's description of the relation with this name, which is SQL. Raises the errors of the client."""
    more = " WITH DETAILS" if details else ""
    _, notes = await query_service(connected, f"DESCRIBE ENGINE RELATION {name}{more}")
    columns, rows = await query_service(connected, f"DESCRIBE ENGINE RELATION COLUMNS {name}{more}")
    texts = [(value(note, 0), value(note, 1), value(note, 2)) for note in notes]
    kind, full, _ = texts[0] if texts else ("relation", name, "")
    return Description(
        kind, full, [column.name for column in columns], [[item or None for item in row] for row in rows], texts[1:]
    )


async def creating(connected: ServiceSession, names: Sequence[str]) -> list[str]:
    """The statements that create relations, in an order in which they can be run. Raises the errors of the client."""
    order: dict[str, tuple[int, int]] = {}
    for name in names:
        _, rows = await query_service(connected, f"DESCRIBE ENGINE RELATION SQL {name}")
        for phase, age, *sql in rows:
            order.setdefault(value(sql, 0), (_number(phase), _number(age)))
    return sorted(order, key=lambda sql: order[sql])


async def function(connected: ServiceSession, name: str) -> list[str]:
    """The statements that create the functions of this name, which is SQL, perhaps with the types of arguments in
    parentheses. Raises the errors of the client.
    """
    _, rows = await query_service(connected, f"DESCRIBE ENGINE FUNCTION SQL {name}")
    return [value(row, 0) for row in rows]


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() else 0
