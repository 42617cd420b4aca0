"""Statements with the secrets taken out of them: for the journal, for logs and for the history."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from sqlshell.sql.tokens import Token, tokens

STARS: Final = "'***'"
NAMES: Final = re.compile(
    r"token|secret|passw|passphrase|credential|authorization|jaas|(?:api|access|private|account|sas|shared)[_.\- ]?key"
    r"|key[_.\- ]?(?:password|material|id)|sas[_.\- ]?url|connection[_.\- ]?string",
    re.I,
)
"""Names whose values nobody else may read: `'kafka.sasl.password' = '…'`, `ACCESS_KEY_ID '…'`."""

_JOINTS: Final = frozenset({"=", ":", "IS", "BY", "=>", ">", "TO"})


def redactor(more: Sequence[str]) -> Callable[[str], str]:
    """redacted() that takes these patterns for secrets' names too. Raises re.error for what is no pattern."""
    if not more:
        return redacted
    names = re.compile("|".join([NAMES.pattern, *(f"(?:{re.compile(pattern).pattern})" for pattern in more)]), re.I)
    return lambda sql: redacted(sql, names)


def redacted(sql: str, names: re.Pattern[str] = NAMES) -> str:
    """The statement as written, but for the strings that follow a secret's name, of which `'***'` is left."""
    if not names.search(sql):
        return sql
    made: list[str] = []
    done = 0
    named = joined = False
    for token in tokens(sql):
        if token.text.upper() in _JOINTS:
            joined = named
        elif token.kind == "string" and named and (joined or not _names(token, names)):
            made += [sql[done : token.start], STARS]
            done = token.end
            named = joined = False
        else:
            named = token.kind in {"string", "name", "word"} and _names(token, names)
            joined = False
    return "".join([*made, sql[done:]])


def _names(token: Token, names: re.Pattern[str]) -> bool:
    return len(token.text) <= 200 and names.search(token.value) is not None
