"""sqlshell: the SQL shell for statement-execution services.

For programs this is a module of DB-API 2.0 (PEP 249): `connect()`, the exceptions, types and constants of
`sqlshell.dbapi`, and `aconnect()` for asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlshell.version import __version__ as __version__

if TYPE_CHECKING:
    # ruff: noqa: F405
    from sqlshell.dbapi import *  # noqa: F403

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "AsyncConnection",
    "AsyncCursor",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "aconnect",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import the DB-API when a program uses it: the shell starts without it."""
        if name in __all__:
            from sqlshell import dbapi

            return getattr(dbapi, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
