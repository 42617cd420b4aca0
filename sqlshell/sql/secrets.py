"""Statements with the secrets taken out of them: for the journal, for logs and for the history."""

from __future__ import annotations

import re
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


def redacted(sql: str) -> str:
    """The statement as written, but for the strings that follow a secret's name, of which `'***'` is left."""
    if not NAMES.search(sql):
        return sql
    made: list[str] = []
    done = 0
    named = joined = False
    for token in tokens(sql):
        if token.text.upper() in _JOINTS:
            joined = named
        elif token.kind == "string" and named and (joined or not _names(token)):
            made += [sql[done : token.start], STARS]
            done = token.end
            named = joined = False
        else:
            named = token.kind in {"string", "name", "word"} and _names(token)
            joined = False
    return "".join([*made, sql[done:]])


def _names(token: Token) -> bool:
    return len(token.text) <= 200 and NAMES.search(token.value) is not None
