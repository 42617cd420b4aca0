"""Errors of a Spark Connect server as sqlStates and messages of the interface.

Some facts are only in the text of a message. Apache Spark's messages name a condition in brackets, and end with the
sqlState, the place and parts of its plan. Sail sends sqlStates for none of its errors, and parts of its syntax trees.
"""

from __future__ import annotations

import re
from typing import Final

import grpc
import grpc.aio
from google.rpc import error_details_pb2, status_pb2

from sqlshell.interface import sqlstate
from sqlshell.service.failure import Failure, excerpt

DETAILS: Final = "grpc-status-details-bin"

UNREACHABLE: Final = "08006"

HEAD: Final = 8000
"""Characters of a message that are examined: a statement can make it arbitrarily long."""

MOST_EXPECTED: Final = 12
ANYTHING: Final = "something else"

CONDITIONS: Final = {
    "AMBIGUOUS_REFERENCE": "42704",
    "CAST_INVALID_INPUT": "22018",
    "CAST_OVERFLOW": "22003",
    "ARITHMETIC_OVERFLOW": "22003",
    "DATATYPE_MISMATCH": "42K09",
    "DIVIDE_BY_ZERO": "22012",
    "INVALID_ARRAY_INDEX": "22003",
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": "22003",
    "PARSE_SYNTAX_ERROR": "42601",
    "SCHEMA_ALREADY_EXISTS": "42P06",
    "SCHEMA_NOT_FOUND": "42704",
    "TABLE_OR_VIEW_ALREADY_EXISTS": "42P07",
    "TABLE_OR_VIEW_NOT_FOUND": "42P01",
    "UNRESOLVED_COLUMN": "42703",
    "UNRESOLVED_ROUTINE": "42883",
    "UNSUPPORTED_FEATURE": sqlstate.UNSUPPORTED,
}
"""sqlStates of conditions that a message names, as Apache Spark has them; Sail names them alone."""

CLASSES: Final = {
    "ParseException": sqlstate.SYNTAX,
    "ArithmeticException": "22003",
    "ArrayIndexOutOfBoundsException": "22003",
    "DateTimeException": "22007",
    "NumberFormatException": "22018",
    "UnsupportedOperationException": sqlstate.UNSUPPORTED,
    "AnalysisException": "42000",
    "NoSuchTableException": "42P01",
    "NoSuchNamespaceException": "42704",
    "NoSuchDatabaseException": "42704",
    "TableAlreadyExistsException": "42P07",
    "TempTableAlreadyExistsException": "42P07",
    "NamespaceAlreadyExistsException": "42P06",
    "IllegalArgumentException": "22023",
    "SecurityException": sqlstate.PRIVILEGE,
    "OutOfMemoryError": sqlstate.LIMIT,
}
"""sqlStates by the exception's class, without its package and the prefix Spark, where the server sends none."""

CODES: Final = {
    grpc.StatusCode.UNAUTHENTICATED: "28000",
    grpc.StatusCode.PERMISSION_DENIED: sqlstate.PRIVILEGE,
    grpc.StatusCode.RESOURCE_EXHAUSTED: sqlstate.TOO_LARGE,
    grpc.StatusCode.UNIMPLEMENTED: sqlstate.UNSUPPORTED,
}
"""sqlStates of gRPC's own errors."""

_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\] ?")
_STATE: Final = re.compile(r"[ ]?SQLSTATE: ([0-9A-Z]{5})\b")
_LINE_AND_COLUMN: Final = re.compile(r"[;(]? ?\(?line (\d+),? pos(?:ition)? (\d+)\)?;?")
_IN_FRAGMENT: Final = re.compile(r"== SQL(?: of [^\n(]*)? ?\(line (\d+), position (\d+)\) ==")
_JAVA: Final = re.compile(r"^(?:[a-z]\w*\.){2,}[A-Z]\w*(?:Exception|Error)?: ")
_BEHIND: Final = re.compile(
    r"\n*== SQL"  # the statement
    r"|;?\n(?:'?[A-Z]\w+ [\[(<]|[+:]- |'[A-Z])"  # a plan
    r"|\n+(?:JVM stacktrace:|\tat |\s+at [\w.$]+\()"  # a trace
)
"""The beginning of what stands behind a message of Apache Spark."""

