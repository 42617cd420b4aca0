"""Connections and cursors for asyncio: those of PEP 249, with coroutines for the methods that wait.

sync.py makes the connections and cursors of PEP 249 from these.
"""

from __future__ import annotations

import os
import shutil
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec.structs import replace

from sqlshell.context import SessionContext
from sqlshell.dbapi import exceptions
from sqlshell.dbapi.binding import Parameters, bound
from sqlshell.dbapi.cursors import Attachments, CursorState, Remaining
from sqlshell.dbapi.exceptions import InterfaceError, translated
from sqlshell.dbapi.literals import Literals
from sqlshell.dbapi.opening import open_session, reporting
from sqlshell.dbapi.rows import Row
from sqlshell.dbapi.session import Session, checked_autocommit
from sqlshell.output.text.cells import printable

if TYPE_CHECKING:
    from pathlib import Path

    from sqlshell.dbapi.arrow import ArrowResult


async def aconnect(target: str | os.PathLike[str] = "", *, autocommit: bool = False, **options: Any) -> AsyncConnection:
    """Connect as connect() does, on the running event loop. Raises the same exceptions."""
    with reporting() as warn, translated():
        return AsyncConnection(await open_session(target, options, warn, autocommit=autocommit))


class ContextPart:
    """A part of the session's context as an attribute of a connection; "" if it is not set. An assigned value applies
    to the following statements.

    A statement that changes the context, such as USE, changes the attribute too: the service reports its context.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, connection: ConnectionState | None, owner: type) -> str:
        return str(self if connection is None else getattr(connection.context, self._name))

    def __set__(self, connection: ConnectionState, value: str) -> None:
        with translated():
            connection._session.change(self._name, value)


class ConnectionState:
    """The attributes that connections of both kinds have. The exceptions are attributes too, as an optional part of
    PEP 249 asks.
    """

    Warning = exceptions.Warning
    Error = exceptions.Error
    InterfaceError = exceptions.InterfaceError
    DatabaseError = exceptions.DatabaseError
    DataError = exceptions.DataError
    OperationalError = exceptions.OperationalError
    IntegrityError = exceptions.IntegrityError
    InternalError = exceptions.InternalError
    ProgrammingError = exceptions.ProgrammingError
    NotSupportedError = exceptions.NotSupportedError

    organization = ContextPart()
    role = ContextPart()
    database = ContextPart()
    schema = ContextPart()
    store = ContextPart()
    compute_pool = ContextPart()
    timezone = ContextPart()

    # A misspelled attribute is an error, instead of a value that nothing reads.
    __slots__ = ("__weakref__", "_finalizer", "_session")

    def __init__(self, session: Session, abandon: Callable[..., None], *given: Any) -> None:
        """`abandon` is called if the connection is not closed, also at the end of the process."""
        self._session = session
        self._finalizer = weakref.finalize(self, abandon, *given)

    def __repr__(self) -> str:
        session = self._session
        state = "closed" if session.closed else "in a transaction" if session.in_transaction else "open"
        return f"<{type(self).__module__}.{type(self).__qualname__} {printable(session.address)!r}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a connection cannot be copied or pickled: connect again")

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        finalizer = getattr(self, "_finalizer", None)
        if finalizer is not None and finalizer.alive and not self._session.inherited:
            remedy = 'call close(), or use "with" or "async with"'
            warn(f"a connection was not closed; {remedy}", ResourceWarning, source=self, stacklevel=2)

    @property
    def closed(self) -> bool:
        return self._session.closed

    @property
    def context(self) -> SessionContext:
        """The context in which the next statement runs."""
        return self._session.context

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own. Setting it in a transaction raises ProgrammingError."""
        return self._session.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        checked_autocommit(value)
        self._session.autocommit = value

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, or has failed and has not been rolled back yet."""
        return self._session.in_transaction


class AsyncConnection(ConnectionState):
    """A session at a service. Tasks can share it; their statements run one after another.

    `async with` commits at the end, or rolls back after an exception, and closes the connection. If a task is canceled
    while it waits for a statement, the service cancels the statement.
    """

    __slots__ = ()

    def __init__(self, session: Session) -> None:
        super().__init__(session, session.abandon)

    async def engine(self) -> str:
        """The name of the engine that the service announces, such as "postgresql"; "" for DuckDB and other services."""
        with translated():
            return await self._session.engine()

    def cursor(self) -> AsyncCursor:
        """Raises InterfaceError if the connection is closed."""
        self._session.check()
        return AsyncCursor(self)

    async def execute(
        self, sql: str, parameters: Parameters | None = None, *, attachments: Attachments | None = None
    ) -> AsyncCursor:
        """Execute a statement with a new cursor, and return the cursor. Raises the exceptions of Cursor.execute()."""
        return await self.cursor().execute(sql, parameters, attachments=attachments)

    async def commit(self) -> None:
        """Commit the open transaction, if any. Raises InternalError if it had failed; it is then rolled back."""
        with translated():
            await self._session.commit()

    async def rollback(self) -> None:
        """Roll back the open transaction, if any."""
        with translated():
            await self._session.rollback()

    async def cancel(self) -> None:
        """Cancel the running statement, from another task or thread. The statement then fails with sqlState 57000."""
        with translated():
            await self._session.cancel()

    async def close(self) -> None:
        """Roll back the open transaction and end the session. Does nothing if the connection is closed."""
        self._finalizer.detach()
        with translated():
            await self._session.aclose()

    async def __aenter__(self) -> AsyncConnection:
        self._session.check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self.closed and kind is None:
                await self.commit()
        finally:
            await self.close()


class AsyncCursor(CursorState):
    """Executes statements and fetches their rows, which are streamed. Tasks that share it wait for each other."""

    def __init__(self, connection: AsyncConnection) -> None:
        super().__init__(connection._session)
        self.connection = connection

    async def execute(
        self, sql: str, parameters: Parameters | None = None, *, attachments: Attachments | None = None
    ) -> AsyncCursor:
        """Execute one statement or several, as Cursor.execute() does, and return this cursor."""
        with translated():
            async with self._turn:
                await self._discard_results()
                # Without parameters there is no need to ask for the engine.
                literals = Literals() if parameters is None else await self._session.literals()
                text = bound(sql, parameters, literals)
                folder: list[Path] = []
                try:
                    files = self._files(attachments or {}, folder)
                    self._results = await self._session.execute(text, files, self._running)
                finally:
                    for path in folder:
                        shutil.rmtree(path, ignore_errors=True)
                self._begin_next_result()
        return self

    async def executemany(self, sql: str, rows: Iterable[Parameters]) -> AsyncCursor:
        """Execute a statement once for each row of parameters, as Cursor.executemany() does."""
        async with self._turn:
            with translated():
                await self._discard_results()
                literals = await self._session.literals()
            for group in self._groups(sql, rows, literals):
                with translated():
                    await self._run_group(group)
        return self

    async def fetchone(self) -> Row | None:
        """The next row, or None after the last one. Raises ProgrammingError if there is no result, and DataError."""
        with translated():
            async with self._turn:
                rows = await self._fetch_many(1)
        return rows[0] if rows else None

    async def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next `size` rows (by default the value of arraysize), or fewer at the end.

        Raises the same errors as fetchone().
        """
        with translated():
            async with self._turn:
                return await self._fetch_many(self._wanted(size))

    async def fetchall(self) -> list[Row]:
        """All remaining rows. Raises the same errors as fetchone()."""
        with translated():
            async with self._turn:
                return await self._fetch_many(None)

    async def fetch_arrow(self) -> ArrowResult:
        """The remaining rows as an object with the Arrow PyCapsule interface. Raises the same errors as fetchone()."""
        from sqlshell.dbapi.arrow import arrow_of

        with translated():
            async with self._turn:
                result = self._rows_result()
                if self._batch is None and self._rows:
                    raise InterfaceError(
                        "a fetch was interrupted: fetch the remaining rows with fetchmany(), or execute the statement "
                        "again"
                    )
                if self._rows_fetched:
                    left = Remaining(self._batch, self._next_row, result.batches)
                    result = replace(result, batches=left, whole=None)
                self._drop_rows()
                return await arrow_of(result)

    async def fetch_df(self, library: str = "") -> Any:
        """The remaining rows as a DataFrame of `library`, "pandas" or "polars"; without it, of the first one installed.

        Raises NotSupportedError if the library is not installed, and the exceptions of fetch_arrow().
        """
        from sqlshell.dbapi.arrow import frame_of

        return frame_of(await self.fetch_arrow(), library)

    async def nextset(self) -> bool | None:
        """Go to the result of the next statement. Returns None if there is none."""
        with translated():
            async with self._turn:
                self._check()
                if not self._results:
                    return None
                await self._close_result()
                self._begin_next_result()
                return True

    async def cancel(self) -> None:
        """Cancel the running statement, from another task."""
        await self.connection.cancel()

    async def close(self) -> None:
        """Discard the remaining rows. Does nothing if the cursor is closed."""
        with translated():
            if not (self.closed or self._session.closed):
                await self._discard_results()
            self.closed = True

    def __aiter__(self) -> AsyncIterator[Row]:
        return self

    async def __anext__(self) -> Row:
        row = await self.fetchone()
        if row is None:
            raise StopAsyncIteration
        return row

    async def __aenter__(self) -> AsyncCursor:
        self._check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
