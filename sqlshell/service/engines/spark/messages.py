"""Facts that only the text of a server's messages contains. All decisions on such text are made here.

Apache Spark's messages name a condition in brackets, and end with the sqlState, the place and parts of its plan. Sail
sends sqlStates for none of its errors, and parts of its own syntax trees.
"""

from __future__ import annotations

import re
from typing import Final

HEAD: Final = 8000
"""Characters of a message that are examined: a statement can make it arbitrarily long."""

MOST_EXPECTED: Final = 12
ANYTHING: Final = "something else"

_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\] ?")
_STATE: Final = re.compile(r"[ ]?SQLSTATE: ([0-9A-Z]{5})\b")
_LINE_AND_COLUMN: Final = re.compile(r"[;(]? ?\(?line (\d+),? pos(?:ition)? (\d+)\)?;?")
_FRAGMENT: Final = re.compile(r"\n*== SQL.*", re.S)
_IN_FRAGMENT: Final = re.compile(r"== SQL(?: of [^\n(]*)? ?\(line (\d+), position (\d+)\) ==")
_PLAN: Final = re.compile(r";?\n(?:'?[A-Z]\w+ [\[(<]|[+:]- |'[A-Z]).*", re.S)
_TRACE: Final = re.compile(r"\n+(?:JVM stacktrace:|\tat |\s+at [\w.$]+\().*", re.S)
_JAVA: Final = re.compile(r"^(?:[a-z]\w*\.){2,}[A-Z]\w*(?:Exception|Error)?: ")

_SPAN: Final = re.compile(r"^invalid argument: found (.+?) at (\d+):(\d+) expected (.*)$", re.S)
_AT_END: Final = re.compile(r"^invalid argument: found end of input expected (.*)$", re.S)
_INVALID: Final = re.compile(r"^invalid argument: ")
_TREE: Final = re.compile(r"(?:ObjectName\()?\[(Identifier\(\"[^\"]*\"\)(?:, Identifier\(\"[^\"]*\"\))*)\]\)?")
_IDENTIFIER: Final = re.compile(r"Identifier\(\"([^\"]*)\"\)")
_NODE: Final = re.compile(r"^(?:\w+Node)::(\w+)$")
_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")

_REWORDED_MESSAGES: Final = (
    (
        re.compile(r"^attribute (\"[^\"]*\") is missing from the schema: cannot resolve attribute$"),
        r"column \1 does not exist",
    ),
    (re.compile(r"^ambiguous attribute: (\"[^\"]*\")$"), r"column \1 is ambiguous"),
    (re.compile(r"^(?:Table not found: )?Table or view not found: (\S+)$"), r'table or view "\1" does not exist'),
    (re.compile(r"^Table not found: (\S+)$"), r'table "\1" does not exist'),
    (re.compile(r"^View not found: (\S+)$"), r'view "\1" does not exist'),
    (re.compile(r"^Database not found: (\S+)$"), r'schema "\1" does not exist'),
    (re.compile(r"^Catalog not found: (\S+)$"), r'database "\1" does not exist'),
    (re.compile(r"^Table already exists: (\S+)$"), r'table "\1" already exists'),
    (re.compile(r"^Database already exists: (\S+)$"), r'schema "\1" already exists'),
    (re.compile(r"^unknown function: (\S+)$"), r'function "\1" does not exist'),
    (re.compile(r"^Error during planning: "), ""),
)
"""Patterns of Sail's messages, and the words for them."""

_STATES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"^Table not found"), "42P01"),
    (re.compile(r"^Table already exists|^View already exists"), "42P07"),
    (re.compile(r"^View not found"), "42P01"),
    (re.compile(r"^Database not found"), "42704"),
    (re.compile(r"^Database already exists"), "42P06"),
    (re.compile(r"^Catalog not found"), "42704"),
    (re.compile(r"^unknown function"), "42883"),
    (re.compile(r"is missing from the schema"), "42703"),
    (re.compile(r"^ambiguous attribute"), "42702"),
    (re.compile(r"returned more than one row"), "21000"),
    (re.compile(r"^divide by zero"), "22012"),
    (re.compile(r"^(?:Cast error: )?Cannot cast string"), "22018"),
    (re.compile(r"^(?:Cast error: )?Can't cast value|too large to store in a Decimal"), "22003"),
    (re.compile(r"^Error during planning: "), "42000"),
    (re.compile(r"^invalid (?:timestamp|date|time)"), "22007"),
    (re.compile(r"^expected one statement|^invalid argument: expected one statement"), "42601"),
)
"""sqlStates by what Sail says."""

