"""Names: how they are written in statements, and patterns for them as psql's \\d takes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_PART: Final = re.compile(r'"((?:[^"]|"")*)"?|(\.)|([^".])')

PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*\Z")
RESERVED: Final = frozenset(
    {
        "ALL", "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CHECK", "COLUMN", "CREATE", "CROSS",
        "DEFAULT", "DESC", "DISTINCT", "DROP", "ELSE", "END", "EXCEPT", "EXISTS", "FALSE", "FOR", "FROM", "FULL",
        "GROUP", "HAVING", "IN", "INNER", "INTERSECT", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NATURAL",
        "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER", "OUTER", "RIGHT", "SELECT", "SET", "TABLE", "THEN", "TO",
        "TRUE", "UNION", "UNIQUE", "UPDATE", "USING", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH",
    }
)  # fmt: skip
"""Names that are quoted, for they would be read as keywords."""


def quoted(name: str) -> str:
    """An identifier for a statement, in double quotes only where it needs them."""
    return name if PLAIN.match(name) and name.upper() not in RESERVED else always_quoted(name)


def always_quoted(name: str) -> str:
    """An identifier for a statement, in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def qualified(*parts: str) -> str:
    """A qualified name for a statement, each part in double quotes."""
    return ".".join(always_quoted(part) for part in parts)


def unquoted(name: str) -> str:
    """The identifier that is written as `name`, with or without double quotes."""
    return name.strip('"').replace('""', '"')


def literal(text: str) -> str:
    """A string literal for a statement."""
    return "'" + text.replace("'", "''") + "'"


class Pattern:
    """A pattern such as `sales.ord*`, `"Exact Name"` or `t?`: one to three parts, the last for the name.

    Without quotes the case of letters does not matter."""

    def __init__(self, text: str) -> None:
        parts: list[list[list[str]]] = [[[]]]
        self.exact = bool(text)
        """Whether it can mean one name only."""
        for found in _PART.finditer(text):
            exact, dot, char = found.groups()
            if dot:
                parts.append([[]])
            elif exact is not None:
                parts[-1][-1].append(re.escape(exact.replace('""', '"')))
            elif char in "*?":
                self.exact = False
                if char == "*":
                    parts[-1].append([])
                else:
                    parts[-1][-1].append(".")
            else:
                # Only what is not quoted may be written in another case.
                parts[-1][-1].append(f"(?i:{re.escape(char)})")
        self._parts = [re.compile(_between_stars(part), re.DOTALL) for part in parts]
        self.qualified = len(parts) > 1

    def matches(self, *names: str) -> bool:
        """Whether a name does, with what it stands in before it, outermost first."""
        given: Sequence[str] = names[-len(self._parts) :]
        if len(given) < len(self._parts):
            return False
        return all(part.fullmatch(name) for part, name in zip(self._parts, given, strict=True))


def _between_stars(pieces: Sequence[Sequence[str]]) -> str:
    """The expression of a name's pieces, between which anything may stand; of "" as of anything.

    A piece is found where it first stands, once: trying the others takes a power of the name's length.
    """
    if len(pieces) == 1:
        return "".join(pieces[0]) or ".*"
    first, *others, last = ("".join(piece) for piece in pieces)
    return first + "".join(f"(?>.*?{piece})" for piece in others if piece) + f".*{last}"
