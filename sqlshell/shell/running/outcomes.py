"""Whether a statement that failed may have run nevertheless."""

from __future__ import annotations

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


def outcome_unknown(error: ShellError, *, arrived: bool) -> bool:
    """Whether a statement may have taken effect although it failed with this error. `arrived` says that the service had
    it before."""
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
