"""Why a statement failed, which every layer of the service and the engines raise, and why a request is refused."""

from __future__ import annotations

import unicodedata
from typing import Final

from sqlshell.interface import sqlstate

_SHOWN: Final = 60
"""Characters of a long line that are shown before and after the place of an error."""

_CUT: Final = "..."


class Failure(Exception):
    """A statement failed: its sqlState and the engine's own message; `missing` names the schema that does not exist,
    with its database if that is known.
    """

    def __init__(self, sql_state: str, message: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.sql_state = sql_state
        self.message = message
        self.missing = missing

    def with_message(self, message: str) -> Failure:
        """Return the same failure with another message."""
        return Failure(self.sql_state, message, self.missing)


class ResultLost(Exception):
    """The rows of a statement could not be stored, as `error` says, but the statement cannot be undone; `certain` is
    whether it is known that it took effect.
    """

    def __init__(self, error: BaseException, *, certain: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.certain = certain


class Refusal(Exception):
    """A request is refused before any of its statements runs; `message` is for its sender. `http/` decides how each
    reason is reported.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidRequest(Refusal):
    """The same request would be refused again."""


class InvalidToken(Refusal):
    """The token of the request was dropped after it was checked."""


class RequestTooLarge(Refusal):
    """The request exceeds a limit on one request."""


class TooManyRequests(Refusal):
    """Earlier requests of the caller use up a limit: the same request may succeed when they have finished."""


class ShuttingDown(Refusal):
    """The service accepts no more statements."""


def check_unicode(sql: str) -> None:
    """Raise Failure for a text that cannot be sent as UTF-8."""
    try:
        sql.encode()
    except UnicodeEncodeError:
        message = "the statement contains half of a surrogate pair, which is not valid Unicode"
        raise Failure(sqlstate.SYNTAX, message) from None


def excerpt(sql: str, start: int, end: int = 0) -> str:
    """Return the line of an error with marks below it, from character `start` to `end`, or one, as psql and DuckDB show
    it.
    """
    start = min(start, len(sql))
    line_start = sql.rfind("\n", 0, start) + 1
    line_end = sql.find("\n", start)
    line_end = len(sql) if line_end < 0 else line_end
    first, last = max(line_start, start - _SHOWN), min(line_end, max(end, start + _SHOWN))
    lead = f"LINE {sql.count(chr(10), 0, start) + 1}: " + _CUT * (first > line_start)
    blanks = " " * (len(lead) + cells_of(sql[first:start]))
    marks = "^" * max(1, cells_of(sql[start : min(end, last)]))
    return f"{lead}{sql[first:last]}{_CUT * (last < line_end)}\n{blanks}{marks}"


def cells_of(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )
