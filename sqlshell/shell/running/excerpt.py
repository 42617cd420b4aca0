"""Where in a statement an error is: the line with a mark under it, and the nearest names for one that is not known."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlshell.errors import ShellError
from sqlshell.output.text.cells import cells, printable
from sqlshell.spelling import nearest
from sqlshell.sql.analysis.tokens import Token, tokens

WIDEST = 100
"""Cells of a line that are shown around the mark."""

_NEAR = re.compile(r"""at or near ["'](.+?)["']""")
_PLACE = re.compile(r"\bline:? ?(\d+)(?:[,:]? ?(?:column|col|char|position|pos)?:? ?(\d+))?", re.I)
_POSITION = re.compile(r"\b(?:position|offset|character) (\d+)\b", re.I)
_QUOTED = re.compile(r"""["'`](.{1,200}?)["'`]|\bname (\w+) |\b(\w+(?:\.\w+)+)\b""")
_SHOWN = re.compile(r"^LINE \d+: ", re.M)
"""A message that shows the line itself, as PostgreSQL's and DuckDB's do."""
_UNKNOWN = re.compile(r"not exist|not found|no such|unknown|undefined|not known|cannot find|does not have", re.I)


def excerpt(sql: str, error: ShellError) -> list[str]:
    """The statement's line with a mark under what the error is about; nothing where that is not told."""
    span = None if _SHOWN.search(error.message) else _span(sql, error)
    if span is None:
        return []
    start, end = span
    line_start = sql.rfind("\n", 0, start) + 1
    line_end = sql.find("\n", start)
    line = sql[line_start : line_end if line_end >= 0 else len(sql)]
    number = sql.count("\n", 0, start) + 1
    at, size = start - line_start, max(1, min(end, line_start + len(line)) - start)
    if len(line) > WIDEST:
        cut = max(0, min(at - WIDEST // 2, len(line) - WIDEST))
        line, at = line[cut : cut + WIDEST], at - cut
    lead = f"  {number} | "
    before = cells(printable(line[:at].replace("\t", " ")))
    marked = max(1, cells(printable(line[at : at + size].replace("\t", " "))))
    return [lead + line.replace("\t", " "), " " * (len(lead) + before) + "^" * min(marked, WIDEST)]


def suggested(error: ShellError, known: Iterable[str]) -> str:
    """What an unknown name may have meant, as a question; "" where nothing is near, or the service asks itself."""
    if not _UNKNOWN.search(error.message) or "did you mean" in (error.message + error.hint).lower():
        return ""
    names = list(known)
    low = {name.lower() for name in names}
    for found in _QUOTED.finditer(error.message):
        wanted = next(part for part in found.groups() if part).rpartition(".")[2].lower()
        if wanted in low:
            continue
        near = nearest(wanted, names, 3, 0.7)
        if near:
            return f"did you mean {' or '.join(near)}?"
    return ""


def _span(sql: str, error: ShellError) -> tuple[int, int] | None:
    """Offsets of what the error is about."""
    message = error.message
    given = list(tokens(sql))
    if error.where.offset is not None:
        return _around(given, min(error.where.offset, len(sql)))
    if found := _NEAR.search(message):
        exact = [token for token in given if token.text == found[1] or token.value == found[1]]
        if exact:
            return exact[-1].start, exact[-1].end
    if found := _PLACE.search(message):
        lines = sql.split("\n")
        number, column = int(found[1]), int(found[2] or 0)
        if column and 0 < number <= len(lines) and column <= len(lines[number - 1]) + 1:
            start = sum(len(line) + 1 for line in lines[: number - 1]) + column - 1
            return _around(given, start)
    if (found := _POSITION.search(message)) and 0 < int(found[1]) <= len(sql):
        return _around(given, int(found[1]) - 1)
    if _UNKNOWN.search(message):
        for match in _QUOTED.finditer(message):
            name = next(part for part in match.groups() if part).rpartition(".")[2].lower()
            named = [token for token in given if token.kind in {"word", "name"} and token.value.lower() == name]
            if named:
                return named[0].start, named[0].end
    return None


def _around(given: list[Token], offset: int) -> tuple[int, int]:
    for token in given:
        if token.start <= offset < token.end:
            return token.start, token.end
    return offset, offset + 1
