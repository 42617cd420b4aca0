"""Redaction of secret values in everything that a service sends, as plain text, in URLs and in base64.

A service knows the token that it was sent, and a proxy its password: a response that contains one is an echo.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from sqlshell.errors import ShellError
from sqlshell.result import Body
from sqlshell.text import MASK

SHORTEST = 4
"""Minimum length: a shorter value would occur by chance."""

SHORTEST_IN_ROWS = 8
"""Minimum length in rows, which contain the user's data."""


class Secrets:
    """The secret values. Those of a data plane come in responses and are used: they stay in these responses, and are
    removed from everything else.
    """

    def __init__(self) -> None:
        self._own: dict[str, list[str]] = {}
        self._lent: dict[str, list[str]] = {}

    def add(self, value: str, *, from_service: bool = False) -> None:
        """Add a value; `from_service` says that the service sent it, and may send it again."""
        if len(value) >= SHORTEST and value not in self._own:
            (self._lent if from_service else self._own)[value] = _forms(value)

    def own(self) -> list[str]:
        """Return the values that the service did not send."""
        return list(self._own)

    def text(self, text: str) -> str:
        """Redact text that is shown to a person or written to a log or file."""
        for forms in (*self._own.values(), *self._lent.values()):
            for form in forms:
                text = text.replace(form, MASK)
        return text

    def body(self, given: Body, *, from_service: bool = True) -> Body:
        """Redact a response, whose JSON stays valid; `from_service` includes the values that a service sent."""
        for form in self.in_rows(from_service=from_service):
            encoded = form.encode("utf-8", "surrogatepass")
            if encoded in given:
                given = given.replace(encoded, MASK.encode())
        return given

    def in_rows(self, *, from_service: bool = True) -> list[str]:
        """Return what body() removes: each form of the values that cannot be mistaken for the user's data."""
        chosen = {**self._own, **(self._lent if from_service else {})}
        return [form for value, forms in chosen.items() if _is_distinctive(value) for form in forms]

    @contextlib.contextmanager
    def redacting(self) -> Iterator[None]:
        """Redact the errors that are raised inside the `with` block."""
        try:
            yield
        except ShellError as error:
            error.message, error.hint = self.text(error.message), self.text(error.hint)
            raise


def _is_distinctive(value: str) -> bool:
    return len(value) >= SHORTEST_IN_ROWS and not value.isalpha() and not value.isdigit()


def _forms(value: str) -> list[str]:
    """A value as it is, as URLs write it, in base64, and in that of a longer text, at any offset, without characters
    that depend on neighbors.
    """
    forms = [value, quote(value, safe="", errors="replace"), quote_plus(value, errors="replace")]
    given = value.encode("utf-8", "surrogatepass")
    alone = base64.b64encode(given).decode()
    encoded = [alone, alone.rstrip("=")]
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + given).decode()
        encoded.append(whole[(0, 2, 3)[before] : (len(given) + before) * 8 // 6])
    for text in encoded:
        if len(text) >= SHORTEST_IN_ROWS:
            forms += [text, text.replace("+", "-").replace("/", "_")]
    return list(dict.fromkeys(forms))
