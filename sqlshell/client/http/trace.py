"""Traces of requests: one line for each with -v, headers and bodies with -vv, without secrets."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from sqlshell.client.secret_values import Secrets
from sqlshell.sql.analysis.secrets import names_secret
from sqlshell.text import MASK, format_count

_ID = re.compile(rb'"statementID"\s*:\s*"([0-9A-Za-z_-]{1,64})"')
_SEARCHED_BYTES = 4096

SHOWN_BYTES = 1 << 16
"""Longer bodies are truncated."""

_MEMBER = re.compile(r'("(?:[^"\\]|\\.){0,100}"\s*:\s*)"(?:[^"\\]|\\.)*(?:"|\Z)')


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
        self.write_whole(">", f"#{self._number} {method} {url}", headers, _json_part(content))
        return request

    def write_whole(self, mark: str, first: str, headers: Mapping[str, str], body: bytes | bytearray) -> None:
        """Write headers and body, at level 2."""
        if self._level() > 1:
            shown = shown_body(body, self._sql)
            lines = [first, *shown_headers(headers), *([shown] if shown else [])]
            self.write("\n".join(f"{mark} {line}" for line in lines))

    def write(self, text: str) -> None:
        self._say(self.secrets.text(text))


class Request:
    """One request, and its response when it arrives."""

    def __init__(self, trace: Trace, number: int, what: str) -> None:
        self._trace = trace
        self._head = f"#{number} {what}"
        self._began = time.monotonic()

    def record_response(self, status: int, headers: Mapping[str, str], body: bytes | bytearray, received: int) -> None:
        head = f"{self._head} {status} {format_count(received, 'byte')} {self._ms()}"
        match = _ID.search(body[:_SEARCHED_BYTES])
        named = match[1].decode() if match and match[1].decode() not in head else ""
        self._trace.write(f"{head}{' ' + named if named else ''}")
        self._trace.write_whole("<", str(status), headers, body)

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


def shown_headers(given: Mapping[str, str]) -> list[str]:
    """`name: value` of each header."""
    return [f"{name}: {MASK if names_secret(name) else value}" for name, value in given.items()]


def shown_body(given: bytes | bytearray, sql: Callable[[str], str]) -> str:
    """A body as text. `sql` removes the secrets from a statement. A long body is truncated and its rows are omitted."""
    if not given:
        return ""
    if len(given) <= SHOWN_BYTES or not given.startswith(b'{"sqlState"'):
        try:
            text = json.dumps(_clean(json.loads(given), sql), ensure_ascii=False)
        except (ValueError, RecursionError):
            pass
        else:
            return text if len(text) <= SHOWN_BYTES else f"{text[:2_000]}… ({len(given):,} bytes)"
    if not given.startswith((b"{", b"[")):
        # The form of the legacy interface, or something that only a proxy understands.
        text = sql(bytes(given[:SHOWN_BYTES]).decode(errors="replace"))
        return text if len(given) <= 2_000 else f"{text[:2_000]}… ({len(given):,} bytes)"
    cut = given.find(b'"data":[')
    shown = bytes(given[: min(cut if cut >= 0 else 2_000, 2_000)]).decode(errors="replace")
    text = _MEMBER.sub(lambda match: f'{match[1]}"{MASK}"' if names_secret(match[1]) else match[0], shown)
    return text if len(shown) == len(given) else f"{text}… ({len(given):,} bytes)"


def _clean(value: Any, sql: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [_clean(item, sql) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned: dict[str, Any] = {}
    for name, item in value.items():
        if names_secret(name) and isinstance(item, str):
            cleaned[name] = MASK
        elif name == "data":
            cleaned[name] = item
        elif isinstance(item, str):
            # A statement, or a message that quotes one.
            cleaned[name] = sql(item)
        elif name == "statements" and isinstance(item, list):
            cleaned[name] = [sql(each) if isinstance(each, str) else _clean(each, sql) for each in item]
        else:
            cleaned[name] = _clean(item, sql)
    hidden = _hidden(cleaned.get("metadata"))
    if hidden and isinstance(cleaned.get("data"), list):
        cleaned["data"] = [
            [MASK if number in hidden and cell is not None else cell for number, cell in enumerate(row)]
            if isinstance(row, list)
            else row
            for row in cleaned["data"]
        ]
    return cleaned


def _hidden(metadata: Any) -> set[int]:
    columns = metadata.get("columns") if isinstance(metadata, dict) else None
    if not isinstance(columns, list):
        return set()
    return {
        number
        for number, column in enumerate(columns)
        if isinstance(column, dict) and names_secret(str(column.get("name")))
    }
