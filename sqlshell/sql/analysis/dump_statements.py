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

_TAIL: Final = 200
"""Characters at the end of a statement in which its owner or fill factor stands."""

PUBLIC: Final = "CREATE SCHEMA IF NOT EXISTS public"


def translated_dump(statement: str, *, embedded: bool) -> str | None:
    """What a statement that pg_dump writes means for the local service: "" for nothing; None for other statements.

    Settings, owners and extensions mean nothing. Emptying the search path means that names are qualified, with the
    schema `public`: databases of PostgreSQL have it, but those of the `embedded` service do not. Tables have neither
    children (ONLY) nor a fill factor.
    """
    verb = statement[:6].lower()
    if verb[:3] == "set":
        return "" if _SETTING.match(statement) else None
    if verb == "select":
        return (PUBLIC if embedded else "") if _SEARCH_PATH.fullmatch(statement) else None
    if verb[:5] == "alter":
        if _OWNER.search(statement, max(0, len(statement) - _TAIL)):
            return ""
        found = _ONLY.match(statement)
        return statement[: found.start(1)] + statement[found.end(1) :] if found is not None else None
    if verb in {"create", "commen"}:
        if _EXTENSION.match(statement):
            return ""
        found = _FILL_FACTOR.search(statement, max(0, len(statement) - _TAIL))
        return statement[: found.start(1)] if found is not None and verb == "create" else None
    return None
