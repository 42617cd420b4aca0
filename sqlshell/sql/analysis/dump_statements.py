"""Statements of PostgreSQL's dumps, and what they mean for the local service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from sqlshell.sql.analysis.tokens import tokens
from sqlshell.sql.identifiers import always_quoted, literal

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
    rf"(create\s++(?:unique\s++)?index\s++{_NAME}\s++on\s++(?:only\s++)?{_NAME}(?:\.{_NAME})*+)(\s++using\s++\w++)(?=[\s(])",
    re.I,
)
_METHODS: Final = re.compile(r"\s++using\s++(?:btree|hash)", re.I)
"""The methods of indexes that have the same effect as DuckDB's only one."""
_OWNED: Final = re.compile(r"alter\s++sequence\s[^;']*\sowned\s++by\s[^;']*\Z", re.I)
_DEFAULT: Final = re.compile(r"\sset\s++default\s++nextval\('[^']++'(::regclass)\)\s*+\Z", re.I)
_SETVAL: Final = re.compile(r"select\s++(pg_catalog\.)setval\('[^']++',\s*+\d++,\s*+(?:true|false)\)\s*+\Z", re.I)

_STRING: Final = r"'(?:[^']|'')*+'"
_QUOTED: Final = r'"(?:[^"]|"")*+"'


