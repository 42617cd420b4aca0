"""SQL that lists the contents of a DuckDB instance."""

from __future__ import annotations

import json
import string

from sqlshell.service.engines.engine import CatalogQuery, Listing, Relation
from sqlshell.sql.identifiers import always_quoted, literal

SYSTEM = "deltastream"
"""The service's own database."""

INITIAL_SCHEMA = "main"
"""The schema that exists in every database."""

FIRST_SCHEMA = "public"
"""The schema that a new database has in addition to `main`."""

HIDDEN = frozenset({"system", "temp", SYSTEM})
"""The internal databases of DuckDB and the service."""

RESERVED = HIDDEN | {"memory", "main", "pg_catalog", "information_schema"}
"""Names that users' databases cannot have, in any case, because the engine uses them."""


def listing(query: CatalogQuery) -> str:
    """SQL for databases, schemas, relations, and user-defined functions, except in internal databases."""
    unseen = ", ".join(literal(name) for name in sorted({*HIDDEN, *query.hidden}))

    def within(column: str) -> str:
        return same(column, query.database) if query.database else f"{column} NOT IN ({unseen})"

    match query.kind:
        case "databases":
            return (
                "SELECT DISTINCT catalog_name AS name FROM information_schema.schemata "
                f"WHERE catalog_name NOT IN ({unseen}) ORDER BY 1"
            )
        case "schemas":
            return (
                f"SELECT schema_name AS name, catalog_name AS database FROM information_schema.schemata "
                f"WHERE {within('catalog_name')} AND schema_name NOT IN ('information_schema', 'pg_catalog') "
                "ORDER BY 2, 1"
            )
        case "relations":
            known = ", ".join(literal(".".join(name)) for name in sorted(query.streams)) or "''"
            inside = f" AND {same('schema_name', query.schema)}" if query.schema else ""
            place = f"WHERE NOT internal AND NOT temporary AND {within('database_name')}{inside}"
            name = query.name
            table, view = (f" AND {same(f'{kind}_name', name)}" if name else "" for kind in ("table", "view"))
            return (
                "SELECT table_name AS name, schema_name AS schema, CASE WHEN database_name || '.' || schema_name "
                f"|| '.' || table_name IN ({known}) THEN 'stream' ELSE 'table' END AS type, database_name AS database, "
                "coalesce(keys, '') AS primary_key, comment FROM duckdb_tables() LEFT JOIN (SELECT database_oid, "
                "table_oid, array_to_string(constraint_column_names, ', ') AS keys FROM duckdb_constraints() "
                f"WHERE constraint_type = 'PRIMARY KEY') USING (database_oid, table_oid) {place}{table} UNION ALL "
                "SELECT view_name, schema_name, 'view', database_name, '', comment FROM duckdb_views() "
                f"{place}{view} ORDER BY ALL"
            )
        case "relation":
            place = " AND ".join((same("database_name", query.database), same("schema_name", query.schema)))
            return (
                f"SELECT table_oid::VARCHAR FROM duckdb_tables() WHERE {place} AND {same('table_name', query.name)} "
                f"UNION ALL SELECT '' FROM duckdb_views() WHERE {place} AND {same('view_name', query.name)}"
            )
        case "function":
            return (
                f"SELECT 1 FROM duckdb_functions() WHERE lower(function_name) = {literal(query.name.lower())} LIMIT 1"
            )
    # User-defined functions; the engine's own are in its catalog.
    return (
        "SELECT DISTINCT function_name AS name, function_name || '(' || array_to_string(list_transform(list_zip("
        "parameters, parameter_types), lambda p: trim(p[1] || ' ' || coalesce(p[2], ''))), ', ') || ')' AS signature, "
        "function_type AS type, database_name AS database, schema_name AS schema FROM duckdb_functions() "
        f"WHERE NOT internal AND {within('database_name')} ORDER BY ALL"
    )


def same(column: str, name: str) -> str:
    """SQL for whether a column equals this name. In names DuckDB ignores the case of ASCII letters only."""
    plain = name.translate(str.maketrans(string.ascii_uppercase, string.ascii_lowercase))
    return f"translate({column}, '{string.ascii_uppercase}', '{string.ascii_lowercase}') = {literal(plain)}"


def columns(relation: Relation) -> str:
    named = zip(("table_catalog", "table_schema", "table_name"), relation, strict=True)
    return (
        "SELECT column_name AS name, data_type AS type, is_nullable = 'YES' AS nullable "
        f"FROM information_schema.columns WHERE {' AND '.join(same(column, name) for column, name in named)} "
        "ORDER BY ordinal_position"
    )


def inline(rows: Listing) -> str:
    """SQL for a relation with these rows."""
    kinds = {name: KINDS[kind] for name, kind in rows.columns}
    names = [f"c{number}" for number in range(len(kinds))]
    if not rows.rows:
        empty = ", ".join(f"NULL::{kind} AS {always_quoted(name)}" for name, kind in kinds.items())
        return f"SELECT {empty} WHERE false"
    held = json.dumps([dict(zip(names, row, strict=True)) for row in rows.rows], ensure_ascii=False)
    # A path of the organization's files in one of the values is none that the statement names.
    held = held.replace("-", "\\u002d")
    form = json.dumps([dict.fromkeys(names, "VARCHAR")])
    each = ", ".join(
        # An unknown time is NULL.
        f"nullif(r.{place}, '')::{kind} AS {always_quoted(name)}"
        if kind != "VARCHAR"
        else f"r.{place} AS {always_quoted(name)}"
        for place, (name, kind) in zip(names, kinds.items(), strict=True)
    )
    return f"SELECT {each} FROM unnest(from_json({literal(held)}, {literal(form)})) t(r)"


KINDS = {
    "VARCHAR": "VARCHAR",
    "BOOLEAN": "BOOLEAN",
    "INTEGER": "INTEGER",
    "TIMESTAMP_LTZ(6)": "TIMESTAMPTZ",
}
"""The engine's types by interface type, for rows of the service."""
