"""The local service inside this process, in its own thread and event loop.

There is no server: the client calls the application that `sqlshell serve` serves. It has no address, so that no other
process can connect to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from msgspec.structs import replace

from sqlshell.client.http.in_process import LocalApp
from sqlshell.runtime.event_loops import end_threads, thread_loop
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.engine import Engine
from sqlshell.service.http.app import make_app
from sqlshell.service.settings import EMBEDDED, Settings
from sqlshell.service.setup import make_statements
from sqlshell.service.statements.service import StatementService
from sqlshell.service.storage.sqlite import SqliteStorage

CLOSING_SECONDS = 8.0


class EmbeddedService:
    """A running service. `token` is the bearer token that it requires; every method is thread-safe.

    The service's thread opens the database while the client starts.
    """

    def __init__(self, open_engine: Callable[[], Engine], settings: Settings) -> None:
        self.token = secrets.token_urlsafe(32)
        self._open_engine = open_engine
        self._settings = settings
        self._opening: Future[tuple[StatementService, LocalApp]] = Future()
        self._loop = thread_loop()
        self._thread = threading.Thread(target=self._run, name="service", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the database is open. Raises UsageError and ServiceError as DuckdbEngine does."""
        self._opening.result()

    def app(self) -> LocalApp:
        """The application, once the database is open. Raises what wait() raises."""
        return self._opening.result()[1]

    def close(self) -> None:
        """Interrupt running statements, close the database, end the thread. A second call does nothing."""
        if self._opening.exception() is None and self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._finish(*self._opening.result()), self._loop)
        self._thread.join(CLOSING_SECONDS)

    def _report(self, error: Exception) -> None:
        """Report an error of the application, unless the process ends."""
        if not (isinstance(error, RuntimeError) and _process_ends()):
            logging.getLogger("sqlshell.service").error("a request failed", exc_info=error)

    async def _finish(self, statements: StatementService, app: LocalApp) -> None:
        app.ending = True
        try:
            await statements.close()
            # Responses that are not read, and the rows that are being rendered for them.
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        finally:
            self._loop.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with contextlib.closing(SqliteStorage()) as storage:
            try:
                try:
                    statements = make_statements(storage, self._settings, engine=self._open_engine(), embedded=True)
                    app = LocalApp(make_app(statements, self.token, self._settings), self._loop, self._report)
                except BaseException as error:
                    self._opening.set_exception(error)
                    return
                self._opening.set_result((statements, app))
                self._loop.run_forever()
            finally:
                end_threads(self._loop)
                self._loop.close()
            app.end()


def _process_ends() -> bool:
    """Whether the interpreter is shutting down: threads get no more work."""
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int)
    except RuntimeError:
        return True
    return False


def start_embedded(
    database: Path | None = None,
    *,
    views: Mapping[str, Path] | None = None,
    partition_rows: int = 10_000,
    read_only: bool = False,
    installs: bool = True,
) -> EmbeddedService:
    """Start the service on a database file (None: in memory), with a view for each of `views` (name -> data file).

    With `read_only` the file is opened read-only. With `read_only` or without `installs`, no extension is installed.
    wait() and app() raise the errors of opening the database.
    """

    def open_engine() -> Engine:
        return DuckdbEngine(database, views, read_only=read_only, installs=installs)

    return EmbeddedService(open_engine, replace(EMBEDDED, partition_rows=partition_rows))


def start_on_server(engine: str, url: str, password: str = "", *, read_only: bool = False) -> EmbeddedService:
    """Start the service on an external server; `read_only` is as in open_server().

    wait() and app() raise UsageError for a URL that cannot be used and for a package that is not installed,
    PasswordMissing, and ServiceError if the server does not respond.
    """

    def open_engine() -> Engine:
        from sqlshell.service.engines.servers import open_server

        return open_server(engine, url, password, read_only=read_only)

    return EmbeddedService(open_engine, EMBEDDED)
