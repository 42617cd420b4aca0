"""What is in a DuckDB instance, as SQL that lists it."""

from __future__ import annotations

from collections.abc import Collection

from sqlshell.service.engines.engine import Relation
from sqlshell.service.engines.render import literal

SYSTEM = "deltastream"
"""The service's own database."""

HIDDEN = frozenset({"system", "temp", SYSTEM})
"""Databases that are DuckDB's or the service's own."""

RESERVED = HIDDEN | {"memory", "main", "pg_catalog", "information_schema"}
"""Names that no database of a person's can have, in any case: the engine has or takes them."""


def listing(what: str, database: str, schema: str, streams: Collection[Relation], hidden: Collection[str]) -> str:
    """SQL for databases, schemas, relations, functions; for relations of all schemas where `schema` is ""."""
    unseen = ", ".join(literal(name) for name in sorted(hidden))
    within = f"= {literal(database)}" if database else f"NOT IN ({unseen})"
    match what:
        case "databases":
            return (
                "SELECT DISTINCT catalog_name AS name FROM information_schema.schemata "
                f"WHERE catalog_name NOT IN ({unseen}) ORDER BY 1"
            )
        case "schemas":
            return (
                f"SELECT schema_name AS name, catalog_name AS database FROM information_schema.schemata "
                f"WHERE catalog_name {within} AND schema_name NOT IN ('information_schema', 'pg_catalog') ORDER BY 2, 1"
            )
        case "relations":
            known = ", ".join(literal(".".join(name)) for name in sorted(streams)) or "''"
            inside = f" AND table_schema = {literal(schema)}" if schema else ""
            return (
                "SELECT table_name AS name, table_schema AS schema, CASE WHEN table_type = 'VIEW' THEN 'view' "
                f"WHEN table_catalog || '.' || table_schema || '.' || table_name IN ({known}) THEN 'stream' "
                "ELSE 'table' END AS type, table_catalog AS database FROM information_schema.tables "
                f"WHERE table_catalog {within}{inside} ORDER BY ALL"
            )
    return "SELECT DISTINCT function_name AS name, function_type AS type FROM duckdb_functions() ORDER BY ALL"


def columns(relation: Relation) -> str:
    database, schema, name = (literal(part) for part in relation)
    return (
        "SELECT column_name AS name, data_type AS type, is_nullable = 'YES' AS nullable "
        f"FROM information_schema.columns WHERE table_catalog = {database} AND table_schema = {schema} "
        f"AND table_name = {name} ORDER BY ordinal_position"
    )
