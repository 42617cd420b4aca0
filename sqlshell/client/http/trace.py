"""Traces of requests: one line for each with -v, headers and bodies with -vv, without secrets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping

from sqlshell.client.http import redact
from sqlshell.client.secret_values import Secrets

_ID = re.compile(rb'"statementID"\s*:\s*"([0-9A-Za-z_-]{1,64})"')
_SEARCHED_BYTES = 4096


def _unchanged(sql: str) -> str:
    return sql


class Trace:
    """Prints traces with `say`; `level` is 0, 1 (-v) or 2 (-vv).

    `sql` removes the secrets from a statement.
    """

    def __init__(
        self, say: Callable[[str], None], level: Callable[[], int], sql: Callable[[str], str] = _unchanged
    ) -> None:
        self._say = say
        self._level = level
        self._sql = sql
        self._number = 0
        self.secrets = Secrets()

    @property
    def on(self) -> bool:
        return self._level() > 0

    def begin(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> Request:
        """Trace a request; the returned object traces its response."""
        self._number += 1
        request = Request(self, self._number, f"{method} {url}")
        if self._level() > 1:
            lines = [f"> #{self._number} {method} {url}", *(f"> {line}" for line in redact.headers(headers))]
            shown = redact.body(_json_part(content), self._sql)
            self.write("\n".join([*lines, f"> {shown}"] if shown else lines))
        return request

    def write_response(self, head: str, status: int, headers: Mapping[str, str], body: bytes | bytearray) -> None:
        match = _ID.search(body[:_SEARCHED_BYTES])
        named = match[1].decode() if match and match[1].decode() not in head else ""
        self.write(f"{head}{' ' + named if named else ''}")
        if self._level() > 1:
            lines = [f"< {status}", *(f"< {line}" for line in redact.headers(headers))]
            shown = redact.body(body, self._sql)
            self.write("\n".join([*lines, f"< {shown}"] if shown else lines))

    def write(self, text: str) -> None:
        self._say(self.secrets.text(text))


class Request:
    """One request, and its response when it arrives."""

    def __init__(self, trace: Trace, number: int, what: str) -> None:
        self._trace = trace
        self._head = f"#{number} {what}"
        self._began = time.monotonic()

    def record_response(self, status: int, headers: Mapping[str, str], body: bytes | bytearray, received: int) -> None:
        self._trace.write_response(f"{self._head} {status} {received:,} bytes {self._ms()}", status, headers, body)

    def record_failure(self, message: str) -> None:
        self._trace.write(f"{self._head} failed after {self._ms()}: {message}")

    def _ms(self) -> str:
        return f"{(time.monotonic() - self._began) * 1000:.0f} ms"


def _json_part(content: bytes) -> bytes:
    """The part `request` of a multipart body, or the body itself."""
    start = content.find(b"\r\n\r\n")
    if not content.startswith(b"--") or start < 0:
        return content
    end = content.find(b"\r\n--", start)
    return content[start + 4 : end if end >= 0 else None]
