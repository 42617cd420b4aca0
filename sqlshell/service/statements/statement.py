"""A statement: its text, its context, its state, and its result."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.service.dialect import INTERFACE, Dialect, Reading
from sqlshell.service.engines.engine import Connection, Feed, Outcome
from sqlshell.service.organizations.pools import Pool
from sqlshell.service.results.results import Spool
from sqlshell.service.statements.redaction import RedactedStatement

LISTED = 1000
"""Characters of a statement in LIST QUERIES."""


def _new_id() -> str:
    """A random UUID (version 4) as text; the uuid module is several times slower."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class Statement(Struct, eq=False, weakref=True):
    """One statement. `state` is its sqlState: 03000 until it has finished.

    `feed` is set while a SELECT on a stream runs: its sender sees it as finished, but its state is 03000 until the
    query ends. `organization` is where it ran, "" before that is known and for statements that belong to none.
    `timezone` is the request's, "" if it is no longer known; the context has the time zone in which the statement ran.
    `semicolon` is the one after the statement, with the blanks between them.
    """

    sql: str
    organization: str
    owner: str
    spool: Spool
    context: ContextEcho
    statement_id: str = field(default_factory=_new_id)
    created: float = field(default_factory=time.time)
    state: str = sqlstate.RUNNING
    message: str = ""
    outcome: Outcome | None = None
    connection: Connection | None = None
    pools: tuple[Pool, ...] = ()
    """The pools in which it waits for a slot, or has one."""
    number: int = 0
    """Its number among the statements that were passed to its connection together."""
    cancel_copy: Callable[[], None] | None = None
    """Cancels work for the statement outside of its connection; for any thread."""
    feed: Feed | None = None
    ending: bool = False
    timed_out: str = ""
    """The message if the statement was canceled by a timeout, else ""."""
    stopped: bool = False
    """Whether it is canceled because the service stops."""
    started: bool = False
    finishing: bool = False
    """Whether its end is being written: until then it is running for its clients, but not for the service."""
    process: str = ""
    """The process of the service that has it, if several share their records."""
    operation: str = ""
    """The engine's ID of what it runs for this statement, if the engine is a server that can be asked for it again."""
    previous: str = ""
    """The ID of the statement before it in its submission, "" for the first: it begins when that one has ended."""
    began: float = 0.0
    """When its engine started it, by the monotonic clock; 0 before that."""
    finished: float = 0.0
    seconds: float = 0.0
    """How long it ran; 0 if it never started, or is not known to have started."""
    timezone: str = ""
    semicolon: str = ""
    redacted: RedactedStatement | None = None
    """Set if the statement contains secrets, until it has finished."""
    dialect: Dialect = INTERFACE
    cached_reading: Reading | None = None
    """The statement as the dialect reads it, once that was asked, until it has finished."""
    weight: int = 0
    """Its size in memory once it has finished, in characters and bytes."""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is a response: at the end, or when a SELECT on a stream has started."""

    @property
    def reading(self) -> Reading:
        """The statement as the dialect reads it."""
        if self.cached_reading is None:
            self.cached_reading = Reading(self.sql, self.dialect)
        return self.cached_reading

    @property
    def text(self) -> str:
        """The statement as it was sent, without its secrets: what is stored and shown."""
        return self._bare + self.semicolon

    @property
    def length(self) -> int:
        """The number of characters of `text`."""
        return len(self._bare) + len(self.semicolon)

    @property
    def stored(self) -> int:
        """The number of bytes of `text`."""
        return bytes_of(self._bare) + len(self.semicolon)

    @property
    def head(self) -> str:
        """The first LISTED characters of `text`, without a copy of the rest."""
        return (self._bare[:LISTED] + self.semicolon)[:LISTED]

    @property
    def _bare(self) -> str:
        return self.redacted.text if self.redacted is not None else self.sql

    @property
    def running(self) -> bool:
        return self.state == sqlstate.RUNNING

    def zone(self, asked: str) -> str:
        """The time zone in which to render instants if `asked` is requested ("" for none).

        If the time zone of the statement's own request is requested, SET TimeZone takes precedence.
        """
        ran_in = self.context.timezone or ""
        return ran_in if ran_in and asked in {"", self.timezone} else asked or "UTC"

    @property
    def unfinished(self) -> bool:
        """Whether it has no end yet."""
        return self.running and not self.finishing

    @property
    def waiting(self) -> str:
        """A message that says why a statement has not started yet."""
        for pool in self.pools:
            if place := pool.place(self.owner, self.statement_id):
                return f"queued{f' in compute pool {pool.name!r}' if pool.name else ''}, position {place:,}"
        return "the statement is queued"

    @property
    def status(self) -> str:
        """Its state in LIST QUERIES."""
        if self.running:
            return "running" if self.started else "queued"
        if self.state == sqlstate.CANCELED:
            return "terminated"
        return "failed" if sqlstate.failed(self.state) else "completed"


def bytes_of(text: str) -> int:
    """The size of a text as it is stored."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


async def wait_for_response(record: Statement, seconds: float) -> None:
    """Wait for a record's response, for at most `seconds`."""
    if not record.ready.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await record.ready.wait()