_SPAN: Final = re.compile(r"^invalid argument: found (.+?) at (\d+):(\d+) expected (.*)$", re.S)
_AT_END: Final = re.compile(r"^invalid argument: found end of input expected (.*)$", re.S)
_TREE: Final = re.compile(r"(?:ObjectName\()?\[(Identifier\(\"[^\"]*\"\)(?:, Identifier\(\"[^\"]*\"\))*)\]\)?")
_IDENTIFIER: Final = re.compile(r"Identifier\(\"([^\"]*)\"\)")
_NODE: Final = re.compile(r"^\w+Node::(\w+)$")
_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")

_SAIL: Final = tuple(
    (re.compile(pattern), state, words)
    for pattern, state, words in (
        (r"^attribute (\"[^\"]*\") is missing from the schema.*", "42703", r"column \1 does not exist"),
        (r"^ambiguous attribute: (\"[^\"]*\")", "42702", r"column \1 is ambiguous"),
        (r"^(?:Table not found: )?Table or view not found: (\S+)", "42P01", r'table or view "\1" does not exist'),
        (r"^Table not found: (\S+)", "42P01", r'table "\1" does not exist'),
        (r"^View not found: (\S+)", "42P01", r'view "\1" does not exist'),
        (r"^Database not found: (\S+)", "42704", r'schema "\1" does not exist'),
        (r"^Catalog not found: (\S+)", "42704", r'database "\1" does not exist'),
        (r"^Table already exists: (\S+)", "42P07", r'table "\1" already exists'),
        (r"^View already exists: (\S+)", "42P07", r'view "\1" already exists'),
        (r"^Database already exists: (\S+)", "42P06", r'schema "\1" already exists'),
        (r"^unknown function: (\S+)", "42883", r'function "\1" does not exist'),
        (r"^Error during planning: ", "42000", ""),
        (r"returned more than one row", "21000", None),
        (r"^divide by zero", "22012", None),
        (r"^(?:Cast error: )?Cannot cast string", "22018", None),
        (r"^(?:Cast error: )?Can't cast value|too large to store in a Decimal", "22003", None),
        (r"^invalid (?:timestamp|date|time)", "22007", None),
        (r"^expected one statement", "42601", None),
    )
)
"""Patterns of Sail's messages, their sqlStates, and the words for them."""

_GONE: Final = re.compile(
    r"INVALID_HANDLE\.(?:SESSION|OPERATION)_\w+|^invalid argument: (?:session \S+ is not running|operation not found)"
    r"|task context not found"
)

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
"""gRPC's words for a failed connection, and the cause."""


def failure(error: grpc.aio.AioRpcError, server: str, sql: str = "") -> Failure:
    """Return the Failure for an error. `sql` is the statement, in which it may name a place, and `server` its
    address."""
    sent, named_state, classes = _reported(error)
    code = error.code()
    if _GONE.search(sent[:HEAD]):
        return session_lost()
    if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
        return _unreachable(server, sent[:HEAD])
    found = named_state or state(sent) or CODES.get(code, "")
    named = (CLASSES.get(name.rpartition(".")[2].removeprefix("Spark"), "") for name in classes)
    message = plain(sent) or f"the server reported an error without a message ({code.name.lower()})"
    return Failure(found or next(filter(None, named), sqlstate.INTERNAL), message + _marked(sent, sql))


def session_lost() -> Failure:
    return Failure(
        sqlstate.SESSION_LOST,
        "the server ended this session, and its temporary views and settings are lost; run the statement again to "
        "start a new session",
    )


