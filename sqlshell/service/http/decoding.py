"""Large requests are decoded a piece at a time as they come: a decoder holds the interpreter's lock until it ends."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import msgspec
from msgspec.structs import fields, replace

from sqlshell.interface.models import Parameters, StatementRequest

LARGE: Final = 256 << 10
"""Bytes from which a request is decoded in pieces, and of one piece."""

SLICE: Final = 32 << 10
"""Bytes of a string that are looked at, and decoded, at once."""

ESCAPE: Final = 12
"""Bytes of the longest escape, which is a pair of them."""

SHORT: Final = 256
"""Characters of a string that is decoded with what is around it."""

REST: Final = 2 << 20
"""Bytes of a request beside its longer strings."""

_INSIDE: Final = re.compile(
    rb'(?:[^"\\]++|(?:\\[^u])++|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4})*+',
    re.S,
)
"""What may stand in a string of JSON: characters, escapes, and pairs of them that are one character."""

_QUOTE: Final = b'"'[0]

M = TypeVar("M", StatementRequest, Parameters)

_request = msgspec.json.Decoder(StatementRequest).decode
_string = msgspec.json.Decoder(str).decode


Elsewhere = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a function where the event loop does not wait for it."""


class TooMuch(Exception):
    """A request has more strings, or more beside its longer ones, than any has. The text says which."""


async def decoded(stream: AsyncIterator[bytes], strings: int, elsewhere: Elsewhere) -> StatementRequest:
    """The statement request that comes in some chunks, with so many strings at most, names of members among them.

    Raises TooMuch, msgspec.DecodeError and UnicodeDecodeError for what is not JSON or not a request, RecursionError.
    """
    piece = bytearray()
    decoding: Decoding | None = None
    async for chunk in stream:
        piece += chunk
        if len(piece) > LARGE:
            decoding = decoding or Decoding(strings)
            await elsewhere(partial(decoding.feed, piece))
            piece = bytearray()
    if decoding is not None:
        decoding.feed(piece)
        return decoding.request()
    # Each string begins with a quote that no backslash escapes.
    if piece.count(b'"') - piece.count(b'\\"') > 2 * strings:
        raise TooMuch(f"it has more than {strings} strings")
    return _request(piece)


class Decoding:
    """Decodes the JSON of a statement request: longer strings in slices as they are met, and at the end the rest, which
    is small."""

    def __init__(self, strings: int) -> None:
        self._most = self._left = strings
        self._before = b""
        """What came and is not read yet."""
        self._rest = bytearray()
        self._mark = secrets.token_hex(8)
        self._found: dict[str, str] = {}
        self._inside = False
        """Whether a string has begun and not ended."""
        self._slices: list[str] = []

    def feed(self, piece: bytes | bytearray) -> None:
        """Read some more. Raises TooMuch, and msgspec.DecodeError for what is not JSON."""
        body, at = self._before + piece, 0
        while at < len(body):
            before, at = at, self._in_string(body, at) if self._inside else self._outside(body, at)
            if at == before:
                break
            if len(self._rest) > REST:
                raise TooMuch(f"it has more than {REST} bytes beside its statements")
            if self._left < 0:
                raise TooMuch(f"it has more than {self._most} strings")
        self._before = body[at:]

    def request(self) -> StatementRequest:
        """What was read. Raises msgspec.DecodeError."""
        if self._inside:
            raise msgspec.DecodeError("a string does not end")
        request = _request(self._rest)
        if request.parameters is not None:
            request = replace(request, parameters=self._filled(request.parameters))
        return self._filled(request)

    def _outside(self, body: bytes, at: int) -> int:
        quote = body.find(b'"', at)
        if quote < 0:
            self._rest += body[at:]
            return len(body)
        self._rest += body[at:quote]
        self._inside = True
        self._left -= 1
        return quote + 1

    def _in_string(self, body: bytes, at: int) -> int:
        end = min(at + SLICE, len(body))
        found = _INSIDE.match(body, at, end)
        stop = found.end() if found else at
        if stop == end:
            stop = _whole_characters(body, at, stop)
        if stop > at:
            self._slices.append(_string(b'"' + body[at:stop] + b'"'))
            return stop
        if body[at] == _QUOTE:
            self._close()
            return at + 1
        if len(body) - at >= ESCAPE:
            raise msgspec.DecodeError("a string has an invalid escape or character")
        return at

    def _close(self) -> None:
        """The string ends here."""
        text = "".join(self._slices)
        if len(text) > SHORT:
            mark = f"{self._mark}{len(self._found)}"
            self._found[mark] = text
            text = mark
        self._rest += msgspec.json.encode(text)
        self._inside, self._slices = False, []

    def _filled(self, read: M) -> M:
        """The same with the strings that were taken out."""
        changed: dict[str, object] = {}
        for field in fields(read):
            value = getattr(read, field.name)
            if isinstance(value, str) and value in self._found:
                changed[field.name] = self._found[value]
            elif isinstance(value, list):
                changed[field.name] = [self._found.get(item, item) for item in value]
        return replace(read, **changed)


def _whole_characters(body: bytes, start: int, stop: int) -> int:
    """The end of the last whole character of UTF-8 before `stop`, from `start` on."""
    for lead in range(stop - 1, max(stop - 4, start - 1), -1):
        if body[lead] < 0x80:
            break
        if body[lead] >= 0xC0:
            size = 2 if body[lead] < 0xE0 else 3 if body[lead] < 0xF0 else 4
            return lead if lead + size > stop else stop
    return stop
