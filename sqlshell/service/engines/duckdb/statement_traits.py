"""Traits of a statement's text that decide how it is run and described, and which texts DuckDB cannot take; never what
a statement may do."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

import duckdb

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.words import words
from sqlshell.service.failure import Failure

_WRITING: Final = frozenset({"insert", "delete", "merge", "truncate", "update", "copy"})
_RETURNING: Final = frozenset({"returning", "return_files", "return_stats"})
_BLANK: Final = re.compile(r"(?:\s++|--[^\n]*+(?:\n|$)|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_WRITES: Final = re.compile(r"(?<!\w)(?:insert|update|delete|merge|copy)(?!\w)", re.I)
_WORD: Final = re.compile(r"\w+|\(")
_INSERT: Final = re.compile(r"\s*(?:insert|select)(?!\w)", re.I)
_READS: Final = re.compile(r"(?<!\w)(?:from|table|unnest|using|recursive|range|generate_series)(?!\w)", re.I)


def first_word(sql: str) -> str:
    """The first word in lower case, "(" for a parenthesis, "" for neither."""
    blank = _BLANK.match(sql)
    match = _WORD.match(sql, blank.end() if blank else 0)
    return match[0].lower() if match else ""


def writes_inside(sql: str) -> bool:
    """Whether a SELECT has a common table expression that writes, so that it cannot be a subquery."""
    if not _WRITES.search(sql):
        return False
    return any(before.word == "(" and item.word in _WRITING for before, item in pairwise(words(sql)))


def returns_rows(sql: str) -> bool:
    """Whether a statement that writes returns rows: RETURNING, or RETURN_FILES or RETURN_STATS of COPY."""
    return "return" in sql.lower() and any(item.word in _RETURNING for item in words(sql))


def brief(sql: str) -> bool:
    """Whether a statement reads nothing, judging by its text, so that it finishes at once."""
    return _INSERT.match(sql) is not None and _READS.search(sql) is None


MOST_NESTED: Final = 500
"""The maximum number of brackets that are open at once. DuckDB itself has a limit of 1,000 levels for expressions."""

_OTHERS: Final = bytes(set(range(256)) - set(b"()[]{}"))

_PIECE: Final = re.compile(
    r"""[eE]'(?:[^'\\]++|\\.|'')*+(?:'|\Z)|'(?:[^']++|'')*+(?:'|\Z)|"(?:[^"]++|"")*+(?:"|\Z)"""
    r"""|--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)|[^\W\d][\w$]*+|\$((?:[^\W\d]\w*+)?)\$.*?(?:\$\1\$|\Z)|[()\[\]{}]""",
    re.S,
)
"""Text that may contain brackets without a meaning, and brackets."""


def check_nesting(sql: str) -> None:
    """Raises Failure if more than MOST_NESTED (among many pairs, some more) brackets are open at once."""
    brackets = sql.encode(errors="replace").translate(None, _OTHERS)
    while len(brackets) > MOST_NESTED:
        # Removing adjacent pairs is faster than reading the text, and leaves nothing of the rows of an INSERT.
        shorter = brackets.replace(b"()", b"").replace(b"[]", b"").replace(b"{}", b"")
        if len(shorter) * 4 > len(brackets) * 3:
            break
        brackets = shorter
    else:
        return
    depth = 0
    for match in _PIECE.finditer(sql):
        if match[0] in {"(", "[", "{"}:
            depth += 1
            if depth > MOST_NESTED:
                raise Failure(
                    sqlstate.TOO_LARGE,
                    f"the statement is nested too deeply: more than {MOST_NESTED} brackets are open at once",
                )
        elif match[0] in {")", "]", "}"}:
            depth = max(0, depth - 1)


_USING: Final = re.compile(r"(?<!\w)using(?!\w)", re.I)
_NAMES: Final = """
SELECT lower(function_name) FROM system.main.duckdb_functions() WHERE NOT internal
UNION SELECT lower(type_name) FROM system.main.duckdb_types() WHERE NOT internal
"""


def check_replay(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raises Failure (0A000) for ALTER … USING with a sequence, or with a macro or type of a database.

    DuckDB writes the expression to its log as it is, and repeats it without a current database: it would not find them.
    """
    if not _USING.search(sql):
        return
    found = [word.name for word in words(str(connection.extract_statements(sql)[0].query))]
    known = {"nextval", "setval"} | {str(row[0]) for row in connection.execute(_NAMES).fetchall()}
    if "using" in found and (named := known.intersection(found[found.index("using") :])):
        message = f"{min(named)} is not supported in USING; use ADD COLUMN and UPDATE"
        raise Failure(sqlstate.UNSUPPORTED, message)
