"""Whether a transaction is open on a shell's session, as its prompt shows.

The local service says so in its echo. Of other services it is known by the statements that were sent and what became
of them, where an error inside a transaction is taken to fail all of it, as in PostgreSQL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sqlshell.errors import StatementError
from sqlshell.interface.models import ContextEcho
from sqlshell.sql.analysis.tokens import tokens

OPEN: Final = "open"
FAILED: Final = "failed"
_COMMITS: Final = frozenset({"COMMIT", "END"})
_ENDS: Final = frozenset({"COMMIT", "END", "ROLLBACK", "ABORT"})
_MAY_BEGIN: Final = re.compile(r"begin|start", re.I)
_MARKS: Final = {OPEN: "*", FAILED: "!"}


class Transaction(Struct):
    """`state` is OPEN, FAILED or "" for none; `announced` says that the service tells it.

    `begun` is where in a script it began (`FILE:LINE`), "" for what is in no file.
    """

    state: str = ""
    announced: bool = False
    begun: str = ""

    @property
    def mark(self) -> str:
        """What the prompt shows: `*`, `!` or nothing."""
        return _MARKS.get(self.state, "")

    def hear(self, echo: ContextEcho | None) -> None:
        """What the service echoed: one that tells of transactions tells of none by saying nothing."""
        if echo is None:
            return
        self.announced = self.announced or echo.transaction is not None
        if self.announced:
            self.state = echo.transaction or ""

    def undoes(self, sql: str) -> bool:
        """Whether a statement is a COMMIT that can only roll back."""
        return self.state == FAILED and next((token.word for token in tokens(sql)), "") in _COMMITS

    def ended(self, sql: str, error: StatementError | None) -> None:
        """A statement has ended: without an announcement, this is what is known of the transaction."""
        if self.announced or (not self.state and (error is not None or not _MAY_BEGIN.search(sql))):
            return
        words = [token.word for _, token in zip(range(3), tokens(sql), strict=False)]
        first = words[0] if words else ""
        if error is not None:
            # A COMMIT or ROLLBACK that fails leaves no transaction.
            self.state = "" if first in _ENDS else FAILED if self.state else ""
        elif _begins(words):
            self.state = OPEN
        elif first in _ENDS and "PREPARED" not in words and not (first == "ROLLBACK" and "TO" in words):
            self.state = ""
        elif self.state == FAILED:
            self.state = OPEN


def _begins(words: Sequence[str]) -> bool:
    """Whether a statement with these first words begins a transaction: BEGIN APPLICATION is one of its own, and START
    is followed by a compute pool too."""
    first, second, *_ = *words, "", ""
    return (first == "BEGIN" and second != "APPLICATION") or (first == "START" and second == "TRANSACTION")
