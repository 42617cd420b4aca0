"""Rows are the same Python objects by each way: from typed JSON, and from strings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sqlshell.dbapi.exceptions import DataError
from sqlshell.dbapi.rows import RowDecoder
from sqlshell.result import Batch, Column, FileUnavailable, Rows
from sqlshell.service.engines.duckdb import rows
from sqlshell.service.engines.engine import RunOptions
from tests.client.filed import Sink, Source, values_of
from tests.client.test_whole_results import TEXTS
from tests.dbapi.test_values import same
from tests.service.values import SCALARS

TYPES = {
    *("bool", "int", "Decimal", "float", "date", "time", "datetime", "timedelta", "bytes", "str", "UUID"),
    *("list", "dict", "tuple", "NoneType"),
}  # fmt: skip


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    monkeypatch.setattr(rows, "is_large", lambda number, kinds: True)
    made = Source(tmp_path)
    yield made
    made.close()


def decoded(column: Column, batch: Batch) -> Any:
    try:
        return RowDecoder([column]).rows(batch)
    except DataError as error:
        return str(error)


def check(source: Source, sql: str) -> None:
    """Compare the ways for each column of a result."""
    _, outcome, body = source.run(sql)
    columns = [
        Column(item.name or "", item.type or "", item.nullable, "", item.engine_type or "")
        for item in outcome.columns or []
    ]
    rows = msgspec.json.decode(b"[" + body + b"]", type=list[list[str | None]])
    for number, column in enumerate(columns):
        strings: Rows = [[row[number]] for row in rows]
        plain = decoded(column, Batch(1, rows=strings))
        fast = decoded(column, Batch(1, body=msgspec.json.encode({"data": strings})))
        assert same(fast, plain), column
        if not isinstance(plain, str):
            assert {type(row[0]).__name__ for row in plain} <= TYPES, column


@pytest.mark.parametrize("kind", [*SCALARS, "others"])
def test_every_value(source: Source, kind: str) -> None:
    values = values_of(kind)
    named = ", ".join(f"{value} AS v{number}" for number, value in enumerate(values))
    source.connection.run(f"CREATE TABLE t AS SELECT {named}", RunOptions(), Sink(source.path))
    source.connection.run(f"INSERT INTO t SELECT {', '.join(['NULL'] * len(values))}", RunOptions(), Sink(source.path))
    source.connection.run("INSERT INTO t FROM t", RunOptions(), Sink(source.path))
    check(source, "SELECT * FROM t")


def test_texts_and_nulls(source: Source) -> None:
    texts = ", ".join("'" + text.replace("'", "''") + "'" for text in TEXTS if "\0" not in text)
    source.connection.run(
        f"CREATE TABLE t AS SELECT unnest([{texts}, 'nul' || chr(0), NULL]) AS s", RunOptions(), Sink(source.path)
    )
    check(source, "SELECT s, nullif(s, '') AS n, encode(s) AS b, NULL AS nothing FROM t")
    check(source, "SELECT if(i % 7 = 0, NULL, i) AS i, if(i % 3 = 0, NULL, i % 2 = 0) AS b FROM range(10000) t(i)")
    check(source, "SELECT i, 'row ' || i AS s FROM range(0) t(i)")


def test_nothing_of_a_file_is_open_when_its_table_is_closed(source: Source) -> None:
    columns, _, _ = source.run("SELECT i FROM range(3) t(i)")
    table = source.table(columns, 3)
    assert table.rows(0, 1) == [["0"]]
    assert table.place.exists()
    table.close()
    assert not table.place.parent.exists()
    for read in (lambda: table.rows(0, 1), lambda: [*table.lines("c0", 0)]):
        with pytest.raises(FileUnavailable):
            read()
