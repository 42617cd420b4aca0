"""Interrupts a session of DuckDB while it runs a user's statement, but never while it begins or ends a transaction."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

import duckdb

READ_ONLY: Final = "BEGIN TRANSACTION READ ONLY"


class Cancellation:
    """Interrupts the statements of one connection.

    DuckDB reports a BEGIN, COMMIT or ROLLBACK as interrupted whether or not it took effect, so that it would be unknown
    whether a transaction is open. Such statements are not interrupted: the request is stored, and check() raises it at
    the next point where the user's statement can be canceled.

    request() is for any thread, all other methods for the thread that runs statements.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._statements = self._protections = 0
        """The nesting depths of statement() and protected()."""
        self._requested = False

    def request(self) -> None:
        """Interrupt the running statement, if any."""
        with self._lock:
            if self._statements:
                self._requested = True
                if not self._protections:
                    self._connection.interrupt()

    @contextlib.contextmanager
    def statement(self) -> Iterator[None]:
        """Mark that a user's statement is being run; may be nested."""
        with self._lock:
            self._statements += 1
        try:
            yield
        finally:
            with self._lock:
                self._statements -= 1
                if not self._statements:
                    self._requested = False

    @contextlib.contextmanager
    def protected(self) -> Iterator[None]:
        """Delay interrupts during a block."""
        with self._lock:
            self._protections += 1
        try:
            yield
        finally:
            with self._lock:
                self._protections -= 1

    def check(self) -> None:
        """Raises InterruptException if the statement was interrupted."""
        with self._lock:
            if self._requested:
                raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")

    def execute(self, statement: Any) -> None:
        """Execute a short statement, SQL or parsed, that cannot be interrupted. Raises duckdb.Error."""
        # DuckDB discards an earlier interrupt when it starts a statement.
        with self.protected():
            self._connection.execute(statement)

    def roll_back(self) -> None:
        """Roll back the open transaction, if there is one."""
        with contextlib.suppress(duckdb.Error):
            self.execute("ROLLBACK")

    def fail_transaction(self) -> None:
        """Put the open transaction into the failed state, in which only COMMIT and ROLLBACK are accepted."""
        with contextlib.suppress(duckdb.Error):
            self.execute("SELECT system.main.error('the statement failed')")