def state(message: str) -> str:
    """Return the sqlState in or behind a message; "" if it contains none."""
    message = message[:HEAD]
    if (match := _STATE.search(message)) is not None:
        return match[1]
    if (match := _CONDITION.search(message)) is not None:
        # Of a condition that is a part of another one, the other's.
        return CONDITIONS.get(match[1]) or CONDITIONS.get(match[1].partition(".")[0], "")
    if _SPAN.match(message) or _AT_END.match(message):
        return sqlstate.SYNTAX
    return next((code for pattern, code, _ in _SAIL if pattern.search(_without_trees(message))), "")


def place(message: str, sql: str) -> tuple[int, int] | None:
    """Return the line, from 1, and the column, from 0, that a message names; None for none."""
    message = message[:HEAD]
    if (match := _SPAN.match(message)) is not None:
        # Sail counts the bytes of UTF-8.
        before = sql.encode()[: int(match[2])].decode(errors="ignore")
        return before.count("\n") + 1, len(before) - before.rfind("\n") - 1
    if _AT_END.match(message) is not None:
        lines = sql.rstrip().split("\n")
        return len(lines), len(lines[-1])
    if (match := _IN_FRAGMENT.search(message)) is not None:
        return int(match[1]), max(0, int(match[2]) - 1)
    if (match := _LINE_AND_COLUMN.search(message)) is not None:
        return int(match[1]), int(match[2])
    return None


def plain(message: str) -> str:
    """Return a message without names of classes, parts of plans and syntax trees, traces, conditions and places."""
    text = message[:HEAD]
    if (span := _SPAN.match(text)) is not None:
        return f'syntax error at or near "{span[1]}"{_expected(span[4])}'
    if (at_end := _AT_END.match(text)) is not None:
        return f"syntax error at the end of the statement{_expected(at_end[1])}"
    if (behind := _BEHIND.search(text)) is not None:
        text = text[: behind.start()]
    text = _JAVA.sub("", text)
    if (named := _CONDITION.search(text)) is not None:
        text = text[named.end() :]
    text = _without_trees(_LINE_AND_COLUMN.sub("", _STATE.sub("", text)))
    for pattern, _, words in _SAIL:
        if words is not None:
            text = pattern.sub(words, text)
    if (node := _NODE.match(text)) is not None:
        text = f"the server does not support {_WORDS.sub(' ', node[1]).upper()}"
    return text.strip().rstrip(";").strip()


def _without_trees(message: str) -> str:
    """A message of Sail with names in place of its syntax trees."""
    message = message.removeprefix("invalid argument: ")
    return _TREE.sub(lambda match: '"' + ".".join(_IDENTIFIER.findall(match[1])) + '"', message)


def _expected(tokens: str) -> str:
    """The words about the expected tokens; "" if nearly any token is expected."""
    return f": expected {tokens}" if tokens.count(", ") < MOST_EXPECTED and ANYTHING not in tokens else ""


def _unreachable(server: str, details: str) -> Failure:
    cause = next((f": {cause}" for sign, cause in _CAUSES if sign.search(details)), "")
    remedy = "check that it is running and that its URL is correct"
    return Failure(UNREACHABLE, f"cannot reach the Spark Connect server at {server}{cause}; {remedy}")


def _reported(error: grpc.aio.AioRpcError) -> tuple[str, str, list[str]]:
    """The server's message, which may be cut, its sqlState, "" if it sends none, and the names of the exception's
    classes, the outermost first."""
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS and isinstance(value, bytes):
            status.ParseFromString(value)
    message = status.message or error.details() or ""
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            # A JSON array of names.
            classes = re.findall(r"[\w.$]+", info.metadata.get("classes", ""))
            return message, info.metadata.get("sqlState", ""), [*classes, info.reason]
    return message, "", []


def _marked(message: str, sql: str) -> str:
    """The line of a statement with a mark below the place of an error; "" without a place in it."""
    lines, found = sql.split("\n"), place(message, sql)
    if found is None or not sql.strip() or not 0 < found[0] <= len(lines) or found[1] > len(lines[found[0] - 1]):
        return ""
    return "\n\n" + excerpt(sql, sum(len(line) + 1 for line in lines[: found[0] - 1]) + found[1])
