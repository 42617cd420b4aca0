"""Lists of objects: databases, schemas, stores, functions, types, roles, queries.

They come from LIST and DESCRIBE.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from sqlshell.errors import StatementError
from sqlshell.result import Column, Rows
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, Command, command
from sqlshell.shell.commands.relations import list_relations, show_objects
from sqlshell.shell.metadata import objects as metadata
from sqlshell.shell.metadata.objects import NAMED, Objects
from sqlshell.shell.metadata.service_queries import engine_of, query_service
from sqlshell.shell.results.rows import (
    column_index,
    no_match_message,
    not_found,
    table_of,
    text_table,
    title_of,
    value,
)
from sqlshell.sql.identifiers import Pattern, literal, quoted
from sqlshell.text import one_line

STORES = (
    "SELECT name, type, uri, status AS state, status_message AS message, owner, created_at, updated_at "
    'FROM deltastream.sys."stores" ORDER BY name',
    "LIST STORES",
)
NO_FUNCTION = "42883"
ENDED = frozenset(
    {"cancelled", "canceled", "completed", "ended", "error", "failed", "stopped", "succeeded", "terminated"}
)
"""States of queries that have ended."""
QUERY_CELLS = 100
"""Number of characters of a query that a list shows."""
SHORT = 3
"""Number of columns that a list shows without +."""


def _chosen(columns: Sequence[Column], rows: Rows, given: str) -> Rows:
    """The rows whose name matches the pattern."""
    pattern = Pattern(given)
    schema, name = column_index(columns, "schema"), column_index(columns, "name") or 0
    return [row for row in rows if pattern.matches(value(row, schema), value(row, name))]


def _lister(
    name: str,
    statements: Sequence[str],
    what: str,
    aliases: tuple[str, ...] = (),
    more: str = "",
    engine: str = "",
) -> Command:
    """A command that lists the result of the first statement that the service supports; + shows all columns. `what` it
    lists and `more` are its help. `engine` is the word of LIST ENGINE for what an engine
    that is a server has, or any engine if there are no statements."""

    async def body(shell: CommandShell, args: Args) -> None:
        if engine and (not statements or await engine_of(shell.session)):
            await _listed_by_engine(shell, args, engine, what)
            return
        await _listed(shell, args, statements, what)

    return Command(name, "[PATTERN]", f"List {what}.{more}", body, (f"{name}+", *aliases), data=frozenset({"PATTERN"}))


async def _listed_by_engine(shell: CommandShell, args: Args, word: str, what: str) -> None:
    """The objects that an engine lists."""
    objects = await metadata.listed(shell.session, word, args[0] if args else "", details=args.plus)
    await _objects(shell, args, objects, what)


async def _objects(shell: CommandShell, args: Args, objects: Objects, what: str) -> None:
    hint = "" if args or objects.at("visible") is None else f"\\{args.name} *.* lists them in all schemas"
    await show_objects(shell, args, objects, what, hint)


async def _listed(shell: CommandShell, args: Args, statements: Sequence[str], what: str, hint: str = "") -> None:
    columns, rows = await query_service(shell.session, *statements)
    shown = len(columns) if args.plus else min(SHORT, len(columns))
    kept = [row[:shown] for row in _chosen(columns, rows, args[0] if args else "*")]
    if not kept and shell.result_output.for_people:
        shell.say(no_match_message(args, hint, what))
        return
    await shell.show(table_of([(title_of(column.name), column.type) for column in columns[:shown]], kept))


@command("l", "[PATTERN]", aliases=("l+", "list", ".databases"), data=("PATTERN",))
async def databases(shell: CommandShell, args: Args) -> None:
    """List databases and organizations; the current ones are marked. + shows all columns."""
    if await engine_of(shell.session):
        await _databases_of_engine(shell, args)
        return
    pattern = Pattern(args[0] if args else "*")
    listed: Rows = []
    for kind, what in (("database", "DATABASES"), ("organization", "ORGANIZATIONS")):
        columns: list[Column] = []
        rows: Rows = []
        with contextlib.suppress(StatementError):
            columns, rows = await query_service(shell.session, f"LIST {what}")
        context = shell.session.context
        current = {context.database if kind == "database" else context.organization}
        name = column_index(columns, "name") or 0
        for row in rows:
            if not pattern.matches(value(row, name)):
                continue
            here = "*" if current & {value for value in row if value} else ""
            rest = [
                f"{column.name} {value}"
                for column, value in zip(columns, row, strict=True)
                if value and column.name.lower() != "name"
            ]
            listed.append([value(row, name), kind, here, ", ".join(rest)])
    titles = ("name", "kind", "current", "details")
    if not listed and shell.result_output.for_people:
        shell.say(no_match_message(args, "", "databases"))
        return
    shown = len(titles) if args.plus else 3
    await shell.show(text_table(titles[:shown], [row[:shown] for row in listed]))


async def _databases_of_engine(shell: CommandShell, args: Args) -> None:
    objects = await metadata.listed(shell.session, "DATABASES", args[0] if args else "", details=args.plus)
    here = objects.at("current")
    if here is not None:
        objects.rows = [[*row[:here], "*" if row[here] == "true" else "", *row[here + 1 :]] for row in objects.rows]
        objects.columns[here] = Column("current", "VARCHAR")
    await _objects(shell, args, objects, "databases")


schemas = _lister("dn", ("LIST SCHEMAS",), "schemas", more=" + shows all columns.", engine="SCHEMAS")
indexes = _lister("di", (), "indexes", (".indexes",), more=" + shows their definitions.", engine="INDEXES")
types = _lister("dT", (), "user-defined types", engine="TYPES")


@command("df", "[PATTERN]", aliases=("df+",), data=("PATTERN",))
async def functions(shell: CommandShell, args: Args) -> None:
    """List functions with arguments and results. Without PATTERN, omit built-in functions.

    + adds descriptions, and the definitions of macros."""
    if not await metadata.lists_objects(shell.session):
        await _listed(shell, args, ("LIST FUNCTIONS",), "functions")
        return
    functions = await metadata.listed(shell.session, "FUNCTIONS", args[0] if args else "", details=args.plus)
    own = functions.at("own")
    if own is not None and not args:
        functions.rows = [row for row in functions.rows if value(row, own) == "true"]
        if not functions.rows and shell.result_output.for_people:
            shell.say("no user-defined functions; \\df * lists all functions")
            return
    await _objects(shell, args, functions, "functions")


@command("sf", "PATTERN...", aliases=("sf+",), data=("PATTERN",))
async def show_function(shell: CommandShell, args: Args) -> None:
    """Show the SQL that creates a function or macro. DuckDB does not report the default values of parameters.

    On PostgreSQL, types of arguments in parentheses select one of several functions: \\sf f(int, text)"""
    pattern = " ".join(args).rstrip("; ")
    alone, bracket, arguments = pattern.partition("(")
    if not NAMED.fullmatch(alone.rstrip()) or (bracket and not arguments.endswith(")")):
        raise not_found("function", pattern, {})
    try:
        statements = await metadata.function(shell.session, pattern)
    except StatementError as error:
        if bracket or error.where.sql_state != NO_FUNCTION:
            raise
        names = {value(row, 1) for row in (await metadata.listed(shell.session, "FUNCTIONS")).rows}
        raise not_found("function", pattern, {name: [quoted(name)] for name in names}) from None
    shell.print("".join(f"{sql.rstrip()};\n" for sql in statements), with_results=True)


@command("ds", "[PATTERN]", aliases=("ds+",), data=("PATTERN",))
async def stores(shell: CommandShell, args: Args) -> None:
    """List stores, or sequences on PostgreSQL. LIST STORES lists the stores there. + shows all columns."""
    if await engine_of(shell.session):
        await list_relations(shell, args, ("sequence",))
        return
    await _listed(shell, args, STORES, "stores", "\\d lists sequences")


@command("de", "[PATTERN]", aliases=("de+",), data=("PATTERN",))
async def entities(shell: CommandShell, args: Args) -> None:
    """List the entities of the current store, with sizes and times. Without a current store, list all entities."""
    store = shell.session.context.store
    here = f" WHERE store_name = {literal(store)}" if store else ""
    query = f'SELECT name, size, modified_at AS modified, store_name AS store FROM deltastream.sys."entities"{here}'
    await _listed(shell, args, (f"{query} ORDER BY store_name, name", "LIST ENTITIES"), "entities")


@command("dp", "[PATTERN]", aliases=("dp+", "z", "z+"), data=("PATTERN",))
async def pools(shell: CommandShell, args: Args) -> None:
    """List compute pools, or privileges on PostgreSQL. LIST COMPUTE_POOLS lists the pools there."""
    if await engine_of(shell.session):
        await _listed_by_engine(shell, args, "PRIVILEGES", "relations")
        return
    await _listed(shell, args, ("LIST COMPUTE_POOLS",), "compute pools")


@command("dr", "[PATTERN]", aliases=("dr+", "dg", "dg+", "du", "du+"), data=("PATTERN",))
async def roles(shell: CommandShell, args: Args) -> None:
    """List roles. On PostgreSQL, \\du and \\dg list the server's roles, \\dr those of the service."""
    if not args.name.startswith("dr") and await engine_of(shell.session):
        await _listed_by_engine(shell, args, "ROLES", "roles")
        return
    await _listed(shell, args, ("LIST ROLES",), "roles")


