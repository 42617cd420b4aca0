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
from sqlshell.sql.identifiers import literal

BATCHES = "batch"
"""The extension that several statements may be sent in one request."""


def _ignore(*_: object) -> None:
    return None


class Timing(Struct, frozen=True):
    """How long the service says that a statement waited in its queue, and then ran, in seconds."""

    queued: float
    running: float


class Observer(Struct):
    """Callbacks while a statement runs. `progress` is called with a share (0 to 1, or None) and a text, `timing` at the
    end if the service reports it.
    """

    statement_id: Callable[[str], None] = _ignore
    query_id: Callable[[str], None] = _ignore
    progress: Callable[[float | None, str], None] = _ignore
    context: Callable[[ContextEcho | None], None] = _ignore
    say: Callable[[str], None] = _ignore
    timing: Callable[[Timing], None] = _ignore


class Submission(Struct, frozen=True):
    """One statement to run. `repeatable`: the service may receive it twice (`is_repeatable()`); `ending` is the `;` as
    typed.
    """

    sql: str
    attachments: Sequence[Attachment] = ()
    row_limit: int | None = None
    repeatable: bool = False
    ending: str = ""

    @property
    def text(self) -> str:
        """The text that is sent."""
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
    """Statements that are sent together and whose results are read one by one."""

    @property
    def unread(self) -> int:
        """The number of statements whose results were not returned, with one that is awaited."""

    def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        """The result of the next statement, which must be `submission`. Raises the same errors as Client.run()."""

    async def aclose(self, context: SessionContext, *, patient: bool = True) -> list[UnreadOutcome]:
        """Stop the batch, and return the outcomes of statements that have run, as far as they are known. Raises
        nothing.

        If `patient` is not set, the service is not asked.
        """


class Client(Protocol):
    """A client of one interface of a service. `wait_limit` is the maximum time for one statement in seconds."""

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
        """A batch of statements; None if the service does not accept batches."""

    @property
    def can_refetch(self) -> bool:
        """Whether fetch() can return the result of a statement again."""

    @property
    def can_cancel(self) -> bool:
        """Whether a running statement can be canceled."""

    @property
    def is_legacy(self) -> bool:
        """Whether this is the legacy interface."""

    async def end_sessions(self, session_ids: Sequence[str]) -> None:
        """Tell the service that these sessions are no longer used; running statements continue."""

    async def aclose(self) -> None: ...


def terminate_query(query_id: str) -> str:
    """The statement that terminates a query. An ID that is not a UUID is quoted."""
    plain = len(query_id) == 36 and query_id.isascii() and query_id.replace("-", "").isalnum()
    return f"TERMINATE QUERY {query_id if plain else literal(query_id)}"


async def terminate(client: Client, query_id: str, context: SessionContext) -> None:
    """Ask the service to terminate a query. Raises the same errors as run()."""
    async for _ in client.run(Submission(terminate_query(query_id)), context):
        pass


def mark_uncertain(error: ShellError, behind: int = 0) -> None:
    """Add a hint that the statement and the `behind` statements sent after it may have run, with a way to check."""
    which = "the statement" if not behind else f"the statement and the {behind:,} sent after it"
    again = "it" if not behind else "them"
    advice = f"{which} may have run: check LIST QUERIES or the data before running {again} again"
    error.hint = f"{advice}\n{error.hint}" if error.hint else advice
