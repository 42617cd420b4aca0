"""One of several processes of a service: its lease, sessions and pool slots, and the cleanup after dead processes.

Only the database's clock is used, so that the clocks of the machines may differ.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.cluster.processes import has_ended, own_mark
from sqlshell.service.storage.postgresql import PostgresqlStorage

T = TypeVar("T")

BEAT_SECONDS: Final = 1.0
"""How often a process renews its lease, and looks for what others ask of it or have left behind."""

LEASE_SECONDS: Final = 10.0
"""A process that has not renewed its lease for this long is considered dead: others end or take over its statements."""

FORGOTTEN_SECONDS: Final = 3600.0
"""How long it is known that a session was lost."""

TABLES: Final = """
CREATE TABLE IF NOT EXISTS processes (id TEXT PRIMARY KEY, address TEXT NOT NULL, beat DOUBLE PRECISION NOT NULL);
ALTER TABLE processes ADD COLUMN IF NOT EXISTS operator TEXT NOT NULL DEFAULT '';
ALTER TABLE processes ADD COLUMN IF NOT EXISTS engine TEXT NOT NULL DEFAULT '';
ALTER TABLE processes ADD COLUMN IF NOT EXISTS results TEXT NOT NULL DEFAULT '';
ALTER TABLE processes ADD COLUMN IF NOT EXISTS mark TEXT NOT NULL DEFAULT '';
ALTER TABLE statements ADD COLUMN IF NOT EXISTS previous TEXT NOT NULL DEFAULT '';
CREATE TABLE IF NOT EXISTS sessions (
  token TEXT NOT NULL, name TEXT NOT NULL, process TEXT NOT NULL, lost DOUBLE PRECISION, PRIMARY KEY (token, name));
ALTER TABLE sessions ADD COLUMN IF NOT EXISTS in_transaction BOOLEAN NOT NULL DEFAULT FALSE;
CREATE TABLE IF NOT EXISTS slots (
  organization TEXT NOT NULL, pool TEXT NOT NULL, number INTEGER NOT NULL, process TEXT NOT NULL,
  statement TEXT NOT NULL, PRIMARY KEY (organization, pool, number));
CREATE TABLE IF NOT EXISTS slot_waits (
  organization TEXT NOT NULL, pool TEXT NOT NULL, statement TEXT PRIMARY KEY, process TEXT NOT NULL,
  since DOUBLE PRECISION NOT NULL);
CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, value BYTEA NOT NULL);
CREATE TABLE IF NOT EXISTS endings (statement TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS session_endings (
  token TEXT NOT NULL, name TEXT NOT NULL, process TEXT NOT NULL, when_idle BOOLEAN NOT NULL,
  PRIMARY KEY (token, name));
CREATE INDEX IF NOT EXISTS statements_running ON statements (process) WHERE state = '03000';
"""

_NOW: Final = "extract(epoch FROM clock_timestamp())"
_ALIVE: Final = f"beat > {_NOW} - {LEASE_SECONDS}"

_OF_POOL: Final = "organization = ? AND pool = ?"

_TAKE_SLOT: Final = f"""
WITH held AS (SELECT number, statement FROM slots WHERE {_OF_POOL}),
own AS (SELECT since FROM slot_waits WHERE statement = ?),
before AS (SELECT count(*) AS number FROM slot_waits JOIN processes ON id = process WHERE {_OF_POOL} AND {_ALIVE}
  AND (since, statement) < (coalesce((SELECT since FROM own), 'infinity'), ?)
  AND statement NOT IN (SELECT statement FROM held))
INSERT INTO slots SELECT ?, ?, free, ?, ? FROM generate_series(1, ?) free
  WHERE free NOT IN (SELECT number FROM held)
  AND (SELECT count(*) FROM held) + (SELECT number FROM before) < ?
  ORDER BY free LIMIT 1 OFFSET (SELECT number FROM before) ON CONFLICT DO NOTHING
"""
"""Takes a free slot, if more slots are free than statements have waited longer. Each waiting statement takes a
different slot, so that they do not conflict."""


class Peer(Struct, frozen=True):
    """Another process of the service."""

    process: str
    address: str


class Cluster:
    """`address` is the URL at which the other processes reach this one, `token` the digest of the operator's token,
    `engine` the identity of the engine's server, and `results` that of the storage of results; "" is not compared.
    Every method raises StorageError.
    """

    def __init__(
        self, storage: PostgresqlStorage, address: str, token: str = "", engine: str = "", results: str = ""
    ) -> None:
        self.id = str(uuid.uuid4())
        self.address = address
        self.token = token
        self._engine = engine
        self._results = results
        self._storage = storage
        self._own: set[tuple[str, str]] = set()
        """The sessions of this process: token and name."""
        self._lost: dict[tuple[str, str], bool] = {}
        """Sessions that this process has, because another process lost them, and whether in a transaction."""
        self._elsewhere: dict[str, tuple[int, int]] = {}
        """The sessions of the other processes when they were last counted for a token: its own, and all."""
        self._steady = self._renewed = time.monotonic()
        """Since when the database has always responded, and when it last did."""
        storage.create(TABLES)
        self._end_predecessors()
        self._join()

    async def run_async(self, work: Callable[..., T], *values: Any) -> T:
        """Call a method with these values, while the event loop goes on."""
        return await self._storage.run_async(partial(work, *values))

    def renew(self) -> bool:
        """Renew the lease; returns False if it was lost, so that others have taken over what this process ran."""
        held = self._storage.write(f"UPDATE processes SET beat = {_NOW} WHERE id = ?", (self.id,)) == 1
        now = time.monotonic()
        if now - self._renewed > LEASE_SECONDS / 2:
            self._steady = now
        self._renewed = now
        return held

    @property
    def database(self) -> str:
        """The address of the database, for messages to the operator."""
        return self._storage.address

    @property
    def last_error(self) -> str:
        """Why the database last did not respond."""
        return self._storage.last_error

    def holds_lease(self) -> bool:
        """Whether no other process considers this one dead."""
        return self.is_member(self.id)

    def rejoin(self) -> None:
        """Begin again as another process, after the lease was lost."""
        self.id = str(uuid.uuid4())
        self._own.clear()
        self._join()

    def _join(self) -> None:
        self._storage.write(
            "INSERT INTO processes (id, address, beat, operator, engine, results, mark) "
            f"VALUES (?, ?, {_NOW}, ?, ?, ?, ?)",
            (self.id, self.address, self.token, self._engine, self._results, own_mark()),
        )

    def _end_predecessors(self) -> None:
        """Take over from processes of this machine that were killed, without waiting for the end of their leases."""
        rows = self._storage.read("SELECT id, mark FROM processes WHERE mark <> ''")
        if ended := [str(process) for process, mark in rows if has_ended(str(mark))]:
            self._storage.write("DELETE FROM processes WHERE id = ANY(?)", (ended,))
            self._take_over_from_gone()

    def with_other_engine(self) -> str:
        """The address of a living process on another server or database, "" if there is none."""
        return self._differing("engine", self._engine)

    def with_other_results(self) -> str:
        """The address of a living process with another storage of results, "" if there is none."""
        return self._differing("results", self._results)

    def _differing(self, column: str, own: str) -> str:
        rows = self._storage.read(
            f"SELECT address FROM processes WHERE {_ALIVE} AND {column} NOT IN ('', ?) ORDER BY beat", (own,)
        )
        return str(rows[0][0]) if own and rows else ""

    def leave(self) -> None:
        """Give up everything that this process has."""
        self._storage.write(f"UPDATE sessions SET process = '', lost = {_NOW} WHERE process = ?", (self.id,))
        for table, column in (("slots", "process"), ("slot_waits", "process"), ("processes", "id")):
            self._storage.write(f"DELETE FROM {table} WHERE {column} = ?", (self.id,))

    def is_member(self, process: str) -> bool:
        """Whether a process is not considered dead."""
        return bool(self._storage.read("SELECT 1 FROM processes WHERE id = ?", (process,)))

    def peer(self, process: str) -> Peer | None:
        """Another process, None if it is this one or not alive."""
        if process in {"", self.id}:
            return None
        rows = self._storage.read(f"SELECT address FROM processes WHERE id = ? AND {_ALIVE}", (process,))
        return Peer(process, str(rows[0][0])) if rows else None

    def place_of_session(self, token: str, name: str) -> Peer | None:
        """The process that has a session, None if it is this one. For any thread.

        A session that no living process has belongs to this one from now on.
        """
        if not name or (token, name) in self._own:
            return None
        rows = self._storage.read(
            "WITH before AS (SELECT process, in_transaction FROM sessions WHERE token = ? AND name = ?) "
            "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT (token, name) DO UPDATE SET lost = NULL, process = "
            f"CASE WHEN EXISTS (SELECT FROM processes WHERE id = sessions.process AND {_ALIVE}) THEN sessions.process "
            "ELSE excluded.process END RETURNING process, (SELECT process FROM before), "
            "(SELECT in_transaction FROM before)",
            (token, name, token, name, self.id),
        )
        process, before, in_transaction = rows[0]
        if process == self.id:
            self._own.add((token, name))
            if before not in {None, self.id}:
                self._lost[token, name] = bool(in_transaction)
            # The row is there first, so of two processes that open the last session at the same time each counts both.
            self.count_elsewhere(token)
            return None
        return self.peer(str(process))

    @property
    def sessions(self) -> frozenset[tuple[str, str]]:
        """The sessions that belong to this process: token and name."""
        return frozenset(self._own)

    def count_elsewhere(self, token: str) -> None:
        """Count the sessions of the other processes for number_elsewhere()."""
        counted = self._storage.read(
            "SELECT count(*) FILTER (WHERE token = ?), count(*) FROM sessions JOIN processes ON id = process "
            f"WHERE id <> ? AND {_ALIVE}",
            (token, self.id),
        )
        self._elsewhere[token] = int(counted[0][0]), int(counted[0][1])

    def number_elsewhere(self, token: str) -> tuple[int, int]:
        """The number of sessions with a name that the other processes have: those of a token, and all."""
        return self._elsewhere.get(token, (0, 0))

    def sessions_elsewhere(self) -> list[tuple[str, str]]:
        """The sessions of the other living processes: token and name."""
        rows = self._storage.read(
            f"SELECT token, name FROM sessions JOIN processes ON id = process WHERE id <> ? AND {_ALIVE} ORDER BY name",
            (self.id,),
        )
        return [(str(token), str(name)) for token, name in rows]

    def end_session(self, token: str, name: str) -> None:
        if (token, name) in self._own:
            self._own.discard((token, name))
            self._storage.write(
                "DELETE FROM sessions WHERE token = ? AND name = ? AND process = ?", (token, name, self.id)
            )

    def give_up(self, sessions: Sequence[tuple[str, str]]) -> None:
        """Leave sessions of this process, given by token and name, to the process that is asked for them next."""
        self._own -= set(sessions)
        self._storage.write_all(
            f"UPDATE sessions SET process = '', lost = {_NOW} WHERE token = ? AND name = ? AND process = ?",
            [(*session, self.id) for session in sessions],
        )

    def was_lost(self, token: str, name: str) -> bool | None:
        """Whether another process had a session, and lost it with an open transaction; None if it was not lost, and in
        later calls.
        """
        return self._lost.pop((token, name), None)

    def note_transaction(self, token: str, name: str, is_open: bool) -> None:
        """Note whether a session of this process has an open transaction, which would be lost with the process."""
        self._storage.write(
            "UPDATE sessions SET in_transaction = ? WHERE token = ? AND name = ? AND process = ?",
            (is_open, token, name, self.id),
        )

    def ask_to_end_session(self, token: str, name: str, when_idle: bool) -> None:
        """Ask the process that has a session to end it; `when_idle` once its statements have finished."""
        self._storage.write(
            "INSERT INTO session_endings SELECT token, name, process, ? FROM sessions WHERE token = ? AND name = ? "
            "AND process <> '' ON CONFLICT (token, name) DO UPDATE SET process = excluded.process, "
            "when_idle = session_endings.when_idle AND excluded.when_idle",
            (when_idle, token, name),
        )

    def is_asked_to_end_session(self, token: str, name: str) -> bool:
        """Whether a living process was asked to end a session and has not done so."""
        return bool(
            self._storage.read(
                "SELECT 1 FROM session_endings JOIN processes ON id = process "
                f"WHERE token = ? AND name = ? AND {_ALIVE}",
                (token, name),
            )
        )

    def sessions_asked_to_end(self) -> list[tuple[str, str, bool]]:
        """The sessions that others asked this process to end: token, name, and whether once they are idle."""
        rows = self._storage.read("SELECT token, name, when_idle FROM session_endings WHERE process = ?", (self.id,))
        return [(str(token), str(name), bool(when_idle)) for token, name, when_idle in rows]

    def has_ended_session(self, token: str, name: str) -> None:
        """Tell those who asked for it that this process has ended a session."""
        self._storage.write(
            "DELETE FROM session_endings WHERE token = ? AND name = ? AND process = ?", (token, name, self.id)
        )

    def have_slots(self, statements: Collection[str]) -> set[str]:
        """Those of these statements that have a slot of a pool: their engine runs them."""
        rows = self._storage.read("SELECT statement FROM slots WHERE statement = ANY(?)", (list(statements),))
        return {str(row[0]) for row in rows}

    def take_slot(self, organization: str, pool: str, concurrency: int, statement: str) -> bool:
        """Take one of the slots of a pool, if more slots are free in all processes together than statements have
        waited longer.
        """
        of_pool = organization, pool
        values = (*of_pool, statement, *of_pool, statement, *of_pool, self.id, statement, concurrency, concurrency)
        return bool(self._storage.write(_TAKE_SLOT, values))

    def wait_for_slot(self, organization: str, pool: str, statement: str) -> None:
        """Note that a statement waits for a slot from now on."""
        self._storage.write(
            f"INSERT INTO slot_waits VALUES (?, ?, ?, ?, {_NOW}) ON CONFLICT DO NOTHING",
            (organization, pool, statement, self.id),
        )

    def end_wait(self, statement: str) -> None:
        """Note that a statement has a slot, or no longer waits for one."""
        self._storage.write("DELETE FROM slot_waits WHERE statement = ?", (statement,))

    def free_slot(self, statement: str) -> None:
        self._storage.write("DELETE FROM slots WHERE statement = ? AND process = ?", (statement, self.id))

    def loads(self, keys: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """The unfinished statements that other processes have of these tokens and organizations: number, characters."""
        rows = self._storage.read(
            "SELECT key, count(*), sum(length(sql)) FROM statements, unnest(ARRAY[owner, organization]) key "
            "WHERE state = ? AND process <> ? AND key = ANY(?) GROUP BY key",
            (sqlstate.RUNNING, self.id, list(keys)),
        )
        return {str(key): (int(number), int(size)) for key, number, size in rows}

    def ask_to_end(self, statement: str) -> None:
        """Ask the process that runs a statement to cancel it."""
        self._storage.write("INSERT INTO endings VALUES (?) ON CONFLICT DO NOTHING", (statement,))

    def asked_to_end(self) -> list[str]:
        """The statements of this process that others asked to cancel."""
        rows = self._storage.read(
            "DELETE FROM endings USING statements WHERE id = statement AND process = ? RETURNING statement", (self.id,)
        )
        return [str(row[0]) for row in rows]

    def take_over(self) -> list[str]:
        """Take over the statements of dead processes, and free their sessions and slots. Only one process does so;
        returns the addresses of those processes.

        After a time in which the database did not respond, no process could renew its lease: then none is dead yet.
        """
        if time.monotonic() - self._steady < LEASE_SECONDS:
            return []
        dead = self._storage.read(f"DELETE FROM processes WHERE NOT {_ALIVE} AND id <> ? RETURNING address", (self.id,))
        self._take_over_from_gone()
        return [str(address) for (address,) in dead]

    def _take_over_from_gone(self) -> None:
        gone = "process <> '' AND NOT EXISTS (SELECT FROM processes WHERE id = process)"
        self._storage.write(f"UPDATE sessions SET process = '', lost = {_NOW} WHERE {gone}")
        self._storage.write(f"DELETE FROM slots WHERE {gone}")
        self._storage.write(
            "UPDATE statements SET process = ? WHERE state = ? AND process <> '' AND NOT EXISTS (SELECT FROM processes "
            "WHERE processes.id = statements.process)",
            (self.id, sqlstate.RUNNING),
        )

    def key(self, name: str) -> bytes:
        """A random key that all processes share, 32 bytes."""
        return self.shared_value(name, secrets.token_bytes(32))

    def shared_value(self, name: str, value: bytes) -> bytes:
        """The value that the first process stored under a name; if there is none, `value` is stored and returned."""
        self._storage.write("INSERT INTO keys VALUES (?, ?) ON CONFLICT DO NOTHING", (name, value))
        return bytes(self._storage.read("SELECT value FROM keys WHERE name = ?", (name,))[0][0])

    def tidy(self) -> None:
        """Remove requests about statements and processes that no longer exist, lost sessions that were not used again,
        and slots and waits of statements that have finished: the database may have executed a call whose response was
        lost.
        """
        self._storage.write(
            "DELETE FROM slots WHERE process = ? AND NOT EXISTS "
            "(SELECT FROM statements WHERE id = slots.statement AND state = ?)",
            (self.id, sqlstate.RUNNING),
        )
        self._storage.write(
            "DELETE FROM slot_waits WHERE statement IN (SELECT statement FROM slots) OR NOT EXISTS "
            "(SELECT FROM statements WHERE id = statement AND state = ?) OR NOT EXISTS "
            "(SELECT FROM processes WHERE id = slot_waits.process)",
            (sqlstate.RUNNING,),
        )
        self._storage.write(f"DELETE FROM sessions WHERE lost < {_NOW} - {FORGOTTEN_SECONDS}")
        self._storage.write("DELETE FROM endings WHERE NOT EXISTS (SELECT FROM statements WHERE id = statement)")
        self._storage.write("DELETE FROM session_endings WHERE NOT EXISTS (SELECT FROM processes WHERE id = process)")

    def processes(self) -> Sequence[tuple[Any, ...]]:
        """The living processes: ID, address, and the digest of the operator's token."""
        return self._storage.read(f"SELECT id, address, operator FROM processes WHERE {_ALIVE} ORDER BY id")
