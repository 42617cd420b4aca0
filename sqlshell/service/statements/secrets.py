"""Statements without their secrets: what is stored and shown of a statement that contains secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sqlshell.interface import sqlstate

LONG = 16 << 10
"""Characters of a statement that names a secret, from which on only its beginning is stored."""

HEAD = 4 << 10
"""Characters that are stored of the beginning."""

MESSAGE = 2_000
"""Characters that are stored of an error message for a statement with secrets."""

WARNING_NOT_RECORDED: Final = "the warning is not recorded because it may contain secrets"


class RedactedStatement(Struct, frozen=True):
    """A statement without its secrets, and their values.

    `cut` means that it is only the beginning of the statement, and that the values are unknown.
    """

    text: str
    values: Sequence[str]
    cut: bool = False

    def __repr__(self) -> str:
        return f"RedactedStatement({self.text!r})"

    def clean(self, state: str, message: str) -> str:
        """A message without the secrets of the statement. That of a success, such as `CREATE SECRET`, has none."""
        from sqlshell.sql.analysis.secrets import NOT_RECORDED, without_values

        if not message or state == sqlstate.DONE:
            return message
        if self.cut:
            return NOT_RECORDED if sqlstate.failed(state) else WARNING_NOT_RECORDED
        return without_values(message[:MESSAGE], self.values)


class Secret(Struct, frozen=True):
    """A secret value that a statement has created, and the name of its object."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"


def redacted_statements(given: Sequence[str]) -> list[RedactedStatement | None]:
    """Return the text without secrets of each statement that contains secrets; None for the other statements."""
    return [_redacted(sql) for sql in given]


def _redacted(sql: str) -> RedactedStatement | None:
    from sqlshell.sql.analysis.lexed import lexed
    from sqlshell.sql.analysis.secrets import names_secret, redacted, removed_values, without_its_values

    if not names_secret(sql):
        return None
    if len(sql) > LONG:
        return RedactedStatement(without_its_values(sql[:HEAD]), (), cut=True)
    statement = lexed(sql)
    shown = redacted(statement)
    return RedactedStatement(shown, removed_values(statement, shown)) if shown != sql else None
