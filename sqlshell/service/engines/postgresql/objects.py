"""The objects of a database in PostgreSQL's terms: LIST ENGINE and DESCRIBE ENGINE."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Listing, ObjectQuery
from sqlshell.service.engines.postgresql import definition, description
from sqlshell.service.engines.postgresql.description import ServerRelation
from sqlshell.service.engines.postgresql.link import Values
from sqlshell.service.engines.postgresql.listings import LISTS, parameters
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import qualified, quoted

Ask = Callable[..., Coroutine[Any, Any, Values]]

_TEXT: Final = "VARCHAR"


async def found(query: ObjectQuery, ask: Ask) -> Listing:
    """The answer; `ask` runs SQL with parameters in the database of the objects. Raises Failure."""
    if query.kind == "function":
        return await _function(query.names, query.arguments, ask)
    if query.kind != "relation":
        asked = LISTS[query.kind]
        rows = await ask(asked.sql(details=query.details), *parameters(query))
        return Listing(asked.shown(details=query.details), _strings(rows))
    relation = await _relation(query.names, ask)
    if query.part == "columns":
        names, sql = description.columns_of(relation, details=query.details)
        columns = await ask(sql, relation.oid)
        return Listing([(name, _TEXT) for name in names], _strings([row[: len(names)] for row in columns]))
    if query.part == "sql":
        statements = await definition.statements(relation, ask)
        return Listing(
            [("Phase", "INTEGER"), ("Age", "BIGINT"), ("Sql", _TEXT)],
            [[str(phase), relation.oid, text] for phase, text in statements],
        )
    name = (
        f"{quoted(relation.schema)}.{quoted(relation.name)}" if relation.persistence != "t" else quoted(relation.name)
    )
    notes = await ask(description.notes(details=query.details), relation.oid)
    return Listing(
        [("What", _TEXT), ("Name", _TEXT), ("Definition", _TEXT)],
        [[relation.title, name, ""], *_strings(notes)],
    )


async def _relation(names: Sequence[str], ask: Ask) -> ServerRelation:
    rows = await ask(description.FIND, qualified(*names[-2:]))
    if not rows:
        message = f"relation {'.'.join(map(quoted, names))} does not exist"
        raise Failure(sqlstate.NO_RELATION, message)
    return ServerRelation(*(value or "" for value in rows[0]))


async def _function(names: Sequence[str], arguments: str, ask: Ask) -> Listing:
    schema, name = names[-2] if len(names) > 1 else "", names[-1]
    if arguments:
        rows = await ask(definition.FUNCTION_WITH_ARGUMENTS, f"{qualified(*names[-2:])}{arguments}")
    else:
        rows = await ask(definition.FUNCTION, schema, name)
    shown = ".".join(map(quoted, names)) + arguments
    if not rows:
        raise Failure("42883", f"function {shown} does not exist")
    definitions = [text for (text,) in rows if text]
    if not definitions:
        reason = "PostgreSQL does not report the definition of an aggregate function; query pg_catalog.pg_aggregate"
        raise Failure("42809", f"{shown}: {reason}")
    return Listing([("Sql", _TEXT)], [[text] for text in definitions])


def _strings(rows: Values) -> list[list[str]]:
    """Rows with "" for NULL."""
    return [[value or "" for value in row] for row in rows]
