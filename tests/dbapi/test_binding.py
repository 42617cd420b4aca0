"""Placeholders: where they are, where they are not, and the INSERTs of executemany()."""

from __future__ import annotations

import datetime
import zoneinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sqlshell.dbapi import Connection, DataError, ProgrammingError
from sqlshell.dbapi.binding import BATCH_ROWS, bound, row_insert
from sqlshell.dbapi.literals import Literals

LITERALS = Literals()

SAME = [
    ("select '?', \"?\", `?`, E'\\\\?', ?", "select '?', \"?\", `?`, E'\\\\?', 1"),
    ("select $$ ? $$, $t$ ? $$ $t$ -- ?\n, ?", "select $$ ? $$, $t$ ? $$ $t$ -- ?\n, 1"),
    ("select /* ? */ ?, /* '?' */ ?", "select /* ? */ 1, /* '?' */ 1"),
    ("select a?b, e?, ?", "select a 1 b, e 1, 1"),
    ("select j ?? ?, j ??| ?, j @?? ?, j ???", "select j ? 1, j ?| 1, j @? 1, j ? 1"),
    ("select ?::int, [?], {'a':?}, x=?", "select 1::int, [1], {'a':1}, x=1"),
    ("? ", "1 "),
    ("select 1", "select 1"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "expected"), SAME)
def test_what_a_placeholder_is(sql: str, expected: str) -> None:
    count = expected.count("1") - sql.count("1")
    assert bound(sql, [1] * count, LITERALS) == expected


def test_names() -> None:
    sql = "select :a, ':a', a::int, x[1:a], {b:c}, :b2 -- :c"
    assert bound(sql, {"a": "it's", "b2": None}, LITERALS) == "select 'it''s', ':a', a::int, x[1:a], {b:c}, NULL -- :c"
    with pytest.raises(ProgrammingError, match="no value for the placeholder :a"):
        bound("select :a", {"b": 1}, LITERALS)


def test_without_parameters_nothing_is_a_placeholder(embedded: Connection) -> None:
    assert bound("select a ? b :c", None, LITERALS) == "select a ? b :c"
    assert embedded.execute("select '?' as a").fetchall() == [("?",)]


