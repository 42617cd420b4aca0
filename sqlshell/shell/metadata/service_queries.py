"""Statements of the shell itself, whose rows it reads, such as the columns of a table."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence

from sqlshell.client.statements.client import Client, Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import ProtocolError, ShellError, StatementError, Where
from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Column, Rows
from sqlshell.shell.session import Session

MOST_ROWS = 200_000

_OF_SERVICE = re.compile(r"(?:LIST|DESCRIBE) ")
"""The beginning of a statement that every local service has, whatever its engine."""


def _ignore_echo(echo: ContextEcho | None) -> None:
    return None


async def fetch_rows(
    client: Client,
    sql: str,
    context: SessionContext,
    adopt: Callable[[ContextEcho | None], None] = _ignore_echo,
) -> tuple[list[Column], Rows]:
    """The columns and up to `MOST_ROWS` rows of a statement that reads. Raises the client's errors."""
    rows: Rows = []
    columns: list[Column] = []
    async for result in client.run(Submission(sql, repeatable=True), context, Observer(context=adopt)):
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


async def engine_of(session: Session) -> str:
    """The name of the engine if it is a server with SQL of its own, "" if it is not or the service does not say."""
    with contextlib.suppress(ShellError):
        return await session.service.engine()
    return ""


async def query_service(session: Session, *statements: str) -> tuple[list[Column], Rows]:
    """The result of the first of these statements that the service supports. The reported context is adopted.

    Raises the error of the last statement.
    """
    if engine := await engine_of(session):
        # An error in SQL for another engine would end the user's transaction.
        statements = tuple(sql for sql in statements if _OF_SERVICE.match(sql))
        if not statements:
            raise StatementError(f"not supported by the engine {engine}", where=Where(sqlstate.UNSUPPORTED))
    for sql in statements[:-1]:
        with contextlib.suppress(StatementError):
            return await query_service(session, sql)
    with session.protecting_context(statements[-1]):
        return await fetch_rows(session.service.statements, statements[-1], session.context, session.adopt)


async def table_columns(session: Session, table: str) -> Sequence[tuple[str, str]]:
    """The name and the type of each column of a table, which is SQL. Raises the client's errors."""
    client = session.connection.client
    sql = f"DESCRIBE RELATION COLUMNS {table}"
    try:
        with session.protecting_context(sql):
            _, rows = await fetch_rows(client, sql, session.context, session.adopt)
    except StatementError as error:
        # Temporary tables, and services without that form of DESCRIBE.
        sql = f"SELECT * FROM {table} LIMIT 0"
        try:
            with session.protecting_context(sql):
                columns, _ = await fetch_rows(client, sql, session.context, session.adopt)
        except StatementError:
            raise error from None
        return [(column.name, column.type) for column in columns]
    if any(len(row) < 2 for row in rows):
        raise ProtocolError(f"the response to {sql} does not have the names and types of columns")
    return [(row[0] or "", row[1] or "") for row in rows]
