"""Whether a transaction is open in a shell's session, for the prompt.

The local service reports it with the context. For other services it is derived from the statements that were sent and
their outcomes; an error inside a transaction is assumed to fail all of it, as in PostgreSQL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sqlshell.errors import StatementError
from sqlshell.interface.models import ContextEcho
from sqlshell.sql.analysis.lexed import Sql, lexed

OPEN: Final = "open"
FAILED: Final = "failed"
_COMMITS: Final = frozenset({"COMMIT", "END"})
_ENDS: Final = frozenset({"COMMIT", "END", "ROLLBACK", "ABORT"})
_MAY_BEGIN: Final = re.compile(r"begin|start", re.I)
_MARKS: Final = {OPEN: "*", FAILED: "!"}


class Transaction(Struct):
    """`state` is OPEN, FAILED or "" for none; `announced` says that the service reports it.

    `begun_at` is its beginning in a script (`FILE:LINE`), "" if it is not in a file.
    """

    state: str = ""
    announced: bool = False
    begun_at: str = ""

    @property
    def mark(self) -> str:
        """The mark in the prompt: `*`, `!` or nothing."""
        return _MARKS.get(self.state, "")

    def adopt(self, echo: ContextEcho | None) -> None:
        """Adopt the context that the service reports: a service that announces transactions omits them if there is
        none.
        """
        if echo is None:
            return
        self.announced = self.announced or echo.transaction is not None
        if self.announced:
            self.state = echo.transaction or ""

    def rolls_back(self, sql: Sql) -> bool:
        """Whether a statement is a COMMIT that can only roll back."""
        return self.state == FAILED and any(token.word in _COMMITS for token in lexed(sql).first(1)[:1])

    def statement_ended(self, sql: Sql, error: StatementError | None) -> None:
        """A statement has finished: without an announcement, derive the state of the transaction."""
        statement = lexed(sql)
        if self.announced or (not self.state and (error is not None or not _MAY_BEGIN.search(statement.text))):
            return
        words = [token.word for token in statement.first(3)[:3]]
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
    """Whether a statement with these first words begins a transaction: BEGIN APPLICATION is a statement of its own, and
    START may be followed by a compute pool.
    """
    first, second, *_ = *words, "", ""
    return (first == "BEGIN" and second != "APPLICATION") or (first == "START" and second == "TRANSACTION")
