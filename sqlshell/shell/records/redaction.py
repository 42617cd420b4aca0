"""What is kept of a statement: nothing of the values that the shell knows to be secret, wherever they stand.

These are its tokens and passwords, and what variables hold that are named for a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import quote

STARS = "***"
SHORTEST = 4
"""A shorter value would be found anywhere."""

WORDS = 8
"""A value that is as long is taken out wherever it stands, a shorter one where it is a whole string."""

MOST = 200
"""Values of variables that are remembered; those that came last stay."""


class Keeping:
    """The values of one shell. `names` are further patterns of secrets' names."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = names
        self._noted: dict[str, None] = {}
        self._sources: list[Callable[[], Iterable[str]]] = []

    def asks(self, source: Callable[[], Iterable[str]]) -> None:
        """`source` gives the values that a connection knows by now."""
        self._sources.append(source)

    def note(self, value: str, name: str = "") -> None:
        """Remember a value that is a secret, or that belongs to `name` if that is the name of one."""
        if len(value) < SHORTEST or (name and not self._is_secret(name)):
            return
        self._noted.pop(value, None)
        self._noted[value] = None
        if len(self._noted) > MOST:
            del self._noted[next(iter(self._noted))]

    def without(self, text: str) -> str:
        """A text on its way into a file."""
        for value in self._values():
            text = _without(text, value)
        return text

    def _is_secret(self, name: str) -> bool:
        from sqlshell.sql.analysis.secrets import NAMES

        return any(re.search(pattern, name, re.I) for pattern in (NAMES.pattern, *self.names))

    def _values(self) -> Iterator[str]:
        yield from self._noted
        for source in self._sources:
            yield from source()


def _without(text: str, value: str) -> str:
    plain = value.isalpha() or value.isdigit()
    for form in dict.fromkeys([value, value.replace("'", "''"), quote(value, safe="")]):
        if form not in text or not form.strip("*"):
            continue
        if len(value) < WORDS:
            text = re.sub(rf"(?<=['\"$]){re.escape(form)}(?=['\"$])", STARS, text)
        elif plain:
            text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", STARS, text)
        else:
            text = text.replace(form, STARS)
    return text
