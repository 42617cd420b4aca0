"""Runs statements that return rows but cannot be subqueries: RETURNING, EXECUTE, PIVOT, CALL, PRAGMA and others.

They run once, and their rows are rendered by the same SQL as a SELECT's. Those of an INSERT, UPDATE, DELETE or SELECT
that reads are kept in a temporary table, which DuckDB moves to disk when memory runs short. DuckDB holds the rows of
the others in memory, whatever its limit: it allows none of them as the source of a table.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import duckdb

from sqlshell.service.engines.duckdb.failures import failure
from sqlshell.service.engines.duckdb.results.disk_space import CountingSink
from sqlshell.service.engines.duckdb.results.fetch import fetch_rows
from sqlshell.service.engines.duckdb.results.filed import LARGE, is_large, write, write_relation
from sqlshell.service.engines.duckdb.results.render import column, finished, instants, row
from sqlshell.service.engines.duckdb.results.selected import bounded, check_columns
from sqlshell.service.engines.duckdb.results.simple import brief, line, writers
from sqlshell.service.engines.duckdb.statement_traits import writes_inside
from sqlshell.service.engines.engine import Outcome, RunOptions

BATCH = 256
"""The number of rows that are fetched from DuckDB at once."""

TYPES_WITH_KNOWN_COLUMNS = {"INSERT", "UPDATE", "DELETE", "EXECUTE", "EXPLAIN"}
"""Types of statements whose columns DuckDB knows before it runs them. There is no public way to ask."""

KEPT = {"INSERT", "UPDATE", "DELETE", "SELECT"}
"""Types of statements whose rows a table can be made of."""

_NUMBERED = re.compile(r"(.+)_\d+", re.S)


def run_statement(
    connection: duckdb.DuckDBPyConnection,
    kind: str,
    sql: str,
    head: str,
    options: RunOptions,
    sink: CountingSink,
    reaches_files: Callable[[], bool],
) -> Outcome:
    """Run a statement of type `kind` and pass its rows to `sink`; `head` is the message of a statement without rows.

    Raises duckdb.Error, and OSError of the sink; the caller must then roll the statement back.
    """
    is_bindable = kind in TYPES_WITH_KNOWN_COLUMNS or (kind == "SELECT" and writes_inside(sql))
    bound = _bound(connection, sql) if is_bindable else None
    if bound is not None and kind in KEPT and not brief(sql):
        return _kept(connection, kind, sql, *bound, options, sink, reaches_files)
    if bound is not None and kind in TYPES_WITH_KNOWN_COLUMNS and (writes := writers(bound[1])):
        check_columns(len(bound[1]), options)
        connection.execute(sql)
        columns = bounded((column(str(item[0]), item[1], True) for item in connection.description or []), options)
        for texts in fetch_rows(connection, partial(line, writes=writes)):
            sink.keep(texts)
        return Outcome(columns)
    relation = connection.query(sql)
    if relation is None:
        return Outcome(message=head)
    kinds = list(relation.types)
    check_columns(len(kinds), options)
    # A statement that reads nothing returns at most as many rows as its text has values.
    status = relation.columns == ["Success"] and str(kinds[0]) == "BOOLEAN"
    number = 0 if brief(sql) and len(sql) < LARGE and not status else relation.aggregate("count(*)").fetchall()[0][0]
    if status and not number:
        return Outcome(message=head)
    named = zip(_original_names(connection, sql, relation.columns), kinds, strict=True)
    columns = bounded((column(name, kind, True) for name, kind in named), options)
    names = [f"c{at}" for at in range(len(kinds))]
    values = relation.project(", ".join(f"#{at} AS {name}" for at, name in enumerate(names, 1)))
    if is_large(number, kinds) and reaches_files() and (path := sink.file()) is not None:
        with sink.counted(path, connection.interrupt):
            written = write_relation(connection, values, columns, kinds, path)
        return Outcome(columns, instants(kinds), written=written)
    for rows in _batches(values.project(row(kinds, names))):
        sink.keep([finished(text) for (text,) in rows])
    return Outcome(columns, instants(kinds))


def _kept(
    connection: duckdb.DuckDBPyConnection,
    kind: str,
    sql: str,
    given: Sequence[str],
    kinds: Sequence[Any],
    options: RunOptions,
    sink: CountingSink,
    reaches_files: Callable[[], bool],
) -> Outcome:
    """Run a statement whose rows a table can have, and render them from there."""
    check_columns(len(kinds), options)
    columns = bounded((column(name, item, True) for name, item in zip(given, kinds, strict=True)), options)
    names = [f"c{at}" for at in range(len(kinds))]
    listed = ", ".join(names)
    table = f"returned_{secrets.token_hex(8)}"
    if kind == "SELECT":
        create = f"CREATE TEMP TABLE {table}({listed}) AS\n{sql}"
    else:
        create = f"CREATE TEMP TABLE {table} AS WITH {table}_rows({listed}) AS (\n{sql}\n) FROM {table}_rows"
    try:
        number = connection.execute(create).fetchall()[0][0]
    except duckdb.Error as error:
        raise failure(error, lines_before=1) from error
    rows = f"temp.{table}"
    if is_large(number, kinds) and reaches_files() and (path := sink.file()) is not None:
        with sink.counted(path, connection.interrupt):
            written = write(connection, f"FROM {rows}", columns, kinds, path)
        outcome = Outcome(columns, instants(kinds), written=written)
    else:
        connection.execute(f"SELECT {row(kinds, names)} FROM {rows}")
        for texts in fetch_rows(connection, lambda item: finished(item[0])):
            sink.keep(texts)
        outcome = Outcome(columns, instants(kinds))
    connection.execute(f"DROP TABLE {rows}")
    return outcome


def _bound(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], list[Any]] | None:
    """The names and types of the columns that a statement will return; None if DuckDB does not say."""
    with contextlib.suppress(AttributeError, TypeError):
        names, kinds, *_ = connection._bind(sql)
        return list(names), list(kinds)
    return None


def _batches(relation: duckdb.DuckDBPyRelation) -> Iterator[Sequence[tuple[str]]]:
    rows = relation.iter_rows(BATCH)
    while some := list(islice(rows, BATCH)):
        yield some


def _original_names(connection: duckdb.DuckDBPyConnection, sql: str, names: Sequence[str]) -> list[str]:
    """The column names of the statement: a relation renames duplicates."""
    known = {name.lower() for name in names}
    if any(match and match[1].lower() in known for match in map(_NUMBERED.fullmatch, names)):
        with contextlib.suppress(AttributeError, TypeError, duckdb.Error):
            bound = connection._bind(sql)
            if len(bound[0]) == len(names):
                return list(bound[0])
    return list(names)


def kind_of(parsed: Any, sql: str) -> str:
    """The type of a statement; its first words if the Python package has no name for the type."""
    try:
        return str(parsed.type.name)
    except ValueError:
        return " ".join(sql.split()[:3]).upper()


def gives_rows(parsed: Any) -> bool:
    """Whether a statement may return rows."""
    try:
        return "QUERY_RESULT" in {item.name for item in parsed.expected_result_type}
    except duckdb.Error:
        # A statement that the Python package has no name for: known only after it has run.
        return True
