"""Columns of relations, names of types, and rows of the service as SQL."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import Listing
from sqlshell.service.engines.postgresql.connection import PgConnection, Values
from sqlshell.service.engines.postgresql.types import engine_type, interface_type
from sqlshell.sql.identifiers import always_quoted, literal

_TYPES: Final = {
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "INTEGER": "integer",
    "TIMESTAMP_LTZ(6)": "timestamptz",
}
"""PostgreSQL's types by interface type, for rows of the service."""


def columns_of(rows: Values) -> list[ColumnInfo]:
    """The columns in the rows of the query "columns of relation"."""
    columns: list[ColumnInfo] = []
    for name, oid, modifier, nullable, type_text in rows:
        kind = int(oid or 0), int(modifier or -1)
        exact = engine_type(*kind)
        columns.append(
            ColumnInfo(name, interface_type(*kind), nullable == "t", engine_type=type_text if exact == "" else exact)
        )
    return columns


async def type_names(link: PgConnection, kinds: Collection[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """PostgreSQL's names of types, by OID and modifier. Each connection asks once for each."""
    given = sorted({*kinds} - link.type_names.keys())
    if given:
        values = ", ".join(f"({oid}::oid, {modifier})" for oid, modifier in given)
        rows = await link.ask(f"SELECT pg_catalog.format_type(o, m) FROM (VALUES {values}) AS t (o, m)")
        link.type_names |= {kind: str(row[0]) for kind, row in zip(given, rows, strict=True)}
    return link.type_names


def inline(rows: Listing) -> str:
    """SQL for a relation with these rows. A column can be named without quotes too, as on engines that ignore case."""
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


def strings_of(rows: Values) -> list[tuple[str, ...]]:
    """Rows with "" for NULL."""
    return [tuple(item or "" for item in row) for row in rows]
