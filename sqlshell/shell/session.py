"""The state of a shell: its options, its connection, and what the last statement left behind."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from sqlshell.client.statements.client import Client
from sqlshell.context import SessionContext
from sqlshell.errors import StatementError
from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Endless
from sqlshell.shell.connection import Connection
from sqlshell.shell.records.redaction import Keeping
from sqlshell.shell.records.result_history import Past
from sqlshell.shell.running.background import Background
from sqlshell.shell.running.transaction import Transaction
from sqlshell.sql.analysis.kinds import replaced_parts
from sqlshell.sql.analysis.tokens import tokens

EMBEDDED_ROW_LIMIT = 10_000
PROMPT_MAXWIDTH = 200
"""Cells of a value that a person at a prompt is shown."""


_NOT_THERE = {
    sqlstate.NO_ROLE: "role",
    sqlstate.NO_DATABASE: "database",
    sqlstate.NO_SCHEMA: "schema",
    sqlstate.NO_ORGANIZATION: "organization",
    sqlstate.NO_STORE: "store",
    sqlstate.NO_COMPUTE_POOL: "compute_pool",
}
"""The part of the context that a failure says is not there."""

_WITHIN = {
    "organization": ("organization", "database", "schema", "store", "compute_pool"),
    "database": ("database", "schema"),
}
"""The parts that go with one that is gone, where it is more than itself."""


class Options(Struct):
    """How results are shown and scripts are run; each is a `\\pset` name, most are settings too (see settings.py)."""

    format: str = "table"
    format_chosen: bool = False
    expanded: str = "off"
    wide: str = "scroll"
    maxwidth: int = 0
    numericlocale: bool = False
    table_style: str = "psql"
    null: str | None = None
    header: bool = True
    timing: bool = True
    rowlimit: int = EMBEDDED_ROW_LIMIT
    pager: bool = True
    on_error: str = "stop"
    echo: bool = False
    quiet: bool = False
    theme: str = "default"
    completion: bool = True
    multiline: bool = True
    vi: bool = False
    max_rows: int = 0
    stream_for: float = 0.0
    allow_gaps: bool = False
    color: str = ""
    prompt: str = ""
    rprompt: str = ""
    toolbar: str = ""
    title: str = ""
    notify: float = 0.0


class Running(Struct):
    """The statement that is being waited for: what a spinner shows."""

    began: float = field(default_factory=time.monotonic)
    statement_id: str = ""
    share: float | None = None
    message: str = ""
    own: bool = True
    """Whether it was submitted here, and not fetched."""
    undoes: bool = False
    """Whether it is the COMMIT of a transaction that has failed."""
    query_id: str = ""
    endless: Endless | None = None
    """The result that is being shown and has no end of its own."""
    elapsed: float | None = None
    """Seconds that it took, where the service said so."""
    waited: float = 0.0
    """Seconds of it that a person or a command read the rows."""
    finished: bool = False
    """Whether its rows are being read, so that there is nothing left for the service to end."""


class SessionState(Struct):
    """A connection and what is known of the session on it. Replaced as a whole when the shell connects elsewhere."""

    connection: Connection
    context: SessionContext
    sources: dict[str, str]
    """Where each part of the context came from: flag, environment, profile, DSN, machine, echo, or \\context set."""
    background: Background
    past: Past = field(default_factory=Past)
    """The results of the last statements."""
    transaction: Transaction = field(default_factory=Transaction)
    changed: set[str] = field(default_factory=set)
    """The parts of the context that the last statement's echo changed."""
    echoed: ContextEcho | None = None
    """The last echo, None where the statement that runs has had none."""
    confirmed: ContextEcho = field(default_factory=ContextEcho)
    """The echo of the last statement that did not fail: the service had what it names."""
    lost: StatementError | None = None
    """The failure of the last statement, where a part of the context is gone by it, so that the next runs elsewhere."""
    last_id: str = ""
    """The statementID of the last statement on this connection that was waited for, "" without one."""
    last_job: int = 0
    """The number of the last statement where it was sent to the background; 0 where it was waited for."""
    closing: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)
    """What is closed before the connection."""

    @property
    def client(self) -> Client:
        return self.connection.client

    @classmethod
    def on(cls, connection: Connection, announce: Callable[[str], None]) -> SessionState:
        """The state of a session that begins now. `announce` tells the person what becomes of background statements."""
        background = Background(connection.client, connection.journal, announce)
        return cls(connection, connection.context, dict(connection.sources), background)


