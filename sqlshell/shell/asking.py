"""Statements that the shell itself makes, whose rows it reads."""

from __future__ import annotations

from collections.abc import Callable

from sqlshell.client.watch import Client, Submission, Watch
from sqlshell.context import SessionContext
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Column, Rows

MOST_ROWS = 200_000


def _heard(echo: ContextEcho | None) -> None:
    return None


async def asked(
    client: Client,
    sql: str,
    context: SessionContext,
    adopt: Callable[[ContextEcho | None], None] = _heard,
) -> tuple[list[Column], Rows]:
    """The columns and the rows of a statement that reads, `MOST_ROWS` of them. Raises what the client raises."""
    rows: Rows = []
    columns: list[Column] = []
    async for result in client.run(Submission(sql, reads_only=True), context, Watch(context=adopt)):
        if result.endless is not None:
            await result.batches.aclose()
            break
        columns = result.columns
        async for batch in result.batches:
            rows += batch.rows
            if len(rows) > MOST_ROWS:
                await result.batches.aclose()
                break
    return columns, rows
