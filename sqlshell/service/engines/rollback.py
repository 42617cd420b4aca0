"""The end of a transaction that is not kept."""

from __future__ import annotations

import duckdb

_TRIES = 10_000


def roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    """End the connection's transaction, where there is one. Raises nothing.

    A ROLLBACK that is interrupted has no effect, and what it left open would fail every later statement.
    """
    for _ in range(_TRIES):
        try:
            connection.execute("ROLLBACK")
            return
        except duckdb.InterruptException:
            continue
        except duckdb.Error:
            return
