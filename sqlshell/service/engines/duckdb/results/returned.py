"""Runs statements that return rows but cannot be subqueries: RETURNING, EXECUTE, PIVOT, CALL, PRAGMA and others.

DuckDB runs them once and holds what they returned; the rows are rendered from there, by the same SQL as a SELECT's.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import duckdb

from sqlshell.service.engines.duckdb.results.disk_space import CountingSink
from sqlshell.service.engines.duckdb.results.fetch import fetched
from sqlshell.service.engines.duckdb.results.filed import LARGE, write_relation
from sqlshell.service.engines.duckdb.results.render import column, finished, instants, row
from sqlshell.service.engines.duckdb.results.selected import check_columns
from sqlshell.service.engines.duckdb.results.simple import Write, brief, line, writers
from sqlshell.service.engines.engine import Options, Outcome

BATCH = 256
"""The number of rows that are fetched from DuckDB at once."""

FORESEEN = {"INSERT", "UPDATE", "DELETE", "EXECUTE", "EXPLAIN"}
"""Types of statements whose columns DuckDB knows before it runs them. There is no public way to ask."""

_NUMBERED = re.compile(r"(.+)_\d+", re.S)


def returned(
    connection: duckdb.DuckDBPyConnection,
    kind: str,
    sql: str,
    head: str,
    options: Options,
    sink: CountingSink,
    reaches_files: Callable[[], bool],
) -> Outcome:
    """Run a statement of type `kind` and pass its rows to `sink`; `head` is the message of a statement without rows.

    Raises duckdb.Error, and OSError of the sink; the caller must then roll the statement back.
    """
    if kind in FORESEEN and (writes := _foreseen(connection, sql)):
        connection.execute(sql)
        columns = [column(str(item[0]), item[1], True) for item in connection.description or []]
        for texts in fetched(connection, partial(line, writes=writes)):
            sink.keep(texts)
        return Outcome(columns)
    relation = connection.query(sql)
    if relation is None:
        return Outcome(message=head)
    kinds = list(relation.types)
    check_columns(len(kinds), options)
    # A statement that reads nothing returns at most as many rows as its text has values.
    told = relation.columns == ["Success"] and str(kinds[0]) == "BOOLEAN"
    number = 0 if brief(sql) and len(sql) < LARGE and not told else relation.aggregate("count(*)").fetchall()[0][0]
    if told and not number:
        return Outcome(message=head)
    named = zip(_original_names(connection, sql, relation.columns), kinds, strict=True)
    columns = [column(name, kind, True) for name, kind in named]
    names = [f"c{at}" for at in range(len(kinds))]
    values = relation.project(", ".join(f"#{at} AS {name}" for at, name in enumerate(names, 1)))
    if number >= LARGE and reaches_files() and (path := sink.file()) is not None:
        with sink.counted(path, connection.interrupt):
            filed = write_relation(connection, values, columns, kinds, path, options)
        return Outcome(columns, instants(kinds), filed=filed)
    for rows in _batches(values.project(row(kinds, names))):
        sink.keep([finished(text) for (text,) in rows])
    return Outcome(columns, instants(kinds))


def _foreseen(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Write] | None:
    """The writers for the values that a statement will return; None if they are not all simple."""
    with contextlib.suppress(AttributeError, TypeError):
        return writers(connection._bind(sql)[1])
    return None


def _batches(relation: duckdb.DuckDBPyRelation) -> Iterator[Sequence[tuple[str]]]:
    rows = relation.iter_rows(BATCH)
    while some := list(islice(rows, BATCH)):
        yield some


def _original_names(connection: duckdb.DuckDBPyConnection, sql: str, names: Sequence[str]) -> list[str]:
    """The column names of the statement: a relation renames duplicates."""
    known = {name.lower() for name in names}
    if any(found and found[1].lower() in known for found in map(_NUMBERED.fullmatch, names)):
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
