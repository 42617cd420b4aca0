"""Traits of a statement's text that decide how it is run and described, but never what it may do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import duckdb

_WRITING: Final = frozenset({"insert", "delete", "merge", "truncate", "update", "copy"})
_RETURNING: Final = frozenset({"returning", "return_files", "return_stats"})
_BLANK: Final = re.compile(r"(?:\s++|--[^\n]*+(?:\n|$)|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_WRITES: Final = re.compile(r"(?<!\w)(?:insert|update|delete|merge|copy)(?!\w)", re.I)
_WORD: Final = re.compile(r"\w+|\(")


def first_word(sql: str) -> str:
    """The first word in lower case, "(" for a parenthesis, "" for neither."""
    blank = _BLANK.match(sql)
    match = _WORD.match(sql, blank.end() if blank else 0)
    return match[0].lower() if match else ""


def writes_inside(sql: str) -> bool:
    """Whether a SELECT has a common table expression that writes, so that it cannot be a subquery."""
    if not _WRITES.search(sql):
        return False
    before = ""
    for word, quoted in _tokens(sql):
        if before == "(" and not quoted and word in _WRITING:
            return True
        before = word
    return False


def returns_rows(sql: str) -> bool:
    """Whether a statement that writes returns rows: RETURNING, or RETURN_FILES or RETURN_STATS of COPY."""
    return "return" in sql.lower() and any(word in _RETURNING and not quoted for word, quoted in _tokens(sql))


def _tokens(sql: str) -> Iterator[tuple[str, bool]]:
    """Words and signs in lower case, and whether each was quoted; without strings."""
    encoded = sql.encode("utf-8", "surrogatepass")
    lexed = duckdb.tokenize(sql)
    starts = [start for start, _ in lexed] + [len(encoded)]
    for number, (start, kind) in enumerate(lexed):
        if kind.name in {"comment", "string_const", "string_constant"}:
            continue
        text = encoded[start : starts[number + 1]].decode("utf-8", "replace").strip()
        if text.startswith(('"', "`")):
            yield text.strip(text[0]).replace(text[0] * 2, text[0]).lower(), True
        else:
            yield text.lower(), False
