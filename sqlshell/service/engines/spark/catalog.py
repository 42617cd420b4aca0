"""Catalogs, namespaces, tables, views and functions of a server, by statements that Spark and Sail both know."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import grpc
import grpc.aio

from sqlshell.service.engines.engine import CatalogQuery, Listing, Relation, Rows
from sqlshell.service.engines.spark import plans
from sqlshell.service.engines.spark.kept_session import KeptSession

KINDS: Final = {
    "VARCHAR": "STRING",
    "BOOLEAN": "BOOLEAN",
    "INTEGER": "INT",
    "TIMESTAMP_LTZ(6)": "TIMESTAMP",
}
"""Spark's types by interface type, for rows of the service."""


async def listed(kept: KeptSession, query: CatalogQuery) -> Rows:
    """The objects of a kind, as Engine.catalog() gives them. Raises the same errors as KeptSession."""
    match query.kind:
        case "databases":
            return [(name,) for name in await _databases(kept, query.hidden)]
        case "schemas":
            return [(schema, database) for database, schema in await _schemas(kept, query)]
        case "relations":
            rows: Rows = []
            for database, schema in await _schemas(kept, query):
                if not query.schema or schema.lower() == query.schema.lower():
                    rows += await _relations(kept, database, schema, query.name)
            return sorted(rows)
    return await _functions(kept)


async def has_function(kept: KeptSession, name: str) -> bool:
    pattern = plans.literal(name.replace("*", "").replace("|", ""))
    return bool(await kept.rows(plans.statement(f"SHOW FUNCTIONS LIKE {pattern}")))


async def exists(kept: KeptSession, relation: Relation) -> bool:
    database, schema, name = relation
    tried = [".".join((plans.quoted(database), plans.namespace(schema), plans.quoted(name)))]
    if (database, schema) == (kept.database, kept.schema):
        # A temporary view has no schema.
        tried.append(plans.quoted(name))
    for names in tried:
        rows = await kept.rows(plans.catalog(table_exists={"table_name": names}))
        if rows and next(iter(rows[0].values())):
            return True
    return False


def inline(rows: Listing) -> str:
    """SQL for a relation with these rows."""
    kinds = [(plans.quoted(name), KINDS[kind]) for name, kind in rows.columns]
    if not rows.rows:
        return f"SELECT {', '.join(f'CAST(NULL AS {kind}) AS {name}' for name, kind in kinds)} WHERE false"
    places = [f"c{number}" for number in range(len(kinds))]
    values = ", ".join(
        # An unknown time is NULL.
        f"CAST({f'nullif({place}, {chr(39) * 2})' if kind != 'STRING' else place} AS {kind}) AS {name}"
        for place, (name, kind) in zip(places, kinds, strict=True)
    )
    held = ", ".join(f"({', '.join(map(plans.literal, row))})" for row in rows.rows)
    return f"SELECT {values} FROM VALUES {held} AS t({', '.join(places)})"


async def _databases(kept: KeptSession, hidden: Collection[str]) -> list[str]:
    rows = await kept.rows(plans.statement("SHOW CATALOGS"))
    names = {plans.unquoted(str(row["catalog"])) for row in rows} | {kept.database}
    return sorted(names.difference(hidden))


async def _schemas(kept: KeptSession, query: CatalogQuery) -> list[tuple[str, str]]:
    schemas: list[tuple[str, str]] = []
    for database in [query.database] if query.database else await _databases(kept, query.hidden):
        for row in await _unless_unknown(kept, f"SHOW SCHEMAS IN {plans.quoted(database)}"):
            schemas.append((database, plans.unquoted(str(next(iter(row.values()))))))
    return sorted(schemas)


async def _relations(kept: KeptSession, database: str, schema: str, name: str) -> Rows:
    place = f"{plans.quoted(database)}.{plans.namespace(schema)}"
    # The other way, list_tables, has Apache Spark read the definition of each table.
    tables = await _unless_unknown(kept, f"SHOW TABLES IN {place}")
    named = {str(row["tablename"]) for row in tables if not row["istemporary"]}
    if name:
        named = {item for item in named if item.lower() == name.lower()}
    views = await _unless_unknown(kept, f"SHOW VIEWS IN {place}") if named else []
    seen = {str(row.get("viewname", row.get("tablename"))) for row in views if not row["istemporary"]}
    return [(item, schema, "view" if item in seen else "table", database, "", "") for item in named]


async def _functions(kept: KeptSession) -> Rows:
    """Functions that users have defined. Servers do not report their parameters."""
    rows: Rows = []
    for row in await kept.rows(plans.statement("SHOW USER FUNCTIONS")):
        whole = str(row["function"])
        database, schema, name = ("", "", *whole.split("."))[-3:]
        rows.append((name, f"{name}()", "function", database or kept.database, schema or kept.schema))
    return sorted(rows)


async def _unless_unknown(kept: KeptSession, sql: str) -> list[dict[str, Any]]:
    """The rows of a statement; none if the server refuses it: a catalog need not have namespaces or views, and what was
    listed may have been dropped."""
    try:
        return await kept.rows(plans.statement(sql))
    except grpc.aio.AioRpcError as error:
        if error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
            raise
        return []
