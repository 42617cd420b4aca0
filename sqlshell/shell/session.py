"""The state of a shell: its options, its connection, and the outcome of the last statement."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from sqlshell.client.service import Service
from sqlshell.client.statements.client import Client
from sqlshell.context import SessionContext
from sqlshell.errors import StatementError
from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.shell.connection import Connection
from sqlshell.shell.options import Options
from sqlshell.shell.records.redaction import SecretFilter
from sqlshell.shell.records.result_history import ResultHistory
from sqlshell.shell.running.background import Background
from sqlshell.shell.running.statement import Running
from sqlshell.sql.analysis.kinds import replaced_parts
from sqlshell.sql.analysis.lexed import Sql, lexed
from sqlshell.sql.analysis.transaction import Transaction

_MISSING_PART = {
    sqlstate.NO_ROLE: "role",
    sqlstate.NO_DATABASE: "database",
    sqlstate.NO_SCHEMA: "schema",
    sqlstate.NO_ORGANIZATION: "organization",
    sqlstate.NO_STORE: "store",
    sqlstate.NO_COMPUTE_POOL: "compute_pool",
}
"""The part of the context that does not exist according to a sqlState."""

_DEPENDENT_PARTS = {
    "organization": ("organization", "database", "schema", "store", "compute_pool"),
    "database": ("database", "schema"),
}
"""The parts that depend on a part, if there are any."""


class SessionState(Struct):
    """A connection and the state of the session on it. Replaced as a whole when the shell connects elsewhere."""

    connection: Connection
    context: SessionContext
    sources: dict[str, str]
    """The source of each part of the context: flag, environment, profile, DSN, machine, echo, or \\context set."""
    background: Background
    result_history: ResultHistory = field(default_factory=ResultHistory)
    """The results of the last statements."""
    transaction: Transaction = field(default_factory=Transaction)
    default_role: str = ""
    """The role that the service chose; "" if one was requested."""
    changed_parts: set[str] = field(default_factory=set)
    """The parts of the context that the last statement changed."""
    last_echo: ContextEcho | None = None
    """The last reported context; None if the running statement has had none."""
    confirmed_echo: ContextEcho = field(default_factory=ContextEcho)
    """The context reported by the last successful statement: the service had the objects that it names."""
    lost_context: StatementError | None = None
    """The failure of the last statement if a part of the context no longer exists, so that the next
    one runs elsewhere.
    """
    server: Mapping[str, str] | None = None
    """The engine's server and the connection to it, by lower-case column of LIST ENGINE CONNECTIONS; None until they
    are asked for.
    """
    own_variables: set[str] = field(default_factory=set)
    """The variables about the connection that the user has set or unset since it was made."""
    last_statement_id: str = ""
    """The statementID of the last foreground statement on this connection, "" if there is none."""
    last_job: int = 0
    """The job number of the last statement if it was sent to the background; 0 otherwise."""
    cleanup: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)
    """Closed before the connection."""

    @property
    def client(self) -> Client:
        return self.connection.client

    @classmethod
    def on(cls, connection: Connection, announce: Callable[[str], None]) -> SessionState:
        """The initial state of a session. `announce` reports background statements to the user."""
        background = Background(connection.client, connection.journal, announce)
        return cls(connection, connection.context, dict(connection.sources), background)


class Session(Struct):
    """The state of one shell: `state` belongs to its connection, everything else outlives it."""

    state: SessionState
    options: Options = field(default_factory=Options)
    interactive: bool = False
    secret_filter: SecretFilter = field(default_factory=SecretFilter)
    """Removes the secrets that the shell knows from text that is stored."""
    running: Running | None = None
    command_running: bool = False
    """Whether a backslash command is running."""
    skipping: bool = False
    """Whether input is skipped, up to \\else or \\endif."""
    rows: int | None = None
    """The number of rows of the last statement's last result."""
    elapsed: float | None = None
    """Seconds from submission to the last row of the last statement."""
    on_identified: Callable[[str], None] | None = None
    """Called when the service has assigned an ID to the running statement."""
    ended: Running | None = None
    """The last statement that was awaited."""
    examples: Sequence[str] = ()
    """The examples of the command that was explained last, which keys put at the prompt."""

    @property
    def connection(self) -> Connection:
        return self.state.connection

    @property
    def service(self) -> Service:
        return self.state.connection.service

    @property
    def context(self) -> SessionContext:
        return self.state.context

    @property
    def transaction(self) -> Transaction:
        return self.state.transaction

    @property
    def target(self) -> str:
        """The target's name for people: a URL without secrets, a profile, or a file."""
        return self.state.connection.label

    @property
    def embedded(self) -> bool:
        return self.state.connection.embedded

    @property
    def busy(self) -> bool:
        """Whether a statement or a command is running."""
        return self.running is not None or self.command_running

    def redact(self, sql: Sql) -> str:
        """A text without its secrets, for storage."""
        return self.state.connection.redact(sql)

    @contextlib.contextmanager
    def options_for(self, given: Mapping[str, object]) -> Iterator[None]:
        """Use these options instead of the session's for a while."""
        before, chosen = {name: getattr(self.options, name) for name in given}, set(self.options.chosen)
        try:
            self.options.choose(given)
            yield
        finally:
            self.options.choose(before)
            self.options.chosen = chosen

    def adopt(self, echo: ContextEcho | None) -> None:
        """Adopt the context that the service reports, and record it as the source of the parts that changed."""
        state = self.state
        state.last_echo = echo
        state.transaction.adopt(echo)
        adopted = state.context.adopt(echo)
        if adopted == state.context:
            return
        state.default_role = state.default_role if state.context.role else adopted.role
        before, state.context = dict(state.context.parts()), adopted
        state.changed_parts |= {name for name, value in state.context.parts() if value != before[name] and before[name]}
        state.sources |= {name: "service" for name, value in state.context.parts() if value != before[name]}

    @contextlib.contextmanager
    def protecting_context(self, sql: Sql) -> Iterator[None]:
        """Wraps a statement: if it fails, the parts of the context that were set before do not change.

        The response to a failed statement may contain the context of the service's session. A requested database that
        does not exist must not become another one, in which the next statement of a script would run; at the prompt the
        user sees it. A part that the service had, and has no more, is removed from the context.
        """
        state = self.state
        before, sources = state.context, dict(state.sources)
        state.last_echo = state.lost_context = None
        try:
            yield
        except StatementError as error:
            part = _MISSING_PART.get(error.where.sql_state, "")
            name = str(getattr(before, part)) if part else ""
            is_gone = bool(name) and part not in replaced_parts(sql) and self._is_gone(part, name, sql, error)
            if is_gone and (self.interactive or _echoed_name(state.confirmed_echo, part) == name):
                state.lost_context = error
            dropped = _DEPENDENT_PARTS.get(part, (part,)) if state.lost_context else ()
            kept = {key: value for key, value in before.parts() if value and key not in dropped}
            state.context = replace(state.context, **kept, **self._replacements(before, dropped))
            state.sources |= {key: sources[key] for key in kept if key in sources}
            state.changed_parts -= kept.keys()
            state.changed_parts |= set(dropped)
            if is_gone and not error.hint:
                remedy = f"select another with USE {part.upper()} NAME or \\context set {part} NAME"
                now = getattr(state.context, part)
                selected = f"the current {part} is now {now!r}" if now else f"no {part} is selected now"
                error.hint = f"{selected}\n{remedy}" if state.lost_context else remedy
            raise
        state.confirmed_echo = state.last_echo or state.confirmed_echo

    def _is_gone(self, part: str, name: str, sql: Sql, error: StatementError) -> bool:
        """Whether a failure is about a part of the context, and not about a name in the statement."""
        echoed = self.state.last_echo
        echoed_name = _echoed_name(echoed, part) if echoed is not None else None
        if echoed_name not in {None, name}:
            return True
        # The response to a refused statement may contain the requested context.
        named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", error.message)
        return named is not None and all(token.value != name for token in lexed(sql))

    def _replacements(self, before: SessionContext, dropped: Iterable[str]) -> dict[str, str]:
        """The context of the service's session for the parts that no longer exist, as far as it was reported."""
        return {key: now if (now := getattr(self.context, key)) != getattr(before, key) else "" for key in dropped}


def _echoed_name(echo: ContextEcho, part: str) -> str | None:
    """The value that a response reports for a part of the context."""
    name: str | None = getattr(echo, f"{part}_id" if part == "organization" else f"{part}_name")
    return name
