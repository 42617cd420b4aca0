"""The catalog of a database: the queries in the folder `sql`, what they find, and rows of the service as SQL.

LIST ENGINE and DESCRIBE ENGINE show objects in PostgreSQL's terms.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import Listing, ObjectQuery
from sqlshell.service.engines.postgresql.connection import PgConnection, Values
from sqlshell.service.engines.postgresql.types import engine_type, interface_type
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import always_quoted, literal, qualified, quoted

Ask = Callable[..., Coroutine[Any, Any, Listing]]
"""Runs SQL with parameters in the database of the objects."""

_COLUMNS: Final = {"S": "sequence", "i": "index", "I": "index"}
"""How the columns of a kind of relation (pg_class.relkind) are described, if not as those of a table."""

_TYPES: Final = {
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "INTEGER": "integer",
    "TIMESTAMP_LTZ(6)": "timestamptz",
}
"""PostgreSQL's types by interface type, for rows of the service."""

_PART: Final = re.compile(r"^--- (.+)\n", re.M)
_BLOCK: Final = re.compile(r"^ *-- (details|short|foreign)\n(.*?)^ *-- end\n", re.M | re.S)
_NAMED: Final = re.compile(r"(?<!:):([a-z]\w*)")


@functools.cache
def catalog_sql(name: str, *kept: str) -> str:
    """Return the query of this name, with those of its optional blocks whose words are `kept`, and the parts that it
    names."""
    parts = _parts()
    text = _BLOCK.sub(lambda block: block[2] if block[1] in kept else "", parts[name])
    while (whole := _NAMED.sub(lambda match: parts.get(f":{match[1]}", match[0]), text)) != text:
        text = whole
    return text


@functools.cache
def _parts() -> dict[str, str]:
    files = sorted((Path(__file__).parent / "sql").glob("*.sql"))
    texts = [_PART.split(file.read_text("utf-8"))[1:] for file in files]
    return {name: text.strip() + "\n" for each in texts for name, text in zip(each[::2], each[1::2], strict=True)}


async def described(asked: ObjectQuery, ask: Ask) -> Listing:
    """Return the answer. Raises Failure."""
    depth = "details" if asked.details else "short"
    if asked.kind == "function":
        return await _function(asked.names, asked.arguments, ask)
    if asked.kind != "relation":
        return await ask(catalog_sql(asked.kind, depth), asked.schema)
    rows = (await ask(catalog_sql("find"), qualified(*asked.names[-2:]))).rows
    if not rows:
        raise Failure(sqlstate.NO_RELATION, f'relation "{".".join(asked.names)}" does not exist')
    oid, schema, name, kind, persistence, title = rows[0]
    if asked.part == "columns":
        blocks = (depth, "foreign") if kind == "f" else (depth,)
        return await ask(catalog_sql(f"columns of {_COLUMNS.get(kind, 'table')}", *blocks), oid)
    if asked.part == "sql":
        return await ask(catalog_sql("statements"), oid)
    full = quoted(name) if persistence == "t" else f"{quoted(schema)}.{quoted(name)}"
    notes = await ask(catalog_sql("notes", depth), oid)
    return Listing([(column, "VARCHAR") for column in ("What", "Name", "Definition")], [[title, full, ""], *notes.rows])


async def _function(names: Sequence[str], arguments: str, ask: Ask) -> Listing:
    schema, name = names[-2] if len(names) > 1 else "", names[-1]
    if arguments:
        listed = await ask(catalog_sql("functions of arguments"), f"{qualified(*names[-2:])}{arguments}")
    else:
        listed = await ask(catalog_sql("functions of name"), schema, name)
    shown = ".".join(map(quoted, names)) + arguments
    if not listed.rows:
        raise Failure("42883", f"function {shown} does not exist")
    definitions = [row for row in listed.rows if row[0]]
    if not definitions:
        reason = "PostgreSQL does not report the definition of an aggregate function; query pg_catalog.pg_aggregate"
        raise Failure("42809", f"{shown}: {reason}")
    return Listing(listed.columns, definitions)


def columns_of(rows: Values) -> list[ColumnInfo]:
    """Return the columns in the rows of the query "columns of relation"."""
    columns: list[ColumnInfo] = []
    for name, oid, modifier, nullable, type_text in rows:
        kind = int(oid or 0), int(modifier or -1)
        exact = engine_type(*kind)
        columns.append(
            ColumnInfo(name, interface_type(*kind), nullable == "t", engine_type=type_text if exact == "" else exact)
        )
    return columns


async def type_names(link: PgConnection, kinds: Collection[tuple[int, int]]) -> None:
    """Ask for PostgreSQL's names of types by OID and modifier. Each connection asks once for each."""
    given = sorted({*kinds} - link.type_names.keys())
    if given:
        values = ", ".join(f"({oid}::oid, {modifier})" for oid, modifier in given)
        rows = await link.ask(f"SELECT pg_catalog.format_type(o, m) FROM (VALUES {values}) AS t (o, m)")
        link.type_names |= {kind: str(row[0]) for kind, row in zip(given, rows, strict=True)}


def inline(rows: Listing) -> str:
    """Return SQL for a relation with these rows. A column can be named without quotes too, as on engines that ignore
    case."""
    names = [f"c{number}" for number in range(len(rows.columns))]
    held = json.dumps([dict(zip(names, row, strict=True)) for row in rows.rows], ensure_ascii=False)
    known = {name for name, _ in rows.columns}
    each = []
    for place, (name, kind) in zip(names, rows.columns, strict=True):
        # An unknown instant is NULL.
        value = place if kind == "VARCHAR" else f"nullif({place}, '')::{_TYPES[kind]}"
        each.append(f"{value} AS {always_quoted(name)}")
        if name.isidentifier() and name.lower() not in known:
            each.append(f"{value} AS {always_quoted(name.lower())}")
    form = ", ".join(f"{name} text" for name in names)
    return f"SELECT {', '.join(each)} FROM pg_catalog.json_to_recordset({literal(held)}) AS r ({form})"
