"""The target of statements, and everything that depends on it: one value that is complete before it takes effect."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from sqlshell.client.service import Service
from sqlshell.client.statements.client import Client, Submission
from sqlshell.context import SessionContext
from sqlshell.origin import Trusted
from sqlshell.shell.records.journal import Journal
from sqlshell.sql.analysis.lexed import Redact, Sql
from sqlshell.sql.analysis.policy import Policy

Offline = Callable[[Submission, SessionContext], None]
"""Prints a submission instead of sending it."""


def _nothing() -> None:
    return None


def _unchanged(sql: Sql) -> str:
    return str(sql)


async def _no_findings() -> str:
    return ""


class Connection(Struct, frozen=True, eq=False):
    """One service, and how this shell uses it. `label` is its name for people, without secrets.

    `context` is the initial context, and `sources` gives the source of each part.
    """

    service: Service
    journal: Journal
    label: str
    context: SessionContext
    policy: Policy = Policy()
    redact: Redact = _unchanged
    """Removes the secrets from a text that is stored."""
    sources: Mapping[str, str] = field(default_factory=dict)
    secret_names: Sequence[str] = ()
    """Additional patterns for the names of secrets."""
    target: str = ""
    """What stands for it on a command line: its profile or URL; "" for a service in this process."""
    short_name: str = ""
    """Its name in the prompt: the profile or the host; "" for a local database, which has a name of its own."""
    embedded: bool = False
    """Whether the service runs in this process and stops with it."""
    storage_name: str = ""
    """The name of the service in history and catalogs on disk; "" for one that no later shell can reach."""
    own_session: str = ""
    """The session that this shell created at the service and ends when it exits; "" for a session that it joined."""
    prompt_color: str = ""
    offline: Offline | None = None
    """Prints requests instead of sending them; None if statements are sent."""
    examine: Callable[[], Awaitable[str]] = _no_findings
    """Runs the checks of \\doctor and returns one finding per line."""
    url_of_other_database: Callable[..., str] | None = None
    """The target for another database, user, host and port; "" keeps the present one. None if the target is not the
    database of a server.
    """
    release: Callable[[], None] = _nothing
    """Stop what runs in this process for the connection. Blocks until it has stopped; may be called again."""

    def fetch_command(self, statement_id: str) -> str:
        """The command line that shows the result of a statement later. With the URL, it also gets SQLSHELL_TOKEN."""
        return f"sqlshell fetch {statement_id}{self._place}"

    def cancel_command(self, statement_id: str) -> str:
        """The command line that cancels a statement later."""
        return f"sqlshell{self._place} -c '\\cancel {statement_id}'"

    @property
    def _place(self) -> str:
        return f" {shlex.quote(self.target)}" if self.target else ""

    @property
    def client(self) -> Client:
        return self.service.statements


class Environment(Protocol):
    """The shell's access to the machine and the configuration: profiles, themes, saved queries, connections."""

    @property
    def queries(self) -> Path | None:
        """The file of saved queries; None if there is no directory for it."""

    def profiles(self) -> Sequence[str]:
        """The names of the profiles that \\c can connect to."""

    def themes(self) -> Sequence[str]:
        """The names of the themes. Raises UsageError for a broken theme file."""

    async def connect(self, target: Trusted, present: Connection, place: Sequence[Trusted] = ()) -> Connection:
        """Connect to a profile, a URL or a file, and check that the service responds. With a `place`, which is a user,
        a host and a port, the target is a database; "-" stands for what `present` has.

        Raises ShellError, and asyncio.CancelledError when it is canceled; then nothing is left open and `present` is
        unchanged.
        """

    async def local(self, present: Connection) -> tuple[Connection, Path]:
        """A database of this shell, and the directory for its files. Both are removed when the
        connection is released.
        """
