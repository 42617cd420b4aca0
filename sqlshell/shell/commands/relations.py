"""Tables, views, streams and sequences: lists, descriptions, and the SQL that creates them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlshell.errors import StatementError, UsageError
from sqlshell.interface import sqlstate
from sqlshell.output.text.cells import printable
from sqlshell.result import Result, Rows
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, Command, command
from sqlshell.shell.metadata import objects as metadata
from sqlshell.shell.metadata.objects import NAMED, Description, Objects
from sqlshell.shell.metadata.service_queries import engine_of
from sqlshell.shell.results.rows import (
    blank,
    columns_table,
    in_quotes,
    no_match_message,
    not_found,
    table_of,
    text_table,
    title_of,
    value,
)
from sqlshell.sql.identifiers import Pattern, quoted

ALWAYS_SHOWN = 2
"""The columns of a description that people see even if they are empty: name and type."""
MOST_DESCRIBED = 20
"""Maximum number of relations that one pattern may describe."""
STREAMS = ("stream", "changelog", "materialized")
ONLY_TABLES = ("table",)
LETTERS = {"t": ONLY_TABLES, "v": ("view",), "m": STREAMS, "s": ("sequence",)}
"""The kinds of relations that each letter of \\dtvms stands for."""

MISSING_STATES = frozenset({sqlstate.NO_RELATION, sqlstate.NO_SCHEMA, sqlstate.NO_DATABASE})
"""The codes for a relation that does not exist."""


CONSTRAINTS = frozenset({"Keys", "Check constraints", "Foreign keys"})
_BRACKET = re.compile(r"(?<=KEY|ECK|QUE)\(")
_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX .{1,200}? ON .{1,200}?(?= USING\b|\s?\()", re.I | re.S)


async def _elsewhere(shell: CommandShell) -> str:
    """How to list relations of other schemas."""
    objects = await metadata.listed(shell.session, "RELATIONS", "*.*")
    places = {(value(row, objects.at("database")), value(row, objects.at("schema"))) for row in objects.rows}
    if len(places) == 1:
        other = quoted(places.pop()[1])
        return f"\\d {other}.* lists the relations of schema {in_quotes(other)}"
    return "\\d *.* lists the relations of all schemas"


def _relation_lister(name: str, kinds: tuple[str, ...], help_text: str, aliases: tuple[str, ...] = ()) -> Command:
    async def body(shell: CommandShell, args: Args) -> None:
        # Only \dt has names with combined letters, in addition to its aliases.
        combined = args.name.rstrip("+")[1:] if name == "dt" and args.name.startswith("d") else ""
        wanted = tuple(kind for one in combined for kind in LETTERS[one]) or kinds
        await list_relations(shell, args, () if args.name == ".tables" else wanted)

    return Command(name, "[PATTERN]", help_text, body, (f"{name}+", *aliases), data=frozenset({"PATTERN"}))


async def list_relations(shell: CommandShell, args: Args, kinds: Sequence[str]) -> None:
    """The relations of these kinds that match the pattern; without kinds, or if there is no table, all."""
    objects = await metadata.listed(shell.session, "RELATIONS", args[0] if args else "", details=args.plus)
    kind = objects.at("type")
    every = [row for row in objects.rows if "index" not in value(row, kind)]
    objects.rows = [row for row in objects.rows if any(word in value(row, kind) for word in kinds)] if kinds else every
    if not objects.rows and kinds == ONLY_TABLES:
        objects.rows = every
    schema = shell.session.context.schema
    where = f" in schema {in_quotes(printable(schema))}" if schema else ""
    what = f"{kinds[0] if kinds else 'relation'}s{where}"
    hint = await _elsewhere(shell) if shell.result_output.for_people and not objects.rows else ""
    await show_objects(shell, args, objects, what, hint)


async def show_objects(shell: CommandShell, args: Args, objects: Objects, what: str, hint: str) -> None:
    """Show a list; a person is told if it is empty, with a hint. `what` it lists is for that message."""
    # A connection to a server is to one database.
    columns, rows = objects.shown(database=args.plus and not await engine_of(shell.session))
    if shell.result_output.for_people:
        if not rows:
            shell.say(no_match_message(args, hint, what))
            return
        rows = blank(rows)
    await shell.show(table_of([(title_of(column.name), column.type) for column in columns], rows))


@command("d", "[PATTERN]", aliases=("d+", "!describe"), data=("PATTERN",))
async def describe(shell: CommandShell, args: Args) -> None:
    """List relations, or describe those that match. Shows columns, keys, constraints and indexes.

    + adds comments, the key of each column, the definition of a view, and the approximate number of rows and bytes."""
    if not args:
        await list_relations(shell, args, ())
        return
    names = await _named(shell, args[0])
    _check_number(args[0], len(names))
    try:
        descriptions = [await metadata.described(shell.session, name, kind, details=args.plus) for name, kind in names]
    except StatementError as error:
        raise await _unknown(shell, args[0], error) from None
    for each in descriptions:
        await _show_description(shell, each, plus=args.plus)


def _check_number(pattern: str, number: int) -> None:
    if number > MOST_DESCRIBED:
        raise UsageError(
            f"{pattern} matches {number} relations; \\d describes at most {MOST_DESCRIBED}", "use a narrower pattern"
        )


async def _named(shell: CommandShell, pattern: str) -> list[tuple[str, str]]:
    """The names of the relations that match a pattern, as SQL, with their kinds. A name is one whether it exists or
    not: only the engine knows what it stands for, and a service may not list all its names."""
    exact = Pattern(pattern).exact
    if exact and not NAMED.fullmatch(pattern):
        raise not_found("relation", pattern, {})
    if exact and await metadata.lists_objects(shell.session):
        return [(pattern, "")]
    objects = await metadata.listed(shell.session, "RELATIONS", pattern)
    kind = objects.at("type")
    objects.rows = [row for row in objects.rows if "index" not in value(row, kind)]
    if not objects.rows and not exact and pattern != "*":
        raise not_found("relation", pattern, {})
    # A connection to a server is to one database.
    names = metadata.names_of(objects, with_database=not await engine_of(shell.session))
    return names or ([(pattern, "")] if exact else [])


async def _unknown(shell: CommandShell, pattern: str, error: StatementError) -> StatementError:
    """The error for a relation that could not be described: with similar names if it does not exist."""
    missing = error.where.sql_state in MISSING_STATES
    if not missing and await metadata.lists_objects(shell.session):
        return error
    objects = await metadata.listed(shell.session, "RELATIONS", "*.*")
    # Other services have codes of their own for it.
    if not missing and (not objects.rows or objects.matching(pattern).rows):
        return error
    database, schema, name, visible = (objects.at(column) for column in ("database", "schema", "name", "visible"))
    indexes = [row for row in objects.rows if "index" in value(row, objects.at("type"))]
    if any(row in indexes for row in objects.matching(pattern).rows):
        found = not_found("relation", pattern, {})
        found.hint = f"it is an index: \\di {pattern} shows it"
        return found
    known: dict[str, list[str]] = {}
    for row in objects.rows:
        if row in indexes:
            continue
        parts = [] if value(row, visible) == "true" else [value(row, schema)]
        if parts and value(row, database).lower() != shell.session.context.database.lower():
            parts = [value(row, database), *parts]
        known.setdefault(value(row, name), []).append(".".join(map(quoted, filter(None, [*parts, value(row, name)]))))
    return not_found("relation", pattern, known)


async def _show_description(shell: CommandShell, description: Description, *, plus: bool) -> None:
    titles, rows, notes = description.titles, description.rows, description.notes
    if not shell.result_output.for_people:
        await shell.show(text_table(titles, rows))
        if plus and notes:
            await shell.show(text_table(("what", "name", "definition"), [list(note) for note in notes]))
        return
    if description.kind:
        shell.print(f"{description.kind.capitalize()} {description.name}\n", with_results=True, folds=True)
    about_columns = titles[:2] == ["name", "type"]
    await shell.show(_columns_for_people(titles, rows) if about_columns else text_table(titles, blank(rows)))
    if notes:
        generated = not await engine_of(shell.session)
        shell.print(_noted(notes, generated=generated), with_results=True, folds=True)


def _noted(notes: Sequence[tuple[str, str, str]], *, generated: bool) -> str:
    """Notes in psql's layout: one without a name has its text behind the heading, others are lines below it, as is the
    definition of a view. The names of constraints are left out if the engine has `generated` them."""
    lines: list[str] = []
    for head, name, text in notes:
        if not name and head != "View definition":
            lines.append(f"{head}: {text.strip()}")
            continue
        if f"{head}:" not in lines:
            lines.append(f"{head}:")
        if head == "Indexes":
            text = _INDEX.sub(lambda match: match[1] or "", text.rstrip(";")).strip()
        if head in CONSTRAINTS and generated:
            name, text = "", _BRACKET.sub(" (", text)
        lines.append("    " + f"{name} {text}".strip().replace("\n", "\n    "))
    return "".join(f"{line}\n" for line in lines)


def _columns_for_people(titles: Sequence[str], rows: Rows) -> Result:
    """A description of columns, without empty columns."""
    if "nullable" in titles:
        # As in psql, only the exception is marked.
        at = titles.index("nullable")
        titles = [*titles[:at], "null", *titles[at + 1 :]]
        rows = [[*row[:at], "no" if row[at] == "false" else None, *row[at + 1 :]] for row in rows]
    # Empty columns are omitted, except those that are always shown. The keys stand below the table.
    kept = [
        at for at, title in enumerate(titles) if at < ALWAYS_SHOWN or (title != "key" and any(row[at] for row in rows))
    ]
    shown: Rows = [[row[at] for at in kept] for row in rows]
    return columns_table([titles[at] for at in kept], shown, for_people=True)


@command("schema", "[PATTERN]", aliases=(".schema", "sv", "sv+"), data=("PATTERN",))
async def show_ddl(shell: CommandShell, args: Args) -> None:
    """Show the SQL that creates relations. Without PATTERN, show all of the current schema."""
    pattern = args[0] if args else "*"
    try:
        statements = await metadata.creating(shell.session, await _named(shell, pattern))
    except StatementError as error:
        raise await _unknown(shell, pattern, error) from None
    if not statements and args:
        raise StatementError(
            f"{pattern} is created by the statement of its table", "use \\schema with the table's name"
        )
    shell.print("".join(f"{text};\n" for text in statements), with_results=True)


TABLES = """List tables. Without PATTERN, list those of the current schema; a pattern can name others: \\dt *.ord*

If there are none, it lists what \\d lists, as .tables always does. Letters can be combined: t tables, v views,
m streams, s sequences. \\dtv lists tables and views."""

tables = _relation_lister("dt", ONLY_TABLES, TABLES, (".tables",))
views = _relation_lister("dv", ("view",), "List views, including materialized ones.")
streams = _relation_lister("dm", STREAMS, "List streams, changelogs and materialized views.")
