"""Asks DuckDB for parse trees and bound plans of statements, as JSON."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import duckdb
import msgspec

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb import messages
from sqlshell.service.engines.duckdb.cancellation import READ_ONLY, Cancellation
from sqlshell.service.engines.duckdb.failures import failure
from sqlshell.service.engines.duckdb.rights.walk import EngineState
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import literal, qualified

BOUND_BY_EXPLAIN: Final = frozenset({"CREATE", "DELETE", "INSERT", "MERGE_INTO", "SELECT", "UPDATE"})
"""Types that EXPLAIN binds, which returns DuckDB's own error message."""

_PLAN: Final = "system.main.json_serialize_plan($1, optimize := false)"
_OPTIMIZED: Final = "system.main.json_serialize_plan($1, optimize := true)"
_TREE: Final = "system.main.json_serialize_sql($1)"
_SAFE_ERROR_TYPES: Final = frozenset(
    {"binder", "catalog", "parser", "syntax", "not implemented", "dependency", "constraint"}
)
"""Types of errors whose messages contain no file content."""

_STRING_OR_NON_FINITE: Final = re.compile(r'("(?:[^"\\]|\\.)*+")|-?(?:nan|inf(?:inity)?)', re.I | re.S)
"""A string in JSON, or a number that JSON does not allow: DuckDB writes NAN and Infinity."""

LARGEST: Final = 64 << 20
"""The maximum size of a plan in characters."""


class Binder:
    """Parses and binds the statements of one connection. Errors contain no data of files if `known` is strict."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, cancellation: Cancellation, known: EngineState) -> None:
        self._connection = connection
        self._cancellation = cancellation
        self._known = known
        self._transaction_cursor: duckdb.DuckDBPyConnection | None = None
        self._prepared: dict[str, str] = {}

    def bind(self, sql: str) -> Any:
        """The bound plan of a statement, or the error with its position, as DuckDB returns them."""
        return self._asked(_PLAN, sql)

    def transaction_plan(self, sql: str) -> Any:
        """The plan of BEGIN, COMMIT or ROLLBACK, which binds nothing and must work in an aborted transaction too."""
        if self._transaction_cursor is None:
            self._transaction_cursor = self._connection.cursor()
        return _decoded(self._transaction_cursor.execute(f"SELECT {_PLAN}", [sql]).fetchone())

    def tree(self, text: str) -> Any:
        """The parse tree of a SELECT; None if DuckDB does not show it."""
        if not text:
            return None
        tree = self._asked(_TREE, text)
        return None if tree["error"] else tree

    def plan(self, kind: str, sql: str, tells: bool, *, own: bool) -> tuple[Any, bool]:
        """The bound plan, and whether it is the same for other data.

        It is empty if DuckDB does not show it and the service is embedded, whose user has all rights. Raises Failure,
        or duckdb.Error with DuckDB's message, if there is none.
        """
        plan, is_lasting = self._asked(_PLAN, sql), True
        if plan["error"] and messages.is_unresolved(str(plan["error_message"])):
            # A part that is optimized away for the current data may be needed for other data.
            plan, is_lasting = self._asked(_OPTIMIZED, sql), False
        if not plan["error"]:
            return plan, is_lasting
        if self._known.strict and not tells and plan["error_type"] not in _SAFE_ERROR_TYPES:
            # DuckDB's message may contain data of a file.
            cause = "the statement failed, or reads a file that is not allowed on this service"
            raise Failure(
                sqlstate.PRIVILEGE, f"{cause}; the details are hidden because they could contain data of a file"
            )
        if kind in BOUND_BY_EXPLAIN:
            try:
                self._connection.execute(f"EXPLAIN\n{sql}")
            except duckdb.Error as error:
                # A statement that changes something cannot be bound in a read-only transaction; it is not wrong
                # otherwise.
                if not isinstance(error, duckdb.TransactionException) or not messages.needs_write(str(error)):
                    raise failure(error, lines_before=1) from error
            if own:
                return {"plans": []}, is_lasting
            cause = "this statement is not allowed because its query plan cannot be checked"
            raise Failure(sqlstate.PRIVILEGE, f"{cause}: {plan['error_message']}")
        raise failure(_error(str(plan["error_type"]), str(plan["error_message"])))

    def _asked(self, function: str, sql: str) -> Any:
        """The result of a function about a statement. It is prepared once, which takes half the time of a new query."""
        name = self._prepared.get(function)
        if name is None:
            name = f"judged_{len(self._prepared)}"
            self._connection.execute(f"PREPARE {name} AS SELECT {function}")
            self._prepared[function] = name
        return _decoded(self._connection.execute(f"EXECUTE {name}({literal(sql)})").fetchone())

    def exists(self, path: Sequence[str]) -> bool:
        """Whether a relation exists. Looked up by name: listing all relations would fail in a transaction that has read
        an older copy of a store.
        """
        name = qualified(*path)
        try:
            self._connection.execute("SELECT 1 FROM pragma_table_info($1) LIMIT 1", [name]).fetchall()
        except (duckdb.CatalogException, duckdb.BinderException):
            return False
        return True

    def sequences(self) -> list[Any]:
        """All sequences with their last values."""
        listed = "SELECT database_name, schema_name, sequence_name, last_value FROM system.main.duckdb_sequences()"
        with self._cancellation.protected():
            return self._connection.execute(listed).fetchall()

    @contextlib.contextmanager
    def reading(self, in_transaction: bool) -> Iterator[None]:
        """Bind in a transaction that changes nothing, or in the session's open transaction, which may have created an
        object that the statement names.
        """
        if in_transaction:
            yield
            return
        self._cancellation.execute(READ_ONLY)
        try:
            self._cancellation.check()
            yield
        finally:
            # A COMMIT would invalidate the instance if binding advanced a sequence.
            self._cancellation.roll_back()


def _decoded(row: Any) -> Any:
    text = str(row[0])
    if len(text) > LARGEST:
        raise Failure(
            sqlstate.LIMIT, f"the plan of this statement is larger than {LARGEST >> 20} MiB; use fewer values"
        )
    if not text:
        # DuckDB writes constants of these types as bytes, which are not valid JSON.
        cause = "this statement is not allowed because its query plan cannot be checked"
        raise Failure(sqlstate.UNSUPPORTED, f"{cause}; write constants of type BIT or BIGNUM as (SELECT 'value')::BIT")
    try:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return msgspec.json.decode(_STRING_OR_NON_FINITE.sub(lambda match: match[1] or "null", text))
    except RecursionError:
        raise Failure(sqlstate.LIMIT, "the statement is nested too deeply") from None


def _error(kind: str, message: str) -> duckdb.Error:
    """The exception that DuckDB would raise for an error of the type `kind`."""
    name = kind.title().replace(" ", "")
    exception = getattr(duckdb, f"{name}Exception", duckdb.InvalidInputException)
    error = exception(f"{kind.title()} Error: {message}")
    return error if isinstance(error, duckdb.Error) else duckdb.InvalidInputException(message)
