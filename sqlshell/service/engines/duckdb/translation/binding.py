"""What DuckDB says of a translated statement: which functions exist, and which one does not accept its arguments."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Final

import duckdb

from sqlshell.service.engines.duckdb.cancellation import READ_ONLY, Cancellation
from sqlshell.sql.identifiers import always_quoted

_ARGUMENT_ERRORS: Final = frozenset({"NO_MATCHING_FUNCTION", "COLUMN_NOT_FOUND", "MISSING_ENTRY"})
"""Error types of a statement that calls a function with wrong arguments."""

_MANY_ARGUMENTS: Final = ", ".join("111111111")
"""More arguments than any macro is expected to have, so that none is evaluated."""


class Binder:
    """Binds statements of one connection. What a statement would do is not decided here."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, cancellation: Cancellation) -> None:
        self._connection = connection
        self._cancellation = cancellation

    def has_function(self, name: str) -> bool:
        """Whether a scalar function or macro of this name exists for the session."""
        with contextlib.suppress(duckdb.Error):
            error = self._error(f"SELECT {always_quoted(name)}({_MANY_ARGUMENTS})")
            return bool(error.get("error_subtype") != "MISSING_ENTRY")
        return True

    def mismatch(self, sql: str, *, in_transaction: bool) -> int | None:
        """The position in a statement, in characters, of a function that does not accept its arguments.

        None if all do, or if there is another error.
        """
        with contextlib.suppress(duckdb.Error), self._reading(in_transaction):
            error = self._error(sql)
            if error.get("error_subtype") in _ARGUMENT_ERRORS and "position" in error:
                return len(sql.encode()[: int(error["position"])].decode(errors="ignore"))
        return None

    def _error(self, sql: str) -> dict[str, Any]:
        """The error of binding a statement, which does not abort the open transaction; empty if there is none."""
        asked = "SELECT system.main.json_serialize_plan(?, optimize := false)"
        [(text,)] = self._connection.execute(asked, [sql]).fetchall()
        # A plan may be large, and constants of some types in it are not valid JSON.
        error: dict[str, Any] = json.loads(text) if text.startswith('{"error":true') else {}
        return error

    @contextlib.contextmanager
    def _reading(self, in_transaction: bool) -> Iterator[None]:
        """Bind in a transaction that changes nothing, or in the session's open one, whose objects a statement may
        name."""
        if in_transaction:
            yield
            return
        self._cancellation.execute(READ_ONLY)
        try:
            self._cancellation.check()
            yield
        finally:
            self._cancellation.roll_back()
