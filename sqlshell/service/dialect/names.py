"""Names and comments in statements, and searches for the names that a statement reads or writes."""

from __future__ import annotations

import re

from sqlshell.sql.identifiers import always_quoted

Names = tuple[str, ...]
"""The parts of a dotted name; unquoted parts are folded to lower case."""

NAME = r'(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`|[A-Za-z_][\w$-]*)'
DOTTED = rf"{NAME}(?:\s*\.\s*{NAME}){{0,2}}"
KINDS = (
    "DATABASE|STORE|COMPUTE_POOL|FUNCTION_SOURCE|DESCRIPTOR_SOURCE|ORGANIZATION|ROLE|API_TOKEN|STREAM|RELATION|"
    "CHANGELOG|ENTITY|SECRET|SCHEMA_REGISTRY|USER|METRICS_INTEGRATION|SECURITY_INTEGRATION"
)
WRITES = (
    r"insert\s+(?:or\s+\w+\s+)?into|replace\s+into|update(?:\s+or\s+\w+)?|delete\s+from|truncate(?:\s+table)?|"
    r"merge\s+into|(?:alter|drop|comment\s+on)\s+\w+(?:\s+if\s+exists)?|"
    r"create\s+(?:or\s+replace\s+)?(?:recursive\s+)?(?:table|view|schema|sequence|type|macro|function)"
    rf"(?:\s+if\s+not\s+exists)?|copy(?=\s+{DOTTED}\s*(?:\([^()]*\)\s*)?from(?!\w))"
)
READS = r"from|join|using|table|describe|desc|summarize|pivot|unpivot"
"""Verbs for targets(), followed by a relation that is written or read. For error messages, never for permissions."""

COMMENT = r"--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)"
_PARTS = re.compile(
    rf"""('[^']*+(?:'|\Z)|"[^"]*+(?:"|\Z)|`[^`]*+(?:`|\Z))|({COMMENT}|\s++)|[^\s'"`/-]{{1,4096}}+|[/-]"""
)
"""The parts of a statement: strings and quoted names; comments and white space; the rest in bounded pieces.

No pattern here backtracks or matches a long text at once, because other threads wait for a match to end.
"""

BLANK = re.compile(rf"(?:\s++|{COMMENT})*+")

HEAD = 4000
"""The first and last words of a statement are searched in this many characters at its start and end."""

_WINDOW = 64 << 10
_OVERLAP = 4096
"""Characters in which targets are searched at once, and the overlap with the next window."""


def names_of(text: str) -> Names:
    """The parts of a dotted name."""
    parts = re.findall(NAME, text)
    return tuple(part[1:-1].replace(part[0] * 2, part[0]) if part[0] in {'"', "`"} else part.lower() for part in parts)


def dotted(names: Names) -> str:
    """The inverse of names_of(): a dotted name, quoted where necessary."""
    return ".".join(
        part if re.fullmatch(r"[a-z_][\w$-]*", part) and part.islower() else always_quoted(part) for part in names
    )


def without_literals(sql: str) -> str:
    """A statement with empty strings, and with comments and white space replaced by single blanks."""
    return "".join(
        "''" if (match[1] or "").startswith("'") else " " if match[2] else match[0] for match in _PARTS.finditer(sql)
    ).strip()


def without_comments(sql: str) -> str:
    """A statement with each comment replaced by a blank."""
    return "".join(
        " " if (match[2] or "").startswith(("--", "/*")) else match[0] for match in _PARTS.finditer(sql)
    ).strip()


def targets(sql: str, verbs: str) -> list[Names]:
    """The names that follow one of `verbs`, a regular expression, in a statement."""
    text = without_literals(sql)
    wanted = re.compile(rf"(?<!\w)(?:{verbs})\s+({DOTTED})", re.I)
    names = []
    for start in range(0, len(text), _WINDOW):
        end = start + _WINDOW + _OVERLAP
        for match in wanted.finditer(text, start, end):
            # A match that touches the end may be cut off; the next window contains the whole name.
            if match.end() < end or end >= len(text):
                names.append(names_of(match[1]))
    return names
