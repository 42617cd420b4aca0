"""The statements that are the interface's and not the engine's, read into small objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Failure
from sqlshell.sql.items import Statement
from sqlshell.sql.scanner import split

Names = tuple[str, ...]
"""The parts of a dotted name: unquoted ones folded to lower case."""

_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$-]*)'
_DOTTED = rf"{_NAME}(?:\s*\.\s*{_NAME}){{0,2}}"
_KINDS = (
    "DATABASE|STORE|COMPUTE_POOL|FUNCTION_SOURCE|DESCRIPTOR_SOURCE|ORGANIZATION|ROLE|API_TOKEN|STREAM|RELATION|"
    "CHANGELOG|ENTITY|SECRET|SCHEMA_REGISTRY|USER|METRICS INTEGRATION|SECURITY INTEGRATION"
)
_COMMENTS = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")|--[^\n]*|/\*.*?\*/""", re.S)
_WITH = r"(?:\s*WITH\s*\((?P<options>.*)\))?"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text.replace(" ", r"\s+"), re.I | re.S)


_USE = _pattern(rf"USE (?P<kind>DATABASE|SCHEMA|ROLE|STORE|ORGANIZATION|COMPUTE_POOL) (?P<name>{_DOTTED})")
_LIST = _pattern(rf"LIST (?P<what>\w+)(?: IN (?P<place>DATABASE|SCHEMA|STORE) (?P<name>{_DOTTED}))?")
_CREATE = _pattern(
    rf"CREATE(?P<replace> OR REPLACE)? (?P<kind>{_KINDS})(?P<exists> IF NOT EXISTS)? (?P<name>{_DOTTED})(?P<rest>.*)"
)
_DROP = _pattern(rf"DROP (?P<kind>{_KINDS})(?P<exists> IF EXISTS)? (?P<name>{_DOTTED})(?: (?:CASCADE|RESTRICT))?")
_POOL = _pattern(rf"(?P<what>START|STOP) COMPUTE_POOL (?P<name>{_NAME})")
_QUERY = r"""(?:'(?P<q1>[^']*)'|"(?P<q2>[^"]*)"|(?P<q3>[\w-]+))"""
_TERMINATE = _pattern(rf"TERMINATE QUERY {_QUERY}")
_DESCRIBE_QUERY = _pattern(rf"DESCRIBE QUERY(?: (?P<part>METRICS|EVENTS|STATE|HISTORY))? {_QUERY}")
_DESCRIBE = _pattern(
    rf"DESCRIBE (?P<kind>RELATION|{_KINDS}) (?P<name>{_DOTTED})(?: COLUMNS)?(?: IN STORE (?P<store>{_NAME}))?"
)
_PRINT = _pattern(rf"PRINT ENTITY (?P<name>{_DOTTED})(?: IN STORE (?P<store>{_NAME}))?(?P<begin> FROM BEGINNING)?")
_APPLICATION = _pattern(rf"BEGIN APPLICATION (?P<name>{_NAME})(?P<body>.*?)END APPLICATION")
_OPTION = re.compile(r"""\s*(?:'((?:[^']|'')*)'|([\w.]+))\s*=\s*(?:'((?:[^']|'')*)'|([\w.-]+))\s*(,|$)""", re.S)
_FIRST = re.compile(
    r"\s*(use|list|create|drop|start|stop|terminate|describe|print|begin|restart|resume|grant|revoke)\b", re.I
)
_COLUMNS = re.compile(r"\s*(\(.*\))\s*", re.S)
READ_LENGTH = 1 << 20
"""Characters; a longer statement is the engine's, but for applications and streams."""


@dataclass(frozen=True, slots=True)
class Use:
    kind: str
    names: Names


@dataclass(frozen=True, slots=True)
class List:
    what: str
    place: str = ""
    names: Names = ()


@dataclass(frozen=True, slots=True)
class Create:
    kind: str
    names: Names
    options: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    if_not_exists: bool = False
    columns: str = ""


@dataclass(frozen=True, slots=True)
class Drop:
    kind: str
    names: Names
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Describe:
    kind: str
    names: Names
    store: str = ""


@dataclass(frozen=True, slots=True)
class DescribeQuery:
    statement_id: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class Terminate:
    statement_id: str


@dataclass(frozen=True, slots=True)
class StartPool:
    name: str
    start: bool


@dataclass(frozen=True, slots=True)
class Print:
    names: Names
    store: str = ""
    from_beginning: bool = False


@dataclass(frozen=True, slots=True)
class Application:
    name: str
    statements: tuple[str, ...]


Own = Use | List | Create | Drop | Describe | DescribeQuery | Terminate | StartPool | Print | Application


