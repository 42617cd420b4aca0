"""Identifiers: quoting in statements, and patterns as in psql's \\d."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlshell.interface import strings

literal = strings.literal

_PART: Final = r'"((?:[^"]|"")*)"?|(\.)|([^".])'

PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*\Z")
RESERVED: Final = frozenset(
    {
        "ALL", "ANALYSE", "ANALYZE", "AND", "ANTI", "ANY", "ARRAY", "AS", "ASC", "ASOF", "ASYMMETRIC", "AT",
        "AUTHORIZATION", "BETWEEN", "BINARY", "BOTH", "BY", "CASE", "CAST", "CHECK", "COLLATE", "COLLATION", "COLUMN",
        "CONCURRENTLY", "CONSTRAINT", "CREATE", "CROSS", "DEFAULT", "DEFERRABLE", "DESC", "DESCRIBE", "DISTINCT", "DO",
        "DROP", "ELSE", "END", "EXCEPT", "EXISTS", "FALSE", "FETCH", "FOR", "FOREIGN", "FREEZE", "FROM", "FULL", "GLOB",
        "GROUP", "HAVING", "ILIKE", "IN", "INITIALLY", "INNER", "INTERSECT", "INTO", "IS", "ISNULL", "JOIN", "LAMBDA",
        "LATERAL", "LEADING", "LEFT", "LIKE", "LIMIT", "NATURAL", "NOT", "NOTNULL", "NULL", "OFFSET", "ON", "ONLY",
        "OR", "ORDER", "OUTER", "OVERLAPS", "PIVOT", "PIVOT_LONGER", "PIVOT_WIDER", "PLACING", "POSITIONAL", "PRIMARY",
        "QUALIFY", "REFERENCES", "RETURNING", "RIGHT", "SELECT", "SEMI", "SET", "SHOW", "SIMILAR", "SOME", "SUMMARIZE",
        "SYMMETRIC", "TABLE", "TABLESAMPLE", "THEN", "TO", "TRAILING", "TRUE", "UNION", "UNIQUE", "UNPACK", "UNPIVOT",
        "UPDATE", "USING", "VALUES", "VARIADIC", "VERBOSE", "WHEN", "WHERE", "WINDOW", "WITH",
    }
)  # fmt: skip
"""Names that must be quoted because they are keywords, also those of DuckDB alone."""


def quoted(name: str) -> str:
    """An identifier for a statement, in double quotes only if necessary."""
    return name if PLAIN.match(name) and name.upper() not in RESERVED else always_quoted(name)


def always_quoted(name: str) -> str:
    """An identifier for a statement, in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def qualified(*parts: str) -> str:
    """A qualified name for a statement, each part in double quotes."""
    return ".".join(always_quoted(part) for part in parts)


def unquoted(name: str) -> str:
    """The identifier that is written as `name`, with or without double quotes or backticks."""
    quote = name[:1]
    return name[1:-1].replace(quote * 2, quote) if quote in {'"', "`"} else name


def name_parts(name: str) -> list[str]:
    """Return the identifiers of a dotted name."""
    return [unquoted(part) for part in re.findall(r'"(?:[^"]|"")*"|[^".]+', name)]


class Pattern:
    """A pattern such as `sales.ord*`, `"Exact Name"` or `t?`: one to three parts, the last one for the name.

    Parts without quotes are case-insensitive.
    """

    def __init__(self, text: str) -> None:
        parts: list[list[list[str]]] = [[[]]]
        self.exact = bool(text)
        """Whether it can match only one name."""
        for match in re.finditer(_PART, text):
            exact, dot, char = match.groups()
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
                # Only unquoted parts are case-insensitive.
                parts[-1][-1].append(f"(?i:{re.escape(char)})")
        self._parts = [re.compile(_between_stars(part), re.DOTALL) for part in parts]
        self.qualified = len(parts) > 1

    def matches(self, *names: str) -> bool:
        """Whether it matches a name and its qualifiers, outermost first."""
        given: Sequence[str] = names[-len(self._parts) :]
        if len(given) < len(self._parts):
            return False
        return all(part.fullmatch(name) for part, name in zip(self._parts, given, strict=True))


def _between_stars(pieces: Sequence[Sequence[str]]) -> str:
    """A regular expression for pieces of a name with anything between them; of "" for any name.

    Each piece matches only at its first occurrence: backtracking would take exponential time.
    """
    if len(pieces) == 1:
        return "".join(pieces[0]) or ".*"
    first, *others, last = ("".join(piece) for piece in pieces)
    return first + "".join(f"(?>.*?{piece})" for piece in others if piece) + f".*{last}"