_GONE: Final = re.compile(
    r"INVALID_HANDLE\.(?:SESSION|OPERATION)_\w+|^invalid argument: (?:session \S+ is not running|operation not found)"
    r"|task context not found"
)


def condition(message: str) -> str:
    """The condition that a message names, "" for none."""
    match = _CONDITION.search(message, 0, HEAD)
    return match[1] if match else ""


def state(message: str) -> str:
    """The sqlState in or behind a message; "" if it contains none."""
    match = _STATE.search(message, 0, HEAD)
    if match is not None:
        return match[1]
    if _SPAN.match(message) or _AT_END.match(message):
        return "42601"
    return next((code for pattern, code in _STATES if pattern.search(message[:HEAD])), "")


def is_gone(message: str) -> bool:
    """Whether the server no longer knows the session or the operation."""
    return _GONE.search(message[:HEAD]) is not None


def cut_off(message: str) -> bool:
    """Whether the server has more of a message than it sent."""
    return message.endswith("...")


def place(message: str, sql: str) -> tuple[int, int] | None:
    """The line, from 1, and the column, from 0, that a message names; None for none."""
    if (match := _SPAN.match(message[:HEAD])) is not None:
        # Sail counts the bytes of UTF-8.
        before = sql.encode()[: int(match[2])].decode(errors="ignore")
        return before.count("\n") + 1, len(before) - before.rfind("\n") - 1
    if _AT_END.match(message[:HEAD]) is not None:
        lines = sql.rstrip().split("\n")
        return len(lines), len(lines[-1])
    if (match := _IN_FRAGMENT.search(message, 0, HEAD)) is not None:
        return int(match[1]), max(0, int(match[2]) - 1)
    if (match := _LINE_AND_COLUMN.search(message, 0, HEAD)) is not None:
        return int(match[1]), int(match[2])
    return None


def plain(message: str) -> str:
    """A message without names of classes, parts of plans and syntax trees, traces, conditions and places."""
    text = message[:HEAD]
    if (span := _SPAN.match(text)) is not None:
        return f'syntax error at or near "{span[1]}"{_expected(span[4])}'
    if (at_end := _AT_END.match(text)) is not None:
        return f"syntax error at the end of the statement{_expected(at_end[1])}"
    for noise in (_TRACE, _FRAGMENT, _PLAN):
        text = noise.sub("", text)
    text = _JAVA.sub("", text)
    if (named := _CONDITION.search(text)) is not None:
        text = text[named.end() :]
    text = _LINE_AND_COLUMN.sub("", _STATE.sub("", text))
    text = _TREE.sub(lambda match: '"' + ".".join(_IDENTIFIER.findall(match[1])) + '"', _INVALID.sub("", text))
    for pattern, better in _REWORDED_MESSAGES:
        text = pattern.sub(better, text)
    if (node := _NODE.match(text)) is not None:
        text = f"the server does not support {_WORDS.sub(' ', node[1]).upper()}"
    return text.strip().rstrip(";").strip()


def _expected(tokens: str) -> str:
    """The words about the expected tokens; "" if nearly any token is expected."""
    return f": expected {tokens}" if tokens.count(", ") < MOST_EXPECTED and ANYTHING not in tokens else ""


def why_unreachable(details: str) -> str:
    """The cause in gRPC's words for a failed connection; "" if they say none."""
    for sign, cause in _CAUSES:
        if sign.search(details[:HEAD]):
            return cause
    return ""


_CAUSES: Final = (
    (re.compile(r"refused"), "connection refused"),
    (re.compile(r"DNS|name resolution|not known|Domain name", re.I), "unknown host name"),
    (
        re.compile("WRONG_VERSION_NUMBER"),
        "the server does not use TLS, and a token is sent only over TLS or to localhost",
    ),
    (re.compile(r"certificate|CERTIFICATE"), "the server's certificate is not valid"),
    (re.compile(r"SSL|TLS|handshake", re.I), "TLS handshake failed"),
    (re.compile(r"timed? ?out|Deadline", re.I), "timed out"),
    (re.compile(r"reset|closed|Broken pipe|EOF|GOAWAY", re.I), "connection closed"),
    (re.compile(r"unreachable|No route", re.I), "network unreachable"),
)
