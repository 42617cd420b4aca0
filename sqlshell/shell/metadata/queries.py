"""Statements that the shell itself makes, whose rows it reads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol

from sqlshell.client.service import Service
from sqlshell.client.statements.client import Client, Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import StatementError
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Column, Rows
from sqlshell.shell.session import Session

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
    async for result in client.run(Submission(sql, reads_only=True), context, Observer(context=adopt)):
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


class Asker(Protocol):
    """Somebody with a service and a session."""

    @property
    def service(self) -> Service: ...

    @property
    def session(self) -> Session: ...


async def told(asker: Asker, *statements: str) -> tuple[list[Column], Rows]:
    """The answer to the first of the statements that the service knows. What it echoes says where the shell is.

    Raises what the last of them raises.
    """
    for sql in statements[:-1]:
        with contextlib.suppress(StatementError):
            return await told(asker, sql)
    with asker.session.asking(statements[-1]):
        return await asked(asker.service.statements, statements[-1], asker.session.context, asker.session.adopt)
