"""Runs SELECTs: one row of constants, a small result, a result as text, or a large result in a file."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import duckdb
import msgspec

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.bounds import limit_note
from sqlshell.service.engines.duckdb.results.disk_space import CountingSink
from sqlshell.service.engines.duckdb.results.fetch import fetch_rows
from sqlshell.service.engines.duckdb.results.filed import is_large, write
from sqlshell.service.engines.duckdb.results.render import column, finished, instants, row
from sqlshell.service.engines.duckdb.results.simple import SMALL, line, writers
from sqlshell.service.engines.engine import Outcome, RunOptions
from sqlshell.service.failure import Failure

_FROM = re.compile(r"(?<!\w)(?:from|table|pivot|unpivot|values)(?!\w)", re.I)


def run_select(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    options: RunOptions,
    sink: CountingSink,
    reaches_files: Callable[[], bool],
) -> Outcome:
    """Run a SELECT that can be a subquery, and pass its rows to `sink`. Raises duckdb.Error and OSError."""
    described = connection.execute(f"DESCRIBE\n{sql}").fetchall()
    check_columns(len(described), options)
    try:
        kinds = [connection.type(item[1]) for item in described]
    except duckdb.Error:
        # Some types exist only as those of a value, such as the state of an aggregate: their names cannot be parsed.
        kinds = list(connection.query(sql).types)
    named = zip(described, kinds, strict=True)
    columns = bounded((column(str(item[0]), kind, item[2] != "NO") for item, kind in named), options)
    names = [f"c{number}" for number in range(len(kinds))]
    zoned = instants(kinds)
    limit = options.row_limit
    if limit == 0:
        return Outcome(columns, zoned)
    estimate = _estimate(connection, sql) if limit is None else None
    if is_large(estimate, kinds) and reaches_files() and (path := sink.file()) is not None:
        with sink.counted(path, connection.interrupt):
            return Outcome(columns, zoned, written=write(connection, sql, columns, kinds, path))
    writes = writers(kinds) if estimate is not None and estimate <= SMALL else None
    if writes is not None:
        connection.execute(f"\n{sql}")
    else:
        bound = f" LIMIT {limit + 1}" if limit is not None else ""
        connection.execute(f"SELECT {row(kinds, names)} FROM (\n{sql}\n) t({', '.join(names)}){bound}")
    kept, more = 0, False
    for texts in fetch_rows(connection, partial(line, writes=writes) if writes is not None else _rendered):
        if limit is not None and kept + len(texts) > limit:
            texts, more = texts[: limit - kept], True
        kept += len(texts)
        sink.keep(texts)
    if more:
        return Outcome(columns, zoned, f"stopped after {limit:,} rows", sqlstate.ROW_LIMIT)
    return Outcome(columns, zoned)


def selected_constants(
    connection: duckdb.DuckDBPyConnection, parsed: Any, options: RunOptions, sink: CountingSink
) -> Outcome | None:
    """Run a SELECT that is one row of constants; None if DuckDB has to render it."""
    connection.execute(parsed)
    described = connection.description or []
    writes = writers([item[1] for item in described])
    if writes is None or not described:
        return None
    check_columns(len(described), options)
    columns = bounded((column(str(item[0]), item[1], True) for item in described), options)
    if rows := connection.fetchall():
        sink.keep([line(item, writes) for item in rows])
    return Outcome(columns)


def check_columns(number: int, options: RunOptions) -> None:
    """Raises Failure (54011) if a result has too many columns."""
    if number > options.columns:
        raise Failure(
            "54011", f"the result has {number} columns; the maximum is {options.columns} {limit_note('columns')}"
        )


def bounded(columns: Iterable[ColumnInfo], options: RunOptions) -> list[ColumnInfo]:
    """The columns of a result. Raises Failure (54011) if their names and types are too long: each record stores them,
    and each of its responses contains them.
    """
    kept, size = [], 0
    for item in columns:
        # As JSON, in which a character of a name may take six bytes.
        size += len(msgspec.json.encode(item))
        if size > options.columns_size:
            cause = f"the names and types of the result's columns have more than {options.columns_size} bytes"
            raise Failure("54011", f"{cause} {limit_note('columns_size')}")
        kept.append(item)
    return kept


def _estimate(connection: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    """DuckDB's estimate of the number of rows of a SELECT, None if there is none."""
    if not _FROM.search(sql):
        return None
    try:
        plan = connection.execute(f"EXPLAIN (FORMAT json)\n{sql}").fetchone()
    except duckdb.ParserException:
        # SHOW and similar statements cannot be explained.
        return None
    return _root(plan[1]) if plan is not None else None


def _rendered(row: Sequence[str]) -> str:
    return finished(row[0])


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
