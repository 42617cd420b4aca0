"""Connection and Cursor of PEP 249, made from those for asyncio.

Each connection has a thread with an event loop, on which its session runs.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlshell.dbapi.aio import AsyncConnection, AsyncCursor, ConnectionState
from sqlshell.dbapi.binding import Parameters
from sqlshell.dbapi.cursors import Attachments, CursorState
from sqlshell.dbapi.exceptions import InterfaceError, translated
from sqlshell.dbapi.opening import open_session, reporting
from sqlshell.dbapi.rows import Row
from sqlshell.dbapi.session import Session
from sqlshell.runtime.event_loops import LoopThread

P = ParamSpec("P")
Given = TypeVar("Given")


def connect(target: str | os.PathLike[str] = "", *, autocommit: bool = False, **options: Any) -> Connection:
    """Connect to the service that `target` names: a URL, a profile, a database or data file, or ":memory:".

    Without a target, the rules of the shell apply: SQLSHELL_URL, SQLSHELL_PROFILE, the profile `default`, otherwise a
    database in memory. Unless `autocommit` is set, the first statement begins a transaction, which lasts until commit()
    or rollback(). `options` are settings of a profile; times are in seconds:

    - profile: the profile in config.toml whose settings are used.
    - token, token_file, token_command, token_keyring: the bearer token, or where it is.
    - organization, role, database, schema, store, compute_pool, timezone: the context of the first statement.
    - session_id: the session to join instead of a new one.
    - timeout: the time that one statement may take (no limit).
    - connect_timeout, read_timeout: the time to connect (10), and to wait for data within one request (120).
    - retry_timeout, retries: for how long (300) and how many times (5) a request that fails is retried.
      Neither limits a statement; use `timeout`.
    - ca_file, client_cert, client_key, insecure: certificates, and whether the service's is not verified.
    - api: "v2", "legacy" or "auto".
    - private_data_plane: whether a public service may serve results from private addresses.
    - answer_limit, upload_limit, download_limit: the maximum size of a response (64) and of files (1024), in MiB.
    - read_only, confirm, yes: which statements are refused.

    Raises ProgrammingError for an invalid target or option, and OperationalError if the service cannot be reached or
    rejects the token.
    """
    loop = LoopThread("sqlshell connection")
    try:
        with reporting() as warn, translated():
            session = loop.run(open_session(target, options, warn, autocommit=autocommit))
    except BaseException:
        loop.close()
        raise
    return Connection(session, loop)


def _blocking(work: Callable[Concatenate[Any, P], Coroutine[Any, Any, Given]]) -> Callable[Concatenate[Any, P], Given]:
    """Make a method that waits for `work`, a method of AsyncConnection or AsyncCursor that needs only what both kinds
    have.
    """

    @functools.wraps(work)
    def wait(self: Any, /, *given: P.args, **named: P.kwargs) -> Given:
        result: Given = self._run(work, self, *given, **named)
        return result

    return wait


class Connection(ConnectionState):
    """A session at a service. Threads can share it; their statements run one after another.

    As a context manager it commits at the end, or rolls back after an exception, and closes itself. A process that was
    forked cannot use the connections of its parent.
    """

    __slots__ = ("_loop",)

    def __init__(self, session: Session, loop: LoopThread) -> None:
        self._loop = loop
        super().__init__(session, _abandon, loop, session)

    engine = _blocking(AsyncConnection.engine)
    commit = _blocking(AsyncConnection.commit)
    rollback = _blocking(AsyncConnection.rollback)
    cancel = _blocking(AsyncConnection.cancel)

    def cursor(self) -> Cursor:
        """Raises InterfaceError if the connection is closed."""
        self._session.check()
        return Cursor(self)

    def execute(
        self, sql: str, parameters: Parameters | None = None, *, attachments: Attachments | None = None
    ) -> Cursor:
        """Execute a statement with a new cursor, and return the cursor. Raises the exceptions of Cursor.execute()."""
        return self.cursor().execute(sql, parameters, attachments=attachments)

    def close(self) -> None:
        """Roll back the open transaction and end the session. Does nothing if the connection is closed."""
        if self._finalizer.detach() is not None and not self._loop.inherited:
            try:
                with translated():
                    self._loop.run(self._session.aclose())
            finally:
                self._loop.close()

    def __enter__(self) -> Connection:
        self._session.check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self.closed and kind is None:
                self.commit()
        finally:
            self.close()

    def _run(self, work: Callable[P, Coroutine[Any, Any, Given]], *given: P.args, **named: P.kwargs) -> Given:
        """Run a coroutine function on the connection's event loop. Raises the exceptions of PEP 249."""
        self._session.check()
        if self._loop.inherited:
            raise InterfaceError("the connection belongs to the parent process", hint="connect again after the fork")
        with translated():
            try:
                return self._loop.run(work(*given, **named))
            except CancelledError:
                # Another thread closed the connection.
                self._session.check()
                raise


