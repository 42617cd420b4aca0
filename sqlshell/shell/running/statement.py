"""The record of one statement: what is sent, what has arrived, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct, field

from sqlshell.client.http.upload import Attachment
from sqlshell.client.statements.client import Submission, Timing
from sqlshell.context import SessionContext
from sqlshell.errors import (
    ConnectionBroken,
    ConnectionFailed,
    Interrupted,
    NotAuthenticated,
    ShellError,
    StatementError,
    UsageError,
)
from sqlshell.interface import sqlstate
from sqlshell.result import StreamingResult
from sqlshell.sql.analysis.lexed import Lexed, Sql


class LexedSubmission(Submission, frozen=True, kw_only=True):
    """A submission; `statement` is its text with what has been learned of it."""

    statement: Lexed


def submission_of(
    statement: Lexed,
    attachments: Sequence[Attachment] = (),
    row_limit: int | None = None,
    *,
    repeatable: bool = False,
    ending: str = "",
) -> LexedSubmission:
    """Return what is sent of a statement, as `Submission` describes."""
    return LexedSubmission(statement.text, attachments, row_limit, repeatable, ending, statement=statement)


class Running(Struct):
    """A statement that is being awaited, or was, or a command with progress."""

    began: float = field(default_factory=time.monotonic)
    statement: Sql = ""
    """Its text, "" for a command."""
    context: SessionContext = SessionContext()
    """The one in which it runs."""
    place: tuple[str, int] = ("", 0)
    """The script and the line from which it comes."""
    hint: str = "^C stops"
    """The current effect of Ctrl-C."""
    notice: str = ""
    """Why it takes longer: a retry, a cancel request."""
    fetched_rows: int = 0
    fetched_bytes: int = 0
    """The received part of its result."""
    total: int | None = None
    """The rows of its result, if known."""
    fetching: float = 0.0
    """When its rows began to be fetched (time.monotonic)."""
    statement_id: str = ""
    share: float | None = None
    message: str = ""
    submitted_here: bool = True
    """Whether it was submitted here, and not fetched."""
    rolls_back: bool = False
    """Whether it is the COMMIT of a failed transaction."""
    query_id: str = ""
    endless: StreamingResult | None = None
    """The unbounded result that is being shown."""
    elapsed: float | None = None
    """Seconds that it took, if the service reported them."""
    waited: float = 0.0
    """Seconds that a person or a command took to read the rows."""
    finished: bool = False
    """Whether its rows are being read, so that there is nothing left to cancel."""
    answered: float | None = None
    """When its first result arrived, and `ended` when it was read (time.monotonic)."""
    ended: float = 0.0
    timing: Timing | None = None
    """The times that the service reported."""
    sql_state: str = ""
    """That of its last result."""
    size: int = 0
    """Bytes of its results."""
    rows: int | None = None
    """The rows of its last result."""
    error: ShellError | None = None
    """Why it failed."""

    @property
    def shown_share(self) -> float | None:
        """How much of it has been done, from 0 to 1: of its rows while they are fetched."""
        if self.fetched_rows and self.total:
            return self.fetched_rows / self.total
        return None if self.finished else self.share

    def progressed(self, share: float | None, message: str) -> None:
        """Note what the service reported. A share goes back only if something else is being done."""
        if share is not None and self.share is not None and self.share < 1 and message == self.message:
            share = max(share, self.share)
        self.share, self.message = share, message

    def timed(self, timing: Timing) -> None:
        """Note the times that the service reported."""
        self.timing = timing

    def begin_fetching(self, total: int | None) -> None:
        """Note that rows of a result are fetched from now on, `total` of them if that is known."""
        self.fetched_rows = self.fetched_bytes = 0
        self.total, self.fetching = total, time.monotonic()
        self.hint, self.message, self.notice = "^C stops", "", ""

    def received(self, rows: int, size: int) -> None:
        """Note that rows have arrived, in a response of `size` bytes."""
        self.fetched_rows += rows
        self.fetched_bytes += size


def outcome_unknown(error: ShellError, *, arrived: bool) -> bool:
    """Whether a statement may have taken effect although it failed with this error. `arrived` says that the service had
    it before.
    """
    if isinstance(error, ConnectionBroken):
        return True
    if isinstance(error, StatementError | UsageError):
        return False
    if isinstance(error, ConnectionFailed | NotAuthenticated):
        # Where the service had the statement before, it is asking for the outcome that failed.
        return arrived
    if isinstance(error, Interrupted):
        # The statement was canceled, or ended by itself; without a sqlState, its outcome is unknown.
        return not error.where.sql_state or sqlstate.running(error.where.sql_state)
    return True
