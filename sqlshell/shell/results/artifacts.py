"""Rows that tell what a statement made (type, name, command, summary, path): data to clients, tags to people."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from sqlshell.interface.models import MADE
from sqlshell.result import Result
from sqlshell.sql.analysis.kinds import verb_of
from sqlshell.sql.analysis.tokens import tokens
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split

_MAKES: Final = frozenset(
    {
        *("ALTER", "CREATE", "DELETE", "DROP", "GRANT", "INSERT", "MERGE", "RESTART", "RESUME", "REVOKE", "START"),
        *("STOP", "TERMINATE", "TRUNCATE", "UPDATE"),
    }
)


def looks_made(result: Result) -> bool:
    """Whether a result has the columns of such a row, and is one row."""
    columns = result.columns
    return (
        len(columns) == len(MADE)
        and result.endless is None
        and result.row_count in {None, 1}
        and tuple(column.name.lower() for column in columns) == MADE
    )


def makes(sql: str, number: int) -> bool:
    """Whether statement `number` (from 0) of a text makes or changes something, and returns no data of its own."""
    parts = [item.text for item in split(sql, commands=False) if isinstance(item, Statement)]
    given = list(tokens(parts[number])) if number < len(parts) else []
    if [token.word for token in given[:2]] == ["BEGIN", "APPLICATION"]:
        return True
    return verb_of(given) in _MAKES and not any(token.word == "RETURNING" for token in given)


async def tag_of(result: Result) -> Result:
    """The same result without its row, which is read: its message says what was made. Raises what reading raises."""
    row = None
    try:
        async for batch in result.batches:
            row = row or next(iter(batch.rows), None)
    finally:
        await result.batches.aclose()
    kind, name, command, summary, _ = row or ("", "", "", "", "")
    said = result.message or summary or " ".join(filter(None, [(command or "").upper(), (kind or "").upper(), name]))
    return replace(result, columns=[], message=said, row_counts=[])
