"""Requests in the form of plans, and names in Spark's SQL."""

from __future__ import annotations

import re
from typing import Any, Final

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.statement_traits import first_word
from sqlshell.service.engines.spark.library import proto
from sqlshell.service.failure import Failure

_ONE = re.compile(r"`((?:[^`]|``)*)`")


QUERIES: Final = frozenset({"select", "values", "table", "from"})
"""First words of statements that only return rows."""

MOST: Final = (1 << 31) - 1


def statement(sql: str, rows: int = MOST) -> Any:
    """A plan of one SQL statement, which the server runs when the plan is executed; a query returns up to `rows` rows.

    Raises Failure (42601).
    """
    plan = proto.Plan()
    root = plan.root
    if rows < MOST and first_word(sql) in QUERIES:
        # Apache Spark makes all rows of a partition before it sends the first.
        root.limit.limit = rows
        root = root.limit.input
    try:
        root.sql.query = sql
    except ValueError:
        message = "the statement contains half of a surrogate pair, which is not valid Unicode"
        raise Failure(sqlstate.SYNTAX, message) from None
    return plan


def catalog(**call: dict[str, str]) -> Any:
    """A plan of one of the calls of Spark's catalog by name, with its arguments."""
    [(name, arguments)] = call.items()
    plan = proto.Plan()
    asked = getattr(plan.root.catalog, name)
    asked.SetInParent()
    for key, value in arguments.items():
        setattr(asked, key, value)
    return plan


def relation(*names: str) -> Any:
    """A plan of the rows of a table or view."""
    plan = proto.Plan()
    plan.root.read.named_table.unparsed_identifier = ".".join(map(quoted, names))
    return plan


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def namespace(schema: str) -> str:
    """A schema's name in SQL. One with dots is a namespace inside others."""
    return ".".join(map(quoted, schema.split(".")))


def unquoted(name: str) -> str:
    """A name that a server quotes where it must be, without quotes."""
    match = _ONE.fullmatch(name)
    return match[1].replace("``", "`") if match else name


def literal(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
