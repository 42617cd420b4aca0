"""Runs statements that return rows, and passes these to a sink: as text if they are few, otherwise in a file.

A SELECT becomes a subquery of the SQL that renders its rows or writes them to a file. All other statements (RETURNING,
EXECUTE, PIVOT, CALL, PRAGMA and others) run once, in a transaction in which their rows are rendered too. The rows of an
INSERT, UPDATE, DELETE or SELECT that writes are held in a temporary table, which DuckDB moves to disk when memory runs
short. DuckDB holds the rows of the others in memory, whatever its limit: none of them can be the source of a table.

Few rows of simple types are written by Python: planning the SQL that renders them takes DuckDB several times as long as
the statement itself. The output equals that of the SQL in render.py; tests compare the two.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, Final

import duckdb
from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.statement import brief, words, writes_inside
from sqlshell.service.engines.engine import Outcome, RunOptions
from sqlshell.service.engines.files.disk_space import CountingSink
from sqlshell.service.engines.files.failures import failure
from sqlshell.service.engines.files.parquet import LARGE, copy_to, is_large
from sqlshell.service.engines.files.render import column, finished, instants, row
from sqlshell.service.engines.files.texts import Write, bounded, line, writers
from sqlshell.text import format_count

SMALL: Final = 1_000
"""Up to this many rows, by DuckDB's estimate, are written by Python, if it can."""

BATCH: Final = 256
"""The number of rows that are fetched from a relation at once."""

SHORT: Final = 1_000
"""The maximum number of characters of a row of constants that is run without being described first."""

FIRST: Final = 4
GROWTH: Final = 8
"""The number of rows that are fetched while their width is unknown, and how much it grows at most with each fetch."""

MOST: Final = 10_000
FETCHED: Final = 1 << 20
"""The maximum number of rows and characters that are fetched at once."""

_TABLED: Final = frozenset({"INSERT", "UPDATE", "DELETE", "SELECT"})
"""Types of statements whose rows a table can be made of."""

_RELATION: Final = "made"

_OPENS: Final = frozenset("(,=<>+-*/|")
"""Characters between which and a parenthesis no function is called."""

Execute = Callable[[str], Any]


