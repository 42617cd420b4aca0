"""Maps DuckDB's errors to sqlStates of the interface; the messages are DuckDB's."""

from __future__ import annotations

import re

import duckdb

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb import messages
from sqlshell.service.engines.duckdb.datafiles import explained
from sqlshell.service.failure import Failure

CLASSES: tuple[tuple[type[Exception], str], ...] = (
    (duckdb.InterruptException, sqlstate.CANCELED),
    (duckdb.ParserException, sqlstate.SYNTAX),
    (duckdb.SyntaxException, sqlstate.SYNTAX),
    (duckdb.ConstraintException, "23000"),
    (duckdb.ConversionException, "22000"),
    (duckdb.OutOfRangeException, "22003"),
    (duckdb.TypeMismatchException, "42804"),
    (duckdb.NotImplementedException, sqlstate.UNSUPPORTED),
    (duckdb.NotSupportedError, sqlstate.UNSUPPORTED),
    (duckdb.PermissionException, sqlstate.PRIVILEGE),
    (duckdb.OutOfMemoryException, sqlstate.LIMIT),
    (duckdb.TransactionException, "25000"),
    (duckdb.DependencyException, sqlstate.DEPENDENTS),
    (duckdb.HTTPException, sqlstate.REMOTE_UNAVAILABLE),
    (duckdb.IOException, "58030"),
    (duckdb.SerializationException, "XX000"),
    (duckdb.InternalException, sqlstate.INTERNAL),
    (duckdb.FatalException, sqlstate.INTERNAL),
    (duckdb.SequenceException, "55000"),
    (duckdb.InvalidInputException, "22023"),
    (duckdb.BinderException, "42000"),
    (duckdb.CatalogException, "42704"),
)

_LENGTH = 64 << 10
"""Maximum characters of a message: a statement can make it arbitrarily long."""

_LINE = re.compile(r"^LINE (\d+):", re.M)

_EXTENSION = re.compile(r"\n+Please try installing and loading the .*", re.S)
_SET = re.compile(r'\s*Use "?SET [^\n]*')


def followable(message: str) -> str:
    """DuckDB's message without advice that requires extensions or settings that are not allowed."""
    return _SET.sub("", _EXTENSION.sub(" This service does not load extensions.", message[:_LENGTH]))


def failure(error: Exception, lines_before: int = 0) -> Failure:
    """The Failure for an error of DuckDB. `lines_before` is the number of lines that we added before the statement."""
    if isinstance(error, duckdb.InterruptException):
        return Failure(sqlstate.CANCELED, "the statement was canceled")
    # Memory addresses in a trace are of no use to a reader.
    message = explained(str(error)[:_LENGTH].partition("\n\nStack Trace:")[0])
    if lines_before:
        message = _LINE.sub(lambda match: f"LINE {max(1, int(match[1]) - lines_before)}:", message)
    if isinstance(error, duckdb.IOException | duckdb.TransactionException) and (full := messages.disk_full(message)):
        return Failure(sqlstate.DISK_FULL, f"disk full: {full}")
    return Failure(_state(error, message), message, messages.missing_schema(message))


def _state(error: Exception, message: str) -> str:
    state = ""
    match error:
        case duckdb.CatalogException() | duckdb.BinderException() | duckdb.TransactionException():
            state = messages.state_of(message)
        case duckdb.ParserException() if messages.is_span(message):
            state = sqlstate.UNSUPPORTED
        case duckdb.InvalidInputException() if messages.is_read_only(message):
            state = "25006"
        case duckdb.InvalidInputException() if messages.is_locked_setting(message):
            state = sqlstate.PRIVILEGE
        case duckdb.InternalException() if messages.lacks_memory(message):
            state = sqlstate.LIMIT
        case RuntimeError() if messages.is_interrupted(message):
            state = sqlstate.CANCELED
    return state or next((code for kind, code in CLASSES if isinstance(error, kind)), sqlstate.INTERNAL)
