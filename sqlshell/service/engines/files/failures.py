"""DuckDB's errors as sqlStates; the messages are DuckDB's. What only their text tells is decided here."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

import duckdb

from sqlshell.interface import sqlstate
from sqlshell.service.engines.files.data_files import explained
from sqlshell.service.failure import Failure

HEAD: Final = 2000
"""Characters of a message that are examined: a statement can make it arbitrarily long."""


_HOLDER: Final = re.compile(r"\(PID (\d+)\)")


class Cause(StrEnum):
    """A cause of errors that have no class of their own, by words of their messages."""

    READ_ONLY_DATABASE = "attached in read-only mode"
    READ_ONLY_TRANSACTION = "launched in read-only mode"
    LOCKED_SETTING = "the configuration has been locked"
    NO_MEMORY = "Memory allocation failure"
    NO_MEMORY_FOR_CODE = "bad_alloc"
    NO_THREAD = "can't start new thread"
    SPILL_FULL = "max_temp_directory_size"
    OPEN_IN_ANOTHER_PROCESS = "Could not set lock"
    OPEN_OTHERWISE = "different configuration"
    FILE_TOO_LARGE = "File too large"
    DISK_FULL = "No space left on device"
    QUOTA_FULL = "Disk quota exceeded"
    NOT_CONVERTED = "convert"
    NOT_CAST = "Failed to cast"

    def of(self, error: object) -> bool:
        """Tell whether an error, or its message, has this cause."""
        return self.value in str(error)[:HEAD]


def holder(error: object) -> str:
    """Name the process that has a file, of an error OPEN_IN_ANOTHER_PROCESS."""
    found = _HOLDER.search(str(error)[:HEAD])
    return f"process {found[1]}" if found is not None else "another process"


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

CONFLICT: Final = "40001"

_States = tuple[tuple[re.Pattern[str], str], ...]

_TRANSACTION_STATES: Final[_States] = (
    (re.compile(r"no transaction is active"), "25P01"),
    (re.compile(r"cannot start a transaction within a transaction"), "25001"),
    (re.compile(r"launched in read-only mode"), "25006"),
    (re.compile(r"can only write to a single attached database"), sqlstate.UNSUPPORTED),
    (re.compile(r"Conflict on \w+!|write-write conflict|Transaction conflict"), CONFLICT),
    (re.compile(r"constraint violation"), "23000"),
    (re.compile(r"TransactionContext Error|transaction is aborted"), "25P02"),
)
"""sqlStates of errors of transactions. In other errors these words are those of a user's name."""

_STATES: Final[_States] = (
    (re.compile(r"(?:Table|View) with name .* because schema"), sqlstate.NO_SCHEMA),
    (re.compile(r"(?:Table|View|Sequence|Index) with name .* does not exist"), sqlstate.NO_RELATION),
    (re.compile(r"(?:Table|View|Sequence|Index) with name .* already exists"), sqlstate.DUPLICATE_RELATION),
    (re.compile(r"Schema with name .* does not exist"), sqlstate.NO_SCHEMA),
    (re.compile(r"Schema with name .* already exists"), sqlstate.DUPLICATE_SCHEMA),
    (re.compile(r"(?:Catalog|Database)(?: with name)? \S+ does not exist|Failed to detach"), sqlstate.NO_DATABASE),
    (re.compile(r"is not a catalog or schema"), sqlstate.NO_DATABASE),
    (re.compile(r"database with name .* already exists|already attached", re.I), sqlstate.DUPLICATE_DATABASE),
    (re.compile(r"No catalog \+ schema named"), sqlstate.NO_SCHEMA),
    (re.compile(r"Function with name .* does not exist|No function matches"), "42883"),
    (re.compile(r"is not an aggregate function"), "42883"),
    (re.compile(r"already exists"), sqlstate.DUPLICATE),
    (
        re.compile(
            r"Referenced (?:update )?column .* not found|does not have a column (?:named|with name)|Could not find key"
        ),
        "42703",
    ),
    (re.compile(r"Referenced table .* not found"), sqlstate.NO_RELATION),
    (re.compile(r"must appear in the GROUP BY"), "42803"),
)
"""sqlStates of errors of the catalog, of binding and of transactions."""

