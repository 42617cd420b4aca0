"""What there is: databases, schemas, relations, stores, functions, roles, queries.

From the system tables where a service has them, else from LIST and DESCRIBE, so that every service can be looked at.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Sequence

from sqlshell.errors import StatementError, UsageError, Where
from sqlshell.interface import sqlstate
from sqlshell.result import Column, Rows
from sqlshell.shell.asking import asked
from sqlshell.shell.commands.command import Args, Command, command
from sqlshell.shell.port import Effect, Many, Port, Show
from sqlshell.shell.rows import table_of
from sqlshell.sql.names import Pattern

MOST_DESCRIBED = 20
"""Relations that one pattern describes."""
RELATIONS = ('SELECT * FROM deltastream.sys."relations"', "LIST RELATIONS", "LIST TABLES")
COLUMNS = (
    "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = {name} "
    "ORDER BY ordinal_position"
)
SHORT = 3
"""Columns that a list shows without +."""


async def _asked(port: Port, sql: str) -> tuple[list[Column], Rows]:
    """The rows of a statement; what it echoes says where this is. Raises what the client raises."""
    return await asked(port.service.statements, sql, port.session.context, port.session.adopt)


async def _first(port: Port, statements: Sequence[str]) -> tuple[list[Column], Rows]:
    """The answer to the first of the statements that the service knows. Raises what the last of them raises."""
    for sql in statements[:-1]:
        with contextlib.suppress(StatementError):
            return await _asked(port, sql)
    return await asked(port.service.statements, statements[-1], port.session.context)


def _at(columns: Sequence[Column], *names: str) -> int | None:
    low = [column.name.lower() for column in columns]
    return next((low.index(name) for name in names if name in low), None)


def _value(row: Sequence[str | None], place: int | None) -> str:
    return (row[place] or "") if place is not None and place < len(row) else ""


def _listed(columns: Sequence[Column], rows: Rows, args: Args) -> Show:
    """The rows whose name matches; without + the first columns of them."""
    pattern = Pattern(args[0] if args else "*")
    name = _at(columns, "name") or 0
    kept = [row for row in rows if pattern.matches(_value(row, name))]
    shown = len(columns) if args.plus else min(SHORT, len(columns))
    return Show(table_of([(column.name, column.type) for column in columns[:shown]], [row[:shown] for row in kept]))


def _lister(name: str, what: str, help_text: str, aliases: tuple[str, ...] = ()) -> Command:
    """A command that shows what LIST tells."""

    async def body(port: Port, args: Args) -> Show:
        columns, rows = await _asked(port, f"LIST {what}")
        return _listed(columns, rows, args)

    return Command(name, "[PATTERN]", help_text, body, (f"{name}+", *aliases))


async def _relations(port: Port) -> list[tuple[str, str, str, str]]:
    """Database, schema, name and type of each relation."""
    columns, rows = await _first(port, RELATIONS)
    context = port.session.context
    name = _at(columns, "name", "relation_name", "table_name")
    kind = _at(columns, "type", "relation_type", "kind")
    database, schema = _at(columns, "database_name", "database"), _at(columns, "schema_name", "schema")
    return [
        (
            _value(row, database) or context.database,
            _value(row, schema) or context.schema,
            _value(row, 0 if name is None else name),
            _value(row, kind).lower().replace("_", " "),
        )
        for row in rows
    ]


async def _matching(port: Port, text: str, kinds: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """The relations that a pattern means: those of the current schema, unless it names another."""
    pattern = Pattern(text or "*")
    known = sorted(set(await _relations(port)))
    context = port.session.context
    here = {context.database.lower()}, {context.schema.lower()}
    return [
        found
        for found in known
        if pattern.matches(*found[:3])
        and (not kinds or any(kind in found[3] for kind in kinds))
        and (pattern.qualified or (found[0].lower() in here[0] and found[1].lower() in here[1]))
    ]


def _relation_lister(name: str, kinds: tuple[str, ...], help_text: str, aliases: tuple[str, ...] = ()) -> Command:
    async def body(port: Port, args: Args) -> Show:
        found = await _matching(port, args[0] if args else "", kinds)
        if args.plus:
            titles = [(title, "VARCHAR") for title in ("database", "schema", "name", "type")]
            return Show(table_of(titles, [list(row) for row in found]))
        titles = [(title, "VARCHAR") for title in ("schema", "name", "type")]
        return Show(table_of(titles, [list(row[1:]) for row in found]))

    return Command(name, "[PATTERN]", help_text, body, (f"{name}+", *aliases))


@command("l", "[PATTERN]", aliases=("l+", "list", ".databases"))
async def databases(port: Port, args: Args) -> Show:
    """List databases and organizations; those that statements run in are marked. + shows their other columns."""
    pattern = Pattern(args[0] if args else "*")
    found: Rows = []
    for kind, what in (("database", "DATABASES"), ("organization", "ORGANIZATIONS")):
        columns: list[Column] = []
        rows: Rows = []
        with contextlib.suppress(StatementError):
            columns, rows = await _asked(port, f"LIST {what}")
        context = port.session.context
        current = {context.database if kind == "database" else context.organization}
        name = _at(columns, "name") or 0
        for row in rows:
            if not pattern.matches(_value(row, name)):
                continue
            here = "*" if current & {value for value in row if value} else ""
            rest = [
                f"{column.name} {value}"
                for column, value in zip(columns, row, strict=True)
                if value and column.name.lower() != "name"
            ]
            found.append([_value(row, name), kind, here, ", ".join(rest)])
    titles = (("name", "VARCHAR"), ("kind", "VARCHAR"), ("current", "VARCHAR"), ("details", "VARCHAR"))
    return Show(table_of(titles, found) if args.plus else table_of(titles[:3], [row[:3] for row in found]))


@command("d", "[NAME]", aliases=("d+", "describe", ".schema", "!describe"))
async def describe(port: Port, args: Args) -> Effect | None:
    """Show the columns of a relation, or of all that a pattern means; alone, list the relations. + tells more."""
    if not args:
        return await _relation_lister("d", (), "").body(port, args)
    pattern = Pattern(args[0])
    found = await _matching(port, args[0], ())
    known = [] if found else await _relations(port)
    if not found and (known or not pattern.exact):
        near = difflib.get_close_matches(args[0].rpartition(".")[2], {item[2] for item in known}, 2)
        hint = f"is it {' or '.join(near)}?" if near else "\\d lists those of this schema, \\d *.* all"
        raise StatementError(f"no relation matches {args[0]}", hint, Where(sqlstate.NO_RELATION))
    if len(found) > MOST_DESCRIBED:
        raise UsageError(f"{args[0]} means {len(found)} relations, more than {MOST_DESCRIBED}", "\\dt lists them")
    if not found:
        # The service knows best what such a name means, and says what is wrong with it.
        return Many(await _described(port, args[0], "", plus=args.plus))
    effects: list[Effect] = []
    for database, schema, name, kind in found:
        quoted = ".".join(_quoted(part) for part in (database, schema, name) if part)
        title = f"{kind or 'relation'} {schema}.{name}" if schema else f"{kind or 'relation'} {name}"
        effects += await _described(port, quoted, title, plus=args.plus)
    return Many(effects)


async def _described(port: Port, name: str, title: str, *, plus: bool) -> list[Effect]:
    last = name.rpartition(".")[2].strip('"').replace("'", "''")
    columns, rows = await _first_that_knows(port, name, last)
    shown = len(columns) if plus else min(SHORT, len(columns))
    result = table_of([(item.name, item.type) for item in columns[:shown]], [row[:shown] for row in rows])
    effects: list[Effect] = [Show(result, title=title)]
    if plus:
        with contextlib.suppress(StatementError):
            details, values = await _asked(port, f"DESCRIBE RELATION {name}")
            if [item.name for item in details] != [item.name for item in columns]:
                effects.append(Show(table_of([(item.name, item.type) for item in details], values)))
    return effects


async def _first_that_knows(port: Port, name: str, last: str) -> tuple[list[Column], Rows]:
    """DESCRIBE's answer, or that of information_schema; the error is DESCRIBE's own."""
    try:
        return await _asked(port, f"DESCRIBE RELATION COLUMNS {name}")
    except StatementError:
        with contextlib.suppress(StatementError):
            columns, rows = await _asked(port, COLUMNS.format(name=f"'{last}'"))
            if rows:
                return columns, rows
        raise


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


COMMANDS = (
    databases,
    describe,
    _lister("dn", "SCHEMAS", "List schemas. + shows all of their columns."),
    _relation_lister("dt", ("table",), "List tables of this schema, or of others: \\dt *.ord*", (".tables",)),
    _relation_lister("dv", ("view",), "List views, materialized ones too."),
    _relation_lister("dm", ("stream", "changelog"), "List streams and changelogs."),
    _lister("ds", "STORES", "List stores. + shows all of their columns."),
    _lister("de", "ENTITIES", "List the entities of the current store."),
    _lister("df", "FUNCTIONS", "List functions."),
    _lister("dp", "COMPUTE_POOLS", "List compute pools."),
    _lister("dr", "ROLES", "List roles.", ("dg", "du")),
    _lister("dq", "QUERIES", "List queries that run.", ("!queries",)),
)
