"""Where in a statement the error is that a service reports."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from sqlshell.errors import ShellError
from sqlshell.interface import sqlstate
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.analysis.tokens import Token

# The interface has no fields for the position of an error and for the name that it is about: services write both into
# their messages. Whether a name is unknown is decided on the sqlState.
_NEAR = re.compile(r"""at or near ["'](.+?)["']""")
_PLACE = re.compile(r"\bline:? ?(\d+)(?:[,:]? ?(?:column|col|char|position|pos)?:? ?(\d+))?", re.I)
_POSITION = re.compile(r"\b(?:position|offset|character) (\d+)\b", re.I)
QUOTED = re.compile(r"""["'`](.{1,200}?)["'`]|\bname (\w+) |\b(\w+(?:\.\w+)+)\b""")
SHOWN = re.compile(r"\n*^LINE (\d+): (.*)\n( *)(\^+)[ \t]*$", re.M)
"""The line of the statement with a mark below it, as PostgreSQL and DuckDB write them."""


def span_of(statement: Lexed, error: ShellError) -> tuple[int, int] | None:
    """The start and end of the error, in characters; None if the position is unknown."""
    message, sql, given = error.message, statement.text, statement.tokens
    if error.where.offset is not None:
        return _around(given, min(error.where.offset, len(sql)))
    if (match := SHOWN.search(message)) and (span := shown_span(statement, match)) is not None:
        return span
    if match := _NEAR.search(message):
        exact = [token for token in given if token.text == match[1] or token.value == match[1]]
        if exact:
            return exact[-1].start, exact[-1].end
    if match := _PLACE.search(message):
        lines = sql.split("\n")
        number, column = int(match[1]), int(match[2] or 0)
        if column and 0 < number <= len(lines) and column <= len(lines[number - 1]) + 1:
            start = sum(len(line) + 1 for line in lines[: number - 1]) + column - 1
            return _around(given, start)
    if (match := _POSITION.search(message)) and 0 < int(match[1]) <= len(sql):
        return _around(given, int(match[1]) - 1)
    if sqlstate.is_not_found(error.where.sql_state):
        for quoted in QUOTED.finditer(message):
            name = next(part for part in quoted.groups() if part).rpartition(".")[2].lower()
            named = [token for token in given if token.kind in {"word", "name"} and token.value.lower() == name]
            if named:
                return _whole_name(given, named[0])
    return None


def shown_span(statement: Lexed, shown: re.Match[str]) -> tuple[int, int] | None:
    """The start and end of the text that a service marks in a line; None if the statement does not contain the line."""
    lines, number, lead = statement.text.split("\n"), int(shown[1]), len(f"LINE {shown[1]}: ")
    if not 0 < number <= len(lines):
        return None
    text, at = shown[2], len(shown[3]) - lead
    if text.startswith("..."):
        text, at = text[3:], at - 3
    text = text.removesuffix("...")
    found = lines[number - 1].find(text) if text.strip() and at >= 0 else -1
    if found < 0:
        return None
    first = _characters(text, at)
    start = sum(len(line) + 1 for line in lines[: number - 1]) + found + first
    size = _characters(text[first:], len(shown[4]))
    start, end = _around(statement.tokens, start) if size <= 1 else (start, start + size)
    # Some marks cover one part of a name.
    name = next((token for token in statement.tokens if (token.start, token.end) == (start, end)), None)
    return (start, end) if name is None else _whole_name(statement.tokens, name)


def _characters(text: str, most: int) -> int:
    """The number of characters at the start of a text that fill `most` cells."""
    filled = 0
    for number, character in enumerate(text):
        if filled >= most:
            return number
        filled += 0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return len(text)


def _around(given: Sequence[Token], offset: int) -> tuple[int, int]:
    for token in given:
        if token.start <= offset < token.end:
            return _whole_name(given, token)
    return offset, offset + 1


def _whole_name(given: Sequence[Token], part: Token) -> tuple[int, int]:
    """The start and end of the qualified name that a token is a part of."""
    first = last = given.index(part)
    while first > 1 and _joined(given[first - 2 : first + 1]):
        first -= 2
    while last + 2 < len(given) and _joined(given[last : last + 3]):
        last += 2
    return given[first].start, given[last].end


def _joined(three: Sequence[Token]) -> bool:
    """Whether these tokens are two names with a dot between them."""
    left, dot, right = three
    names = {left.kind, right.kind} <= {"word", "name"}
    return names and dot.text == "." and left.end == dot.start and dot.end == right.start