def _outside(pattern: str, replacement: str | Callable[[re.Match[str]], str]) -> Callable[[str], str]:
    """Replaces what matches, except in strings and in names in quotes that do not begin the match."""
    compiled = re.compile(rf"({pattern})|{_STRING}|{_QUOTED}")

    def replaced(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        return replacement if isinstance(replacement, str) else replacement(match)

    return lambda text: compiled.sub(replaced, text)


_LIST: Final = rf"(?:{_STRING}|[^'\"\[\]])*+"
_TABLE_PARTS: Final = (
    _outside(r"(?<![\w$])jsonb(?![\w$])", "json"),
    _outside(r"'\{\}'(?=::[\w .\"]+\[\])", "'[]'"),
    _outside(r"::regclass(?![\w$])", ""),
    _outside(r"(?<=\)) STORED(?![\w$])", ""),
    _outside(r' COLLATE pg_catalog\."[^"]++"', ""),
    # DuckDB takes ANY for a subquery, which a CHECK may not have.
    _outside(
        rf"(= ANY|<> ALL) \((?:\(ARRAY\[({_LIST})\]\)::[\w ]++\[\]|ARRAY\[({_LIST})\])\)",
        lambda match: f"{'IN' if match[2] == '= ANY' else 'NOT IN'} ({match[3] or match[4]})",
    ),
)
_INDEX_PARTS: Final = (
    _outside(r"(?<=\)) INCLUDE \([^()]*+\)", ""),
    _outside(r"(?<=[\w\")]) \w+_ops(?![\w$])", ""),
)
_NUMERIC: Final = re.compile(r"[\w\"] numeric(?![\w$(\"])", re.I)

_TAIL: Final = 200
"""Characters at the end of a statement in which its owner or fill factor stands."""

_UNLOGGED: Final = re.compile(r"create\s++(unlogged\s++)table\s", re.I)
_PRIVILEGES: Final = re.compile(r"(?:grant|revoke|alter\s++default\s++privileges)\s", re.I)
_STORAGE: Final = re.compile(
    rf"alter\s++table\s++(?:only\s++)?{_NAME}(?:\.{_NAME})*+\s++(?:cluster\s++on\s|replica\s++identity\s"
    rf"|alter\s++column\s++{_NAME}\s++set\s++(?:statistics|storage|compression)\s)",
    re.I,
)
_IDENTITY: Final = re.compile(
    rf"(alter\s++table\s++(?:only\s++)?{_NAME}(?:\.{_NAME})*+\s++alter\s++column\s++{_NAME})\s++add\s++generated\s++"
    rf"(?:always|by\s++default)\s++as\s++identity\s*+\(\s*+sequence\s++name\s++({_NAME}(?:\.{_NAME})*+)([^;()]*+)\)\s*+\Z",
    re.I,
)
_OVERRIDING: Final = re.compile(
    rf"(insert\s++into\s++{_NAME}(?:\.{_NAME})*+(?:\s*+\([^()]*+\))?)\s++overriding\s++system\s++value(?=\s)", re.I
)
_DOMAIN: Final = re.compile(
    rf"create\s++domain\s++({_NAME}(?:\.{_NAME})*+)\s++as\s++"
    r"([\w.]++(?: varying| precision)?(?:\(\d++(?:,\d++)?\))?(?: with(?:out)? time zone)?(?:\[\])?)(\s[\s\S]*+)?\Z",
    re.I,
)
_WORDS: Final = (
    "anti|asof|at|by|describe|glob|lambda|pivot|pivot_longer|pivot_wider|positional|qualify|semi|show|summarize"
)
_NAMES: Final = re.compile(rf"(?<![\w$])(?:{_WORDS}|unpack|unpivot)(?![\w$])")
"""Names in PostgreSQL that are keywords in DuckDB. pg_dump writes its own keywords in capitals."""
_NAMED: Final = re.compile(r"(?:create|alter|comment|insert)\s", re.I)
_REFUSED: Final = (
    (re.compile(r"create\s++(?:or\s++replace\s++)?(?:function|procedure|aggregate)\s", re.I), "functions"),
    (re.compile(r"create\s++(?:constraint\s++|event\s++)?trigger\s", re.I), "triggers"),
    (re.compile(r"create\s++(?:or\s++replace\s++)?rule\s", re.I), "rules"),
    (re.compile(r"create\s++policy\s|alter\s++table\s[^;']*?\s(?:enable|force)\s++row\s", re.I), "row-level security"),
    (re.compile(r"(?:create|refresh)\s++materialized\s++view\s", re.I), "materialized views"),
    (re.compile(r"create\s++table\s[\s\S]*?\)\s*+inherits\s*+\([^()]*+\)\s*+\Z", re.I), "inheritance of tables"),
    (
        re.compile(
            r"create\s++table\s[\s\S]*?\)\s*+partition\s++by\s[^;']*+\Z|alter\s++table\s[^']*?\sattach\s++partition\s",
            re.I,
        ),
        "partitioned tables",
    ),
)

PUBLIC: Final = "CREATE SCHEMA IF NOT EXISTS public"


def begins_dump(statement: str) -> bool:
    """Whether a statement is the one that only pg_dump writes: it empties the search path."""
    return _SEARCH_PATH.fullmatch(statement) is not None


def rounds_numbers(statement: str) -> bool:
    """Whether a table has a column of NUMERIC without a precision, which keeps any number in PostgreSQL only."""
    return _TABLE.match(statement) is not None and _NUMERIC.search(statement) is not None


def drops_constraints(statement: str) -> bool:
    """Whether a statement makes a domain with constraints or a default, which the type in its place does not have."""
    match = _DOMAIN.match(statement)
    return match is not None and bool((match[3] or "").strip())


def refused(statement: str) -> str:
    """The kind of object in a dump's statement that the local service does not support; "" for other statements."""
    return next((what for pattern, what in _REFUSED if pattern.match(statement)), "")


def translated_dump(statement: str, *, embedded: bool, in_dump: bool) -> tuple[str, ...] | None:
    """The local service's equivalents of a statement of pg_dump: () if it has no effect, None if it is unchanged.

    Settings, owners, privileges and extensions mean nothing. Emptying the search path means that names are qualified,
    with the schema `public`: databases of PostgreSQL have it, but those of the `embedded` service do not. Tables have
    neither children (ONLY) nor a fill factor, sequences have no type, cache and owner, indexes have one method and only
    their own columns, generated columns are not stored, and JSONB is JSON. `in_dump` says that pg_dump has written the
    script: names that are keywords of DuckDB get quotes, which other scripts need not.
    """
    translated = _translated(statement, embedded=embedded, in_dump=in_dump)
    if not in_dump:
        return translated
    written = (statement,) if translated is None else translated
    quoted = tuple(_with_quoted_names(each) for each in written)
    return translated if quoted == written else quoted


def _with_quoted_names(statement: str) -> str:
    if not _NAMED.match(statement) or not _NAMES.search(statement):
        return statement
    for token in reversed(list(tokens(statement))):
        if token.kind == "word" and _NAMES.fullmatch(token.text):
            statement = statement[: token.start] + always_quoted(token.text) + statement[token.end :]
    return statement


def _translated(statement: str, *, embedded: bool, in_dump: bool) -> tuple[str, ...] | None:
    verb = statement[:6].lower()
    if verb[:3] == "set":
        return () if _SETTING.match(statement) else None
    if verb == "select":
        if match := _SETVAL.match(statement):
            return (statement[: match.start(1)] + statement[match.end(1) :],)
        if _SEARCH_PATH.fullmatch(statement):
            return (PUBLIC,) if embedded else ()
        return None
    if verb == "insert":
        match = _OVERRIDING.match(statement) if in_dump else None
        return None if match is None else (match[1] + statement[match.end() :],)
    if in_dump and (_PRIVILEGES.match(statement) or _STORAGE.match(statement)):
        return ()
    if verb[:5] == "alter":
        return _altered(statement)
    return _created(statement) if verb in {"create", "commen"} else None


def _altered(statement: str) -> tuple[str, ...] | None:
    if _OWNER.search(statement, max(0, len(statement) - _TAIL)) or _OWNED.match(statement):
        return ()
    if match := _IDENTITY.match(statement):
        sequence = _OF_SEQUENCE.sub("", f"CREATE SEQUENCE {match[2]}{match[3].rstrip()}")
        column = _ONLY.sub("ALTER TABLE ", match[1])
        return sequence, f"{column} SET DEFAULT nextval({literal(match[2])})"
    altered = statement
    for part in (_DEFAULT.search(altered, max(0, len(altered) - _TAIL)), _ONLY.match(altered)):
        # From the end to the beginning: the second place stays where it is.
        altered = altered[: part.start(1)] + altered[part.end(1) :] if part is not None else altered
    if " CHECK (" in altered:
        altered = _with(_TABLE_PARTS, altered)
    return (altered,) if altered != statement else None


def _created(statement: str) -> tuple[str, ...] | None:
    if _EXTENSION.match(statement):
        return ()
    if match := _INDEX.match(statement):
        method = "" if _METHODS.fullmatch(match[2]) else match[2]
        created = match[1] + method + _with(_INDEX_PARTS, statement[match.end() :])
        return (created,) if created != statement else None
    if _SEQUENCE.match(statement):
        created = _OF_SEQUENCE.sub("", statement)
        return (created,) if created != statement else None
    if match := _DOMAIN.match(statement):
        return (f"CREATE TYPE {match[1]} AS {match[2]}",)
    match = _FILL_FACTOR.search(statement, max(0, len(statement) - _TAIL))
    created = statement[: match.start(1)] if match is not None and statement[:6].lower() == "create" else statement
    if match := _UNLOGGED.match(created):
        created = created[: match.start(1)] + created[match.end(1) :]
    if _TABLE.match(created):
        created = _with(_TABLE_PARTS, created)
    return (created,) if created != statement else None


def _with(parts: Iterable[Callable[[str], str]], text: str) -> str:
    for part in parts:
        text = part(text)
    return text
