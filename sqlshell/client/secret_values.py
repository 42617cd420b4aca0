"""Redaction of secret values in everything that a service sends, as plain text and in the usual encodings.

A service knows the token that it was sent, and a proxy its password: a response that contains one is an echo or an
attack.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterator
from functools import cache, cached_property
from urllib.parse import quote, quote_plus

from sqlshell.errors import ShellError
from sqlshell.mask import MASK
from sqlshell.result import Body

SHORTEST = 4
"""Minimum length: a shorter value would occur by chance."""

SHORTEST_IN_ROWS = 8
"""Minimum length in rows, which contain the user's data."""

FULL_SEARCH_BYTES = 1 << 16
"""Bodies up to this size, in bytes, are searched for every encoding of a value; larger ones only for the plain forms.
"""

_ESCAPED = re.compile(rb"\\\\|\\u00([2-7][0-9a-fA-F])")
_IN_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")


class Secrets:
    """The secret values. Those of a data plane come in responses and are used: they stay in these responses, and are
    removed from everything else.
    """

    def __init__(self) -> None:
        self._own: dict[bytes, _Forms] = {}
        self._lent: dict[bytes, _Forms] = {}

    def add(self, value: str, *, from_service: bool = False) -> None:
        """Add a value; `from_service` says that the service sent it, and may send it again."""
        given = value.encode("utf-8", "surrogatepass")
        if len(given) >= SHORTEST and given not in self._own:
            (self._lent if from_service else self._own)[given] = _forms(given)

    def own(self) -> list[str]:
        """The values that the service did not send."""
        return [value.decode("utf-8", "replace") for value in self._own]

    def text(self, text: str) -> str:
        """Redact text that is shown to a person or written to a log or file."""
        if not text or not (self._own or self._lent):
            return text
        given = text.encode("utf-8", "surrogatepass")
        masked: Body = given
        for forms in (*self._own.values(), *self._lent.values()):
            masked = forms.without(masked)
        return text if masked == given else bytes(masked).decode("utf-8", "replace")

    def body(self, given: Body, *, from_service: bool = True) -> Body:
        """Redact a response, whose JSON stays valid; `from_service` includes the values that a service sent."""
        for forms in (*self._own.values(), *(self._lent.values() if from_service else ())):
            if forms.in_rows:
                given = forms.without(given) if len(given) <= FULL_SEARCH_BYTES else forms.quickly_without(given)
        return given

    def in_rows(self, *, from_service: bool = True) -> list[str]:
        """The secrets that body() removes from a large response."""
        chosen = (*self._own.values(), *(self._lent.values() if from_service else ()))
        return [text for forms in chosen if forms.in_rows for text in forms.plain()]

    @contextlib.contextmanager
    def redacting(self) -> Iterator[None]:
        """Redact the errors that are raised inside the `with` block."""
        try:
            yield
        except ShellError as error:
            error.message, error.hint = self.text(error.message), self.text(error.hint)
            raise


class _Forms:
    """One value and its encodings."""

    def __init__(self, value: bytes) -> None:
        self._value = value
        self.in_rows = len(value) >= SHORTEST_IN_ROWS and not value.isalpha() and not value.isdigit()
        self._cores = _cores(value)
        plain = value.decode("utf-8", "replace")
        self._plain = {value, quote(plain, safe="").encode(), quote_plus(plain).encode()}

    @cached_property
    def _any(self) -> re.Pattern[bytes]:
        # Compiled only when needed: compiling takes longer than many scripts, whose output could not contain the value.
        return re.compile(b"".join(map(_written, self._value)))

    def without(self, given: Body) -> Body:
        """Remove every encoding of the value, also mixed ones."""
        if self._any.search(given):
            given = self._any.sub(MASK.encode(), given)
        for core in self._cores:
            if core in given:
                given = _without_base64(bytes(given), core)
        return given

    def plain(self) -> list[str]:
        """The value as it is and as it is written in URLs."""
        return [text.decode("utf-8", "replace") for text in self._plain]

    def quickly_without(self, given: Body) -> Body:
        for plain in self._plain:
            if plain in given:
                given = given.replace(plain, MASK.encode())
        if b"\\u00" in given:
            # In a JSON string every character may be written as an escape.
            read = _ESCAPED.sub(_unescaped, given)
            if self._value in read:
                return read.replace(self._value, MASK.encode())
        return given


@cache
def _forms(value: bytes) -> _Forms:
    return _Forms(value)


def _unescaped(match: re.Match[bytes]) -> bytes:
    char = bytes([int(match[1], 16)]) if match[1] else b""
    return match[0] if char in {b"", b'"', b"\\", b"\x7f"} else char


def _written(code: int) -> bytes:
    """A pattern of one byte: plain, URL-encoded (also repeatedly), as an escape of JSON or C, in HTML."""
    digits = b"".join(b"[%c%c]" % (low, up) if low != up else b"%c" % low for low, up in _hex(code))
    forms = [re.escape(bytes([code])), b"%(?:25)*+" + digits]
    if code < 0x80:
        forms += [rb"\\++(?:u00|x)" + digits, rb"&(?:amp;)*+#(?:[xX]0*+" + digits + rb"|0*+%d);?" % code]
        if code in b"\"'\\/<>&":
            forms.append(rb"\\++" + re.escape(bytes([code])))
    return b"(?:" + b"|".join(forms) + b")"


def _hex(code: int) -> Iterator[tuple[int, int]]:
    text = f"{code:02x}"
    yield from zip(text.encode(), text.upper().encode(), strict=True)


def _cores(value: bytes) -> list[bytes]:
    """The base64 encodings of a value at any offset, without the characters that depend on the neighboring bytes."""
    cores = [value.hex().encode(), value.hex().upper().encode()]
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + value)
        first = (0, 2, 3)[before]
        last = (len(value) + before) * 8 // 6
        core = whole[first:last]
        if len(core) >= 8:
            cores += [core, core.replace(b"+", b"-").replace(b"/", b"_")]
    return list(dict.fromkeys(cores))


def _without_base64(given: bytes, core: bytes) -> bytes:
    """Remove the base64 words that contain the value."""
    pieces: list[bytes] = []
    done = 0
    at = given.find(core)
    while at >= 0:
        start, end = at, at + len(core)
        while start > done and given[start - 1] in _IN_BASE64:
            start -= 1
        while end < len(given) and given[end] in _IN_BASE64:
            end += 1
        pieces += [given[done:start], MASK.encode()]
        done = end
        at = given.find(core, done)
    return b"".join([*pieces, given[done:]])
