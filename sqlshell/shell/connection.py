"""Where statements go, and everything that depends on it: one value, complete before it takes effect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct, field

from sqlshell.client.service import Service
from sqlshell.client.statements.client import Client, Submission
from sqlshell.context import SessionContext
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.running.policy import Policy

Offline = Callable[[Submission, SessionContext], None]
"""Shows a submission instead of making it."""


def _nothing() -> None:
    return None


def _unchanged(sql: str) -> str:
    return sql


async def _healthy() -> str:
    return ""


class Connection(Struct, frozen=True, eq=False):
    """One service, and how this shell uses it. `label` is what people call it, without secrets.

    `context` is the context to begin with, and `sources` says where each of its parts came from.
    """

    service: Service
    journal: Journal
    label: str
    context: SessionContext
    policy: Policy = Policy()
    redact: Callable[[str], str] = _unchanged
    """Takes the secrets out of a text before it is kept."""
    sources: Mapping[str, str] = field(default_factory=dict)
    secret_names: Sequence[str] = ()
    """Further patterns for the names of secrets."""
    embedded: bool = False
    """Whether the service runs in this process and ends with it."""
    kept_as: str = ""
    """The name of the service in history and catalogs on disk; "" for one that no later shell can reach."""
    own_session: str = ""
    """The session at the service that this shell created, and ends when it leaves; "" for one that it joined."""
    color: str = ""
    """The color of the prompt."""
    offline: Offline | None = None
    """Shows what would be sent; None where statements are sent."""
    examine: Callable[[], Awaitable[str]] = _healthy
    """Reports what works and what does not, one finding per line."""
    release: Callable[[], None] = _nothing
    """Ends what runs in this process for the connection. Blocks until it has ended; harmless a second time."""

    @property
    def client(self) -> Client:
        return self.service.statements
