"""One of several processes of a service: its lease, its sessions, and the cleanup after dead processes.

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
from sqlshell.service.storage.postgresql import PostgresqlStorage

T = TypeVar("T")

BEAT_SECONDS: Final = 1.0
"""How often a process renews its lease, and looks for what others ask of it or have left behind."""

LEASE_SECONDS: Final = 10.0
"""A process that has not renewed its lease for this long is considered dead: others end or take over its statements."""

FORGOTTEN_SECONDS: Final = 3600.0
"""How long it is known that a session was lost."""

TABLES: Final = """
CREATE TABLE IF NOT EXISTS processes (
  id TEXT PRIMARY KEY, address TEXT NOT NULL, beat DOUBLE PRECISION NOT NULL, operator TEXT NOT NULL,
  engine TEXT NOT NULL, results TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (
  token TEXT NOT NULL, name TEXT NOT NULL, process TEXT NOT NULL, lost DOUBLE PRECISION,
  in_transaction BOOLEAN NOT NULL DEFAULT FALSE, ending TEXT NOT NULL DEFAULT '', PRIMARY KEY (token, name));
CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, value BYTEA NOT NULL);
ALTER TABLE statements ADD COLUMN IF NOT EXISTS ending BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE statements ADD COLUMN IF NOT EXISTS begun BOOLEAN NOT NULL DEFAULT TRUE;
CREATE INDEX IF NOT EXISTS statements_running ON statements (process) WHERE state = '03000';
"""
"""`ending` says that another process asked the one that has a session or statement to end it: of a session, "now" or,
once its statements have finished, "idle"."""

_IS_CREATED: Final = (
    "SELECT 1 FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'statements' "
    "AND column_name IN ('ending', 'begun') HAVING count(*) = 2"
)
"""Whether the database has what TABLES adds last."""

_NOW: Final = "extract(epoch FROM clock_timestamp())"
_ALIVE: Final = f"beat > {_NOW} - {LEASE_SECONDS}"

_GONE: Final = "process <> '' AND NOT EXISTS (SELECT FROM processes WHERE id = process)"


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
        self.storage = storage
        self._address = address
        self._traits = {"operator": token, "engine": engine, "results": results}
        self._own: set[tuple[str, str]] = set()
        """The sessions of this process: token and name."""
        self._lost: dict[tuple[str, str], bool] = {}
        """Sessions that this process has, because another process lost them, and whether in a transaction."""
        self._steady = self._renewed = time.monotonic()
        """Since when the database has always responded, and when it last did."""
        # ALTER TABLE waits for every transaction of the other processes, and they may wait for it: a deadlock.
        if not storage.read(_IS_CREATED):
            storage.create(TABLES)
        self._join()

    async def run_async(self, work: Callable[..., T], *values: Any) -> T:
        """Call a method with these values, while the event loop goes on."""
        return await self.storage.run_async(partial(work, *values))

    def renew(self) -> bool:
        """Renew the lease; returns False if it was lost, so that others have taken over what this process ran."""
        held = self.storage.write(f"UPDATE processes SET beat = {_NOW} WHERE id = ?", (self.id,)) == 1
        now = time.monotonic()
        if now - self._renewed > LEASE_SECONDS / 2:
            self._steady = now
        self._renewed = now
        return held

    def rejoin(self) -> None:
        """Begin again as another process, after the lease was lost."""
        self.id = str(uuid.uuid4())
        self._own.clear()
        self._join()

    def _join(self) -> None:
        self.storage.write(
            f"INSERT INTO processes (id, address, beat, {', '.join(self._traits)}) VALUES (?, ?, {_NOW}, ?, ?, ?)",
            (self.id, self._address, *self._traits.values()),
        )

    def differing(self, trait: str) -> str:
        """The address of a living process with another "operator", "engine" or "results"; "" if there is none."""
        own = self._traits[trait]
        rows = self.storage.read(
            f"SELECT address FROM processes WHERE {_ALIVE} AND {trait} NOT IN ('', ?) ORDER BY beat", (own,)
        )
        return str(rows[0][0]) if own and rows else ""

    def leave(self) -> None:
        """Give up everything that this process has."""
        self.storage.write("DELETE FROM processes WHERE id = ?", (self.id,))
        self._release_from_gone()

    def is_member(self, process: str) -> bool:
        """Whether a process is not considered dead."""
        return bool(self.storage.read("SELECT 1 FROM processes WHERE id = ?", (process,)))

    def peer(self, process: str) -> Peer | None:
        """Another process, None if it is this one or not alive."""
        if process in {"", self.id}:
            return None
        rows = self.storage.read(f"SELECT address FROM processes WHERE id = ? AND {_ALIVE}", (process,))
        return Peer(process, str(rows[0][0])) if rows else None

    def place_of_session(self, token: str, name: str) -> Peer | None:
        """The process that has a session, None if it is this one. For any thread.

        A session that no living process has belongs to this one from now on.
        """
        if not name or (token, name) in self._own:
            return None
        held = f"EXISTS (SELECT FROM processes WHERE id = sessions.process AND {_ALIVE})"
        rows = self.storage.read(
            "WITH before AS (SELECT process, in_transaction FROM sessions WHERE token = ? AND name = ?) "
            "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT (token, name) DO UPDATE SET lost = NULL, "
            f"process = CASE WHEN {held} THEN sessions.process ELSE excluded.process END, "
            f"ending = CASE WHEN {held} THEN sessions.ending ELSE '' END "
            "RETURNING process, (SELECT process FROM before), (SELECT in_transaction FROM before), "
            "(SELECT address FROM processes WHERE id = sessions.process)",
            (token, name, token, name, self.id),
        )
        process, before, in_transaction, address = rows[0]
        if process == self.id:
            self._own.add((token, name))
            if before not in {None, self.id}:
                self._lost[token, name] = bool(in_transaction)
            return None
        # Its lease may have ended meanwhile: then it does not answer, and the session is not this one's yet.
        return Peer(str(process), str(address))

    @property
    def sessions(self) -> frozenset[tuple[str, str]]:
        """The sessions that belong to this process: token and name."""
        return frozenset(self._own)

    def sessions_elsewhere(self) -> list[tuple[str, str]]:
        """The sessions of the other living processes: token and name."""
        rows = self.storage.read(
            f"SELECT token, name FROM sessions JOIN processes ON id = process WHERE id <> ? AND {_ALIVE} ORDER BY name",
            (self.id,),
        )
        return [(str(token), str(name)) for token, name in rows]

    def end_session(self, token: str, name: str) -> None:
        if (token, name) in self._own:
            self._own.discard((token, name))
            self.storage.write(
                "DELETE FROM sessions WHERE token = ? AND name = ? AND process = ?", (token, name, self.id)
            )

    def give_up(self, sessions: Sequence[tuple[str, str]]) -> None:
        """Leave sessions of this process, given by token and name, to the process that is asked for them next."""
        self._own -= set(sessions)
        self.storage.write_all(
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
        self.storage.write(
            "UPDATE sessions SET in_transaction = ? WHERE token = ? AND name = ? AND process = ?",
            (is_open, token, name, self.id),
        )

    def ask_to_end_session(self, token: str, name: str, when_idle: bool) -> None:
        """Ask the process that has a session to end it; `when_idle` once its statements have finished."""
        self.storage.write(
            "UPDATE sessions SET ending = CASE WHEN ending = 'now' THEN ending ELSE ? END WHERE token = ? AND name = ?",
            ("idle" if when_idle else "now", token, name),
        )

    def is_asked_to_end_session(self, token: str, name: str) -> bool:
        """Whether a living process was asked to end a session and has not done so."""
        return bool(
            self.storage.read(
                "SELECT 1 FROM sessions JOIN processes ON id = process "
                f"WHERE token = ? AND name = ? AND ending <> '' AND {_ALIVE}",
                (token, name),
            )
        )

    def sessions_asked_to_end(self) -> list[tuple[str, str, bool]]:
        """The sessions that others asked this process to end: token, name, and whether once they are idle."""
        rows = self.storage.read(
            "SELECT token, name, ending FROM sessions WHERE process = ? AND ending <> ''", (self.id,)
        )
        return [(str(token), str(name), ending == "idle") for token, name, ending in rows]

    def has_ended_session(self, token: str, name: str) -> None:
        """Tell those who asked for it that this process has ended a session."""
        self.storage.write(
            "UPDATE sessions SET ending = '' WHERE token = ? AND name = ? AND process = ?", (token, name, self.id)
        )

    def needs_files(self, names: Collection[str]) -> Mapping[str, bool]:
        """Those of some files in the storage of results that are the result of a statement, or a source, and whether
        the statement still runs.
        """
        rows = self.storage.read(
            "SELECT id, state = ? FROM statements WHERE id = ANY(?) AND (state = ? OR bytes > 0) UNION ALL "
            "SELECT detail::json->>'stored', FALSE FROM objects WHERE detail LIKE '%\"stored\"%'",
            (sqlstate.RUNNING, list(names), sqlstate.RUNNING),
        )
        return {str(name): bool(is_running) for name, is_running in rows}

    def ask_to_end(self, statement: str) -> None:
        """Ask the process that runs a statement to cancel it."""
        self.storage.write("UPDATE statements SET ending = TRUE WHERE id = ?", (statement,))

    def asked_to_end(self) -> set[str]:
        """The statements of this process that others asked to cancel."""
        sql = "SELECT id FROM statements WHERE state = ? AND process = ? AND ending"
        return {str(row[0]) for row in self.storage.read(sql, (sqlstate.RUNNING, self.id))}

    def take_over(self) -> list[str]:
        """Take over the statements of dead processes, and free their sessions. Only one process does so;
        returns the addresses of those processes.

        After a time in which the database did not respond, no process could renew its lease: then none is dead yet.
        """
        if time.monotonic() - self._steady < LEASE_SECONDS:
            return []
        dead = self.storage.read(f"DELETE FROM processes WHERE NOT {_ALIVE} AND id <> ? RETURNING address", (self.id,))
        self._release_from_gone()
        self.storage.write(
            "UPDATE statements SET process = ? WHERE state = ? AND process <> '' AND NOT EXISTS (SELECT FROM processes "
            "WHERE processes.id = statements.process)",
            (self.id, sqlstate.RUNNING),
        )
        return [str(address) for (address,) in dead]

    def _release_from_gone(self) -> None:
        """Free the sessions of processes that are no longer members."""
        self.storage.write(f"UPDATE sessions SET process = '', ending = '', lost = {_NOW} WHERE {_GONE}")

    def key(self, name: str) -> bytes:
        """A random key that all processes share, 32 bytes."""
        return self.shared_value(name, secrets.token_bytes(32))

    def shared_value(self, name: str, value: bytes) -> bytes:
        """The value that the first process stored under a name; if there is none, `value` is stored and returned."""
        self.storage.write("INSERT INTO keys VALUES (?, ?) ON CONFLICT DO NOTHING", (name, value))
        return bytes(self.storage.read("SELECT value FROM keys WHERE name = ?", (name,))[0][0])

    def tidy(self) -> None:
        """Remove lost sessions that were not used again."""
        self.storage.write(f"DELETE FROM sessions WHERE lost < {_NOW} - {FORGOTTEN_SECONDS}")
