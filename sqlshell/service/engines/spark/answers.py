"""The responses to statements without rows: Apache Spark returns no columns, Sail a value for most of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.statement_traits import first_word
from sqlshell.sql.keywords import CREATE_FILLERS

OBJECT_VERBS: Final = frozenset({"create", "drop", "alter"})
"""First words that are reported together with the kind of object."""

ANSWERED: Final = OBJECT_VERBS | {"insert", "delete", "update", "merge", "truncate", "use", "set", "copy", "replace"}
"""First words of statements whose only row may be an answer."""

FORMS: Final = frozenset({("value", "BOOLEAN"), ("count", "DECIMAL(20,0)"), ("count", "BIGINT")})
"""Names and types of Sail's answers: done, and the number of rows."""


def is_answer(sql: str, columns: Sequence[ColumnInfo]) -> bool:
    """Whether a result of one row only confirms that a statement was executed."""
    return len(columns) == 1 and (columns[0].name, columns[0].type) in FORMS and first_word(sql) in ANSWERED


def message(sql: str, answer: object = None) -> str:
    """The message for a statement that returned no rows, such as CREATE TABLE or INSERT 2."""
    first = first_word(sql)
    words = sql[sql.lower().index(first) :].split(None, 6)[1:] if first else []
    named = [word for word in words if word.upper() not in CREATE_FILLERS][:1] if first in OBJECT_VERBS else []
    number = f" {answer}" if isinstance(answer, int) and not isinstance(answer, bool) and not named else ""
    return " ".join([first, *named]).upper().rstrip(";") + number