class Session(Struct):
    """One shell's state: `state` is all that belongs to its connection, everything else outlives it."""

    state: SessionState
    options: Options = field(default_factory=Options)
    interactive: bool = False
    keeping: Keeping = field(default_factory=Keeping)
    """Takes the secrets that the shell knows out of what is kept."""
    running: Running | None = None
    commanded: bool = False
    """Whether a backslash command is being waited for."""
    more: bool = False
    """Whether another result is at hand behind the one that is shown, so that this one may wait for it."""
    skipping: bool = False
    """Whether what is entered is passed over, up to \\else or \\endif."""
    rows: int | None = None
    """The rows of the last statement's last result."""
    elapsed: float | None = None
    """Seconds from submission to the last row of the last statement."""

    @property
    def connection(self) -> Connection:
        return self.state.connection

    @property
    def context(self) -> SessionContext:
        return self.state.context

    @property
    def transaction(self) -> Transaction:
        return self.state.transaction

    @property
    def target(self) -> str:
        """How people know the service: a URL without secrets, a profile, or a file."""
        return self.state.connection.label

    @property
    def embedded(self) -> bool:
        return self.state.connection.embedded

    @property
    def busy(self) -> bool:
        """Whether a statement or a command is being waited for."""
        return self.running is not None or self.commanded

    def redact(self, sql: str) -> str:
        """A text as it may be kept, without its secrets."""
        return self.state.connection.redact(sql)

    @contextlib.contextmanager
    def options_for(self, given: Mapping[str, object]) -> Iterator[None]:
        """Have these options in the place of the session's own for a while."""
        before = {name: getattr(self.options, name) for name in given}
        chosen = self.options.format_chosen
        try:
            for name, value in given.items():
                setattr(self.options, name, value)
            self.options.format_chosen = chosen or "format" in given
            yield
        finally:
            for name, value in before.items():
                setattr(self.options, name, value)
            self.options.format_chosen = chosen

    def adopt(self, echo: ContextEcho | None) -> None:
        """The service's echo is the truth; what it changed is known to come from it."""
        state = self.state
        state.echoed = echo
        state.transaction.hear(echo)
        adopted = state.context.adopt(echo)
        if adopted == state.context:
            return
        before, state.context = dict(state.context.parts()), adopted
        state.changed |= {name for name, value in state.context.parts() if value != before[name] and before[name]}
        state.sources |= {name: "echo" for name, value in state.context.parts() if value != before[name]}

    @contextlib.contextmanager
    def asking(self, sql: str) -> Iterator[None]:
        """Around a statement: where it fails, the parts of the context that were set before it stay as they were.

        The echo of a failure may tell where the service's session is. A database that was asked for and is not there
        must not become another one, in which the next statement of a script would run; a person at a prompt sees it.
        What the service had, and has no more, is dropped from the context.
        """
        state = self.state
        before, sources = state.context, dict(state.sources)
        state.echoed = state.lost = None
        try:
            yield
        except StatementError as error:
            part = _NOT_THERE.get(error.where.sql_state, "")
            name = str(getattr(before, part)) if part else ""
            gone = bool(name) and part not in replaced_parts(sql) and self._is_gone(part, name, sql, error)
            if gone and (self.interactive or _part(state.confirmed, part) == name):
                state.lost = error
            left = _WITHIN.get(part, (part,)) if state.lost else ()
            kept = {key: value for key, value in before.parts() if value and key not in left}
            state.context = replace(state.context, **kept, **self._instead(before, left))
            state.sources |= {key: sources[key] for key in kept if key in sources}
            state.changed -= kept.keys()
            state.changed |= set(left)
            if gone and not error.hint:
                chooses = f"select another with USE {part.upper()} NAME or \\context set {part} NAME"
                now = getattr(state.context, part)
                selected = f"the current {part} is now {now!r}" if now else f"no {part} is selected now"
                error.hint = f"{selected}; {chooses}" if state.lost else chooses
            raise
        state.confirmed = state.echoed or state.confirmed

    def _is_gone(self, part: str, name: str, sql: str, error: StatementError) -> bool:
        """Whether a failure is about the context's own part, and not about what the statement names."""
        echoed = self.state.echoed
        told = _part(echoed, part) if echoed is not None else None
        if told not in {None, name}:
            return True
        # The echo of what was refused may be the context that was asked for.
        named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", error.message)
        return named is not None and all(token.value != name for token in tokens(sql))

    def _instead(self, before: SessionContext, left: Iterable[str]) -> dict[str, str]:
        """Where the service's session is in the place of the parts that are gone, as far as its echo told."""
        return {key: now if (now := getattr(self.context, key)) != getattr(before, key) else "" for key in left}


def _part(echo: ContextEcho, part: str) -> str | None:
    """What an echo says of a part of the context."""
    told: str | None = getattr(echo, f"{part}_id" if part == "organization" else f"{part}_name")
    return told