class RowRunner(Struct, frozen=True):
    """Runs statements of a connection.

    Methods raise duckdb.Error, Failure, and OSError of the sink.
    """

    connection: duckdb.DuckDBPyConnection
    options: RunOptions
    sink: CountingSink
    reaches_files: Callable[[], bool]

    def select(self, sql: str, parsed: Any) -> Outcome:
        """Run a SELECT that can be a subquery; `parsed` is the same, perhaps as DuckDB parsed it."""
        limit = self.options.row_limit
        if limit != 0 and _is_constant(sql) and (outcome := self._constants(parsed)) is not None:
            return outcome
        with _below_a_line():
            columns, kinds = self._described(sql)
            if limit == 0:
                return Outcome(columns, instants(kinds))
            estimate = _estimate(self.connection, sql) if limit is None else None
            source = f"(\n{sql}\n)"
            if outcome := self._filed(source, columns, kinds, estimate, self.connection.execute):
                return outcome
            writes = writers(kinds) if estimate is not None and estimate <= SMALL else None
            if writes is None:
                bound = f" LIMIT {limit + 1}" if limit is not None else ""
                self.connection.execute(_rendering(source, kinds) + bound)
                return self._text(columns, kinds, fetch_rows(self.connection), limit)
        self.connection.execute(parsed)
        return self._text(columns, kinds, fetch_rows(self.connection, writes))

    def once(self, kind: str, sql: str, parsed: Any, head: str) -> Outcome:
        """Run a statement of type `kind` that cannot be a subquery; `head` is its message if it returns no rows.

        After an error, the caller must roll it back.
        """
        if kind in _TABLED and not brief(sql) and (kind != "SELECT" or writes_inside(sql)):
            return self._from_table(kind, sql)
        return self._from_relation(sql, parsed, head)

    def _constants(self, parsed: Any) -> Outcome | None:
        """Run a SELECT that may run twice; None if DuckDB has to render its row. Describing it takes twice as long."""
        self.connection.execute(parsed)
        described = self.connection.description or []
        kinds = [item[1] for item in described]
        writes = writers(kinds)
        if not writes:
            return None
        columns = self._columns([str(item[0]) for item in described], kinds)
        return self._text(columns, kinds, fetch_rows(self.connection, writes), self.options.row_limit)

    def _from_table(self, kind: str, sql: str) -> Outcome:
        """Run a statement whose rows a table can have, and pass them on from there."""
        table = f"returned_{secrets.token_hex(8)}"
        body = f"WITH {table}_rows AS (\n{sql}\n) FROM {table}_rows" if kind != "SELECT" else f"\n{sql}"
        with _below_a_line():
            number = self.connection.execute(f"CREATE TEMP TABLE {table} AS {body}").fetchall()[0][0]
        source = f"temp.{table}"
        relation = self.connection.table(source)
        kinds = list(relation.types)
        columns = self._columns(self._original_names(sql, relation.columns), kinds)
        outcome = self._filed(source, columns, kinds, number, self.connection.execute)
        if outcome is None:
            self.connection.execute(_rendering(source, kinds))
            outcome = self._text(columns, kinds, fetch_rows(self.connection))
        self.connection.execute(f"DROP TABLE {source}")
        return outcome

    def _from_relation(self, sql: str, parsed: Any, head: str) -> Outcome:
        """Run a statement, and pass on the rows that DuckDB holds in memory."""
        try:
            relation = self.connection.query(parsed)
        except (duckdb.BinderException, duckdb.CatalogException):
            # This error has no position; run again, it has one, except in a transaction that it has aborted.
            with contextlib.suppress(duckdb.TransactionException):
                self.connection.execute(parsed)
            raise
        if relation is None:
            return Outcome(message=head)
        kinds = list(relation.types)
        # A statement that reads nothing returns at most as many rows as its text has values.
        status = relation.columns == ["Success"] and str(kinds[0]) == "BOOLEAN"
        few = brief(sql) and len(sql) < LARGE and not status
        number = 0 if few else relation.aggregate("count(*)").fetchall()[0][0]
        if status and not number:
            return Outcome(message=head)
        columns = self._columns(self._original_names(sql, relation.columns), kinds)

        def execute(about: str) -> Any:
            return relation.query(_RELATION, about)

        if outcome := self._filed(_RELATION, columns, kinds, number, execute):
            return outcome
        writes = writers(kinds) if number <= SMALL else None
        rendered = relation if writes is not None else execute(_rendering(_RELATION, kinds))
        return self._text(columns, kinds, (_texts(rows, writes) for rows in _batches(rendered)))

    def _described(self, sql: str) -> tuple[list[ColumnInfo], list[Any]]:
        described = self.connection.execute(f"DESCRIBE\n{sql}").fetchall()
        try:
            kinds = [self.connection.type(item[1]) for item in described]
        except duckdb.Error:
            # Some types exist only as those of a value, such as the state of an aggregate: no text is their name.
            kinds = list(self.connection.query(sql).types)
        named = zip(described, kinds, strict=True)
        return bounded((column(str(item[0]), kind, item[2] != "NO") for item, kind in named), self.options), kinds

    def _columns(self, names: Sequence[str], kinds: Sequence[Any]) -> list[ColumnInfo]:
        return bounded((column(name, kind, True) for name, kind in zip(names, kinds, strict=True)), self.options)

    def _filed(
        self, source: str, columns: list[ColumnInfo], kinds: Sequence[Any], number: int | None, execute: Execute
    ) -> Outcome | None:
        """Write the rows of a relation to a file, if they are many and there is one; `execute` runs SQL about it."""
        if not is_large(number, kinds) or not self.reaches_files() or (path := self.sink.file()) is None:
            return None
        with self.sink.counted(path, self.connection.interrupt):
            written = execute(copy_to(path, source, columns, kinds)).fetchall()[0][0]
        return Outcome(columns, instants(kinds), written=written)

    def _text(
        self,
        columns: list[ColumnInfo],
        kinds: Sequence[Any],
        pieces: Iterable[list[str]],
        limit: int | None = None,
    ) -> Outcome:
        """Pass rows to the sink, at most `limit` of them."""
        kept, more = 0, False
        for texts in pieces:
            if limit is not None and kept + len(texts) > limit:
                texts, more = texts[: limit - kept], True
            kept += len(texts)
            self.sink.keep(texts)
        if more:
            return Outcome(
                columns, instants(kinds), f"stopped after {format_count(limit or 0, 'row')}", sqlstate.ROW_LIMIT
            )
        return Outcome(columns, instants(kinds))

    def _original_names(self, sql: str, names: Sequence[str]) -> list[str]:
        """The column names of the statement: DuckDB numbers those of a table or relation that occur twice."""
        known = {name.lower() for name in names}
        if not any(name.rpartition("_")[0].lower() in known for name in names):
            return list(names)
        asked = "SELECT system.main.json_serialize_plan(?, optimize := false)"
        [(text,)] = self.connection.execute(asked, [sql]).fetchall()
        try:
            plans = json.loads(text).get("plans", ())
        except ValueError:
            # Constants of some types are not valid JSON there.
            plans = ()
        while plans:
            # The last child of a common table expression is what reads it.
            values = plans[-1].get("expressions", ())
            if len(values) == len(names):
                return [str(value.get("alias")) or name for value, name in zip(values, names, strict=True)]
            plans = plans[-1].get("children", ())
        return list(names)


