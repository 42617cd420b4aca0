"""INSERTs of literals: a few rows that stand for all of them, so that a large INSERT is not checked row by row.

Nothing here decides what is allowed: the INSERT of the few rows is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from msgspec import Struct


def _late(pattern: str) -> Callable[[], re.Pattern[str]]:
    """A pattern that is compiled when it is first needed: these take 20 ms, and few statements need them."""
    return cache(lambda: re.compile(pattern, re.I | re.A))


_NUMBER = r"-?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:e[-+]?[0-9]++)?"
_STRING = r"'[^'\0]*+(?:''[^'\0]*+)*+'"
_LITERAL = rf"(?:{_NUMBER}|{_STRING}|null|true|false)(?![\w.'\"])"
_ROW = rf"\(\s*+{_LITERAL}\s*+(?:,\s*+{_LITERAL}\s*+)*+\)"
_NAME = r'(?:[a-z_]\w*+|"[^"\0]++(?:""[^"\0]*+)*+")'
_HEAD = (
    rf"\s*+(insert\s++into\s++{_NAME}(?:\.{_NAME}){{0,2}}\s*+"
    rf"(?:\(\s*+{_NAME}\s*+(?:,\s*+{_NAME}\s*+)*+\)\s*+)?values)\s*+"
)
_INSERT = _late(rf"{_HEAD}({_ROW})\s*+(?:,\s*+{_ROW}\s*+)*+;?\s*+")

_TYPES = "|".join(
    (
        *("bigint", "blob", "bool", "boolean", "bytea", "char", "date", "decimal", "double", "float", "hugeint", "int"),
        *("integer", "interval", "json", "numeric", "real", "smallint", "string", "text", "time", "timestamp"),
        *("timestamp_ms", "timestamp_ns", "timestamp_s", "timestamptz", "timetz", "tinyint", "ubigint", "uhugeint"),
        *("uinteger", "usmallint", "utinyint", "uuid", "varbinary", "varchar"),
    )
)
_PIECES = _late(rf"(?:\s++|{_LITERAL}|[a-z_]\w*+(?![.'\"])|[](){{}}[,:])*+;?\s*+")
_WITHIN = r"[^()']++|'[^']*+'"
_NESTED_ROW = rf"\((?:{_WITHIN}|\((?:{_WITHIN}|\((?:{_WITHIN})*+\))*+\))*+\)"
"""A row whose parentheses are at most three deep; '' in a string reads as two strings."""

_NESTED_ROWS = re.compile(rf"{_NESTED_ROW}\s*+(?:,\s*+{_NESTED_ROW}\s*+)*+;?\s*+")
_BEGINNING = _late(_HEAD)
_ONE_ROW = re.compile(_NESTED_ROW)
_TYPE = (
    rf"(?:{_TYPES})(?!\w)(?:\s++(?:with(?:out)?\s++time\s++zone|precision))?+"
    r"(?:\s*+\(\s*+0\s*+(?:,\s*+0\s*+)?\))?+"
)
_ONE_LITERAL = _late(rf"(?<!\w){_LITERAL}")
_CONVERTED = _late(
    rf"(?<!\w)(?:(?:try_)?cast\(\s*+0\s*+as\s++{_TYPE}\s*+\)|(?:{_TYPES})\s++0)(?!\w)|0\s*+::\s*+{_TYPE}(?!\s*+[\w(\[])"
    r"|(?<=[(,])\s*+\(\s*+0\s*+\)"
)
"""A literal that is converted to a type or in parentheses, in a row that has 0 for each literal. Nothing of it looks
like a call, because a macro may have the name of any function, and of a type: date('a').
"""

_ZEROS = re.compile(r"\(\s*+0\s*+(?:,\s*+0\s*+)*+\)")
_ADJACENT = re.compile(r"0\s*+0")
_MOST_SHAPES = 32


class InsertShape(Struct, frozen=True):
    """An INSERT of rows that differ only in their literals from `rows`, which are some of them.

    `head` is the text up to VALUES; `shapes` are the rows without their literals, none if each value is a literal.
    """

    head: str
    rows: str
    shapes: frozenset[str] = frozenset()


def inserts_literals(sql: str) -> bool:
    """Whether a statement is an INSERT whose values are all plain literals, in the usual form."""
    return _INSERT().fullmatch(sql) is not None


def plain_insert(sql: str) -> InsertShape | None:
    """The rows that stand for all rows of an INSERT … VALUES of literals and conversions of literals; None for all
    other statements, and for unusual forms of such an INSERT. `sql` is one statement that DuckDB can parse.
    """
    if match := _INSERT().fullmatch(sql):
        return InsertShape(match[1], match[2])
    begun = _BEGINNING().match(sql)
    if begun is None or not _PIECES().fullmatch(sql, begun.end()) or not _NESTED_ROWS.fullmatch(sql, begun.end()):
        return None
    shapes: dict[str, str] = {}
    for row in _ONE_ROW.finditer(sql, begun.end()):
        shapes.setdefault(_ONE_LITERAL().sub("0", row[0]), row[0])
    rows: dict[str, str] = {}
    for shape, written in shapes.items():
        # In 1 -2 the sign is an operator.
        if _ADJACENT.search(shape):
            return None
        before, plain = "", shape
        while plain != before:
            before, plain = plain, _CONVERTED().sub("0", plain)
        if not _ZEROS.fullmatch(plain):
            return None
        rows.setdefault(plain, written)
    return InsertShape(begun[1], ", ".join(rows.values()), frozenset(rows)) if len(rows) <= _MOST_SHAPES else None
