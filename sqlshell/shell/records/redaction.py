"""Removes all values that the shell knows to be secret from statements that are stored.

These are its tokens and passwords, and the values of variables with the name of a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import quote

from sqlshell.text import MASK

MIN_LENGTH = 4
"""Minimum length: a shorter value would occur by chance."""

MIN_LENGTH_ANYWHERE = 8
"""Values of this length are removed anywhere, shorter ones only if they are a whole string."""

MAX_SECRETS = 200
"""Maximum values of variables that are remembered; the latest are kept."""


class SecretFilter:
    """The secret values of one shell. `names` are additional patterns of secret names."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = names
        self._secrets: dict[str, None] = {}
        self._sources: list[Callable[[], Iterable[str]]] = []

    def add_source(self, source: Callable[[], Iterable[str]]) -> None:
        """Add a `source`, which returns the values that a connection knows."""
        self._sources.append(source)

    def add(self, value: str, name: str = "") -> None:
        """Remember a secret value, or one that belongs to `name` if that is the name of a secret."""
        if len(value) < MIN_LENGTH or (name and not self._is_secret(name)):
            return
        self._secrets.pop(value, None)
        self._secrets[value] = None
        if len(self._secrets) > MAX_SECRETS:
            del self._secrets[next(iter(self._secrets))]

    def redact(self, text: str) -> str:
        """Redact a text that is written to a file."""
        for value in self._values():
            text = _redacted(text, value)
        return text

    def _is_secret(self, name: str) -> bool:
        from sqlshell.sql.analysis.secrets import names_secret

        return names_secret(name) or any(re.search(pattern, name, re.I) for pattern in self.names)

    def _values(self) -> Iterator[str]:
        yield from self._secrets
        for source in self._sources:
            yield from source()


def _redacted(text: str, value: str) -> str:
    plain = value.isalpha() or value.isdigit()
    for form in dict.fromkeys([value, value.replace("'", "''"), quote(value, safe="")]):
        if form not in text or not form.strip("*"):
            continue
        if len(value) < MIN_LENGTH_ANYWHERE:
            text = re.sub(rf"(?<=['\"$]){re.escape(form)}(?=['\"$])", MASK, text)
        elif plain:
            text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", MASK, text)
        else:
            text = text.replace(form, MASK)
    return text
