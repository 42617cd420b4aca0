"""Statements other than queries that only read, each recognized by its exact form: anything additional may write."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Final

from sqlshell.sql.analysis.kinds import are_repeatable
from sqlshell.sql.analysis.tokens import Token

_PRAGMAS: Final = frozenset(
    {
        *("collations", "database_list", "database_size", "foreign_key_list", "functions", "index_info", "index_list"),
        *("metadata_info", "platform", "show", "show_databases", "show_tables", "show_tables_expanded", "storage_info"),
        *("table_info", "table_xinfo", "user_agent", "version"),
    }
)
"""PRAGMAs that show something, with or without a name in parentheses."""

_NAMES: Final = frozenset({"word", "name"})
_TESTED: Final = frozenset({"STORE", "SCHEMA_REGISTRY"})
_SCHEME: Final = re.compile(r"\w{2,}:")
"""The beginning of a URL: DuckDB would load an extension for it."""

_ATTACH_OPTIONS: Final = frozenset({"READ_ONLY", "READ_ONLY TRUE", "READ_ONLY 1", "TYPE DUCKDB"})
_COPY_OPTIONS: Final = frozenset(
    {
        *("CSV", "DELIMITER", "ENCODING", "ESCAPE", "FALSE", "FORCE_QUOTE", "FORMAT", "HEADER", "JSON", "NULL"),
        *("NULLSTR", "QUOTE", "TEXT", "TRUE", "WITH", "BINARY"),
    }
)


def is_read_only_form(given: Sequence[Token]) -> bool:
    """Whether a statement has one of the forms CAN I, TEST STORE, PRAGMA, ATTACH … (READ_ONLY), COPY … TO STDOUT."""
    words = [token.word for token in islice(given, 3)]
    match words[:1]:
        case ["CAN"]:
            return words[1:2] == ["I"] and len(given) > 2 and _names(given[2:])
        case ["TEST"]:
            return len(given) > 2 and words[1] in _TESTED and _names(given[2:])
        case ["PRAGMA"]:
            return len(given) > 1 and given[1].value.lower() in _PRAGMAS and _one_name(given[2:])
        case ["ATTACH"]:
            return _attaches_to_read(given)
        case ["COPY"]:
            return _copies_out(given)
    return False


def _names(given: Sequence[Token]) -> bool:
    return all(token.kind in _NAMES or token.text == "." for token in given)


def _one_name(given: Sequence[Token]) -> bool:
    """Whether the tokens are empty, or one name or string in parentheses."""
    if not given:
        return True
    inside = given[1:-1]
    return (
        (given[0].text, given[-1].text) == ("(", ")")
        and bool(inside)
        and (_names(inside) or (len(inside) == 1 and inside[0].kind == "string"))
    )


def _attaches_to_read(given: Sequence[Token]) -> bool:
    """Whether this is ATTACH [DATABASE] [IF NOT EXISTS] 'file' [AS name] (READ_ONLY) with a plain path."""
    start = next((number for number, token in enumerate(given) if token.kind == "string"), 0)
    end = next((number for number, token in enumerate(given) if token.text == "("), 0)
    if not 0 < start < end or given[-1].text != ")" or _SCHEME.match(given[start].value):
        return False
    before = " ".join(token.word for token in given[1:start])
    name = given[start + 1 : end]
    if before not in {"", "DATABASE", "IF NOT EXISTS", "DATABASE IF NOT EXISTS"}:
        return False
    if name and (len(name) != 2 or name[0].word != "AS" or name[1].kind not in _NAMES):
        return False
    options = " ".join("," if token.text == "," else token.value.upper() for token in given[end + 1 : -1]).split(" , ")
    return _ATTACH_OPTIONS.issuperset(options) and any(option.startswith("READ_ONLY") for option in options)


def _copies_out(given: Sequence[Token]) -> bool:
    """Whether this is COPY of a relation, or of a query that reads, TO STDOUT with plain options."""
    depth, to = 0, 0
    for number, token in enumerate(given):
        if token.kind == "sign" and token.text in "()":
            depth += 1 if token.text == "(" else -1
        elif not depth and token.word == "TO":
            to = number
            break
    if not to or [token.word for token in given[to + 1 : to + 2]] != ["STDOUT"]:
        return False
    source, options = given[1:to], given[to + 2 :]
    if source and source[0].text == "(":
        if source[-1].text != ")" or not are_repeatable(source[1:-1]):
            return False
    elif not source or any(token.kind not in _NAMES and token.text not in ".(,)" for token in source):
        return False
    listed = False
    for before, token in pairwise([given[to + 1], *options]):
        # Within FORCE_QUOTE (…) are columns, which may have any name.
        listed = token.text != ")" if listed else token.text == "(" and before.word == "FORCE_QUOTE"
        column = listed and token.kind in _NAMES
        plain = token.word in _COPY_OPTIONS or token.kind in {"string", "number"} or token.text in "(),*="
        if not (plain or column):
            return False
    return True