def read(sql: str) -> Own | None:
    """What a statement of the dialect asks for, None for the engine's own.

    Raises Failure for one of the dialect that says something impossible.
    """
    blank = _COMMENTS.sub(lambda found: found[1] or " ", sql[:4000]).lstrip()
    if not _FIRST.match(blank):
        return None
    if found := _APPLICATION.fullmatch(sql.strip()) or (blank[:5].lower() == "begin" and _application(sql)) or None:
        return _inside(found)
    if len(sql) > READ_LENGTH:
        return None
    text = _COMMENTS.sub(lambda found: found[1] or " ", sql).strip()
    if found := _USE.fullmatch(text):
        return Use(found["kind"].lower(), names_of(found["name"]))
    if found := _TERMINATE.fullmatch(text):
        return Terminate(_query(found))
    if found := _DESCRIBE_QUERY.fullmatch(text):
        return DescribeQuery(_query(found), (found["part"] or "").lower())
    if found := _LIST.fullmatch(text):
        return List(found["what"].lower(), (found["place"] or "").lower(), names_of(found["name"] or ""))
    if found := _CREATE.fullmatch(text):
        return _create(found)
    if found := _DROP.fullmatch(text):
        return Drop(_kind(found["kind"]), names_of(found["name"]), bool(found["exists"]))
    if found := _DESCRIBE.fullmatch(text):
        return Describe(_kind(found["kind"]), names_of(found["name"]), "".join(names_of(found["store"] or "")))
    if found := _POOL.fullmatch(text):
        return StartPool(names_of(found["name"])[0], found["what"].lower() == "start")
    if found := _PRINT.fullmatch(text):
        return Print(names_of(found["name"]), "".join(names_of(found["store"] or "")), bool(found["begin"]))
    return None


def names_of(text: str) -> Names:
    """The parts of a dotted name."""
    found = re.findall(_NAME, text)
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part.lower() for part in found)


def targets(sql: str, verbs: str) -> list[Names]:
    """The names behind any of `verbs`, a regular expression, in a statement."""
    text = _COMMENTS.sub(lambda found: found[1] or " ", sql)
    return [names_of(found[1]) for found in re.finditer(rf"(?<!\w)(?:{verbs})\s+({_DOTTED})", text, re.I)]


def _kind(text: str) -> str:
    return re.sub(r"\s+", "_", text).lower()


def _query(found: re.Match[str]) -> str:
    return found["q1"] or found["q2"] or found["q3"] or ""


def _create(found: re.Match[str]) -> Create:
    kind, rest = _kind(found["kind"]), found["rest"]
    columns = ""
    if kind in {"stream", "changelog"}:
        if re.search(r"(?<!\w)AS\s+SELECT(?!\w)", rest, re.I):
            said = f"CREATE {kind.upper()} … AS SELECT would run forever: this is not a streaming engine"
            raise Failure(sqlstate.UNSUPPORTED, said)
        before, _, after = rest.partition(")") if not rest.strip().startswith("(") else _columns(rest)
        columns, rest = before + ")" if after or before else "", after
        if not columns.strip().startswith("("):
            raise Failure(sqlstate.SYNTAX, f"CREATE {kind.upper()} needs its columns: ({kind} (name type, …))")
    options: dict[str, str] = {}
    if rest.strip():
        inside = re.fullmatch(r"\s*WITH\s*\((.*)\)\s*", rest, re.I | re.S)
        if not inside:
            raise Failure(
                sqlstate.SYNTAX, f"syntax error at {rest.strip()[:60]!r}: WITH ('key' = 'value', …) is expected"
            )
        options = _options(inside[1])
    return Create(
        kind, names_of(found["name"]), options, bool(found["replace"]), bool(found["exists"]), columns.strip()
    )


def _columns(rest: str) -> tuple[str, str, str]:
    """What stands in the first parentheses, which may nest, and what follows them."""
    depth, quote = 0, ""
    for position, sign in enumerate(rest):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if depth == 0:
                return rest[:position], ")", rest[position + 1 :]
    raise Failure(sqlstate.SYNTAX, "a parenthesis is not closed")


def _options(text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    position = 0
    while text[position:].strip():
        found = _OPTION.match(text, position)
        if not found:
            raise Failure(
                sqlstate.SYNTAX, f"syntax error at {text[position:].strip()[:60]!r}: 'key' = 'value' is expected"
            )
        name = (found[1] if found[1] is not None else found[2]).replace("''", "'").lower()
        options[name] = found[3].replace("''", "'") if found[3] is not None else found[4]
        position = found.end()
    return options


def _application(sql: str) -> re.Match[str] | None:
    blank = re.match(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", sql, re.S)
    return _APPLICATION.fullmatch(sql[blank.end() if blank else 0 :].strip())


def _inside(found: re.Match[str]) -> Application:
    items = split(found["body"])
    return Application(names_of(found["name"])[0], tuple(item.text for item in items if isinstance(item, Statement)))
