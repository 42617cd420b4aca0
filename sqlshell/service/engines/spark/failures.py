"""Errors of a Spark Connect server as sqlStates and messages of the interface."""

from __future__ import annotations

import json
from typing import Any, Final

import grpc
import grpc.aio
from google.rpc import error_details_pb2, status_pb2
from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.engines.spark import messages
from sqlshell.service.failure import Failure

DETAILS: Final = "grpc-status-details-bin"

UNREACHABLE: Final = "08006"

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
"""sqlStates of conditions that a message may name where the server sends no sqlState, as Apache Spark has them."""

CLASSES: Final = {
    "ParseException": sqlstate.SYNTAX,
    "ArithmeticException": "22003",
    "SparkArithmeticException": "22003",
    "ArrayIndexOutOfBoundsException": "22003",
    "SparkArrayIndexOutOfBoundsException": "22003",
    "DateTimeException": "22007",
    "SparkDateTimeException": "22007",
    "NumberFormatException": "22018",
    "SparkNumberFormatException": "22018",
    "UnsupportedOperationException": sqlstate.UNSUPPORTED,
    "SparkUnsupportedOperationException": sqlstate.UNSUPPORTED,
    "AnalysisException": "42000",
    "NoSuchTableException": "42P01",
    "NoSuchNamespaceException": "42704",
    "NoSuchDatabaseException": "42704",
    "TableAlreadyExistsException": "42P07",
    "TempTableAlreadyExistsException": "42P07",
    "NamespaceAlreadyExistsException": "42P06",
    "IllegalArgumentException": "22023",
    "SparkIllegalArgumentException": "22023",
    "SparkSecurityException": sqlstate.PRIVILEGE,
    "OutOfMemoryError": sqlstate.LIMIT,
    "SparkOutOfMemoryError": sqlstate.LIMIT,
}
"""sqlStates by the exception's class, without its package."""

CODES: Final = {
    grpc.StatusCode.UNAUTHENTICATED: "28000",
    grpc.StatusCode.PERMISSION_DENIED: sqlstate.PRIVILEGE,
    grpc.StatusCode.RESOURCE_EXHAUSTED: sqlstate.TOO_LARGE,
    grpc.StatusCode.UNIMPLEMENTED: sqlstate.UNSUPPORTED,
}
"""sqlStates of gRPC's own errors."""


class ErrorDetails(Struct, frozen=True):
    """The server's report of an error: its message, its sqlState and condition, "" if it sends none, its classes
    without packages, the outermost first, and the ID by which it can be asked for more."""

    message: str
    sql_state: str = ""
    condition: str = ""
    classes: tuple[str, ...] = ()
    error_id: str = ""


def details_of(error: grpc.aio.AioRpcError) -> ErrorDetails:
    """The details of a gRPC error."""
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS and isinstance(value, bytes):
            status.ParseFromString(value)
    message = status.message or error.details() or ""
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            known = info.metadata
            return ErrorDetails(
                message,
                known.get("sqlState", ""),
                known.get("errorClass", ""),
                tuple(name.rpartition(".")[2] for name in [*_classes(known.get("classes", "")), info.reason]),
                known.get("errorId", ""),
            )
    return ErrorDetails(message)


def failure(error: grpc.aio.AioRpcError, details: ErrorDetails, sql: str, server: str) -> Failure:
    """The Failure for an error. `sql` is the statement, in which it may name a place, and `server` its address."""
    code = error.code()
    if messages.is_gone(details.message):
        return session_lost()
    if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
        return unreachable(server, details.message)
    state = details.sql_state or messages.state(details.message)
    state = state or _state_of(details.condition or messages.condition(details.message))
    state = state or CODES.get(code, "")
    state = state or next((CLASSES[name] for name in details.classes if name in CLASSES), sqlstate.INTERNAL)
    message = messages.plain(details.message) or f"the server reported an error without a message ({code.name.lower()})"
    return Failure(state, message + _marked(messages.place(details.message, sql), sql))


def session_lost() -> Failure:
    return Failure(
        sqlstate.SESSION_LOST,
        "the server ended this session, and its temporary views and settings are lost; run the statement again to "
        "start a new session",
    )


def unreachable(server: str, details: str) -> Failure:
    cause = messages.why_unreachable(details)
    because = f": {cause}" if cause else ""
    return Failure(
        UNREACHABLE,
        f"cannot reach the Spark Connect server at {server}{because}; check that it is running and that its URL is "
        "correct",
    )


def _state_of(condition: str) -> str:
    """The sqlState of a condition, or of the condition that it is a part of."""
    return CONDITIONS.get(condition) or CONDITIONS.get(condition.partition(".")[0], "")


def _classes(text: str) -> list[str]:
    try:
        classes: Any = json.loads(text) if text else []
    except ValueError:
        return []
    return [str(item) for item in classes] if isinstance(classes, list) else []


def _marked(place: tuple[int, int] | None, sql: str) -> str:
    """The line of a statement with a mark below the place of an error; "" without a place in it."""
    lines = sql.split("\n")
    if place is None or not sql.strip() or not 0 < place[0] <= len(lines) or place[1] > len(lines[place[0] - 1]):
        return ""
    number, column = place
    head = f"LINE {number}: "
    return f"\n\n{head}{lines[number - 1]}\n{' ' * (len(head) + column)}^"
