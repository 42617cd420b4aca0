"""What was run where: the statements of all shells of this person, so that a result is found again by its id.

An SQLite file in the state folder, mode 0600, with the secrets taken out of the SQL; rows are never in it. What goes
wrong with it is told once and never stops a statement.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sqlshell.context import SessionContext
from sqlshell.interface import sqlstate

if TYPE_CHECKING:
    import sqlite3

KEPT_DAYS = 30
WAITING = 20_000
"""Changes of a journal in memory that wait for its first reader."""

TOGETHER = 1_000
"""Changes that are written in one transaction at most, unless they wait for a reader."""

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


class Entry(Struct, frozen=True):
    """One statement: times in seconds since 1970, `rows` where all of them were read here."""

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
        """In a word, as the service last said it."""
        if self.running:
            return "running"
        if self.sql_state == sqlstate.CANCELLED:
            return "cancelled"
        return "failed" if sqlstate.failed(self.sql_state) else "finished"


class Journal:
    """The statements at one target. `path` is None for what no other shell could find: it is kept in memory then."""

    def __init__(
        self,
        path: Path | None,
        target: str,
        profile: str,
        warn: Callable[[str], None],
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self._given = redact
        self._waiting: deque[tuple[str, tuple[object, ...]]] = deque(maxlen=WAITING)
        self._path = path
        self._target = target
        self._profile = profile
        self._warn = warn
        self._database: sqlite3.Connection | None = None
        self._lock = threading.RLock()
        """Completion reads in a thread of its own."""
        self._told = False
        self._context: SessionContext | None = None
        self._parts = ""

    def began(self, statement_id: str, sql: str, context: SessionContext, ago: float) -> None:
        """The service has given a statement its id, `ago` seconds after it was sent."""
        if context is not self._context:
            self._context = context
            self._parts = json.dumps({name: value for name, value in context.parts() if value})
        self._write(
            f"INSERT OR IGNORE INTO statements ({_COLUMNS}) VALUES (?,?,?,?,?,?,NULL,?,'',NULL,'')",
            statement_id,
            self._target,
            self._profile,
            self._parts,
            self._redact(sql)[:LONGEST_SQL] if self._path else sql[:LONGEST_SQL],
            time.time() - ago,
            sqlstate.RUNNING,
        )

    def query(self, statement_id: str, query_id: str) -> None:
        sql = "UPDATE statements SET query_id = ? WHERE id = ? AND target = ?"
        self._write(sql, query_id, statement_id, self._target)
        self.flush()

    def ended(self, statement_id: str, state: str, message: str = "", rows: int | None = None) -> None:
        """The statement stands so: `rows` only where all were read. A time of end that is known stays.

        The message of a statement whose secrets were taken out is not kept: it may quote them in any form.
        """
        over = None if sqlstate.running(state) else time.time()
        self._write(
            "UPDATE statements SET ended = coalesce(ended, ?), sql_state = ?, rows = coalesce(?, rows),"
            " message = CASE WHEN instr(sql, '***') THEN '' ELSE ? END"
            " WHERE id = ? AND target = ?",
            over,
            state,
            rows,
            self._redact(message)[:2_000] if message else "",
            statement_id,
            self._target,
        )

    def _redact(self, text: str) -> str:
        from sqlshell.sql.analysis.secrets import redacted

        return (self._given or redacted)(text)

    def flush(self) -> None:
        """Write down what waits: other shells know it from now on, whatever becomes of this one."""
        if self._waiting and self._path is not None:
            with self._working():
                pass

    def _write(self, sql: str, *values: object) -> None:
        """A commit takes longer than many a statement: several changes share one. What nobody else can see is written
        when it is asked for: most shells never do."""
        with self._lock:
            self._waiting.append((sql, values))
            full = len(self._waiting) >= TOGETHER and (self._path is not None or self._database is not None)
        if full:
            with self._working():
                pass

    def recent(self, most: int, *, here: bool = False) -> list[Entry]:
        """The latest statements of every target, those that run first; `here` is this target's by time alone."""
        chosen = "WHERE target = ? ORDER BY began DESC" if here else "ORDER BY sql_state = ? DESC, began DESC"
        with self._working() as database:
            rows = database.execute(
                f"SELECT {_COLUMNS} FROM statements {chosen} LIMIT ?",
                (self._target if here else sqlstate.RUNNING, most),
            ).fetchall()
            return [Entry(*row) for row in rows]
        return []

    def find(self, start: str) -> list[Entry]:
        """The statements whose ids begin so, this target's first."""
        with self._working() as database:
            rows = database.execute(
                f"SELECT {_COLUMNS} FROM statements WHERE substr(id, 1, ?) = ? ORDER BY target = ? DESC, began DESC"
                " LIMIT 10",
                (len(start), start.lower(), self._target),
            ).fetchall()
            return [Entry(*row) for row in rows]
        return []

    def here(self, entry: Entry) -> bool:
        return entry.target == self._target

    def close(self) -> None:
        import sqlite3

        self.flush()
        with self._lock:
            if self._database is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._database.close()
                self._database = None

    @contextlib.contextmanager
    def _working(self) -> Iterator[sqlite3.Connection]:
        import sqlite3

        with self._lock:
            try:
                if self._database is None:
                    self._database = self._opened()
                with self._database:
                    while self._waiting:
                        self._database.execute(*self._waiting.popleft())
                    yield self._database
            except sqlite3.Error as error:
                self._tell(error)

    def _opened(self) -> sqlite3.Connection:
        import sqlite3

        if self._path is not None:
            try:
                return _ready(_file(self._path))
            except (sqlite3.Error, OSError) as error:
                self._tell(error)
        return _ready(sqlite3.connect(":memory:", check_same_thread=False))

    def _tell(self, error: Exception) -> None:
        if not self._told:
            self._told = True
            self._warn(f"cannot use the journal {self._path or ''}; statements are not recorded: {error}")


def _file(path: Path) -> sqlite3.Connection:
    import sqlite3

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    database = sqlite3.connect(path, timeout=2, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        database.close()
        raise
    return database


def _ready(database: sqlite3.Connection) -> sqlite3.Connection:
    import sqlite3

    try:
        database.executescript(_TABLE)
        with database:
            database.execute("DELETE FROM statements WHERE began < ?", (time.time() - KEPT_DAYS * 86_400,))
    except sqlite3.Error:
        database.close()
        raise
    return database
