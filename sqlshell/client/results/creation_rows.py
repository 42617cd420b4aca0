"""Rows that describe what a statement created (type, name, command, summary, path): data for clients, messages for
people.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from sqlshell.interface.models import MADE
from sqlshell.result import Result
from sqlshell.sql.analysis.kinds import READS, verb_of
from sqlshell.sql.analysis.lexed import Sql, lexed
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split

_RETURN_DATA: Final = READS | {"", "CALL", "EXECUTE", "EXPLAIN"}
"""Verbs of statements whose rows are data."""


def is_creation_result(result: Result) -> bool:
    """Whether a result has the columns of such a row, and one row."""
    columns = result.columns
    return (
        len(columns) == len(MADE)
        and result.endless is None
        and result.row_count in {None, 1}
        and tuple(column.name.lower() for column in columns) == MADE
    )


def creates_object(sql: Sql, number: int) -> bool:
    """Whether statement `number` (from 0) of a text creates or changes something, and returns no data."""
    parts = [lexed(sql)]
    if ";" in parts[0].text:
        parts = [item.lexed for item in split(parts[0].text, commands=False) if isinstance(item, Statement)]
    given = parts[number].tokens if number < len(parts) else []
    return verb_of(given) not in _RETURN_DATA and not any(token.word == "RETURNING" for token in given)


async def tag_of(result: Result) -> Result:
    """The same result without its row, which is read: its message says what was created. Raises the
    errors of reading.
    """
    row = None
    try:
        async for batch in result.batches:
            row = row or next(iter(batch.rows), None)
    finally:
        await result.batches.aclose()
    kind, name, command, summary, _ = row or ("", "", "", "", "")
    message = result.message or summary or " ".join(filter(None, [(command or "").upper(), (kind or "").upper(), name]))
    return replace(result, columns=[], message=message, row_counts=[], created=tuple(row or ()))
