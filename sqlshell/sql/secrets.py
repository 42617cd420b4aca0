"""Statements with the secrets taken out of them: for the journal, for logs and for the history."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from sqlshell.sql.tokens import Token, tokens

STARS: Final = "'***'"
NAMES: Final = re.compile(
    r"token|secret|passw|passphrase|credential|authorization|jaas|(?:api|access|private|account|sas|shared)[_.\- ]?key"
    r"|key[_.\- ]?(?:password|material|id)|sas[_.\- ]?url|connection[_.\- ]?string",
    re.I,
)
"""Names whose values nobody else may read: `'kafka.sasl.password' = '…'`, `ACCESS_KEY_ID '…'`."""

_LOGIN: Final = re.compile(r"://[^\s/@:'\"]*:[^\s/@'\"]+@")
"""A URL with a password."""

_GIVEN: Final = re.compile(r"[\w.\-]*+[\s'\"]*+[=:][\s'\"]*+[^\s'\"%]")
"""What stands behind a secret's name in a string that has its value too."""

_VALUE: Final = re.compile(r"[=:'\"`$]")
_KINDS: Final = frozenset({"OR", "REPLACE", "PERSISTENT", "TEMPORARY", "TEMP", "LOCAL"})
_JOINTS: Final = frozenset({"=", ":", "IS", "BY", "=>", ">", "TO"})


def redactor(more: Sequence[str]) -> Callable[[str], str]:
    """redacted() that takes these patterns for secrets' names too. Raises re.error for what is no pattern."""
    if not more:
        return redacted
    names = re.compile("|".join([NAMES.pattern, *(f"(?:{re.compile(pattern).pattern})" for pattern in more)]), re.I)
    return lambda sql: redacted(sql, names)


def redacted(sql: str, names: re.Pattern[str] = NAMES) -> str:
    """The statement as written without its secrets.

    `'***'` stands in the place of a string that follows a secret's name, or that holds such a name with its value or a
    URL with a password. All that a CREATE SECRET sets is left out, and comments that hold a secret are.
    """
    if not names.search(sql) and not _LOGIN.search(sql):
        return sql
    given = list(tokens(sql))
    made: list[str] = []
    done = 0
    for start, end, left in sorted([*_values(given, names), *_comments(sql, given, names), *_created(given, len(sql))]):
        if start >= done:
            made += [sql[done:start], left]
            done = end
    return "".join([*made, sql[done:]])


_Cut = tuple[int, int, str]
"""From which character to which something is taken out, and what stands in its place."""


def _values(given: Sequence[Token], names: re.Pattern[str]) -> Iterator[_Cut]:
    named = False
    for token in given:
        if token.text.upper() in _JOINTS:
            continue
        if token.kind == "string" and (named or _holds(token.value, names)):
            yield token.start, token.end, STARS
            named = False
        else:
            named = token.kind in {"string", "name", "word"} and _names(token, names)


def _created(given: Sequence[Token], end: int) -> Iterator[_Cut]:
    """What stands in the parentheses of CREATE SECRET: any value may be secret, whatever its name."""
    begun, depth = 0, 0
    for number, token in enumerate(given):
        if depth:
            depth += (token.text == "(") - (token.text == ")")
            if not depth:
                yield begun, token.start, "***"
        elif token.text == "(" and _creates_secret(given, number):
            begun, depth = token.end, 1
    if depth:
        yield begun, end, "***"


def _creates_secret(given: Sequence[Token], number: int) -> bool:
    """Whether the parenthesis at `number` opens what a CREATE SECRET sets: `CREATE TEMP SECRET name IN file (`."""
    words: list[str] = []
    for token in given[max(0, number - 12) : number]:
        words = [] if token.text == ";" else [*words, token.word]
    while "CREATE" in words:
        words = words[words.index("CREATE") + 1 :]
        if "SECRET" in words and _KINDS.issuperset(words[: words.index("SECRET")]):
            return True
    return False


def _comments(sql: str, given: Sequence[Token], names: re.Pattern[str]) -> Iterator[_Cut]:
    """Comments that hold a secret's name and what may be its value; each goes whole, for nobody knows how it reads."""
    starts, ends = [0, *(token.end for token in given)], [*(token.start for token in given), len(sql)]
    for start, end in zip(starts, ends, strict=True):
        between = sql[start:end]
        if len(between) < 2 or between.isspace():
            continue
        if _LOGIN.search(between) or (names.search(between) and _VALUE.search(between)):
            line = "\n" if "\n" in between or "\r" in between else ""
            yield start, end, f" /* *** */{line or ' '}"


def _holds(value: str, names: re.Pattern[str]) -> bool:
    """Whether a string has a secret in it: `host=h password=p`, `{"token": "t"}`, `https://user:password@host`."""
    if "://" in value and _LOGIN.search(value):
        return True
    found = names.search(value) if "=" in value or ":" in value else None
    return found is not None and _GIVEN.match(value, found.end()) is not None


def _names(token: Token, names: re.Pattern[str]) -> bool:
    return len(token.text) <= 200 and names.search(token.value) is not None
