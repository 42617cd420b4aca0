"""Facts that only the text of DuckDB's messages contains. All decisions on such text are made here.

This module does not import DuckDB, which the service's own process does not load.
"""

from __future__ import annotations

import re
from typing import Final

from sqlshell.interface import sqlstate

HEAD: Final = 2000
"""Characters of a message that are examined: a statement can make it arbitrarily long."""

_STATES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"no transaction is active"), "25P01"),
    (re.compile(r"cannot start a transaction within a transaction"), "25001"),
    (re.compile(r"launched in read-only mode"), "25006"),
    (re.compile(r"can only write to a single attached database"), sqlstate.UNSUPPORTED),
    (re.compile(r"Conflict on \w+!|write-write conflict"), "40001"),
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

_SPAN: Final = re.compile(r"(?:YEAR|MONTH|DAY|HOUR|MINUTE) TO [A-Z]+ is not supported")
_TOO_LARGE: Final = "File too large"
_FULL: Final = re.compile(rf"No space left on device|Disk quota exceeded|{_TOO_LARGE}")
_SCHEMA: Final = re.compile(r'because schema "([^"]+)\.([^".]+)" does not exist|Schema with name (\S+) does not exist')
_PLACE: Final = re.compile(r'syntax error at or near ".*"(\n\nLINE \d+: .*\n *)(\^+)[ \t]*\Z')
_NEAR: Final = re.compile(r'syntax error at or near "(\w+)"')


def state_of(message: str) -> str:
    """The sqlState of an error of the catalog, of binding or of a transaction; "" for an unknown error."""
    line = message.partition("\n")[0][:HEAD]
    return next((state for pattern, state in _STATES if pattern.search(line)), "")


def missing_schema(message: str) -> tuple[str, ...]:
    """The schema that does not exist, qualified by its database if DuckDB names it. If the database does not exist,
    DuckDB names it as a schema. Empty for other messages.
    """
    match = _SCHEMA.search(message.partition("\n")[0][:HEAD])
    if match is None:
        return ()
    return (match[1], match[2]) if match[1] else (match[3],)


def near(message: str) -> tuple[str, str]:
    """The part of a message that names the word at a syntax error, and that word; empty if there is none."""
    match = _NEAR.search(message, 0, HEAD)
    return (match[0], match[1]) if match else ("", "")


def moved_to_end(message: str) -> str:
    """A syntax error at the end of a text, where DuckDB marks the last word instead; "" for other messages."""
    match = _PLACE.search(message) if len(message) < HEAD else None
    if match is None:
        return ""
    return f"{message[: match.start()]}syntax error at end of input{match[1]}{' ' * len(match[2])}^"


def is_span(message: str) -> bool:
    """Whether a syntax error is an interval from one unit to another."""
    return _SPAN.search(message, 0, HEAD) is not None


def disk_full(message: str) -> str:
    """The system's description of a full disk; "" for other messages."""
    match = _FULL.search(message)
    return match[0] if match else ""


def too_large(message: str) -> bool:
    """Whether a file reached a limit on its size, as opposed to a full disk."""
    return disk_full(message) == _TOO_LARGE


def is_read_only(message: str) -> bool:
    """Whether a statement tried to change a database that is attached read-only."""
    return "attached in read-only mode" in message[:HEAD]


def is_read_only_transaction(message: str) -> bool:
    """Whether a statement tried to change something in a READ ONLY transaction."""
    return "launched in read-only mode" in message[:HEAD]


def is_locked_setting(message: str) -> bool:
    """Whether a setting cannot be changed because the configuration is locked."""
    return "the configuration has been locked" in message[:HEAD]


def lacks_memory(message: str) -> bool:
    """Whether an internal error means that memory could not be allocated."""
    return "Memory allocation failure" in message[:HEAD]


def lacks_threads_or_memory(message: str) -> bool:
    """Whether a RuntimeError of C++ or Python means that memory or a thread's stack could not be allocated."""
    return lacks_threads(message) or "bad_alloc" in message


def lacks_threads(message: str) -> bool:
    return "can't start new thread" in message


def spill_is_full(message: str) -> bool:
    """Whether the space for temporary files is used up, and not the memory."""
    return "max_temp_directory_size" in message[:HEAD]


def is_interrupted(message: str) -> bool:
    """Whether a RuntimeError is an interrupt."""
    return "interrupt" in message.lower()


def is_locked(message: str) -> bool:
    """Whether another process has the database open."""
    return "Could not set lock" in message


def is_open_otherwise(message: str) -> bool:
    """Whether this process has the database open with different settings."""
    return "different configuration" in message


def is_conversion(message: str) -> bool:
    """Whether a value of a data file does not have its column's type."""
    return any(word in message for word in ("convert", "Failed to cast"))
