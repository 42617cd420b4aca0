"""SQL on pg_catalog for the service's LIST and DESCRIBE."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import Listing
from sqlshell.service.engines.postgresql.connection import PgConnection, Values
from sqlshell.service.engines.postgresql.types import engine_type, interface_type
from sqlshell.sql.identifiers import always_quoted, literal

SET_CONFIG: Final = "SELECT pg_catalog.set_config($1, $2, false)"

CURRENT_NAMES: Final = "SELECT pg_catalog.current_database(), pg_catalog.current_schema(), pg_catalog.version()"
TEMPLATES: Final = "SELECT datname FROM pg_catalog.pg_database WHERE datistemplate OR NOT datallowconn"
DATABASES: Final = (
    "SELECT datname FROM pg_catalog.pg_database WHERE datallowconn AND NOT datistemplate "
    "AND pg_catalog.has_database_privilege(oid, 'CONNECT') ORDER BY 1"
)
DATABASE: Final = "SELECT 1 FROM pg_catalog.pg_database WHERE datname = $1"
SCHEMA: Final = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1"

SCHEMAS: Final = (
    "SELECT nspname, pg_catalog.current_database() FROM pg_catalog.pg_namespace "
    "WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1"
)

_RELATIONS: Final = "('r', 'p', 'f', 'v', 'm')"
_NAMED: Final = "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
_OWN: Final = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"

PLACE: Final = (
    f"SELECT n.nspname {_NAMED} WHERE c.relname = $2 AND c.relkind <> 'i' AND c.relkind <> 'I' "
    "AND CASE WHEN $1 = '' THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1 END"
)
"""The schema of a relation; $1 is its schema, or "" for one on the search path."""

RELATIONS: Final = (
    "SELECT c.relname, n.nspname, CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized_view' ELSE 'table' "
    "END, pg_catalog.current_database(), coalesce((SELECT pg_catalog.string_agg(a.attname, ', ' ORDER BY k.place) "
    "FROM pg_catalog.pg_index i, pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place), "
    "pg_catalog.pg_attribute a WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid "
    "AND a.attnum = k.number), ''), coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '') "
    f"{_NAMED} WHERE c.relkind IN {_RELATIONS} AND ($1 = '' AND {_OWN} OR n.nspname = $1) "
    "AND ($2 = '' OR c.relname = $2) ORDER BY 4, 2, 1"
)
"""The relations of a schema ($1), of this name ($2); "" is any."""

FUNCTIONS: Final = (
    "SELECT p.proname, p.proname || '(' || pg_catalog.pg_get_function_identity_arguments(p.oid) || ')', "
    "CASE p.prokind WHEN 'a' THEN 'aggregate' WHEN 'p' THEN 'procedure' WHEN 'w' THEN 'window' ELSE 'function' END, "
    "pg_catalog.current_database(), n.nspname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n "
    f"ON n.oid = p.pronamespace WHERE {_OWN} ORDER BY 4, 5, 2"
)
HAS_EFFECTS: Final = (
    "SELECT 1 FROM pg_catalog.pg_proc WHERE proname = ANY ($1::text[]) AND provolatile = 'v' AND NOT (pronamespace = "
    "'pg_catalog'::regnamespace AND proname IN ('random', 'clock_timestamp', 'timeofday', 'gen_random_uuid')) LIMIT 1"
)
"""Whether a function of one of these names may have effects."""

HAS_FUNCTION: Final = "SELECT 1 FROM pg_catalog.pg_proc WHERE proname = $1 LIMIT 1"

EXISTS: Final = f"SELECT 1 {_NAMED} WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind NOT IN ('i', 'I')"

COLUMNS: Final = (
    "SELECT a.attname, coalesce(nullif(t.typbasetype, 0), t.oid)::text, "
    "CASE WHEN t.typbasetype <> 0 THEN t.typtypmod ELSE a.atttypmod END, NOT a.attnotnull, "
    f"pg_catalog.format_type(a.atttypid, a.atttypmod) {_NAMED} JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid "
    "JOIN pg_catalog.pg_type t ON t.oid = a.atttypid WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 "
    "AND NOT a.attisdropped AND c.relkind NOT IN ('i', 'I') ORDER BY a.attnum"
)
"""The columns of a relation: name, OID and modifier of the type or of the domain's, nullability, type as text."""

_TYPES: Final = {
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "INTEGER": "integer",
    "TIMESTAMP_LTZ(6)": "timestamptz",
}
"""PostgreSQL's types by interface type, for rows of the service."""


def columns_of(rows: Values) -> list[ColumnInfo]:
    """The columns that COLUMNS returned."""
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


def listing_of(kind: str, schema: str, name: str) -> tuple[str, Sequence[Any]]:
    """The SQL that lists the objects of a kind in one database, and its parameters."""
    match kind:
        case "schemas":
            return SCHEMAS, ()
        case "relations":
            return RELATIONS, (schema, name)
    return FUNCTIONS, ()
