"""Statements of PostgreSQL's dumps, and what they mean for the local service."""

from __future__ import annotations

import re
from typing import Final

_SETTINGS: Final = (
    "statement_timeout|lock_timeout|idle_in_transaction_session_timeout|transaction_timeout|client_encoding"
    "|standard_conforming_strings|check_function_bodies|xmloption|client_min_messages|row_security|default_tablespace"
    "|default_table_access_method|default_with_oids|escape_string_warning"
)
_SETTING: Final = re.compile(rf"set\s++(?:session\s++)?(?:{_SETTINGS})(?:\s*+=|\s++to\s)", re.I)
_EXTENSION: Final = re.compile(r"(?:create|comment\s++on)\s++extension\s", re.I)
_OWNER: Final = re.compile(r"\sowner\s++to\s++(?:\"[^\"]++\"|[\w$]++)\s*+\Z", re.I)
_SEARCH_PATH: Final = re.compile(r"select\s++pg_catalog\.set_config\('search_path', '', false\)\s*+", re.I)
_ONLY: Final = re.compile(r"alter\s++table\s++(only\s)", re.I)
_FILL_FACTOR: Final = re.compile(r"\)(\s*+with\s*+\(fillfactor\s*+=\s*+'?\d++'?\)\s*+)\Z", re.I)
_TABLE: Final = re.compile(r"create\s++table\s", re.I)
_SEQUENCE: Final = re.compile(r"create\s++sequence\s", re.I)
_OF_SEQUENCE: Final = re.compile(r"\s++(?:as\s++(?:smallint|integer|bigint)|cache\s++\d++)(?![\w$])", re.I)
_NAME: Final = r'(?:"(?:[^"]|"")++"|[\w$]++)'
_INDEX: Final = re.compile(
    rf"create\s++(?:unique\s++)?index\s++{_NAME}\s++on\s++{_NAME}(?:\.{_NAME})*+(\s++using\s++btree)(?=[\s(])", re.I
)
_OWNED: Final = re.compile(r"alter\s++sequence\s[^;']*\sowned\s++by\s[^;']*\Z", re.I)
_DEFAULT: Final = re.compile(r"\sset\s++default\s++nextval\('[^']++'(::regclass)\)\s*+\Z", re.I)
_SETVAL: Final = re.compile(r"select\s++(pg_catalog\.)setval\('[^']++',\s*+\d++,\s*+(?:true|false)\)\s*+\Z", re.I)

_JSONB: Final = re.compile(r"('(?:[^']|'')*+'|\"(?:[^\"]|\"\")*+\")|(?<![\w$])jsonb(?![\w$])")
"""Strings and names, and the type that DuckDB does not have."""
_NUMERIC: Final = re.compile(r"[\w\"] numeric(?![\w$(\"])", re.I)

_TAIL: Final = 200
"""Characters at the end of a statement in which its owner or fill factor stands."""

PUBLIC: Final = "CREATE SCHEMA IF NOT EXISTS public"


def begins_dump(statement: str) -> bool:
    """Whether a statement is the one that only pg_dump writes: it empties the search path."""
    return _SEARCH_PATH.fullmatch(statement) is not None


def rounds_numbers(statement: str) -> bool:
    """Whether a table has a column of NUMERIC without a precision, which keeps any number in PostgreSQL only."""
    return _TABLE.match(statement) is not None and _NUMERIC.search(statement) is not None


def translated_dump(statement: str, *, embedded: bool) -> str | None:
    """What a statement that pg_dump writes means for the local service: "" for nothing; None for other statements.

    Settings, owners and extensions mean nothing. Emptying the search path means that names are qualified, with the
    schema `public`: databases of PostgreSQL have it, but those of the `embedded` service do not. Tables have neither
    children (ONLY) nor a fill factor, sequences have no type, cache and owner, indexes have one method, and JSONB is
    JSON.
    """
    verb = statement[:6].lower()
    if verb[:3] == "set":
        return "" if _SETTING.match(statement) else None
    if verb == "select":
        if found := _SETVAL.match(statement):
            return statement[: found.start(1)] + statement[found.end(1) :]
        return (PUBLIC if embedded else "") if _SEARCH_PATH.fullmatch(statement) else None
    if verb[:5] == "alter":
        if _OWNER.search(statement, max(0, len(statement) - _TAIL)):
            return ""
        if _OWNED.match(statement):
            return ""
        made = statement
        for part in (_DEFAULT.search(made, max(0, len(made) - _TAIL)), _ONLY.match(made)):
            # From the end to the beginning: the second place stays where it is.
            made = made[: part.start(1)] + made[part.end(1) :] if part is not None else made
        return made if made != statement else None
    if verb in {"create", "commen"}:
        if _EXTENSION.match(statement):
            return ""
        if found := _INDEX.match(statement):
            return statement[: found.start(1)] + statement[found.end(1) :]
        if _SEQUENCE.match(statement):
            made = _OF_SEQUENCE.sub("", statement)
            return made if made != statement else None
        found = _FILL_FACTOR.search(statement, max(0, len(statement) - _TAIL))
        made = statement[: found.start(1)] if found is not None and verb == "create" else statement
        if _TABLE.match(made) and "jsonb" in made:
            made = _JSONB.sub(lambda part: part[1] or "json", made)
        return made if made != statement else None
    return None
