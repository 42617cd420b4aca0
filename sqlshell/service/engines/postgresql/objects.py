"""The objects of a database in PostgreSQL's terms: LIST ENGINE and DESCRIBE ENGINE."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Listing, ObjectQuery
from sqlshell.service.engines.postgresql.queries import catalog_sql
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import qualified, quoted

Ask = Callable[..., Coroutine[Any, Any, Listing]]
"""Runs SQL with parameters in the database of the objects."""

_COLUMNS: Final = {"S": "sequence", "i": "index", "I": "index"}
"""How the columns of a kind of relation (pg_class.relkind) are described, if not as those of a table."""


async def found(asked: ObjectQuery, ask: Ask) -> Listing:
    """The answer. Raises Failure."""
    depth = "details" if asked.details else "short"
    if asked.kind == "function":
        return await _function(asked.names, asked.arguments, ask)
    if asked.kind != "relation":
        return await ask(catalog_sql(asked.kind, depth), asked.schema)
    rows = (await ask(catalog_sql("find"), qualified(*asked.names[-2:]))).rows
    if not rows:
        raise Failure(sqlstate.NO_RELATION, f"relation {'.'.join(map(quoted, asked.names))} does not exist")
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
