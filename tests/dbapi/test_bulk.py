"""executemany() with many rows: sent as a file where the service loads files, with the same outcome as INSERT."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pytest

from sqlshell.dbapi import Connection, DataError, IntegrityError, ProgrammingError, bulk
from sqlshell.dbapi.binding import row_insert

TABLE = """create or replace temp table t (i integer, s varchar, d decimal(10,2), b blob, day date, moment timestamp,
           f double, ok boolean, ti time)"""
ROWS: list[tuple[Any, ...]] = [
    (1, 'it\'s "quoted", é\U0001f600\n\r\t\0\\', Decimal("1.50"), b"\xff\0", datetime.date(2024, 2, 29),
     datetime.datetime(2024, 1, 1, 1, 2, 3, 5), 1 / 3, True, datetime.time(1, 2, 3)),
    (None,) * 9,
    (-5, "", Decimal("-0.01"), b"", datetime.date(1, 1, 1), datetime.datetime(9999, 12, 31), math.inf, False,
     datetime.time(23, 59, 59, 999_999)),
]  # fmt: skip
MARKS = ", ".join("?" * 9)


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "LEAST_ROWS", 2)


def test_rows_of_a_file_are_those_of_insert(remote: Connection) -> None:
    cursor = remote.cursor()
    for statement, message in ((f"insert into t values ({MARKS})", "COPY 3"), (f"insert into t select {MARKS}", "")):
        cursor.execute(TABLE)
        cursor.executemany(statement, ROWS)
        assert (cursor.rowcount, cursor.statusmessage if message else "") == (3, message)
        assert cursor.execute("select * from t order by rowid").fetchall() == ROWS
    cursor.executemany('INSERT INTO "t" (s, i) VALUES (:s, :i);', [{"i": i, "s": f"row {i}"} for i in range(9)])
    assert (cursor.rowcount, cursor.statusmessage) == (9, "COPY 9")
    cursor.executemany("insert into t (s) values (?)", [["", "x"][i : i + 1] for i in range(2)] + [(None,)])
    assert cursor.execute("select count(*), count(s), count(i), max(i) from t").fetchall() == [(15, 13, 11, 8)]
    assert remote.in_transaction


def test_rows_that_a_file_cannot_hold_are_literals(remote: Connection) -> None:
    cursor = remote.cursor().execute("create or replace temp table t (h hugeint, l integer[], z timestamptz)")
    zoned = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    rows = [(2**100, [1, None], zoned), (1, [], datetime.datetime(2024, 1, 2))]
    cursor.executemany("insert into t values (?, ?, ?)", rows)
    assert cursor.rowcount == 2
    assert cursor.execute("select h, l, z from t order by h desc").fetchall()[0] == rows[0]


@pytest.mark.parametrize(
    "sql",
    [
        *("insert into t values (?, ? + 1)", "insert or replace into t values (?, ?)", "insert into t values (?, 1)"),
        *("insert into t values (?, ?) on conflict do nothing", "insert into t values (?, ?) returning i"),
        *("insert into t by name values (?, ?)", "insert into /* a */ t values (?, ?)", "insert into t values (:a, ?)"),
    ],
)
def test_other_inserts_are_sent_as_they_are(sql: str) -> None:
    insert = row_insert(sql, named=False)
    assert insert is None or bulk.copy_statement(insert) is None


def test_errors(remote: Connection) -> None:
    cursor = remote.cursor()
    remote.commit()
    remote.autocommit = True
    cursor.execute("create or replace temp table t (i integer primary key, d date)")
    with pytest.raises(IntegrityError):
        cursor.executemany("insert into t values (?, ?)", [(1, None)] * 5)
    with pytest.raises(DataError):
        cursor.executemany("insert into t values (?, ?)", [(i, "no date") for i in range(5)])
    with pytest.raises(ProgrammingError, match="3 values were given"):
        cursor.executemany("insert into t values (?, ?)", [(1, None), (2, None, 3)])
    with pytest.raises(ProgrammingError, match="no value for the placeholder :d"):
        cursor.executemany("insert into t values (:i, :d)", [{"i": 1, "d": None}, {"i": 2}])
    with pytest.raises(ProgrammingError):
        cursor.executemany("insert into nowhere values (?)", [(1,), (2,)])
    assert cursor.execute("select count(*) from t").fetchall() == [(0,)]
