"""Connections and cursors for asyncio: those of PEP 249, with coroutines for the methods that wait."""

from __future__ import annotations

import asyncio
import os
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sqlshell.dbapi.binding import Parameters
from sqlshell.dbapi.connection_state import ConnectionState
from sqlshell.dbapi.cursors import Attachments, CursorState
from sqlshell.dbapi.exceptions import translated
from sqlshell.dbapi.opening import open_session, reporting
from sqlshell.dbapi.session import Session
from sqlshell.dbapi.values.typed_rows import Row

if TYPE_CHECKING:
    from sqlshell.dbapi.arrow import ArrowResult


async def aconnect(target: str | os.PathLike[str] = "", *, autocommit: bool = False, **options: Any) -> AsyncConnection:
    """Connect as connect() does, on the running event loop. Raises the same exceptions."""
    with reporting() as warn, translated():
        return AsyncConnection(await open_session(target, options, warn, autocommit=autocommit))


class AsyncConnection(ConnectionState):
    """A session at a service. Tasks can share it; their statements run one after another.

    `async with` commits at the end, or rolls back after an exception, and closes the connection. If a task is canceled
    while it waits for a statement, the service cancels the statement.
    """

    __slots__ = ("_finalizer",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._finalizer = weakref.finalize(self, _abandon, session)

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
        """Cancel the running statement, from another task. The statement then fails with sqlState 57000."""
        with translated():
            self._session.check()
            await self._session.cancel()

    async def close(self) -> None:
        """Roll back the open transaction and end the session. Does nothing if the connection is closed."""
        self._finalizer.detach()
        with translated():
            await self._session.aclose()

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        finalizer = getattr(self, "_finalizer", None)
        if finalizer is not None and finalizer.alive and not self._session.inherited:
            warn("a connection was not closed", ResourceWarning, source=self, stacklevel=2)

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
        self._using = asyncio.Lock()

    async def execute(
        self, sql: str, parameters: Parameters | None = None, *, attachments: Attachments | None = None
    ) -> AsyncCursor:
        """Execute one statement or several, as Cursor.execute() does, and return this cursor."""
        with translated():
            async with self._using:
                await self._execute(sql, parameters, attachments)
        return self

    async def executemany(self, sql: str, rows: Iterable[Parameters]) -> AsyncCursor:
        """Execute a statement once for each row of parameters, as Cursor.executemany() does."""
        async with self._using:
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
            async with self._using:
                rows = await self._fetch_many(1)
        return rows[0] if rows else None

    async def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next `size` rows (by default the value of arraysize), or fewer at the end.

        Raises the same errors as fetchone().
        """
        with translated():
            async with self._using:
                return await self._fetch_many(self._wanted(size))

    async def fetchall(self) -> list[Row]:
        """All remaining rows. Raises the same errors as fetchone()."""
        with translated():
            async with self._using:
                return await self._fetch_all()

    async def fetch_arrow(self) -> ArrowResult:
        """The remaining rows as an object with the Arrow PyCapsule interface. Raises the same errors as fetchone()."""
        with translated():
            async with self._using:
                return await self._fetch_arrow()

    async def fetch_df(self, library: str = "") -> Any:
        """The remaining rows as a DataFrame of `library`, "pandas" or "polars"; without it, of the first one installed.

        Raises NotSupportedError if the library is not installed, and the exceptions of fetch_arrow().
        """
        from sqlshell.dbapi.arrow import frame_of

        return frame_of(await self.fetch_arrow(), library)

    async def nextset(self) -> bool | None:
        """Go to the result of the next statement. Returns None if there is none."""
        with translated():
            async with self._using:
                return await self._next_set() or None

    async def cancel(self) -> None:
        """Cancel the running statement, from another task."""
        await self.connection.cancel()

    async def close(self) -> None:
        """Discard the remaining rows. Does nothing if the cursor is closed."""
        with translated():
            await self._close()

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


def _abandon(session: Session) -> None:
    """Release what a connection holds that was not closed; called at the end of the process as well."""
    if not session.inherited:
        session.abandon()