_PATH: Final = re.compile(r'"(?:[^"\n]*\\0)?([^"\n]*)"')
"""A name in the message of a conflict, which may be a path with NULs that are written as a backslash and a zero."""

_SPAN: Final = re.compile(r"(?:YEAR|MONTH|DAY|HOUR|MINUTE) TO [A-Z]+ is not supported")
_SCHEMA: Final = re.compile(r'because schema "([^"]+)\.([^".]+)" does not exist|Schema with name (\S+) does not exist')
_PLACE: Final = re.compile(r'syntax error at or near ".*"(\n\nLINE \d+: .*\n *)(\^+)[ \t]*\Z')
_FULL: Final = (Cause.FILE_TOO_LARGE, Cause.DISK_FULL, Cause.QUOTA_FULL)
_LENGTH = 64 << 10
"""Maximum characters of a message: a statement can make it arbitrarily long."""

_LINE = re.compile(r"^LINE (\d+):", re.M)

_EXTENSION = re.compile(r"\n+Please try installing and loading the .*", re.S)
_SET = re.compile(r'\s*Use "?SET [^\n]*')


def followable(message: str) -> str:
    """DuckDB's message without advice that requires extensions or settings that are not allowed."""
    return _SET.sub("", _EXTENSION.sub(" This service does not load extensions.", message[:_LENGTH]))


def failure(error: Exception, lines_before: int = 0) -> Failure:
    """Return the Failure for an error of DuckDB. `lines_before` is the number of lines that we added before the
    statement."""
    if isinstance(error, duckdb.InterruptException):
        return Failure(sqlstate.CANCELED, "the statement was canceled")
    # Memory addresses in a trace are of no use to a reader.
    message = explained(str(error)[:_LENGTH].partition("\n\nStack Trace:")[0])
    if lines_before:
        message = _LINE.sub(lambda match: f"LINE {max(1, int(match[1]) - lines_before)}:", message)
    if isinstance(error, duckdb.IOException | duckdb.TransactionException) and (full := disk_full(message)):
        return Failure(sqlstate.DISK_FULL, f"disk full: {full.lower()}")
    state = _state(error, message)
    if state == CONFLICT:
        message = _PATH.sub(r'"\1"', message) + "\nHINT: another transaction has changed the same; run yours again"
    return Failure(state, message, _missing_schema(message))


def disk_full(message: str) -> str:
    """Return the system's description of a full disk; "" for other messages."""
    return next((cause.value for cause in _FULL if cause.of(message)), "")


def moved_to_end(message: str) -> str:
    """Return a syntax error at the end of a text, where DuckDB marks the last word instead; "" for other messages."""
    match = _PLACE.search(message) if len(message) < HEAD else None
    if match is None:
        return ""
    return f"{message[: match.start()]}syntax error at end of input{match[1]}{' ' * len(match[2])}^"


def _state(error: Exception, message: str) -> str:
    state = ""
    match error:
        case duckdb.CatalogException() | duckdb.BinderException() | duckdb.TransactionException():
            line = message.partition("\n")[0][:HEAD]
            of_transaction = isinstance(error, duckdb.TransactionException) or line.startswith("TransactionContext")
            states = (*_TRANSACTION_STATES, *_STATES) if of_transaction else _STATES
            state = next((state for pattern, state in states if pattern.search(line)), "")
        case duckdb.ParserException() if _SPAN.search(message, 0, HEAD):
            state = sqlstate.UNSUPPORTED
        case duckdb.InvalidInputException() if Cause.READ_ONLY_DATABASE.of(message):
            state = "25006"
        case duckdb.InvalidInputException() if Cause.LOCKED_SETTING.of(message):
            state = sqlstate.PRIVILEGE
        case duckdb.InternalException() if Cause.NO_MEMORY.of(message):
            state = sqlstate.LIMIT
        case RuntimeError() if "interrupt" in message.lower():
            state = sqlstate.CANCELED
    return state or next((code for kind, code in CLASSES if isinstance(error, kind)), sqlstate.INTERNAL)


def _missing_schema(message: str) -> tuple[str, ...]:
    """The schema that does not exist, qualified by its database if DuckDB names it. If the database does not exist,
    DuckDB names it as a schema. Empty for other messages.
    """
    match = _SCHEMA.search(message.partition("\n")[0][:HEAD])
    if match is None:
        return ()
    return (match[1], match[2]) if match[1] else (match[3],)
