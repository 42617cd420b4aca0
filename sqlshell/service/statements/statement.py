"""A statement: its text, its context, its state, and its result."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import threading
import time
from collections.abc import Mapping
from enum import Enum

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.service.engines.engine import EngineSession, Outcome, StreamQuery
from sqlshell.service.organizations.pools import Pool
from sqlshell.service.results.results import Spool
from sqlshell.service.statements.texts import RedactedStatement, Secret

STOPPED = "the service stopped while the statement was running; the statement may have taken effect"
NOT_BEGUN = "not run: the process of the service stopped before the statement ran"

LISTED = 1000
"""Characters of a statement in LIST QUERIES."""


def new_id() -> str:
    """A random UUID (version 4) as text; the uuid module is several times slower."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class State(Enum):
    """The state of a statement."""

    SUBMITTED = "submitted"
    """It waits for its turn in its session, or for a slot of its pool."""
    RUNNING = "running"
    ENDING = "ending"
    """It is canceled: its engine is interrupted until it ends."""
    FINISHED = "finished"
    FAILED = "failed"
    CANCELED = "canceled"

    @classmethod
    def after(cls, sql_state: str) -> State:
        """The state of a statement that has ended with a sqlState."""
        if sql_state == sqlstate.RUNNING:
            return cls.SUBMITTED
        if sql_state == sqlstate.CANCELED:
            return cls.CANCELED
        if sqlstate.failed(sql_state):
            return cls.FAILED
        return cls.FINISHED


_NEXT: Mapping[State, frozenset[State]] = {
    State.SUBMITTED: frozenset(State) - {State.SUBMITTED},
    State.RUNNING: frozenset(State) - {State.SUBMITTED, State.RUNNING},
    State.ENDING: frozenset(State) - {State.SUBMITTED, State.RUNNING, State.ENDING},
}
"""The states that may follow each state; an end is final."""


class Statement(Struct, eq=False):
    """One statement. `state` is where it is; `sql_state` is what its clients see: 03000 until its end is recorded.

    `feed` is set while a SELECT on a stream runs: its sender sees it as finished, but its sqlState is 03000 until the
    query ends. `organization` is where it ran, "" before that is known and for statements that belong to none.
    `timezone` is the request's, "" if it is no longer known; the context has the time zone in which the statement ran.
    `semicolon` is the one after the statement, with the blanks between them.
    """

    sql: str
    organization: str
    owner: str
    spool: Spool
    context: ContextEcho
    statement_id: str = field(default_factory=new_id)
    created: float = field(default_factory=time.time)
    sql_state: str = sqlstate.RUNNING
    message: str = ""
    state: State = State.SUBMITTED
    """Changed by move_to(), start() and cancel(); set from its row where a record is restored."""
    cause: tuple[str, str] | None = None
    """Why it is canceled, if not by a user: the sqlState and message that it ends with once the engine has stopped."""
    deadline: float = math.inf
    """When it is canceled because it runs for too long, by the monotonic clock."""
    most: float = math.inf
    """How many seconds it may run."""
    outcome: Outcome | None = None
    connection: EngineSession | None = None
    """The connection that runs it now."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held to change its state, and to interrupt it, so that no interrupt hits the next statement of its connection."""
    pools: tuple[Pool, ...] = ()
    """The pools in which it waits for a slot, or has one."""
    feed: StreamQuery | None = None
    process: str = ""
    """The process of the service that has it, if several share their records."""
    operation: str = ""
    """The engine's ID of what it runs for this statement, if the engine is a server that can be asked for it again."""
    began: float = 0.0
    """When it started, by the monotonic clock; 0 before that."""
    finished: float = 0.0
    seconds: float = 0.0
    """How long it ran; 0 if it never started, or is not known to have started."""
    timezone: str = ""
    semicolon: str = ""
    redacted: RedactedStatement | None = None
    """Set if the statement contains secrets, until it has finished."""
    secret: Secret | None = None
    """What it has created, until that was sent to its owner; only in memory."""
    queued: bool = False
    """Whether its row says that it has not begun."""
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is a response: at the end, or when a SELECT on a stream has started."""

    def move_to(self, state: State) -> bool:
        """Enter a state; returns False if the present one allows it no more. For any thread."""
        with self.lock:
            if state not in _NEXT.get(self.state, ()):
                return False
            self.state = state
            return True

    def start(self, connection: EngineSession | None = None, most: float = math.inf) -> bool:
        """Note that it runs from now on, for at most `most` seconds.

        Returns False if it was canceled or has ended before. For any thread.
        """
        with self.lock:
            if not self.move_to(State.RUNNING):
                return False
            self.began = time.monotonic()
            self.deadline, self.most = self.began + most, most
            self.connection = connection
            return True

    def runs_on(self, connection: EngineSession | None) -> None:
        """Note which connection runs it; None if it is free for the next statement. For any thread."""
        with self.lock:
            self.connection = connection

    def cancel(self, cause: tuple[str, str] | None = None) -> bool:
        """Note that it is to be canceled, and why; returns False if that was known. interrupt() follows."""
        with self.lock:
            if not self.move_to(State.ENDING):
                return False
            self.cause = cause
            return True

    def interrupt(self) -> None:
        """Interrupt what runs for it, if anything does."""
        with self.lock:
            if self.connection is not None:
                self.connection.cancel()

    def is_canceled(self) -> bool:
        """Whether it is canceled and has not ended yet."""
        return self.state is State.ENDING

    @property
    def text(self) -> str:
        """The statement as it was sent, without its secrets: what is stored and shown."""
        bare = self.redacted.text if self.redacted is not None else self.sql
        return bare + self.semicolon if self.semicolon else bare

    def take_secret(self) -> Secret | None:
        """The secret that it has created, on the first call."""
        secret, self.secret = self.secret, None
        return secret

    @property
    def running(self) -> bool:
        """Whether its clients see it as running: until its end is recorded."""
        return self.sql_state == sqlstate.RUNNING

    @property
    def unfinished(self) -> bool:
        """Whether it has no end yet."""
        return self.state in _NEXT

    @property
    def started(self) -> bool:
        """Whether it has ever run."""
        return self.state is State.RUNNING or self.began > 0

    def zone(self, asked: str) -> str:
        """The time zone in which to render instants if `asked` is requested ("" for none).

        If the time zone of the statement's own request is requested, SET TimeZone takes precedence.
        """
        ran_in = self.context.timezone or ""
        return ran_in if ran_in and asked in {"", self.timezone} else asked or "UTC"

    @property
    def waiting(self) -> str:
        """A message that says why a statement has not started yet."""
        for pool in self.pools:
            if place := pool.place(self.owner, self.statement_id):
                where = f' in compute pool "{pool.name}"' if pool.name else ""
                return f"queued{where}, position {place:,}"
        return "the statement is queued"

    @property
    def status(self) -> str:
        """Its state in LIST QUERIES."""
        if self.running:
            return "running" if self.started else "queued"
        ends = {State.FINISHED: "completed", State.CANCELED: "terminated"}
        return ends.get(State.after(self.sql_state), "failed")


def when_stopped(statement: Statement) -> tuple[str, str]:
    """The sqlState and message of a statement that the end of the service ends."""
    return (sqlstate.INTERNAL, STOPPED) if statement.started else (sqlstate.CANCELED, NOT_BEGUN)


def bytes_of(text: str) -> int:
    """The size of a text as it is stored."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


async def wait_for_response(statement: Statement, seconds: float) -> None:
    """Wait for a statement's response, for at most `seconds`."""
    if not statement.ready.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await statement.ready.wait()
