"""What an interactive shell adds to the shell: a history, a catalog, themes, somebody to ask, other targets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from sqlshell.errors import UsageError
from sqlshell.origin import Own
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.running.policy import Ask
from sqlshell.sql.completion.catalog import Catalog

if TYPE_CHECKING:
    from sqlshell.shell.local.local import Local


async def _healthy() -> str:
    return ""


def _redacted(sql: str) -> str:
    from sqlshell.sql.analysis.secrets import redacted

    return redacted(sql)


async def _no_local() -> Local:
    raise UsageError("this shell has no database of its own")


async def _nowhere(text: Own) -> None:
    raise UsageError("this shell has one target", "start another")


class Hooks(Struct):
    """Each does nothing until somebody who can sets it."""

    themes: Callable[[], Sequence[str]] = tuple
    """The names of the themes that can be chosen. Raises UsageError for a broken theme file."""
    previews: Callable[[], Iterable[str]] = tuple
    """A line for each theme, in its colours. Raises UsageError for a broken theme file."""
    doctor: Callable[[], Awaitable[str]] = _healthy
    """Says what works and what does not, in lines."""
    connect: Callable[[Own], Awaitable[None]] = _nowhere
    """Go on at another target."""
    moved: Callable[[str], None] = lambda name: None
    """Told that the shell has another service, and what history and catalogs know it by."""
    refresh: Callable[[], None] = lambda: None
    """Have the names that completion knows loaded anew."""
    history: Callable[[], list[tuple[float, str]]] = list
    """What was entered at this prompt and others, with its time (seconds since 1970), the oldest first."""
    forget: Callable[[], None] = lambda: None
    """Clear this target's history. Raises OSError."""
    catalog: Catalog = field(default_factory=Catalog)
    """The names that are known of the service."""
    profiles: Callable[[], Sequence[str]] = tuple
    """The names of the profiles that \\c can go to."""
    redact: Callable[[str], str] = _redacted
    """Takes the secrets out of a statement before it is kept."""
    ask: Ask | None = None
    """Asks the person; None in a script."""
    local: Callable[[], Awaitable[Local]] = _no_local
    """A database of this shell alone."""
    browse: Callable[[Result], Awaitable[Summary]] | None = None
    """Shows a result to a person, on the whole screen."""
    queries: Path | None = None
    """Where named queries are kept."""
