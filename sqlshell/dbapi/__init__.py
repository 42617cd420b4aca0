"""DB-API 2.0 (PEP 249) on the client, for programs: `aio.py` for asyncio, `sync.py` made from it."""

from sqlshell.dbapi.aio import AsyncConnection, AsyncCursor, aconnect
from sqlshell.dbapi.exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from sqlshell.dbapi.rows import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from sqlshell.dbapi.sync import Connection, Cursor, connect

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

apilevel = "2.0"
threadsafety = 2
"""Threads may share the module and connections."""
paramstyle = "qmark"
"""`?` for a sequence of parameters; a mapping fills `:name`."""
