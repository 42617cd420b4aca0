"""Why a statement failed. Every layer of the service raises it; the engines do too."""

from __future__ import annotations


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
        """The same failure with another message."""
        return Failure(self.sql_state, message, self.missing)


class ResultLost(Exception):
    """The rows of a statement could not be stored, as `error` says, but the statement cannot be undone; `certain` is
    whether it is known that it took effect.
    """

    def __init__(self, error: BaseException, *, certain: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.certain = certain
