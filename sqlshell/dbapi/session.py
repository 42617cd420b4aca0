"""A session at a service: its context, its transaction and its statements. Both kinds of connections use it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from msgspec.structs import replace

from sqlshell.client.http.upload import Attachment
from sqlshell.client.results.creation_rows import creates_object, is_creation_result, tag_of
from sqlshell.client.service import Service
from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import BELONGING, SessionContext
from sqlshell.dbapi.bulk import EXTENSION, MOST_BYTES
from sqlshell.dbapi.exceptions import InterfaceError, InternalError, NotSupportedError, ProgrammingError
from sqlshell.dbapi.literals import Literals, literals_for
from sqlshell.errors import ShellError, StatementError, WaitTimeout
from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.launch.targets import checked_timezone
from sqlshell.result import Result
from sqlshell.sql.analysis.error_places import span_of
from sqlshell.sql.analysis.kinds import is_repeatable
from sqlshell.sql.analysis.lexed import Lexed, lexed
from sqlshell.sql.analysis.policy import Policy
from sqlshell.sql.analysis.transaction import FAILED, Transaction

ENDING_SECONDS = 10.0
"""How long to wait for the end of a query that is no longer read, in seconds."""

_TRANSACTION_KEYWORDS = frozenset({"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"})


class Running:
    """A running statement. `statement_id` is "" until the service has assigned one."""

    def __init__(self) -> None:
        self.statement_id = ""
        self.canceled = False


def checked_autocommit(value: object) -> bool:
    """Raises ProgrammingError if the value is not a bool."""
    if not isinstance(value, bool):
        raise ProgrammingError(f"autocommit must be True or False, not {value!r}")
    return value


def _is_empty(sql: Lexed) -> bool:
    """Whether a text has nothing but comments and semicolons."""
    read = 0
    while len(tokens := sql.first(read + 1)) > read:
        if tokens[read].text != ";":
            return False
        read += 1
    return True


class Session:
    """Runs statements one after another. All coroutines run on one event loop.

    `address` is the service's URL without secrets, or the files of an embedded one.
    `own_session` is the ID of the session that ends with this connection, "" if the caller joined an existing one.
    `release` stops an embedded service and waits for it.
    """

    def __init__(
        self,
        service: Service,
        context: SessionContext,
        policy: Policy,
        release: Callable[[], None],
        *,
        own_session: str = "",
        embedded: bool = False,
        upload_limit: int = 0,
        autocommit: bool = False,
        address: str = "",
    ) -> None:
        self.address = address
        self.context = context
        self.release = release
        self.upload_limit = upload_limit
        self.closed = False
        self._autocommit = autocommit
        self._service = service
        self._client = service.statements
        self._policy = policy
        self._own_session = own_session
        self._embedded = embedded
        self._transaction = Transaction()
        self._cause = ""
        self._turn = asyncio.Lock()
        self._running: Running | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()

    @property
    def autocommit(self) -> bool:
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if self._transaction.state and value != self._autocommit:
            raise ProgrammingError("autocommit cannot be changed in a transaction", hint="commit or roll back first")
        self._autocommit = value

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, or has failed and not been rolled back."""
        return bool(self._transaction.state)

    @property
    def inherited(self) -> bool:
        """Whether this process was forked from the one that opened the session."""
        return os.getpid() != self._process

    @property
    def loads_files(self) -> bool:
        """Whether rows can be sent as a file: the service announced it, and neither read_only nor confirm is set."""
        allowed = not self._policy.read_only and not self._policy.confirm
        fits = not 0 < self.upload_limit < 4 * MOST_BYTES
        return allowed and fits and EXTENSION in self._service.transport.extensions

    async def engine(self) -> str:
        """The name of the engine that the service announces, "" for DuckDB and other services. Raises ShellError."""
        self.check_loop()
        return await self._service.engine()

    async def literals(self) -> Literals:
        """The literals that the service's engine understands. Raises ShellError."""
        return literals_for(await self.engine())

    def change(self, name: str, value: str) -> None:
        """Change a part of the context for the following statements. Raises UsageError for an unknown time zone."""
        self.check()
        if not isinstance(value, str):
            raise ProgrammingError(
                f"{name} must be a str, not {type(value).__name__}", hint='"" uses the default of the service'
            )
        if name == "timezone":
            checked_timezone(value)
        self.context = replace(self.context, **dict.fromkeys(BELONGING.get(name, ()), ""), **{name: value})

    def check(self) -> None:
        """Raises InterfaceError if the connection is closed."""
        if self.closed:
            raise InterfaceError("the connection is closed")

    def check_loop(self) -> None:
        """Raises InterfaceError if the connection is closed, or the running event loop is not that of its sockets."""
        self.check()
        if asyncio.get_running_loop() is not self._loop:
            raise InterfaceError(
                "the connection belongs to another event loop", hint="open a new connection in the running event loop"
            )

    @contextlib.contextmanager
    def reporting_closed(self) -> Iterator[None]:
        """An error of what runs while the connection is closed becomes InterfaceError."""
        try:
            yield
        except Exception as error:
            if self.closed:
                raise InterfaceError("the connection is closed") from error
            raise

    async def execute(self, text: str, files: Sequence[Attachment], running: Running) -> list[Result]:
        """The results of a text with one or more statements. Raises StatementError for the first one that fails."""
        async with self._in_turn():
            sql = lexed(text)
            if _is_empty(sql):
                raise ProgrammingError("the statement is empty")
            await self._policy.check(sql, None)
            await self._begin(sql)
            reads = not self._embedded and not files and is_repeatable(sql)
            return await self._run(Submission(text, files, repeatable=reads), running)

    async def execute_each(self, statements: Sequence[str], running: Running) -> AsyncIterator[Result]:
        """The result of each statement. After a failure no more statements run.

        They are sent together if the service supports batches.
        """
        async with self._in_turn():
            for sql in statements:
                await self._policy.check(sql, None)
            await self._begin(lexed(statements[0]))
            submissions = [Submission(sql) for sql in statements]
            batch = self._client.begin_batch(submissions, stop=True) if len(submissions) > 1 else None
            if batch is None:
                for submission in submissions:
                    for result in await self._run(submission, running):
                        yield result
                return
            try:
                for submission in submissions:
                    async with self._observer(submission.sql, running) as observer:
                        results = batch.run(submission, self.context, observer)
                        async with contextlib.aclosing(results):
                            async for result in results:
                                yield result
            finally:
                await batch.aclose(self.context)

    async def commit(self) -> None:
        """Raises InternalError if the transaction had failed; the service has then rolled it back."""
        async with self._in_turn():
            failed = self._transaction.state == FAILED
            if self._transaction.state:
                failed = sqlstate.WARNING in await self._end("COMMIT") or failed
            if failed:
                cause = f": {self._cause}" if self._cause else ""
                raise InternalError(f"the transaction failed, and was rolled back{cause}", sqlstate="25P02")

    async def rollback(self) -> None:
        async with self._in_turn():
            if self._transaction.state:
                await self._end("ROLLBACK")

    async def cancel(self) -> None:
        """Cancel the running statement, if any. Raises ShellError."""
        self.check_loop()
        await self._cancel_running()

    async def _cancel_running(self) -> None:
        running = self._running
        if running is None or running.canceled:
            return
        running.canceled = True
        if running.statement_id:
            await self._client.terminate(running.statement_id, self.context)

    async def terminate(self, query_id: str) -> bool:
        """Terminate a query that is no longer awaited or read; whether the service confirmed it. Raises nothing."""
        with contextlib.suppress(ShellError, TimeoutError):
            async with asyncio.timeout(ENDING_SECONDS):
                await self._client.terminate(query_id, self.context)
                return True
        return False

    async def disconnect(self) -> None:
        """Close the network connections without a request to the service."""
        self.closed = True
        await self._service.aclose()

    def abandon(self) -> None:
        """Release what the session holds, without a request to the service. For any thread, also at the end of the
        process; does nothing after a fork, and raises nothing."""
        if self.inherited:
            return
        self.closed = True
        with contextlib.suppress(RuntimeError):
            # If the loop is closed, so are its sockets.
            self._loop.call_soon_threadsafe(lambda: self._ending.add(self._loop.create_task(self._service.aclose())))
        if self._loop.is_running():
            threading.Thread(target=self.release, daemon=True).start()
        else:
            self.release()

    async def aclose(self) -> None:
        """Roll back, end the session and close the network connections. Does nothing if the session is closed."""
        if self.closed:
            return
        self.closed = True
        if asyncio.get_running_loop() is not self._loop:
            # The session's event loop has ended, and the sockets with it.
            await self._release()
            return
        try:
            await self._end_running()
            with contextlib.suppress(ShellError):
                if self._transaction.state:
                    await self._end("ROLLBACK")
                if self._own_session:
                    await self._client.end_sessions([self._own_session])
        finally:
            try:
                await asyncio.shield(self._service.aclose())
            finally:
                await self._release()

    async def _release(self) -> None:
        try:
            await asyncio.to_thread(self.release)
        except RuntimeError:
            # The interpreter is shutting down, and starts no more threads.
            self.release()

    async def _end_running(self) -> None:
        """Cancel what other tasks run, and wait for its end. Raises nothing."""
        with contextlib.suppress(ShellError, TimeoutError):
            async with asyncio.timeout(ENDING_SECONDS):
                await self._cancel_running()
                async with self._turn:
                    pass

    @contextlib.asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        """Run a statement when the earlier ones have ended. Raises InterfaceError if the connection is closed."""
        self.check_loop()
        with self.reporting_closed():
            async with self._turn:
                self.check()
                yield

    async def _begin(self, sql: Lexed) -> None:
        """Begin a transaction, unless one is open or the statement itself begins or ends one."""
        if self._autocommit or self._transaction.state:
            return
        first = next((token.word for token in sql.first(1)), "")
        if not first or first in _TRANSACTION_KEYWORDS:
            return
        try:
            await self._end("BEGIN")
        except StatementError as error:
            if error.where.sql_state[:2] in {"0A", "42"}:
                raise NotSupportedError(
                    f"the service does not support transactions: {error.message}",
                    sqlstate=error.where.sql_state,
                    statement_id=error.where.statement_id,
                    hint="connect with autocommit=True",
                ) from None
            raise

    async def _end(self, sql: str) -> set[str]:
        """Run a statement without rows; returns the sqlStates of its results."""
        results = await self._run(Submission(sql), Running())
        for result in results:
            await result.batches.aclose()
        return {result.sql_state for result in results}

    async def _run(self, submission: Submission, running: Running) -> list[Result]:
        results: list[Result] = []
        async with self._observer(submission.sql, running) as observer:
            try:
                async for result in self._client.run(submission, self.context, observer):
                    number = len(results)
                    results.append(result)
                    if is_creation_result(result) and creates_object(submission.sql, number):
                        results[number] = await tag_of(result)
            except BaseException:
                for result in results:
                    await result.batches.aclose()
                raise
        return results

    @contextlib.asynccontextmanager
    async def _observer(self, sql: str, running: Running) -> AsyncIterator[Observer]:
        """Tracks one statement: its ID, its cancellation, and the context and transaction after it."""
        running.statement_id, running.canceled = "", False
        ending: list[asyncio.Task[bool]] = []

        def named(statement_id: str) -> None:
            running.statement_id = statement_id
            if running.canceled and not ending:
                ending.append(asyncio.ensure_future(self.terminate(statement_id)))

        observer = Observer(statement_id=named, context=self._adopt)
        self._running = running
        before = self._transaction.state
        failed: StatementError | None = None
        try:
            yield observer
        except StatementError as error:
            failed = error
            if (span := span_of(lexed(sql), error)) is not None:
                error.where = replace(error.where, offset=span[0])
            raise
        except (WaitTimeout, asyncio.CancelledError) as error:
            if running.statement_id:
                canceled = await asyncio.shield(self.terminate(running.statement_id))
                if canceled and isinstance(error, WaitTimeout):
                    error.message += "; it is being canceled"
            raise
        finally:
            self._running = None
            self._transaction.statement_ended(sql, failed)
            if failed is not None and before != FAILED:
                self._cause = failed.message
            if failed is not None and failed.where.sql_state == sqlstate.SESSION_LOST:
                self._transaction = Transaction()
            for task in ending:
                await task

    def _adopt(self, echo: ContextEcho | None) -> None:
        self.context = self.context.adopt(echo)
        self._transaction.adopt(echo)
