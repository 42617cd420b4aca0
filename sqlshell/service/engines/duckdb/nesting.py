"""Limits how deeply the brackets of a statement are nested, because DuckDB's parser takes memory for the square of it:
3,000 open parentheses take 1.4 GiB, which count against no limit of DuckDB.
"""

from __future__ import annotations

import re
from typing import Final

from sqlshell.interface import sqlstate
from sqlshell.service.failure import Failure

MOST: Final = 500
"""The maximum number of brackets that are open at once. DuckDB itself has a limit of 1,000 levels for expressions."""

_OTHERS: Final = bytes(set(range(256)) - set(b"()[]{}"))

_PIECE: Final = re.compile(
    r"""[eE]'(?:[^'\\]++|\\.|'')*+(?:'|\Z)|'(?:[^']++|'')*+(?:'|\Z)|"(?:[^"]++|"")*+(?:"|\Z)"""
    r"""|--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)|[^\W\d][\w$]*+|\$((?:[^\W\d]\w*+)?)\$.*?(?:\$\1\$|\Z)|[()\[\]{}]""",
    re.S,
)
"""Text that may contain brackets without a meaning, and brackets."""


def check_nesting(sql: str) -> None:
    """Raises Failure if more than MOST (among many pairs, some more) brackets are open at once."""
    brackets = sql.encode(errors="replace").translate(None, _OTHERS)
    while len(brackets) > MOST:
        # Removing adjacent pairs is faster than reading the text, and leaves nothing of the rows of an INSERT.
        shorter = brackets.replace(b"()", b"").replace(b"[]", b"").replace(b"{}", b"")
        if len(shorter) * 4 > len(brackets) * 3:
            break
        brackets = shorter
    else:
        return
    depth = 0
    for match in _PIECE.finditer(sql):
        if match[0] in {"(", "[", "{"}:
            depth += 1
            if depth > MOST:
                raise Failure(
                    sqlstate.TOO_LARGE,
                    f"the statement is nested too deeply: more than {MOST} brackets are open at once",
                )
        elif match[0] in {")", "]", "}"}:
            depth = max(0, depth - 1)
