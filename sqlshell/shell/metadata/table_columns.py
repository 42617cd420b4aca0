"""The columns of a table and their types, as the service describes them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlshell.errors import ProtocolError, StatementError
from sqlshell.shell.metadata.service_queries import fetch_rows
from sqlshell.shell.session import Session


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
