"""Why a request is refused before any of its statements runs. `http/` decides how each reason is reported."""

from __future__ import annotations


class Refusal(Exception):
    """A request is refused; `message` is for its sender."""

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
