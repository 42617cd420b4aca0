"""Catalogs, namespaces, tables, views and functions of a server, by statements that Spark and Sail both know.

For the service in Engine.catalog()'s terms, and for people in Spark's: LIST ENGINE and DESCRIBE ENGINE.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import CatalogQuery, Listing, ObjectQuery, Relation, Rows, completed, not_supported
from sqlshell.service.engines.spark import failures, plans
from sqlshell.service.engines.spark.session import SparkSession
from sqlshell.service.failure import Failure

KINDS: Final = {
    "VARCHAR": "STRING",
    "BOOLEAN": "BOOLEAN",
    "INTEGER": "INT",
    "TIMESTAMP_LTZ(6)": "TIMESTAMP",
}
"""Spark's types by interface type, for rows of the service."""

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


async def listed(session: SparkSession, query: CatalogQuery) -> Rows:
    """Return the objects of a kind, as Engine.catalog() gives them. Raises Failure."""
    match query.kind:
        case "databases":
            return [(name,) for name in await _databases(session, query.hidden)]
        case "schemas":
            return [(schema, database) for database, schema in await _schemas(session, query)]
        case "relations":
            rows: Rows = []
            for database, schema in await _schemas(session, query):
                if not query.schema or schema.lower() == query.schema.lower():
                    rows += await _relations(session, database, schema, query.name)
            return sorted(rows)
        case "relation":
            return [("",)] if await _exists(session, (query.database, query.schema, query.name)) else []
        case "function":
            return [(query.name,)] if await _has_function(session, query.name) else []
    return await _user_functions(session)


async def _has_function(session: SparkSession, name: str) -> bool:
    pattern = plans.literal(name.replace("*", "").replace("|", ""))
    return bool(await session.rows(plans.statement(f"SHOW FUNCTIONS LIKE {pattern}")))


async def _exists(session: SparkSession, relation: Relation) -> bool:
    database, schema, name = relation
    tried = [".".join((plans.quoted(database), plans.namespace(schema), plans.quoted(name)))]
    if (database, schema) == (session.database, session.schema):
        # A temporary view has no schema.
        tried.append(plans.quoted(name))
    for names in tried:
        rows = await session.rows(plans.catalog(table_exists={"table_name": names}))
        if rows and next(iter(rows[0].values())):
            return True
    return False


def inline(rows: Listing) -> str:
    """Return SQL for a relation with these rows."""
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


async def _databases(session: SparkSession, hidden: Collection[str]) -> list[str]:
    rows = await session.rows(plans.statement("SHOW CATALOGS"))
    names = {plans.unquoted(str(row["catalog"])) for row in rows} | {session.database}
    return sorted(names.difference(hidden))


async def _schemas(session: SparkSession, query: CatalogQuery) -> list[tuple[str, str]]:
    schemas: list[tuple[str, str]] = []
    for database in [query.database] if query.database else await _databases(session, query.hidden):
        for row in await _unless_unknown(session, f"SHOW SCHEMAS IN {plans.quoted(database)}"):
            schemas.append((database, plans.unquoted(str(next(iter(row.values()))))))
    return sorted(schemas)


async def _relations(session: SparkSession, database: str, schema: str, name: str) -> Rows:
    place = f"{plans.quoted(database)}.{plans.namespace(schema)}"
    # The other way, list_tables, has Apache Spark read the definition of each table.
    tables = await _unless_unknown(session, f"SHOW TABLES IN {place}")
    named = {str(row["tablename"]) for row in tables if not row["istemporary"]}
    if name:
        named = {item for item in named if item.lower() == name.lower()}
    views = await _unless_unknown(session, f"SHOW VIEWS IN {place}") if named else []
    seen = {str(row.get("viewname", row.get("tablename"))) for row in views if not row["istemporary"]}
    return [(item, schema, "view" if item in seen else "table", database, "", "") for item in named]


async def _user_functions(session: SparkSession) -> Rows:
    """Functions that users have defined. Servers do not report their parameters."""
    rows: Rows = []
    for row in await session.rows(plans.statement("SHOW USER FUNCTIONS")):
        whole = str(row["function"])
        database, schema, name = ("", "", *whole.split("."))[-3:]
        rows.append((name, f"{name}()", "function", database or session.database, schema or session.schema))
    return sorted(rows)