class Cursor(CursorState):
    """Executes statements and fetches their rows, which are streamed. Threads that share it wait for each other."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection._session)
        self.connection = connection
        # The rows of executemany() may come from code that uses this cursor: its error is better than a deadlock.
        self._using = threading.RLock()

    fetchall = _blocking(AsyncCursor.fetchall)
    fetch_arrow = _blocking(AsyncCursor.fetch_arrow)
    nextset = _blocking(AsyncCursor.nextset)
    _execute = _blocking(AsyncCursor.execute)

    def execute(
        self, sql: str, parameters: Parameters | None = None, *, attachments: Attachments | None = None
    ) -> Cursor:
        """Execute one statement or several, and return this cursor; nextset() goes to the result of the next statement.

        `parameters` is a sequence for `?` or a mapping for `:name`. `attachments` are files that the service gets with
        the statement. Raises the exceptions of PEP 249.
        """
        self._execute(sql, parameters, attachments=attachments)
        return self

    def executemany(self, sql: str, rows: Iterable[Parameters]) -> Cursor:
        """Execute a statement once for each row of parameters, and return this cursor, which has no rows.

        INSERT … VALUES (…) is sent with many rows per statement. Raises the exceptions of PEP 249.
        """
        with self._using:
            self._run(self._discard_results)
            for group in self._groups(sql, rows, self._run(self._session.literals)):
                self._run(self._run_group, group)
        return self

    def fetchone(self) -> Row | None:
        """The next row, or None after the last one. Raises ProgrammingError if there is no result, and DataError."""
        self._check()
        with self._using:
            if self._next_row >= len(self._rows) and not self._run(self._read_batch):
                return None
            return self._take(1)[0]

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next `size` rows (by default the value of arraysize), or fewer at the end.

        Raises the same errors as fetchone().
        """
        wanted = self._wanted(size)
        self._check()
        with self._using:
            if 0 < wanted <= len(self._rows) - self._next_row:
                return self._take(wanted)
            return self._run(self._fetch_many, wanted)

    def fetch_df(self, library: str = "") -> Any:
        """The remaining rows as a DataFrame of `library`, "pandas" or "polars"; without it, of the first one installed.

        Raises NotSupportedError if the library is not installed, and the exceptions of fetch_arrow().
        """
        from sqlshell.dbapi.arrow import frame_of

        return frame_of(self.fetch_arrow(), library)

    def cancel(self) -> None:
        """Cancel the running statement, from another thread."""
        self.connection.cancel()

    def close(self) -> None:
        """Discard the remaining rows. Does nothing if the cursor is closed."""
        if not self.closed and not self._session.closed:
            self._run(self._discard_results)
        self.closed = True

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Cursor:
        self._check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, work: Callable[P, Coroutine[Any, Any, Given]], *given: P.args, **named: P.kwargs) -> Given:
        with self._using:
            return self.connection._run(work, *given, **named)


def _abandon(loop: LoopThread, session: Session) -> None:
    """End the threads of a connection that was not closed; called at the end of the process as well."""
    if loop.inherited:
        return

    def end() -> None:
        try:
            loop.run(session.disconnect())
        finally:
            loop.close()
            session.release()

    if loop.here or threading.current_thread() is not threading.main_thread():
        # The garbage collector may run in one of the threads that end.
        threading.Thread(target=end, daemon=True).start()
    else:
        end()