@pytest.mark.parametrize(
    ("sql", "parameters", "message"),
    [
        ("select ?", [], "has 1 placeholder, but 0 values were"),
        ("select 1", [1], "has 0 placeholders, but 1 value was"),
        ("select ?", "a", "a sequence or a mapping, not str"),
        ("select ?", 5, "a sequence or a mapping, not int"),
        ("select ?", {"a": 1}, r"the placeholder \? requires a sequence, not a mapping"),
        ("select :a", [1], "the placeholder :a requires a mapping, not a sequence"),
        ("select 'a\\'?', ?", [1], "engines disagree on where"),
        ("select /* /* */ ? /* */ */ ?", [1], "engines disagree on where"),
        ("select E'a'\n?", ["b"], "placeholder directly follows a string"),
        ("select e'a' -- c\n?, ?", ["b", "c"], "placeholder directly follows a string"),
        ("select 'a' /* c */ :b", {"b": "b"}, "placeholder directly follows a string"),
        ("select ?\n'b'", ["a"], "string directly follows a placeholder"),
        ("select ? -- c\n?", ["a", "b"], "placeholder directly follows another"),
        ("select :a\n:b", {"a": "a", "b": "b"}, "placeholder directly follows another"),
    ],
)
def test_what_is_refused(sql: str, parameters: Any, message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        bound(sql, parameters, LITERALS)


@pytest.mark.parametrize("sql", ["select %s", "select $1"])
def test_the_placeholders_of_other_drivers_are_answered_with_ours(sql: str) -> None:
    with pytest.raises(ProgrammingError) as caught:
        bound(sql, [1], LITERALS)
    assert caught.value.hint == "write ? for each value, or :name and pass a mapping"


def test_methods_of_a_statement_that_is_a_subclass_of_str_are_not_called(embedded: Connection) -> None:
    class Escaping(str):
        def __getitem__(self, key: Any) -> str:
            return "&#39;"

        def __add__(self, other: str) -> str:
            return "&#39;"

    assert embedded.execute(Escaping("select ?, 2"), [1]).fetchall() == [(1, 2)]
    cursor = embedded.cursor()
    cursor.execute("create or replace table written (a int)")
    cursor.executemany(Escaping("insert into written values (?)"), [(1,), (2,)])
    assert cursor.execute("from written order by 1").fetchall() == [(1,), (2,)]


def inserts(sql: str, rows: list[tuple[Any, ...]]) -> list[str]:
    found = row_insert(sql, named=False)
    assert found is not None
    return [text for text, _ in found.statements(rows, LITERALS)]


def test_rows_of_an_insert_go_together() -> None:
    sql = "insert into t (a, b) values (?, (? + 1)) on conflict do nothing"
    assert inserts(sql, [(1, "a"), (2, None), (None, "b")]) == [
        "insert into t (a, b) values (1, ('a' + 1)), (2, (NULL + 1)), (NULL, ('b' + 1)) on conflict do nothing"
    ]
    # An engine would make a DOUBLE of the decimal.
    assert len(inserts("insert into t values (?)", [(Decimal("0.1"),), (0.5,), (0.6,), (None,), (0.7,)])) == 2
    # The first value of a column decides on its type, even if NULLs precede it.
    assert len(inserts("insert into t values (?)", [(None,), (Decimal("0.1"),), (None,), (0.5,), (0.6,)])) == 2
    assert len(inserts("insert into t values (?, ?)", [(1, None), (None, 0.5), (2, Decimal("0.1"))])) == 2
    assert len(inserts("insert into t values (?)", [(1,)] * (BATCH_ROWS + 1))) == 2
    assert len(inserts("insert into t values (?)", [("x" * 200_000,)] * 3)) == 3


@pytest.mark.parametrize(
    "sql",
    [
        "update t set a = ?",
        "insert into t select ?",
        "insert into t values (?), (?)",
        "insert into t values (?) on conflict (a) do update set a = ?",
        "insert into t values (?); delete from t",
        "insert into t values (?",
    ],
)
def test_other_statements_are_sent_row_by_row(sql: str) -> None:
    assert row_insert(sql, named=False) is None


@pytest.mark.slow("an embedded service")
def test_many_rows_of_every_type(embedded: Connection) -> None:
    embedded.execute(
        "create or replace temp table many (i bigint, d decimal(20,5), t timestamp, s varchar, l integer[])"
    )
    rows = [
        (i, Decimal(i) / 8 if i % 3 else None, datetime.datetime(2024, 1, 1, microsecond=i), f"row '{i}'", [i, None])
        for i in range(5_000)
    ]
    cursor = embedded.cursor()
    cursor.executemany("insert into many values (?, ?, ?, ?, ?)", iter(rows))
    assert (cursor.rowcount, cursor.description) == (5_000, None)
    assert embedded.execute("select * from many order by i").fetchall() == rows


@pytest.mark.slow("many statements")
def test_many_statements_of_another_kind(embedded: Connection) -> None:
    embedded.execute("create or replace temp table few as select range as i, 0 as n from range(1200)")
    cursor = embedded.cursor()
    cursor.executemany("update few set n = :n where i = :i", [{"i": i, "n": -i} for i in range(1200)])
    assert cursor.rowcount == 1200
    assert embedded.execute("select sum(n + i), min(n) from few").fetchall() == [(0, -1199)]


def test_the_caller_s_rows_may_fail(embedded: Connection) -> None:
    def rows() -> Any:
        yield (1,)
        raise LookupError("no more")

    with pytest.raises(LookupError):
        embedded.cursor().executemany("select ?", rows())
    cursor = embedded.cursor().executemany("select ?", [])
    assert cursor.rowcount == 0
    for given, message in ((None, "the rows must be an iterable"), ([None], "a sequence or a mapping, not NoneType")):
        with pytest.raises(ProgrammingError, match=message):
            embedded.cursor().executemany("select ?", given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (np.True_, "TRUE"),
        (np.float32(1.5), "1.5e0"),
        (np.float16(0.5), "0.5e0"),
        (pd.NaT, "NULL"),
        (pd.NA, "NULL"),
        (np.datetime64("NaT", "s"), "NULL"),
        (np.datetime64("2024-01-02"), "DATE '2024-01-02'"),
        (np.datetime64("2024-01-02T03:04:05.123456000"), "TIMESTAMP '2024-01-02 03:04:05.123456'"),
        (np.timedelta64(1_000_000, "ns"), "INTERVAL '0 days 1000 microseconds'"),
        (pd.Timestamp("2024-01-02 03:04:05.123456"), "TIMESTAMP '2024-01-02 03:04:05.123456'"),
        (pd.Timestamp("2024-01-02 03:04+01"), "CAST('2024-01-02 02:04:00+00:00' AS TIMESTAMP_LTZ(6))"),
        (pd.Timedelta(-1, "us"), "INTERVAL '-1 days 86399999999 microseconds'"),
    ],
)
def test_scalars_of_numpy_and_pandas(value: Any, literal: str) -> None:
    assert bound("select ?", [value], LITERALS) == f"select {literal}"


def test_scalars_without_an_exact_literal_are_refused() -> None:
    for value in (
        np.datetime64("2024-01-02T03:04:05.123456789"),
        np.timedelta64(5, "M"),
        np.datetime64("20240-01-02"),
        pd.Timestamp("2024-01-02 03:04:05.123456789"),
        pd.Timestamp("2024-01-02 03:04:05.123456789+01"),
        pd.Timedelta(1, "ns"),
    ):
        with pytest.raises(DataError, match="Python's datetime types cannot represent"):
            bound("select ?", [value], LITERALS)
    # A double would not have all their digits.
    for value in (np.complex128(1j), np.longdouble(1), Fraction(1, 3)):
        with pytest.raises(ProgrammingError, match=r"cannot use a value of type (numpy|fractions)\.\w+ as a parameter"):
            bound("select ?", [value], LITERALS)


@pytest.mark.parametrize("text", ["\ud800", "é\udc00"])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    for value in (text, [text], {"a": text}):
        with pytest.raises(DataError, match=r"^a parameter contains a lone surrogate \(.ud[8c]00\), which is"):
            bound("select ?", [value], LITERALS)


def test_a_time_with_a_zone(embedded: Connection) -> None:
    for minutes in (0, 150, -210):
        value = datetime.time(1, 2, 3, 4, datetime.timezone(datetime.timedelta(minutes=minutes)))
        assert embedded.execute("select ?", [value]).fetchone() == (value,)
    with pytest.raises(DataError, match="the UTC offset in this time zone depends on the date"):
        bound("select ?", [datetime.time(1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))], LITERALS)
