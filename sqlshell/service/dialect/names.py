"""What statements of the dialect are made of: comments, names, and WITH lists."""

from __future__ import annotations

import re

from sqlshell.sql.identifiers import always_quoted

Names = tuple[str, ...]
"""The parts of a dotted name: unquoted ones folded to lower case."""

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
"""Verbs for targets(): what is behind one is changed, or read. They explain what failed, and no right rests on them."""

COMMENT = r"--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)"
_PARTS = re.compile(
    rf"""('[^']*+(?:'|\Z)|"[^"]*+(?:"|\Z)|`[^`]*+(?:`|\Z))|({COMMENT}|\s++)|[^\s'"`/-]{{1,4096}}+|[/-]"""
)
"""What a statement is made of: strings and quoted names, what is as good as a blank, and the rest in bounded pieces.

No pattern here goes back over text, and none looks at much of it at once: other threads wait for a match to end.
"""

BLANK = re.compile(rf"(?:\s++|{COMMENT})*+")

HEAD = 4000
"""Characters at the start and the end of a statement in which its first and last words are."""

_WINDOW = 64 << 10
_OVERLAP = 4096
"""Characters in which targets are looked for at once, and those of the next ones that are looked at too."""


def names_of(text: str) -> Names:
    """The parts of a dotted name."""
    found = re.findall(NAME, text)
    return tuple(part[1:-1].replace(part[0] * 2, part[0]) if part[0] in {'"', "`"} else part.lower() for part in found)


def written(names: Names) -> str:
    """A dotted name as names_of() reads it, in quotes where it needs them."""
    return ".".join(
        part if re.fullmatch(r"[a-z_][\w$-]*", part) and part.islower() else always_quoted(part) for part in names
    )


def bare(sql: str) -> str:
    """A statement with its strings empty, and one blank for all that stands between two words."""
    return "".join(
        "''" if (found[1] or "").startswith("'") else " " if found[2] else found[0] for found in _PARTS.finditer(sql)
    ).strip()


def plain(sql: str) -> str:
    """A statement with a blank for each comment."""
    return "".join(
        " " if (found[2] or "").startswith(("--", "/*")) else found[0] for found in _PARTS.finditer(sql)
    ).strip()


def targets(sql: str, verbs: str) -> list[Names]:
    """The names behind any of `verbs`, a regular expression, in a statement."""
    text = bare(sql)
    wanted = re.compile(rf"(?<!\w)(?:{verbs})\s+({DOTTED})", re.I)
    names = []
    for start in range(0, len(text), _WINDOW):
        end = start + _WINDOW + _OVERLAP
        for found in wanted.finditer(text, start, end):
            # What touches the end may be a part of a name, which the next window has whole.
            if found.end() < end or end >= len(text):
                names.append(names_of(found[1]))
    return names