def gives_rows(parsed: Any) -> bool:
    """Tell whether a statement may return rows."""
    try:
        return "QUERY_RESULT" in {item.name for item in parsed.expected_result_type}
    except duckdb.Error:
        # A statement that the Python package has no name for: known only after it has run.
        return True


def fetch_rows(connection: duckdb.DuckDBPyConnection, writes: Sequence[Write] | None = None) -> Iterator[list[str]]:
    """Yields the rows of the executed statement as text, in pieces of about the same size, by `writes` or as
    render.row() made them.

    Raises the errors of fetching.
    """
    count = FIRST
    while rows := connection.fetchmany(count):
        texts = _texts(rows, writes)
        del rows
        yield texts
        count = min(MOST, GROWTH * count, max(1, FETCHED * len(texts) // max(1, sum(map(len, texts)))))


def _batches(relation: duckdb.DuckDBPyRelation) -> Iterator[list[Any]]:
    rows = relation.iter_rows(BATCH)
    while batch := list(islice(rows, BATCH)):
        yield batch


def _texts(rows: Sequence[Any], writes: Sequence[Write] | None) -> list[str]:
    return [finished(text) for (text,) in rows] if writes is None else [line(row, writes) for row in rows]


@contextlib.contextmanager
def _below_a_line() -> Iterator[None]:
    """Raise DuckDB's errors as Failure, with their lines in the statement that follows one line of ours."""
    try:
        yield
    except duckdb.Error as error:
        raise failure(error, lines_before=1) from error


def _is_constant(sql: str) -> bool:
    """Whether a SELECT has constants and operators alone and may run twice: as far as its words show, it reads nothing
    and calls no function.
    """
    if len(sql) > SHORT or not brief(sql):
        return False
    return all(before.text[-1] in _OPENS for before, item in pairwise(words(sql)) if item.word == "(")


def _rendering(source: str, kinds: Sequence[Any]) -> str:
    """SQL for the rows of a relation as text."""
    names = [f"c{number}" for number in range(len(kinds))]
    return f"SELECT {row(kinds, names)} FROM {source} t({', '.join(names)})"


def _estimate(connection: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    """DuckDB's estimate of the number of rows of a SELECT, None if there is none."""
    if brief(sql):
        return None
    try:
        plan = connection.execute(f"EXPLAIN (FORMAT json)\n{sql}").fetchone()
    except duckdb.ParserException:
        # SHOW and similar statements cannot be explained.
        return None
    return _root(plan[1]) if plan is not None else None


def _root(plan: str) -> int:
    """The estimate of a plan's root: its own, or that of its first child that has one, and at most its LIMIT."""
    nodes = json.loads(plan)
    most = sys.maxsize
    while nodes:
        info = nodes[0].get("extra_info", {})
        if str(info.get("Limit", "")).isdecimal():
            most = min(most, int(info["Limit"]))
        elif estimate := int(info.get("Estimated Cardinality", 0)):
            # DuckDB estimates 0 rows for a LIMIT and for what is done to its rows.
            return min(most, estimate)
        nodes = nodes[0].get("children", [])
    return 0
