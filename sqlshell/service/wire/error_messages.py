"""The responses that report an error of a request."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

EXTENSIONS = {"Sqlshell-Extensions": "batch, sessions, copy, whole-result, engines, describe", "Vary": "Accept, Prefer"}
"""Headers of each response: what this service supports beyond the interface, and what chooses the form of a result."""

JSON = "application/json"

NOT_RUN = {"Sqlshell-Not-Run": "true"}
"""A header: the request had no effect, so a client may send its statements again."""

UNAVAILABLE = "the database of the service does not respond; try again"


def message(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode({"message": text}), status, EXTENSIONS | (headers or {}), JSON)
