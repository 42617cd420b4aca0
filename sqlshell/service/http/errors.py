"""The responses that report an error of a request, and the headers of every response."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

EXTENSIONS = {"Sqlshell-Extensions": "batch, sessions, copy, whole-result, engines, describe", "Vary": "Accept, Prefer"}
"""Headers of each response: what this service supports beyond the interface, and what chooses the form of a result."""

JSON = "application/json"

NOT_RUN = {"Sqlshell-Not-Run": "true"}
"""A header: the request had no effect, so a client may send its statements again."""

UNAVAILABLE = "the database of the service does not respond; try again"


class BadRequest(Exception):
    """A request that is refused; `status` is the HTTP status of the response."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def message(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode({"message": text}), status, EXTENSIONS | (headers or {}), JSON)
