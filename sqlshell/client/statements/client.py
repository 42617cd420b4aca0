"""The client's interface: submissions, the Client protocol, and callbacks while a statement runs."""

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
    """Callbacks while a statement runs. `progress` takes a share (0 to 1, or None) and a text."""

    statement_id: Callable[[str], None] = _ignore
    query_id: Callable[[str], None] = _ignore
    progress: Callable[[float | None, str], None] = _ignore
    context: Callable[[ContextEcho | None], None] = _ignore
    say: Callable[[str], None] = _ignore


class Submission(Struct, frozen=True):
    """One statement to run. `reads_only` says that it may safely be received twice; `ending` is the `;` as typed."""

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
    """When an unbounded result ends: after `max_rows` rows or `seconds` (None: never); `reconnect` allows gaps."""

    max_rows: int | None = None
    seconds: float | None = None
    reconnect: bool = False


class UnreadOutcome(Struct, frozen=True):
    """The outcome of a statement of a batch whose result was not read."""

    sql: str
    statement_id: str
    sql_state: str
    message: str


class StatementBatch(Protocol):
    """Statements that are sent together, and whose results are read one by one."""

    @property
    def at_hand(self) -> bool:
        """Whether the next statement has finished and its result has arrived in full."""

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
        """Whether the service accepts batches; None if that is not known yet."""

    def begin_batch(self, submission: Sequence[Submission], *, stop: bool) -> StatementBatch | None:
        """A batch of statements, whose results are read one by one; None if the service does not accept batches."""

    @property
    def can_refetch(self) -> bool:
        """Whether fetch() can return the result of a statement again."""

    @property
    def can_cancel(self) -> bool:
        """Whether a running statement can be cancelled."""

    async def is_legacy(self) -> bool:
        """Whether the legacy interface is used."""

    async def end_sessions(self, session_ids: Sequence[str]) -> None:
        """Tell the service that these sessions are no longer used; statements that run in them go on."""

    async def aclose(self) -> None: ...


def mark_uncertain(error: ShellError, behind: int = 0) -> None:
    """Add the hint that a statement, and the next `behind` that were sent with it, may have run, and how to check."""
    which = "the statement" if not behind else f"the statement and the {behind:,} sent after it"
    again = "it" if not behind else "them"
    advice = f"{which} may have run: check LIST QUERIES or the data before running {again} again"
    error.hint = f"{advice}; {error.hint}" if error.hint else advice