async def _unless_unknown(session: SparkSession, sql: str) -> list[dict[str, Any]]:
    """The rows of a statement; none if the server refuses it: a catalog need not have namespaces or views, and what was
    listed may have been dropped."""
    try:
        return await session.rows(plans.statement(sql))
    except Failure as failure:
        if failure.sql_state in {failures.UNREACHABLE, sqlstate.SESSION_LOST}:
            raise
        return []


async def described(session: SparkSession, query: ObjectQuery) -> Listing:
    """Return the answer. Raises Failure."""
    match query.kind:
        case "databases":
            names = [row[0] for row in await listed(session, CatalogQuery("databases"))]
            rows = [[name, str(name == session.database).lower()] for name in names]
            return Listing([("Name", _TEXT), ("Current", _BOOLEAN)], rows)
        case "schemas":
            schemas = await listed(session, CatalogQuery("schemas", session.database))
            return Listing([("Name", _TEXT)], [[schema] for schema, _ in schemas])
        case "functions":
            return await _functions(session)
        case "relations":
            return await _all_relations(session, query.schema)
        case "relation":
            return await _relation(session, query)
    raise not_supported("spark", _UNSUPPORTED_QUERIES[query.kind])


async def _functions(session: SparkSession) -> Listing:
    """All functions by name: servers do not report their parameters."""
    own = {row[0] for row in await listed(session, CatalogQuery("functions"))}
    rows = await session.rows(plans.statement("SHOW FUNCTIONS"))
    names = sorted({str(next(iter(row.values()))).rpartition(".")[2] for row in rows} | own)
    columns = [("Name", _TEXT), ("Own", _BOOLEAN)]
    return Listing(columns, [[name, str(name in own).lower()] for name in names])


async def _all_relations(session: SparkSession, schema: str) -> Listing:
    rows = [
        [database, place, name, kind, str(place == session.schema).lower()]
        for name, place, kind, database, _, _ in await listed(
            session, CatalogQuery("relations", session.database, schema)
        )
    ]
    if not schema:
        # A temporary view belongs to the session.
        shown = await session.rows(plans.statement("SHOW TABLES"))
        views = sorted({str(row["tablename"]) for row in shown if row["istemporary"]})
        rows += [[session.database, "", name, "temporary view", "true"] for name in views]
    titles = ("Database", "Schema", "Name", "Type")
    return Listing([*((title, _TEXT) for title in titles), ("Visible", _BOOLEAN)], rows)


async def _relation(session: SparkSession, query: ObjectQuery) -> Listing:
    relation = completed(query.names, session.database, session.schema)
    name = plans.qualified(query.names)
    if not await _exists(session, relation):
        raise Failure(sqlstate.NO_RELATION, f'relation "{".".join(query.names)}" does not exist')
    if query.part == "columns":
        columns = await _columns(session, query.names)
        return Listing([(title, _TEXT) for title in ("name", "type", "nullable", "comment")], columns)
    kinds = await listed(session, CatalogQuery("relations", *relation))
    kind = kinds[0][2] if kinds else "temporary view"
    if query.part == "sql":
        columns = [] if kind != "table" else await _columns(session, query.names)
        return Listing(
            [("Phase", "INTEGER"), ("Age", "BIGINT"), ("Sql", _TEXT)], [["1", "0", await _sql(session, name, columns)]]
        )
    return Listing([("What", _TEXT), ("Name", _TEXT), ("Definition", _TEXT)], [[kind, name.replace("`", ""), ""]])


async def _columns(session: SparkSession, names: Sequence[str]) -> list[list[str]]:
    """Name, type, nullability and comment of each column."""
    rows: list[list[Any]] = []
    for row in await session.rows(plans.statement(f"DESCRIBE TABLE {plans.qualified(names)}")):
        values = list(row.values())
        if not values[0] or values[0].startswith("# "):
            # What follows the columns begins with an empty row or a heading.
            break
        rows.append(values)
    nullable = [item.nullable for item in await session.columns_of(plans.relation(*names))]
    return [
        [str(name), str(kind), str(known).lower(), str(comment or "")]
        for (name, kind, comment, *_), known in zip(rows, nullable, strict=False)
    ]


async def _sql(session: SparkSession, name: str, columns: Sequence[Sequence[str]]) -> str:
    """The statement that creates a relation: the server's, or for a table with these `columns` one that is made of
    them, because Sail has none."""
    try:
        [row] = await session.rows(plans.statement(f"SHOW CREATE TABLE {name}"))
        return str(next(iter(row.values()))).rstrip().rstrip(";")
    except Failure as failure:
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
