"""Patterns for names, as psql's \\d takes them: `sales.ord*`, `"Exact Name"`, `?` for one character."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_PART: Final = re.compile(r'"((?:[^"]|"")*)"?|(\.)|([^".])')


class Pattern:
    """A pattern of one to three parts, the last for the name. Without quotes the case of letters is no matter."""

    def __init__(self, text: str) -> None:
        parts: list[list[str]] = [[]]
        self.exact = bool(text)
        """Whether it can mean one name only."""
        for found in _PART.finditer(text):
            quoted, dot, char = found.groups()
            if dot:
                parts.append([])
            elif quoted is not None:
                parts[-1].append(re.escape(quoted.replace('""', '"')))
            elif char in "*?":
                self.exact = False
                parts[-1].append(".*" if char == "*" else ".")
            else:
                # Only what is not quoted may be written in another case.
                parts[-1].append(f"(?i:{re.escape(char)})")
        self._parts = [re.compile("".join(part) or ".*", re.DOTALL) for part in parts]
        self.qualified = len(parts) > 1

    def matches(self, *names: str) -> bool:
        """Whether a name does, with what it stands in before it, outermost first."""
        given: Sequence[str] = names[-len(self._parts) :]
        if len(given) < len(self._parts):
            return False
        return all(part.fullmatch(name) for part, name in zip(self._parts, given, strict=True))