@command("dq", "[PATTERN]", aliases=("dq+", "!queries"), data=("PATTERN",))
async def queries(shell: CommandShell, args: Args) -> None:
    """List running queries with text, owner and start time. + lists all queries with all columns."""
    columns, rows = await query_service(shell.session, "LIST QUERIES")
    state = column_index(columns, "state", "currentstate", "actualstate", "status")
    text = column_index(columns, "statement", "sql", "query", "name")
    pattern = Pattern(args[0]) if args else None
    if pattern is not None:
        rows = [row for row in rows if any(pattern.matches(value or "") for value in row)]
    if args.plus:
        # Show only the beginning of each query; DESCRIBE QUERY shows all of it.
        if text is not None and shell.result_output.for_people:
            rows = [[*row[:text], one_line(value(row, text), QUERY_CELLS), *row[text + 1 :]] for row in rows]
        await shell.show(table_of([(column.name, column.type) for column in columns], rows))
        return
    running = [row for row in rows if value(row, state).lower() not in ENDED]
    wanted = {
        "id": column_index(columns, "id", "queryid"),
        "state": state,
        "statement": text,
        "owner": column_index(columns, "owner", "user"),
        "since": column_index(columns, "created", "createdat", "createdon", "started"),
    }
    if not running and shell.result_output.for_people:
        shell.say("no running queries; \\dq+ also lists finished ones")
        return
    known = {title: place for title, place in wanted.items() if place is not None}
    cells: Rows = [[one_line(value(row, place), 1000) for place in known.values()] for row in running]
    await shell.show(text_table(tuple(known), cells))
