"""Traits of a statement's text that decide how it is run and described, but never what it may do."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from sqlshell.service.engines.duckdb.words import words

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
