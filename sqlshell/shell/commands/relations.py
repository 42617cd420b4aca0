"""Tables, views, streams and sequences: lists, descriptions, and the SQL that creates them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

from sqlshell.errors import StatementError, UsageError
from sqlshell.humanize import byte_size
from sqlshell.interface import sqlstate
from sqlshell.result import Rows
from sqlshell.shell.commands.command import Args, Command, command
from sqlshell.shell.effects import Chain, Effect, Print, ShowMessage, ShowResult
from sqlshell.shell.metadata import engine_objects
from sqlshell.shell.metadata.engine_objects import Description
from sqlshell.shell.metadata.relation_details import NAMED, Details, Inspector, ddl, key_of
from sqlshell.shell.metadata.service_queries import engine_of, query_service
from sqlshell.shell.results.rows import (
    blank,
    column_index,
    columns_table,
    no_match_message,
    not_found,
    table_of,
    text_table,
    title_of,
    value,
)
from sqlshell.shell.shell_view import ShellView
from sqlshell.sql.completion.catalog import Relation
from sqlshell.sql.identifiers import Pattern, quoted

ALWAYS_SHOWN = 2
"""The columns of a description that people see even if they are empty: name and type."""
MOST_DESCRIBED = 20
"""Maximum number of relations that one pattern may describe."""
RELATIONS = (
    'SELECT database_name, schema_name, name, type FROM deltastream.sys."relations" '
    "UNION ALL SELECT table_catalog, table_schema, table_name, "
    "CASE table_type WHEN 'VIEW' THEN 'temporary view' ELSE 'temporary table' END "
    "FROM information_schema.tables WHERE table_catalog = 'temp' "
    "UNION ALL SELECT database_name, schema_name, sequence_name, 'sequence' FROM duckdb_sequences()",
    'SELECT * FROM deltastream.sys."relations"',
    "LIST RELATIONS",
    "SELECT table_catalog AS database_name, table_schema AS schema_name, table_name AS name, table_type AS type "
    "FROM information_schema.tables WHERE table_schema NOT IN ('information_schema', 'pg_catalog')",
    "LIST TABLES",
)
SIZES = (
    "SELECT database_name, schema_name, table_name, estimated_size, comment FROM duckdb_tables() UNION ALL "
    "SELECT database_name, schema_name, view_name, NULL, comment FROM duckdb_views() WHERE NOT internal"
)


STREAMS = ("stream", "changelog", "materialized")
ONLY_TABLES = ("table",)
LETTERS = {"t": ONLY_TABLES, "v": ("view",), "m": STREAMS, "s": ("sequence",)}
"""The kinds of relations that each letter of \\dtvms stands for."""

MISSING_STATES = frozenset({sqlstate.NO_RELATION, sqlstate.NO_SCHEMA, sqlstate.NO_DATABASE})
"""The codes for a relation that does not exist."""

_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX .{1,200}? ON .{1,200}?(?= USING\b|\s?\()", re.I | re.S)


def _table(titles: Sequence[str], rows: Rows) -> ShowResult:
    return ShowResult(text_table(titles, rows))


async def _relations(shell: ShellView) -> list[Relation]:
    """Every relation that the service lists."""
    columns, rows = await query_service(shell, *RELATIONS)
    context = shell.session.context
    name = column_index(columns, "name", "relationname", "tablename") or 0
    kind = column_index(columns, "type", "relationtype", "kind")
    database, schema = column_index(columns, "databasename", "database"), column_index(columns, "schemaname", "schema")
    relations = {
        Relation(
            value(row, database) or context.database,
            value(row, schema) or context.schema,
            value(row, name),
            value(row, kind).lower().replace("_", " "),
        )
        for row in rows
    }
    return sorted(relations, key=lambda item: (item.database, item.schema, item.name, item.kind))


def _matching(shell: ShellView, known: Sequence[Relation], text: str, kinds: Sequence[str] = ()) -> list[Relation]:
    """The relations that match a pattern: in the current schema or temporary, unless it names another schema."""
    pattern = Pattern(text or "*")
    context = shell.session.context
    here = context.database.lower(), context.schema.lower()

    def seen(item: Relation) -> bool:
        return item.kind.startswith("temporary") or (item.database.lower(), item.schema.lower()) == here

    wanted = [item for item in known if not kinds or any(kind in item.kind for kind in kinds)]
    found = [
        item
        for item in wanted
        if pattern.matches(item.database, item.schema, item.name) and (pattern.qualified or seen(item))
    ]
    # If no schema has that name, `database.name` is interpreted as DuckDB does.
    return found or [item for item in wanted if pattern.matches(item.database, item.name) and pattern.qualified]


def _as_typed(shell: ShellView, known: Sequence[Relation]) -> dict[str, list[str]]:
    """The names of relations, each with what is typed here for the relations of that name."""
    context = shell.session.context
    here = context.database.lower(), context.schema.lower()
    typed: dict[str, list[str]] = {}
    for item in known:
        place = item.database.lower(), item.schema.lower()
        parts = [] if place == here or item.kind.startswith("temporary") else [item.schema]
        parts = [item.database, *parts] if parts and place[0] != here[0] else parts
        typed.setdefault(item.name, []).append(".".join(quoted(part) for part in [*parts, item.name]))
    return typed


def _elsewhere(shell: ShellView, known: Sequence[Relation]) -> str:
    """How to list relations of other schemas."""
    others = {item.schema for item in known if item.database.lower() == shell.session.context.database.lower()}
    if len(others) == 1 and len({item.database for item in known}) == 1:
        other = quoted(others.pop())
        return f"\\d {other}.* lists the relations of the schema {other}"
    return "\\d *.* lists the relations of all schemas"


def _relation_lister(name: str, kinds: tuple[str, ...], help_text: str, aliases: tuple[str, ...] = ()) -> Command:
    async def body(shell: ShellView, args: Args) -> Effect:
        if args.name == ".tables":
            return await list_relations(shell, args, ())
        # Only \dt has names with combined letters, in addition to its aliases.
        combined = args.name.rstrip("+")[1:] if name == "dt" and args.name.startswith("d") else ""
        return await list_relations(shell, args, tuple(kind for one in combined for kind in LETTERS[one]) or kinds)

    return Command(name, "[PATTERN]", help_text, body, (f"{name}+", *aliases), data=frozenset({"PATTERN"}))


async def list_relations(shell: ShellView, args: Args, kinds: Sequence[str]) -> Effect:
    """The relations of these kinds that match the pattern; without kinds, or if there is no table, all."""
    if await engine_of(shell):
        return await _listed_by_engine(shell, args, kinds)
    known = await _relations(shell)
    found = _matching(shell, known, args[0] if args else "", kinds)
    if not found and kinds == ONLY_TABLES:
        found = _matching(shell, known, args[0] if args else "")
    if not found and shell.result_output.for_people:
        return ShowMessage(no_match_message(args, _elsewhere(shell, known)))
    if not args.plus:
        return _table(("schema", "name", "type"), [[item.schema, item.name, item.kind] for item in found])
    sizes: Rows = []
    with contextlib.suppress(StatementError):
        sizes = (await query_service(shell, SIZES))[1]
    more = {tuple(row[:3]): row[3:] for row in sizes}
    rows: Rows = [
        [
            item.database,
            item.schema,
            item.name,
            item.kind,
            *more.get((item.database, item.schema, item.name), [None, None]),
        ]
        for item in found
    ]
    rows = blank(rows) if shell.result_output.for_people else rows
    titles = ("database", "schema", "name", "type", "rows", "comment")
    # The row counts are the engine's estimates; the columns are omitted if the service has none.
    if not sizes:
        return _table(titles[:4], [row[:4] for row in rows])
    return ShowResult(table_of([(title, "BIGINT" if title == "rows" else "VARCHAR") for title in titles], rows))


async def _listed_by_engine(shell: ShellView, args: Args, kinds: Sequence[str]) -> Effect:
    objects = await engine_objects.listed(shell, "RELATIONS", args[0] if args else "", details=args.plus)
    kind = objects.at("type")
    every = [row for row in objects.rows if "index" not in value(row, kind)]
    objects.rows = [row for row in objects.rows if any(word in value(row, kind) for word in kinds)] if kinds else every
    if not objects.rows and kinds == ONLY_TABLES:
        objects.rows = every
    columns, rows = objects.shown()
    if shell.result_output.for_people:
        if not rows:
            return ShowMessage(no_match_message(args, "\\d *.* lists the relations of all schemas"))
        rows = blank(rows)
    return ShowResult(table_of([(title_of(column.name), column.type) for column in columns], rows))


@command("d", "[PATTERN]", aliases=("d+", "describe", "!describe"), data=("PATTERN",))
async def describe(shell: ShellView, args: Args) -> Effect | None:
    """Describe relations; without PATTERN, list them. Shows columns, keys, constraints and indexes.

    + adds comments, the key of each column, the definition of a view, and the approximate number of rows and bytes."""
    if not args:
        return await list_relations(shell, args, ())
    if await engine_of(shell):
        return await _described_by_engine(shell, args)
    inspector = Inspector(lambda sql: query_service(shell, sql))
    known = await _relations(shell)
    found = _matching(shell, known, args[0])
    _check_number(args[0], len(found))
    if not found and not Pattern(args[0]).exact:
        raise not_found("relation", args[0], {})
    if not found:
        try:
            # A service may not list all its names, such as the entities of a store.
            return Chain(_shown(shell, await inspector.describe(args[0]), "", plus=args.plus))
        except StatementError as error:
            if not known and error.where.sql_state not in MISSING_STATES:
                raise
            raise not_found("relation", args[0], _as_typed(shell, known)) from None
    effects: list[Effect] = []
    for item in found:
        whole = item.schema and not item.kind.startswith("temporary")
        place = f"{quoted(item.schema)}.{quoted(item.name)}" if whole else quoted(item.name)
        title = f"{(item.kind or 'relation').capitalize()} {place}"
        details = await inspector.details(item)
        if args.plus and details.rows:
            details.size = await inspector.size(item)
        effects += _shown(shell, details, title, plus=args.plus)
    return Chain(effects)


def _check_number(pattern: str, number: int) -> None:
    if number > MOST_DESCRIBED:
        raise UsageError(
            f"{pattern} matches {number} relations; \\d describes at most {MOST_DESCRIBED}", "use a narrower pattern"
        )


async def _named_by_engine(shell: ShellView, pattern: str) -> list[str]:
    """The names of the relations that match a pattern, as SQL. A name is one whether it exists or not: only the engine
    knows what it stands for."""
    if Pattern(pattern).exact:
        if not NAMED.fullmatch(pattern):
            raise not_found("relation", pattern, {})
        return [pattern]
    objects = await engine_objects.listed(shell, "RELATIONS", pattern)
    kind = objects.at("type")
    objects.rows = [row for row in objects.rows if "index" not in value(row, kind)]
    if not objects.rows:
        raise not_found("relation", pattern, {})
    return engine_objects.names_of(objects)


async def _unknown_to_engine(shell: ShellView, pattern: str) -> StatementError:
    """The error for a relation that does not exist, with similar names."""
    objects = await engine_objects.listed(shell, "RELATIONS", "*.*")
    schema, name, visible = objects.at("schema"), objects.at("name"), objects.at("visible")
    known: dict[str, list[str]] = {}
    for row in objects.rows:
        parts = [value(row, name)] if value(row, visible) == "true" else [value(row, schema), value(row, name)]
        known.setdefault(value(row, name), []).append(".".join(map(quoted, filter(None, parts))))
    return not_found("relation", pattern, known)


async def _described_by_engine(shell: ShellView, args: Args) -> Effect:
    names = await _named_by_engine(shell, args[0])
    _check_number(args[0], len(names))
    try:
        descriptions = [await engine_objects.described(shell, name, details=args.plus) for name in names]
    except StatementError as error:
        if error.where.sql_state not in MISSING_STATES:
            raise
        raise await _unknown_to_engine(shell, args[0]) from None
    return Chain([effect for item in descriptions for effect in _engine_description(shell, item, plus=args.plus)])


def _engine_description(shell: ShellView, description: Description, *, plus: bool) -> list[Effect]:
    if not shell.result_output.for_people:
        more = (
            [_table(("what", "name", "definition"), [list(note) for note in description.notes])]
            if plus and description.notes
            else []
        )
        return [_table(description.titles, description.rows), *more]
    above = Print(f"{description.kind.capitalize()} {description.name}\n", with_results=True, folds=True)
    lines = _noted(description.notes)
    below = [Print(lines, with_results=True, folds=True)] if lines else []
    if description.titles[:2] != ["name", "type"]:
        return [above, _table(description.titles, blank(description.rows)), *below]
    return [above, _columns_for_people(description.titles, description.rows), *below]


def _noted(notes: Sequence[tuple[str, str, str]]) -> str:
    """Notes in psql's layout: one without a name has its text behind the heading, others are lines below it."""
    lines: list[str] = []
    for head, name, text in notes:
        if not name and "\n" not in text.strip():
            lines.append(f"{head}: {text.strip()}")
            continue
        if f"{head}:" not in lines:
            lines.append(f"{head}:")
        lines.append("    " + f"{name} {text}".strip().replace("\n", "\n    "))
    return "".join(f"{line}\n" for line in lines)


