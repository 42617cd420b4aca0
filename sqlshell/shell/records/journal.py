"""A journal of the statements of all shells of a user, so that a result can be found again by its ID.

A SQLite file in the state directory, mode 0600, without the secrets in the SQL and without rows. An error of the
journal is reported once and never stops a statement.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sqlshell.context import SessionContext
from sqlshell.interface import sqlstate
from sqlshell.text import MASK

if TYPE_CHECKING:
    import sqlite3

    from sqlshell.sql.analysis.lexed import Redact, Sql

KEPT_DAYS = 30
MAX_PENDING = 20_000
"""Maximum changes of a journal in memory that wait for its first reader."""

BATCH_SIZE = 1_000
"""Maximum changes in one transaction, unless they wait for a reader."""

SHORT_WAIT = 50
"""Milliseconds to wait for another shell that writes, which the event loop does too. Then changes stay pending."""

LAST_WAIT = 2_000
"""Milliseconds to wait when the journal is closed."""

LONGEST_SQL = 100_000

_TABLE = """
CREATE TABLE IF NOT EXISTS statements (
    id TEXT NOT NULL, target TEXT NOT NULL, profile TEXT NOT NULL, context TEXT NOT NULL, sql TEXT NOT NULL,
    began REAL NOT NULL, ended REAL, sql_state TEXT NOT NULL, message TEXT NOT NULL DEFAULT '', rows INTEGER,
    query_id TEXT NOT NULL DEFAULT '', PRIMARY KEY (id, target)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_time ON statements (began);
"""
_COLUMNS = "id, target, profile, context, sql, began, ended, sql_state, message, rows, query_id"


class JournalEntry(Struct, frozen=True):
    """One statement: times in seconds since 1970, `rows` if all of them were read."""

    id: str
    target: str
    profile: str
    context: str
    sql: str
    began: float
    ended: float | None
    sql_state: str
    message: str
    rows: int | None
    query_id: str

    @property
    def running(self) -> bool:
        return sqlstate.running(self.sql_state)

    @property
    def state(self) -> str:
        """The state in one word, as last reported by the service."""
        if self.running:
            return "running"
        if self.sql_state == sqlstate.CANCELED:
            return "canceled"
        return "failed" if sqlstate.failed(self.sql_state) else "finished"


class Journal:
    """The statements of one target. `path` is None if no other shell could use them; then the journal is in memory."""

    def __init__(
        self,
        path: Path | None,
        target: str,
        profile: str,
        warn: Callable[[str], None],
        redact: Redact | None = None,
    ) -> None:
        self._redactor = redact
        self._pending: deque[tuple[str, tuple[object, ...]]] = deque(maxlen=MAX_PENDING)
        self._path = path
        self._target = target
        self._profile = profile
        self._warn = warn
        self._database: sqlite3.Connection | None = None
        self._lock = threading.RLock()
        """Completion reads in another thread."""
        self._reported = False
        self._context: SessionContext | None = None
        self._parts = ""
        self.paused = False
        """Whether the statements are the shell's own, which a list of the user's leaves out."""

    def record_start(self, statement_id: str, sql: Sql, context: SessionContext, ago: float) -> None:
        """Record that the service has assigned an ID, `ago` seconds after the statement was sent."""
        if self.paused:
            return
        if context != self._context:
            self._context = context
            self._parts = json.dumps({name: value for name, value in context.parts() if value})
        self._write(
            f"INSERT OR IGNORE INTO statements ({_COLUMNS}) VALUES (?,?,?,?,?,?,NULL,?,'',NULL,'')",
            statement_id,
            self._target,
            self._profile,
            self._parts,
            _shortened(self._redact(sql)) if self._path else str(sql)[:LONGEST_SQL],
            time.time() - ago,
            sqlstate.RUNNING,
        )

    def record_query(self, statement_id: str, query_id: str) -> None:
        sql = "UPDATE statements SET query_id = ? WHERE id = ? AND target = ?"
        self._write(sql, query_id, statement_id, self._target)
        self.flush()

    def record_end(
        self, statement_id: str, state: str, message: str = "", rows: int | None = None, *, waited: float = 0.0
    ) -> None:
        """Record the current state: `rows` only if all were read. `waited` are the seconds for which the result was
        only being read by the user. A recorded end time is kept.

        The message of a statement whose secrets were removed is not stored: it may quote them in any form.
        """
        self._record(statement_id, state, message, rows, None if sqlstate.running(state) else time.time() - waited)

    def record_state(self, statement_id: str, state: str, message: str) -> None:
        """Record the state of a statement that ended at a time that is not known."""
        self._record(statement_id, state, message, None, None)

    def _record(self, statement_id: str, state: str, message: str, rows: int | None, over: float | None) -> None:
        self._write(
            "UPDATE statements SET ended = coalesce(ended, ?), sql_state = ?, rows = coalesce(?, rows),"
            f" message = CASE WHEN instr(sql, '{MASK}') THEN '' ELSE ? END"
            " WHERE id = ? AND target = ?",
            over,
            state,
            rows,
            self._redact(message)[:2_000] if message else "",
            statement_id,
            self._target,
        )

    def _redact(self, text: Sql) -> str:
        from sqlshell.sql.analysis.secrets import redacted

        return (self._redactor or redacted)(text)

    def flush(self) -> None:
        """Write pending changes, so that other shells can see them."""
        if self._pending and self._path is not None:
            self._transact()

    def _write(self, sql: str, *values: object) -> None:
        """Write changes. A commit takes longer than many statements, so several changes share one. A journal in memory
        is written when it is first read, which most shells never do.
        """
        with self._lock:
            self._pending.append((sql, values))
            full = len(self._pending) % BATCH_SIZE == 0 and (self._path is not None or self._database is not None)
        if full:
            self._transact()

    def recent(self, most: int, *, here: bool = False) -> list[JournalEntry]:
        """The latest statements of all targets, running ones first; `here` returns those of this target, ordered only
        by time.
        """
        chosen = "WHERE target = ? ORDER BY began DESC" if here else "ORDER BY sql_state = ? DESC, began DESC"
        return self._transact(
            f"SELECT {_COLUMNS} FROM statements {chosen} LIMIT ?", self._target if here else sqlstate.RUNNING, most
        )

    def find(self, start: str) -> list[JournalEntry]:
        """The statements whose IDs have this prefix, those of this target first."""
        return self._transact(
            f"SELECT {_COLUMNS} FROM statements WHERE substr(id, 1, ?) = ? ORDER BY target = ? DESC, began DESC"
            " LIMIT 10",
            len(start),
            start.lower(),
            self._target,
        )

    def is_here(self, entry: JournalEntry) -> bool:
        return entry.target == self._target

    def close(self) -> None:
        import sqlite3

        if self._pending and self._path is not None:
            self._transact(wait=LAST_WAIT)
        with self._lock:
            if self._database is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._database.close()
                self._database = None

    def _transact(self, query: str = "", *values: object, wait: int = SHORT_WAIT) -> list[JournalEntry]:
        """Write pending changes, and return the statements that a query selects. Raises nothing. Changes stay pending
        until they are committed; a journal that another shell is writing is only reported after LAST_WAIT.
        """
        import sqlite3

        with self._lock:
            try:
                if self._database is None:
                    self._database = self._open(wait)
                self._database.execute(f"PRAGMA busy_timeout = {wait}")
                try:
                    self._commit(self._database)
                except sqlite3.OperationalError as error:
                    # Other shells may read meanwhile.
                    if not query or not _is_busy(error):
                        raise
                return [JournalEntry(*row) for row in self._database.execute(query, values)] if query else []
            except sqlite3.Error as error:
                if wait == LAST_WAIT or not _is_busy(error):
                    self._report_once(error)
                return []

    def _commit(self, database: sqlite3.Connection) -> None:
        """Write all pending changes, or none. Raises sqlite3.Error."""
        count = len(self._pending)
        if not count:
            return
        with database:
            for change in self._pending:
                database.execute(*change)
        for _ in range(count):
            self._pending.popleft()

    def _open(self, wait: int) -> sqlite3.Connection:
        """The file, or a journal in memory if it cannot be used. Raises sqlite3.Error if another shell writes it."""
        import sqlite3

        if self._path is not None:
            try:
                return _ready(_file(self._path, wait))
            except (sqlite3.Error, OSError) as error:
                if _is_busy(error):
                    raise
                self._report_once(error)
        return _ready(sqlite3.connect(":memory:", check_same_thread=False))

    def _report_once(self, error: Exception) -> None:
        if not self._reported:
            self._reported = True
            self._warn(f"cannot use the journal {self._path or ''}; statements are not recorded: {error}")


def _shortened(shown: str) -> str:
    """A text without secrets of at most LONGEST_SQL characters, which still shows whether secrets were removed."""
    if len(shown) > LONGEST_SQL and MASK in shown:
        return f"{shown[: LONGEST_SQL - len(MASK)]}{MASK}"
    return shown[:LONGEST_SQL]


def _is_busy(error: Exception) -> bool:
    import sqlite3

    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _file(path: Path, wait: int) -> sqlite3.Connection:
    import sqlite3

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    database = sqlite3.connect(path, timeout=wait / 1000, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    return database


def _ready(database: sqlite3.Connection) -> sqlite3.Connection:
    import sqlite3

    try:
        database.executescript(_TABLE)
        try:
            with database:
                database.execute("DELETE FROM statements WHERE began < ?", (time.time() - KEPT_DAYS * 86_400,))
        except sqlite3.OperationalError as error:
            # The next shell removes them.
            if not _is_busy(error):
                raise
    except BaseException:
        database.close()
        raise
    return database
