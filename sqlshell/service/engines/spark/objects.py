"""The objects of a server in Spark's terms: LIST ENGINE and DESCRIBE ENGINE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import grpc
import grpc.aio

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import CatalogQuery, Listing, ObjectQuery
from sqlshell.service.engines.server.session import completed, not_supported
from sqlshell.service.engines.spark import catalog, failures, plans
from sqlshell.service.engines.spark.kept_session import KeptSession
from sqlshell.service.engines.spark.types import columns_of
from sqlshell.service.failure import Failure

_TEXT, _BOOLEAN = "VARCHAR", "BOOLEAN"

_UNSUPPORTED_QUERIES: Final[Mapping[str, str]] = {
    "columns": "lists of the columns of all relations",
    "foreign_keys": "foreign keys",
    "indexes": "indexes",
    "types": "user-defined types",
    "roles": "roles",
    "privileges": "privileges",
    "connections": "connection properties",
    "function": "function definitions",
}
"""The information that a server does not have or report, by the kind of ObjectQuery."""


async def found(kept: KeptSession, query: ObjectQuery) -> Listing:
    """The answer. Raises the same errors as KeptSession."""
    match query.kind:
        case "databases":
            names = [row[0] for row in await catalog.listed(kept, CatalogQuery("databases"))]
            rows = [[name, str(name == kept.database).lower()] for name in names]
            return Listing([("Name", _TEXT), ("Current", _BOOLEAN)], rows)
        case "schemas":
            listed = await catalog.listed(kept, CatalogQuery("schemas", kept.database))
            return Listing([("Name", _TEXT)], [[schema] for schema, _ in listed])
        case "functions":
            return await _functions(kept)
        case "relations":
            return await _relations(kept, query.schema)
        case "relation":
            return await _relation(kept, query)
    raise not_supported("spark", _UNSUPPORTED_QUERIES[query.kind])


async def _functions(kept: KeptSession) -> Listing:
    """All functions by name: servers do not report their parameters."""
    own = {row[0] for row in await catalog.listed(kept, CatalogQuery("functions"))}
    rows = await kept.rows(plans.statement("SHOW FUNCTIONS"))
    names = sorted({str(next(iter(row.values()))).rpartition(".")[2] for row in rows} | own)
    columns = [("Name", _TEXT), ("Own", _BOOLEAN)]
    return Listing(columns, [[name, str(name in own).lower()] for name in names])


async def _relations(kept: KeptSession, schema: str) -> Listing:
    rows = [
        [database, place, name, kind, str(place == kept.schema).lower()]
        for name, place, kind, database, _, _ in await catalog.listed(
            kept, CatalogQuery("relations", kept.database, schema)
        )
    ]
    if not schema:
        # A temporary view belongs to the session.
        shown = await kept.rows(plans.statement("SHOW TABLES"))
        views = sorted({str(row["tablename"]) for row in shown if row["istemporary"]})
        rows += [[kept.database, "", name, "temporary view", "true"] for name in views]
    titles = ("Database", "Schema", "Name", "Type")
    return Listing([*((title, _TEXT) for title in titles), ("Visible", _BOOLEAN)], rows)


async def _relation(kept: KeptSession, query: ObjectQuery) -> Listing:
    relation = completed(query.names, kept.database, kept.schema)
    name = _name(query.names)
    if not await catalog.exists(kept, relation):
        raise Failure(sqlstate.NO_RELATION, f"relation {name} does not exist")
    if query.part == "columns":
        columns = await _columns(kept, query.names)
        return Listing([(title, _TEXT) for title in ("name", "type", "nullable", "comment")], columns)
    kinds = await catalog.listed(kept, CatalogQuery("relations", *relation))
    kind = kinds[0][2] if kinds else "temporary view"
    if query.part == "sql":
        columns = [] if kind != "table" else await _columns(kept, query.names)
        return Listing(
            [("Phase", "INTEGER"), ("Age", "BIGINT"), ("Sql", _TEXT)], [["1", "0", await _sql(kept, name, columns)]]
        )
    return Listing([("What", _TEXT), ("Name", _TEXT), ("Definition", _TEXT)], [[kind, name.replace("`", ""), ""]])


async def _columns(kept: KeptSession, names: Sequence[str]) -> list[list[str]]:
    """Name, type, nullability and comment of each column."""
    rows = await _described(kept, _name(names))
    nullable = [item.nullable for item in columns_of(await kept.client.schema(plans.relation(*names), kept.id))]
    return [
        [str(name), str(kind), str(known).lower(), str(comment or "")]
        for (name, kind, comment, *_), known in zip((list(row.values()) for row in rows), nullable, strict=False)
    ]


async def _sql(kept: KeptSession, name: str, columns: Sequence[Sequence[str]]) -> str:
    """The statement that creates a relation: the server's, or for a table with these `columns` one that is made of
    them, because Sail has none."""
    try:
        [row] = await kept.rows(plans.statement(f"SHOW CREATE TABLE {name}"))
        return str(next(iter(row.values()))).rstrip().rstrip(";")
    except grpc.aio.AioRpcError as error:
        failure = failures.failure(error, failures.details_of(error), "", kept.client.address.endpoint)
        if failure.sql_state != sqlstate.UNSUPPORTED:
            raise
    if not columns:
        raise not_supported("spark", "view definitions")
    lines = [
        f"{plans.quoted(column)} {kind}{' NOT NULL' if nullable == 'false' else ''}"
        f"{f' COMMENT {plans.literal(comment)}' if comment else ''}"
        for column, kind, nullable, comment in columns
    ]
    return f"CREATE TABLE {name} (\n  " + ",\n  ".join(lines) + "\n)"


async def _described(kept: KeptSession, name: str) -> list[dict[str, Any]]:
    """The rows of DESCRIBE TABLE that are columns: what follows them begins with an empty row or a heading."""
    rows: list[dict[str, Any]] = []
    for row in await kept.rows(plans.statement(f"DESCRIBE TABLE {name}")):
        first = str(next(iter(row.values())) or "")
        if not first or first.startswith("# "):
            break
        rows.append(row)
    return rows


def _name(names: Sequence[str]) -> str:
    return ".".join(map(plans.quoted, names))