def _columns_for_people(titles: Sequence[str], rows: Rows) -> ShowResult:
    """A description of columns, without empty columns."""
    if "nullable" in titles:
        # As in psql, only the exception is marked.
        at = titles.index("nullable")
        rows = [[*row[:at], "not null" if row[at] == "false" else None, *row[at + 1 :]] for row in rows]
    # Empty columns are omitted, except those that are always shown.
    kept = [at for at in range(len(titles)) if at < ALWAYS_SHOWN or any(row[at] for row in rows)]
    shown: Rows = [[row[at] for at in kept] for row in rows]
    return ShowResult(columns_table([titles[at] for at in kept], shown, for_people=True))


def _shown(shell: ShellView, details: Details, title: str, *, plus: bool) -> list[Effect]:
    """A table of the columns, and further details: below the table for people, as a second result for programs."""
    if details.sequence:
        rows: Rows = [list(details.sequence.values())]
        head = [Print(f"{title}\n", with_results=True)] if shell.result_output.for_people else []
        return [*head, _table(tuple(details.sequence), rows)]
    rows = [[column.name, column.type, column.nullable or None] for column in details.columns]
    titles = ["name", "type", "nullable"]
    more = details.source != "described"
    if more:
        titles.append("default")
        rows = [[*row, column.default] for row, column in zip(rows, details.columns, strict=True)]
    if plus and more:
        titles += ["key", "comment"]
        rows = [
            [*row, key_of(column.name, details.constraints) or None, column.comment or None]
            for row, column in zip(rows, details.columns, strict=True)
        ]
    notes = _notes(details, plus=plus)
    if shell.result_output.for_people:
        texts = [f"{title}\n" if title else "", _below(notes)]
        above, below = ([Print(text, with_results=True, folds=True)] if text else [] for text in texts)
        return [*above, _columns_for_people(titles, rows), *below]
    effects: list[Effect] = [_table(titles, rows)]
    if plus and notes:
        effects.append(_table(("what", "name", "definition"), [list(note) for note in notes]))
    return effects


