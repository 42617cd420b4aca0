"""Decodes large requests in pieces as they arrive, because a JSON decoder holds the GIL until it has finished."""

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
"""Requests larger than this many bytes are decoded in pieces of this size."""

SLICE: Final = 32 << 10
"""Bytes of a string that are decoded at once."""

ESCAPE: Final = 12
"""Bytes of the longest escape, a surrogate pair."""

SHORT: Final = 256
"""Strings of up to this many characters are decoded together with the JSON around them."""

REST: Final = 2 << 20
"""The maximum size of a request without its longer strings, in bytes."""

_INSIDE: Final = re.compile(
    rb'(?:[^"\\]++|(?:\\[^u])++|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4})*+',
    re.S,
)
"""The content of a JSON string: characters, escapes and surrogate pairs."""

_QUOTE: Final = b'"'[0]

M = TypeVar("M", StatementRequest, Parameters)

_request = msgspec.json.Decoder(StatementRequest).decode
_string = msgspec.json.Decoder(str).decode


RunInThread = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a function in another thread."""


class TooManyStrings(Exception):
    """A request has more strings, or more bytes beside its long strings, than any valid request."""


async def decode_request(stream: AsyncIterator[bytes], strings: int, elsewhere: RunInThread) -> StatementRequest:
    """Decode a statement request that arrives in chunks; `strings` is the maximum number of strings, keys included.

    Raises TooManyStrings, RecursionError, and msgspec.DecodeError or UnicodeDecodeError if it is not a request in JSON.
    """
    piece = bytearray()
    decoding: StatementDecoder | None = None
    async for chunk in stream:
        piece += chunk
        if len(piece) > LARGE:
            decoding = decoding or StatementDecoder(strings)
            await elsewhere(partial(decoding.feed, piece))
            piece = bytearray()
    if decoding is not None:
        decoding.feed(piece)
        return decoding.request()
    # Counts unescaped quotes, of which each string has two.
    if piece.count(b'"') - piece.count(b'\\"') > 2 * strings:
        raise TooManyStrings(f"the body has more than {strings} strings")
    return _request(piece)


class StatementDecoder:
    """Decodes the JSON of a statement request: long strings in slices as they arrive, and the small rest at the end."""

    def __init__(self, strings: int) -> None:
        self._most = self._left = strings
        self._before = b""
        """Bytes that were received but not read yet."""
        self._rest = bytearray()
        self._mark = secrets.token_hex(8)
        self._found: dict[str, str] = {}
        self._inside = False
        """Whether the current position is inside a string."""
        self._slices: list[str] = []

    def feed(self, piece: bytes | bytearray) -> None:
        """Read the next piece. Raises TooManyStrings, and msgspec.DecodeError for invalid JSON."""
        body, at = self._before + piece, 0
        while at < len(body):
            before, at = at, self._in_string(body, at) if self._inside else self._outside(body, at)
            if at == before:
                break
            if len(self._rest) > REST:
                raise TooManyStrings(f"the body has more than {REST} bytes in addition to its statements")
            if self._left < 0:
                raise TooManyStrings(f"the body has more than {self._most} strings")
        self._before = body[at:]

    def request(self) -> StatementRequest:
        """Return the decoded request. Raises msgspec.DecodeError."""
        if self._inside:
            raise msgspec.DecodeError("unterminated string")
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
        match = _INSIDE.match(body, at, end)
        stop = match.end() if match else at
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
        """End the current string."""
        text = "".join(self._slices)
        if len(text) > SHORT:
            mark = f"{self._mark}{len(self._found)}"
            self._found[mark] = text
            text = mark
        self._rest += msgspec.json.encode(text)
        self._inside, self._slices = False, []

    def _filled(self, read: M) -> M:
        """The same Struct with its long strings put back."""
        changed: dict[str, object] = {}
        for field in fields(read):
            value = getattr(read, field.name)
            if isinstance(value, str) and value in self._found:
                changed[field.name] = self._found[value]
            elif isinstance(value, list):
                changed[field.name] = [self._found.get(item, item) for item in value]
        return replace(read, **changed)


def _whole_characters(body: bytes, start: int, stop: int) -> int:
    """The end of the last complete UTF-8 character before `stop`, searched from `start` on."""
    for lead in range(stop - 1, max(stop - 4, start - 1), -1):
        if body[lead] < 0x80:
            break
        if body[lead] >= 0xC0:
            size = 2 if body[lead] < 0xE0 else 3 if body[lead] < 0xF0 else 4
            return lead if lead + size > stop else stop
    return stop
