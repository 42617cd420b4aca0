"""What is asked of a service, and who is told what while it is waited for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from sqlshell.client.http.upload import Attachment
from sqlshell.context import SessionContext
from sqlshell.errors import ShellError
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Result


def _ignore(*_: object) -> None:
    return None


class Observer(Struct):
    """Who is told what while a statement is waited for. `progress` is a share (0 to 1, or None) and a text."""

    statement_id: Callable[[str], None] = _ignore
    query_id: Callable[[str], None] = _ignore
    progress: Callable[[float | None, str], None] = _ignore
    context: Callable[[ContextEcho | None], None] = _ignore
    say: Callable[[str], None] = _ignore


class Submission(Struct, frozen=True):
    """One statement to run. `reads_only` says that it does no harm to be received twice; `ending` is the `;` that was
    typed behind it."""

    sql: str
    attachments: Sequence[Attachment] = ()
    row_limit: int | None = None
    reads_only: bool = False
    ending: str = ""

    @property
    def text(self) -> str:
        """What is sent."""
        return self.sql + self.ending


class StreamLimits(Struct, frozen=True):
    """How an endless result ends: after `max_rows` rows or `seconds` (None: never); whether it may go on over a gap."""

    max_rows: int | None = None
    seconds: float | None = None
    reconnect: bool = False


class UnreadOutcome(Struct, frozen=True):
    """A statement that ran behind the last one whose result was taken."""

    sql: str
    statement_id: str
    sql_state: str
    message: str


class StatementBatch(Protocol):
    """Statements that were sent together, whose results are taken one by one."""

    @property
    def at_hand(self) -> bool:
        """Whether the next one is done, and its result is small and here."""

    def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        """The result of the next statement, which is `asked`. Raises as Client.run()."""

    async def aclose(self, context: SessionContext, *, patient: bool = True) -> list[UnreadOutcome]:
        """Have no more of them run; those that ran all the same, as far as that is known. Raises nothing.

        Without patience the service is not asked.
        """


class Client(Protocol):
    """A service by one of its interfaces. `wait_limit` is how many seconds one statement is waited for."""

    @property
    def wait_limit(self) -> float | None: ...

    def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]: ...

    def fetch(
        self, statement_id: str, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]: ...

    async def state(self, statement_id: str, context: SessionContext) -> tuple[str, str]: ...

    async def terminate(self, query_id: str, context: SessionContext) -> None: ...

    @property
    def supports_batches(self) -> bool | None:
        """Whether the service takes several statements at once, as far as is known."""

    def begin_batch(self, submission: Sequence[Submission], *, stop: bool) -> StatementBatch | None:
        """Send statements together, and take the results one by one; None where the service does not take them so."""

    @property
    def can_refetch(self) -> bool:
        """Whether the result of a statement can be asked for again, by fetch()."""

    @property
    def can_cancel(self) -> bool:
        """Whether a statement that runs can be named to the service, so that it may end it."""

    async def is_legacy(self) -> bool:
        """Whether the service is spoken to by the legacy interface."""

    async def end_sessions(self, session_ids: Sequence[str]) -> None:
        """Tell the service that nobody comes back to these sessions; what runs in them goes on."""

    async def aclose(self) -> None: ...


def mark_uncertain(error: ShellError, behind: int = 0) -> None:
    """Say that nobody knows whether the service ran a statement, and `behind` more that were sent with it, and how to
    find out."""
    which = "the statement" if not behind else f"the statement and the next {behind:,} that were sent with it"
    advice = f"{which} may have run: check LIST QUERIES, or the data, before you run it again"
    error.hint = f"{advice}; {error.hint}" if error.hint else advice