def _grouped(digits: str) -> str:
    """A number from the service with its digits in groups."""
    return f"{int(digits):,}" if digits.isascii() and digits.isdecimal() and len(digits) < 40 else digits


def _below(notes: Sequence[tuple[str, str, str]]) -> str:
    """Notes in psql's layout: headings, each followed by its lines."""
    lines: list[str] = []
    for head, name, text in notes:
        if head in {"Comment", "Rows", "Size"}:
            lines.append(f"{head}: {text}")
            continue
        if f"{head}:" not in lines:
            lines.append(f"{head}:")
        line = _INDEX.sub(lambda match: match[1] or "", text.rstrip(";")).strip() if head == "Indexes" else text
        lines.append(("    " + (f"{quoted(name)} " if name else "") + line).replace("\n", "\n    "))
    return "".join(f"{line}\n" for line in lines)


def _notes(details: Details, *, plus: bool) -> list[tuple[str, str, str]]:
    """The notes below the columns, as (heading, name, text)."""
    heads = {"CHECK": "Check constraints", "FOREIGN KEY": "Foreign keys"}
    notes = [(heads.get(item.kind, "Keys"), item.name, item.definition) for item in details.constraints]
    notes.sort(key=lambda note: ("Keys", "Check constraints", "Foreign keys").index(note[0]))
    notes += [("Indexes", name, text) for name, text in details.indexes]
    notes += [("Referenced by", name, text) for name, text in details.referenced]
    if plus:
        notes += [
            (head, "", text.strip())
            for head, text in (
                ("View definition", details.definition),
                ("Comment", details.comment),
                ("Rows", details.rows and f"about {_grouped(details.rows)}"),
                ("Size", details.size and f"about {byte_size(details.size)}"),
            )
            if text
        ]
    return notes


