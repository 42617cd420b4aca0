"""When a session of DuckDB may be interrupted: while it works on a user's statement, but never while it begins or ends
a transaction."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

import duckdb

READ_ONLY: Final = "BEGIN TRANSACTION READ ONLY"

_BETWEEN: Final = -1


class Cancellation:
    """Interrupts the statements of one connection.

    DuckDB reports a BEGIN, COMMIT or ROLLBACK as interrupted whether or not it took effect, so that nobody could tell
    whether a transaction is open. No interrupt reaches such a statement: it is remembered, and check() raises
    it at the next place where the user's statement can be given up.

    request() is for any thread, everything else for the one that runs statements.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._statements = self._protections = 0
        """How deep statement() and protected() are nested."""
        self._requested = False
        self._number = 0
        """Which of several statements runs, 0 for one that runs alone."""
        self._unwanted: set[int] = set()

    def request(self, number: int | None = None) -> None:
        """Interrupt the statement that runs; nothing happens if none does, or another than `number`. One of a higher
        number will not begin."""
        with self._lock:
            if number is None or number == self._number:
                if self._statements:
                    self._requested = True
                    if not self._protections:
                        self._connection.interrupt()
            elif number > self._number or self._number == _BETWEEN:
                self._unwanted.add(number)

    @contextlib.contextmanager
    def statement(self, number: int | None = None) -> Iterator[bool]:
        """A user's statement is worked on within, the parts of it too; `number` is that among several. False where that
        was interrupted before it began."""
        with self._lock:
            self._statements += 1
            if number is not None:
                self._number = number
            wanted = self._number not in self._unwanted
        try:
            yield wanted
        finally:
            with self._lock:
                self._statements -= 1
                if not self._statements:
                    self._requested = False
                if number is not None:
                    self._number = _BETWEEN

    def end_several(self) -> None:
        """What runs next runs alone."""
        with self._lock:
            self._number, self._unwanted = 0, set()

    @contextlib.contextmanager
    def protected(self) -> Iterator[None]:
        """No interrupt reaches what is executed within."""
        with self._lock:
            self._protections += 1
        try:
            yield
        finally:
            with self._lock:
                self._protections -= 1

    def check(self) -> None:
        """Raises InterruptException where the statement was interrupted."""
        with self._lock:
            if self._requested:
                raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")

    def execute(self, statement: Any) -> None:
        """Execute a short statement, SQL or parsed, that no interrupt reaches. Raises duckdb.Error."""
        # DuckDB forgets an interrupt from before when it begins a statement.
        with self.protected():
            self._connection.execute(statement)

    def roll_back(self) -> None:
        """End the open transaction, where there is one."""
        with contextlib.suppress(duckdb.Error):
            self.execute("ROLLBACK")

    def fail_transaction(self) -> None:
        """Bring the open transaction to where only COMMIT and ROLLBACK are taken."""
        with contextlib.suppress(duckdb.Error):
            self.execute("SELECT system.main.error('the statement failed')")
