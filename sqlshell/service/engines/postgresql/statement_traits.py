"""Traits of a statement's text that decide how it is run, but never what it may do."""

from __future__ import annotations

import re
from typing import Final

_WRITES: Final = re.compile(r"(?<!\w)(?:insert|update|delete|merge)(?!\w)", re.I)
_FOR: Final = re.compile(r"(?<!\w)for(?!\w)", re.I)
_LOCKS: Final = re.compile(r"(?<!\w)(?:update|share)(?!\w)", re.I)
_ENDING: Final = re.compile(r";(?:\s|--[^\n]*+(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*+\*/)*+\Z")
"""A semicolon at the end, or what looks like one."""

_CALL: Final = re.compile(r"(?<!\w)([^\W\d]\w*+)\"?\s*+\(")

SELECTS: Final = frozenset({"select", "values", "table", "with", "("})
_CHANGES: Final = frozenset({"insert", "update", "delete", "merge"})
_CONTAINS: Final = frozenset({"with", "explain", "copy"})
"""First words of statements that may contain one of these."""

_RETURNS: Final = SELECTS | {"call", "execute", "explain", "fetch", "show"}
_RUNS: Final = frozenset({"do", "call", "execute"})
_SETS: Final = frozenset({"set", "reset", "discard"})
_PLACE: Final = re.compile(r"(?<!\w)(?:search_path|schema|role|authorization|all)(?!\w)", re.I)
COMMITS: Final = frozenset({"commit", "end"})
ENDS: Final = COMMITS | {"rollback", "abort"}
_DEFINES: Final = frozenset({"create", "drop", "alter"})


def can_be_copied(sql: str, word: str) -> bool:
    """Tell whether a statement may be the query of a COPY … TO: it selects, and writes nothing."""
    # A semicolon elsewhere is part of a text, or the server refuses the second statement.
    return word in SELECTS and not _ENDING.search(sql) and not (word == "with" and _WRITES.search(sql))


def may_change_and_return(sql: str, word: str) -> bool:
    """Tell whether a statement may change data and return rows, and can run in a transaction: CALL cannot."""
    if word in _CHANGES:
        return returns_rows(sql, word)
    return word == "execute" or (word in _CONTAINS and _WRITES.search(sql) is not None)


def locks_rows(sql: str) -> bool:
    """Tell whether a statement may lock the rows that it selects."""
    match = _FOR.search(sql)
    return match is not None and _LOCKS.search(sql, match.end()) is not None


def called(sql: str) -> list[str]:
    """Return the names before parentheses, in lower case: functions, and some other words."""
    return sorted({name.lower() for name in _CALL.findall(sql)})


def returns_rows(sql: str, word: str) -> bool:
    """Tell whether a statement may return rows, but for those of a rule or of a COPY."""
    return word in _RETURNS or (word in _CHANGES and "returning" in sql.lower())


def changes_place(sql: str, word: str) -> bool:
    """Tell whether a statement may change the session's schema or search path."""
    if word in _RUNS or word in ENDS:
        return True
    if word in _SETS:
        # To ask after a SET TRANSACTION would end the time in which the transaction can be set.
        return _PLACE.search(sql) is not None
    if word in _DEFINES:
        return "schema" in sql.lower()
    return "set_config" in sql.lower()


def message_of(tag: str) -> str:
    """Return the message of a statement without rows: PostgreSQL's command tag, without INSERT's OID, which is always
    0."""
    verb, _, rest = tag.partition(" ")
    return f"INSERT {rest.rpartition(' ')[2]}" if verb == "INSERT" else tag
