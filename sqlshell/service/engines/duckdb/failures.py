"""DuckDB's errors as sqlStates of the interface; the message stays DuckDB's own."""

from __future__ import annotations

import re

import duckdb

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.datafiles import explained
from sqlshell.service.engines.engine import Failure

CLASSES: tuple[tuple[type[Exception], str], ...] = (
    (duckdb.InterruptException, sqlstate.CANCELLED),
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

_SPAN = re.compile(r"(?:YEAR|MONTH|DAY|HOUR|MINUTE) TO [A-Z]+ is not supported")
_FULL = re.compile(r"No space left on device|Disk quota exceeded|File too large")
_LENGTH = 64 << 10
_HEAD = 2000
"""Characters of a message that are looked at, and those that tell its kind: a statement can make it of any length."""

_LINE = re.compile(r"^LINE (\d+):", re.M)

WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"no transaction is active"), "25P01"),
    (re.compile(r"cannot start a transaction within a transaction"), "25001"),
    (re.compile(r"TransactionContext Error|transaction is aborted"), "25P02"),
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


_EXTENSION = re.compile(r"\n+Please try installing and loading the .*", re.S)
_SET = re.compile(r'\s*Use "?SET [^\n]*')


def followable(message: str) -> str:
    """DuckDB's message without advice that nobody can follow where extensions and settings are not allowed."""
    return _SET.sub("", _EXTENSION.sub(" This service loads no extensions.", message[:_LENGTH]))


def failure(error: Exception, lines_before: int = 0) -> Failure:
    """The failure that a DuckDB error is. `lines_before` is how many lines of ours stood before the statement's own."""
    # The addresses in a trace help nobody who reads a message.
    message = explained(str(error)[:_LENGTH].partition("\n\nStack Trace:")[0])
    if lines_before:
        message = _LINE.sub(lambda found: f"LINE {max(1, int(found[1]) - lines_before)}:", message)
    if isinstance(error, duckdb.IOException | duckdb.TransactionException) and (full := _FULL.search(message)):
        return Failure(sqlstate.DISK_FULL, f"the disk of the database is full: {full[0]}")
    if isinstance(error, duckdb.CatalogException | duckdb.BinderException | duckdb.TransactionException):
        for pattern, code in WORDS:
            if pattern.search(message.partition("\n")[0][:_HEAD]):
                return Failure(code, message)
    if isinstance(error, duckdb.ParserException) and _SPAN.search(message[:_HEAD]):
        return Failure(sqlstate.UNSUPPORTED, message)
    if isinstance(error, duckdb.InvalidInputException) and "attached in read-only mode" in message[:_HEAD]:
        return Failure("25006", message)
    if isinstance(error, duckdb.InternalException) and "Memory allocation failure" in message[:_HEAD]:
        return Failure(sqlstate.LIMIT, message)
    for kind, code in CLASSES:
        if isinstance(error, kind):
            return Failure(code, message)
    if isinstance(error, RuntimeError) and "interrupt" in message.lower():
        return Failure(sqlstate.CANCELLED, message)
    return Failure(sqlstate.INTERNAL, message)
