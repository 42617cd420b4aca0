"""DuckDB, opened once for all processes that are forked: to open it takes a third of a short run.

What differs from an instance of a process's own is when it read the environment: a process with a time zone of its own
opens another one.
"""

from __future__ import annotations

import os
from typing import Any

import duckdb


def open_ahead() -> None:
    """Open an instance. Each process that is forked from this one gets it as its first one in memory."""
    # A fork keeps no thread.
    ahead = [duckdb.connect(":memory:", config={"threads": 1, "async_threads": 0})]
    # The first statement has the parser made.
    ahead[0].execute("SELECT 1").fetchall()
    connect = duckdb.connect
    here = os.getpid()

    def first(database: Any = ":memory:", read_only: bool = False, config: Any = None) -> duckdb.DuckDBPyConnection:
        plain = database == ":memory:" and not read_only and not config
        if ahead and plain and os.getpid() != here and "TZ" not in os.environ:
            opened = ahead.pop()
            opened.execute("RESET threads; RESET async_threads")
            return opened
        return connect(database, read_only, config or {})

    vars(duckdb)["connect"] = first
