"""PostgreSQL's errors and notices as the service reports them: its own sqlStates and words, with the place."""

from __future__ import annotations

import re
from collections import deque
from typing import Any, Final

from psycopg import pq

from sqlshell.interface import sqlstate
from sqlshell.service.failure import Failure, excerpt

_FIELD: Final = pq.DiagnosticField
_LENGTH: Final = 64 << 10
"""Maximum characters of a message: a statement can make it arbitrarily long."""

_STATES: Final = {"3D000": sqlstate.NO_DATABASE, "3F000": sqlstate.NO_SCHEMA, "42P05": sqlstate.DUPLICATE}
"""The interface's codes for conditions whose PostgreSQL code means something else in the interface."""

_CANCELED: Final = "57014"
_ENDED: Final = re.compile(r"57P0[0-5]")
"""The server ends the connection."""


class ConnectionLost(Exception):
    """The connection to the server was lost; the text is libpq's message, "" if the service closed it."""


def error_of(result: Any, sql: str, start: int = 0) -> Exception:
    """Return the Failure for a PGresult with an error of the statement `sql`, which begins at character `start` of what
    was sent; ConnectionLost if the server ended the connection with it."""
    state = _text(result, _FIELD.SQLSTATE)
    if _ENDED.fullmatch(state) or not state:
        return ConnectionLost(_text(result, _FIELD.MESSAGE_PRIMARY) or result.get_error_message())
    lines = [_text(result, _FIELD.MESSAGE_PRIMARY)]
    place = _text(result, _FIELD.STATEMENT_POSITION)
    if place.isdecimal() and 0 < int(place) - start <= len(sql) + 1:
        lines.append(excerpt(sql, int(place) - start - 1))
    for name, field in (
        ("DETAIL", _FIELD.MESSAGE_DETAIL),
        ("HINT", _FIELD.MESSAGE_HINT),
        ("QUERY", _FIELD.INTERNAL_QUERY),
        ("CONTEXT", _FIELD.CONTEXT),
    ):
        if text := _text(result, field):
            lines.append(f"{name}: {text}")
    return Failure(_STATES.get(state, state), "\n".join(lines)[:_LENGTH])


def reason(error: ConnectionLost) -> str:
    """Return the cause of a lost connection in one line: the server's last message or libpq's, "" if the service closed
    it."""
    lines = [line.removeprefix("consuming input failed: ").strip() for line in str(error).splitlines()]
    return next((line for line in lines if line), "")


def is_canceled(failure: Failure) -> bool:
    """Tell whether the server canceled the statement: on request, or because of one of its time limits."""
    return failure.sql_state == _CANCELED


def notice_of(notice: Any) -> str:
    """Return a notice or warning of the server, a psycopg Diagnostic, as psql shows it."""
    lines = [f"{notice.severity or 'NOTICE'}: {notice.message_primary or ''}"]
    for name, text in (("DETAIL", notice.message_detail), ("HINT", notice.message_hint)):
        if text:
            lines.append(f"{name}: {text}")
    return "\n".join(lines)


class Notices:
    """The notices of a statement: the first ones and the latest ones, if they are many."""

    LENGTH: Final = 4 << 10
    """Characters that are kept of the first, and of the latest."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._latest: deque[str] = deque()
        self._size = self._latest_size = self._dropped = 0

    def add(self, text: str) -> None:
        text = text if len(text) <= self.LENGTH else f"{text[: self.LENGTH]}…"
        if not self._latest and self._size + len(text) <= self.LENGTH:
            self._size += len(text)
            self._first.append(text)
            return
        self._latest.append(text)
        self._latest_size += len(text)
        while self._latest_size > self.LENGTH and len(self._latest) > 1:
            self._latest_size -= len(self._latest.popleft())
            self._dropped += 1

    def texts(self) -> list[str]:
        """Those that are kept, with the number of the others."""
        omitted = [f"… {self._dropped:,} notices omitted …"] if self._dropped else []
        return [*self._first, *omitted, *self._latest]


def decoded(value: bytes | None) -> str:
    """Return a text of the server; a database whose encoding is SQL_ASCII may contain anything."""
    return (value or b"").decode("utf-8", "replace")


def _text(result: Any, field: Any) -> str:
    return decoded(result.error_field(field))
