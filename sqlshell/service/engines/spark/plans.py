"""Requests in the form of plans, names in Spark's SQL, and the answers to statements without rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.files.texts import command_of
from sqlshell.service.engines.spark.client import proto
from sqlshell.service.failure import check_unicode
from sqlshell.sql.analysis.tokens import first_word

_ONE = re.compile(r"`((?:[^`]|``)*)`")

QUERIES: Final = frozenset({"select", "values", "table", "from"})
"""First words of statements that only return rows."""

MOST: Final = (1 << 31) - 1


OBJECT_VERBS: Final = frozenset({"create", "drop", "alter"})

ANSWERED: Final = OBJECT_VERBS | {"insert", "delete", "update", "merge", "truncate", "use", "set", "copy", "replace"}
"""First words of statements whose only row may be an answer."""

FORMS: Final = frozenset({("value", "BOOLEAN"), ("count", "DECIMAL(20,0)"), ("count", "BIGINT")})
"""Names and types of Sail's answers: done, and the number of rows."""


def statement(sql: str, rows: int = MOST) -> Any:
    """Return a plan of one SQL statement, which the server runs when the plan is executed; a query returns up to `rows`
    rows.

    Raises Failure (42601).
    """
    check_unicode(sql)
    plan = proto.Plan()
    root = plan.root
    if rows < MOST and first_word(sql) in QUERIES:
        # Apache Spark makes all rows of a partition before it sends the first.
        root.limit.limit = rows
        root = root.limit.input
    root.sql.query = sql
    return plan


def catalog(**call: dict[str, str]) -> Any:
    """Return a plan of one of the calls of Spark's catalog by name, with its arguments."""
    [(name, arguments)] = call.items()
    plan = proto.Plan()
    asked = getattr(plan.root.catalog, name)
    asked.SetInParent()
    for key, value in arguments.items():
        setattr(asked, key, value)
    return plan


def relation(*names: str) -> Any:
    """Return a plan of the rows of a table or view."""
    plan = proto.Plan()
    plan.root.read.named_table.unparsed_identifier = qualified(names)
    return plan


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def qualified(names: Sequence[str]) -> str:
    """Return a name with those of what contains it, in SQL."""
    return ".".join(map(quoted, names))


def namespace(schema: str) -> str:
    """Return a schema's name in SQL. One with dots is a namespace inside others."""
    return qualified(schema.split("."))


def unquoted(name: str) -> str:
    """Return a name that a server quotes where it must be, without quotes."""
    match = _ONE.fullmatch(name)
    return match[1].replace("``", "`") if match else name


def literal(text: str) -> str:
    """Return a string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def is_answer(sql: str, columns: Sequence[ColumnInfo]) -> bool:
    """Tell whether a result of one row only confirms that a statement was executed."""
    return len(columns) == 1 and (columns[0].name, columns[0].type) in FORMS and first_word(sql) in ANSWERED


def answer(sql: str, value: object = None) -> str:
    """Return the message for a statement that returned no rows, such as CREATE TABLE or INSERT 2."""
    command = command_of(sql)
    counts = isinstance(value, int) and not isinstance(value, bool) and first_word(sql) not in OBJECT_VERBS
    return f"{command} {value}" if counts else command