@command("schema", "[PATTERN]", aliases=(".schema", "sv", "sv+"), data=("PATTERN",))
async def show_ddl(shell: ShellView, args: Args) -> Print:
    """Show the SQL that creates relations. Without PATTERN, show all of the current schema."""
    if await engine_of(shell):
        return await _created_by_engine(shell, args[0] if args else "*")
    inspector = Inspector(lambda sql: query_service(shell, sql))
    known = await _relations(shell)
    found = _matching(shell, known, args[0] if args else "")
    if not found and args:
        raise not_found("relation", args[0], _as_typed(shell, known))
    # Dependencies come first.
    order = ("sequence", "table", "stream", "changelog", "view")

    def rank(item: tuple[Relation, Details]) -> tuple[int, int]:
        return next((at for at, kind in enumerate(order) if kind in item[0].kind), len(order)), item[1].age

    detailed = sorted([(item, await inspector.details(item)) for item in found], key=rank)
    return Print("".join(f"{ddl(*item)}\n" for item in detailed), with_results=True)


async def _created_by_engine(shell: ShellView, pattern: str) -> Print:
    names = await _named_by_engine(shell, pattern)
    try:
        statements = await engine_objects.creating(shell, names)
    except StatementError as error:
        if error.where.sql_state not in MISSING_STATES:
            raise
        raise await _unknown_to_engine(shell, pattern) from None
    if not statements:
        raise StatementError(
            f"{pattern} is created by the statement of its table", "use \\schema with the table's name"
        )
    return Print("".join(f"{text};\n" for text in statements), with_results=True)


TABLES = """List tables of the current schema. A pattern can name others: \\dt *.ord*

If there are none, it lists what \\d lists, as .tables always does. Letters can be combined: t tables, v views,
m streams, s sequences. \\dtv lists tables and views."""

COMMANDS = (
    describe,
    show_ddl,
    _relation_lister("dt", ONLY_TABLES, TABLES, (".tables",)),
    _relation_lister("dv", ("view",), "List views, including materialized ones."),
    _relation_lister("dm", STREAMS, "List streams, changelogs and materialized views."),
    _relation_lister("dseq", ("sequence",), "List sequences."),
)
