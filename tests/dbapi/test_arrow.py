"""Results as Arrow streams and data frames."""

from __future__ import annotations

import asyncio
import datetime
import gc
import importlib.util
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow
import pytest

from sqlshell.dbapi import Connection, DataError, NotSupportedError, ProgrammingError, aconnect
from sqlshell.service.engines.files.parquet import ROW_GROUP
from tests.dbapi.test_values import same

TYPED = """
    select i, i * 1.5::decimal(10,2) as d, 'row ' || i as s, [i, null] as l, {'a': i} as n,
           date '2024-01-01' + i::int as day,
           timestamptz '2024-01-01 00:00:00Z' + to_seconds(i) as moment, i % 2 = 0 as even, 'ab'::blob as b,
           nullif('', '') as e, 'nan'::double as f
    from range(25000) t(i)
"""


TYPES = """
    select i, (i * 1.5)::decimal(20,2) as d, 'row ' || i as s, [i, null] as l, {{'a': i, 'b': 1.5::decimal(38,2)}} as n,
           date '2024-01-01' + (i % 100)::int as day, timestamptz '2024-01-01 00:00:00Z' + to_seconds(i) as moment,
           i % 2 = 0 as even, 'ab'::blob as b, i::hugeint as h, map {{'k': i}} as m, time '12:00' as t,
           (i % 3)::utinyint as tiny, uuid() as u, interval '1 month' as iv, i::ubigint as ub, null as nu,
           timestamp_ns '2023-12-30 03:37:45.123456789' as ns, (1, 2) as tup, 1.5::float as f
    from range({rows}) t(i)
"""


def of_duckdb(stream: Any, sql: str) -> list[Any]:
    with duckdb.connect() as database:
        return database.execute(f"select {sql} from stream").fetchall()


@pytest.mark.slow("an embedded service")
def test_a_stream_has_types_and_rows(embedded: Connection) -> None:
    stream = embedded.execute(TYPED).fetch_arrow()
    assert of_duckdb(stream, "count(*), sum(i), max(d), count(e), count(distinct moment)") == [
        (25_000, 312_487_500, Decimal("37498.50"), 0, 25_000)
    ]
    # It can be read again.
    types = of_duckdb(stream, "typeof(columns(*)) ")[0]
    assert types == (
        *("BIGINT", "DECIMAL(29,2)", "VARCHAR", "BIGINT[]", "STRUCT(a BIGINT)", "DATE"),
        *("TIMESTAMP WITH TIME ZONE", "BOOLEAN", "BLOB", "VARCHAR", "DOUBLE"),
    )


@pytest.mark.slow("large results")
def test_the_rows_that_are_left(embedded: Connection) -> None:
    for fetched in (0, 3, 10_000, 10_001, 25_000):
        cursor = embedded.execute("select i from range(25000) t(i)")
        assert len(cursor.fetchmany(fetched)) == fetched
        left = of_duckdb(cursor.fetch_arrow(), "count(*), coalesce(min(i), 25000)")
        assert left == [(25_000 - fetched, fetched)]
        assert cursor.fetchall() == []


@pytest.mark.slow("large results")
def test_types_are_the_same_from_a_file_and_from_partitions(embedded: Connection) -> None:
    small = embedded.execute(TYPES.format(rows=3)).fetch_arrow()
    large = embedded.execute(TYPES.format(rows=250_000)).fetch_arrow()
    assert of_duckdb(large, "count(*), count(distinct u)") == [(250_000, 250_000)]
    kinds = "typeof(columns(*))"
    assert of_duckdb(small, kinds)[0] == of_duckdb(large, kinds)[0]
    left = "columns(* exclude (u, moment)), moment::varchar"
    assert of_duckdb(small, left) == of_duckdb(large, left)[:3]


def test_a_stream_is_read_in_small_batches_and_outlives_its_result(embedded: Connection) -> None:
    found = embedded.execute("select i, repeat('x', 100) || i as s from range(250000) t(i)").fetch_arrow()
    one, other = found.__arrow_c_stream__(), found.__arrow_c_stream__()
    del found
    gc.collect()
    for capsule in (one, other):
        sizes = [len(batch) for batch in pyarrow.RecordBatchReader._import_from_c_capsule(capsule)]
        assert sum(sizes) == 250_000
        assert max(sizes) <= ROW_GROUP


@pytest.mark.slow("large results")
def test_data_frames_have_exact_types(embedded: Connection) -> None:
    pandas = pytest.importorskip("pandas")
    sql = "select i::bigint + 9007199254740993 as i, 1.10::decimal(38,2) as d, 2::hugeint as h, 'x' as s, \
           timestamptz '2024-01-01 00:00:00+01' as t, [i] as l from range({}) t(i) union all select {}"
    nulls = ", ".join(["null"] * 6)
    for rows in (1, 200_000):
        frame = embedded.execute(sql.format(rows, nulls)).fetch_df("pandas")
        assert len(frame) == rows + 1
        assert [str(kind) for kind in frame.dtypes[:3]] == ["Int64", "object", "object"]
        assert isinstance(frame["t"].dtype, pandas.DatetimeTZDtype)
        first = frame[frame.i == 9007199254740993].iloc[0]
        assert same(
            [first["i"].item(), first.d, first.h, first.s], [9007199254740993, Decimal("1.10"), Decimal(2), "x"]
        )
        assert first.t == datetime.datetime(2023, 12, 31, 23, tzinfo=datetime.UTC)
        last = frame[frame.i.isna()].iloc[0]
        assert all(pandas.isna(last[name]) for name in "idhst")
    with pytest.raises(DataError, match="infinity"):
        embedded.execute("select date 'infinity' as d").fetch_df("pandas")


def test_nested_decimals_of_a_data_frame_are_exact(embedded: Connection) -> None:
    pytest.importorskip("pyarrow")
    sql = "select [1.10::decimal(9, 2), null] as l, map {'a': 1.5::decimal(3, 1)} as m, {'x': 0.1::decimal(2, 1)} as s"
    row = embedded.execute(sql).fetch_df("pandas").iloc[0]
    assert [*row.l] == [Decimal("1.10"), None]
    assert (row.m, row.s) == ({"a": Decimal("1.5")}, {"x": Decimal("0.1")})


def test_decimals_of_a_data_frame_do_not_require_pyarrow(embedded: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "select (i / 7)::decimal(38, 9) as d, if(i % 3 = 0, null, i)::decimal(9, 0) as n, sum(i) as h, 'x' as s \
           from range(-50, 60000) t(i) group by i order by i"
    expected = embedded.execute(sql).fetch_df("pandas")
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else find_spec(name))
    found = embedded.execute(sql).fetch_df("pandas")
    assert [*found.columns] == ["d", "n", "h", "s"]
    assert [str(kind) for kind in found.dtypes[:3]] == ["object"] * 3
    for name in found.columns:
        assert list(map(repr, found[name])) == list(map(repr, expected[name]))
    assert (found.d[0], found.n[1], found.h[0]) == (Decimal("-7.142857143"), Decimal(-49), Decimal(-50))


def test_data_frames_of_polars(embedded: Connection) -> None:
    polars = pytest.importorskip("polars")
    frame = embedded.execute(TYPES.format(rows=3)).fetch_df("polars")
    assert frame.schema["d"] == polars.Decimal(20, 2)
    assert frame.schema["moment"] == polars.Datetime("us", "Etc/UTC")
    assert frame.schema["n"] == polars.Struct({"a": polars.Int64, "b": polars.Decimal(38, 2)})
    assert frame.schema["l"] == polars.List(polars.Int64)
    assert frame["d"].to_list() == [Decimal("0.00"), Decimal("1.50"), Decimal("3.00")]


def test_names_and_nulls(embedded: Connection) -> None:
    stream = embedded.execute("select 1 as a, 2 as a, 3 as A, null as n, '' as t").fetch_arrow()
    assert stream.relation.columns == ["a", "a_1", "A_2", "n", "t"]
    assert stream.relation.fetchall() == [(1, 2, 3, None, "")]
    assert embedded.execute("select null as x union all select null").fetch_arrow().relation.fetchall() == [(None,)] * 2


def test_what_has_no_rows_or_does_not_fit(embedded: Connection) -> None:
    cursor = embedded.cursor()
    with pytest.raises(ProgrammingError, match="there are no rows"):
        cursor.fetch_arrow()
    long = "340282366920938463463374607431768211455"
    for rows in (3, 300_000):
        # A large result comes as a file.
        cursor.execute(
            f"select [i] as l, case i when 2 then {long}::uhugeint end as u, 'text' as t from range({rows}) r(i)"
        )
        with pytest.raises(DataError) as caught:
            cursor.fetch_arrow()
        assert str(caught.value) == f"column \"u\": Arrow cannot represent '{long}'"
        assert caught.value.hint == "cast the column to VARCHAR"


def test_a_stream_outlives_its_connection() -> None:
    async def work() -> Any:
        async with await aconnect(":memory:", autocommit=True) as connection:
            return await (await connection.execute("select i from range(5) t(i)")).fetch_arrow()

    assert of_duckdb(asyncio.run(work()), "count(*)") == [(5,)]


def test_data_frames(embedded: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("pandas") is not None:
        frame = embedded.execute("select i, 'x' as s from range(3) t(i)").fetch_df()
        assert frame.to_dict("list") == {"i": [0, 1, 2], "s": ["x"] * 3}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotSupportedError, match="requires pandas or polars"):
        embedded.execute("select 1").fetch_df()


@pytest.mark.parametrize("rows", [1, 60_000])
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_an_infinite_date_is_refused(embedded: Connection, kind: str, rows: int) -> None:
    sql = f"select i, if(i = 0, '-infinity', '2024-01-01')::{kind} as \"a day\" from range({rows}) t(i)"
    for fetch in ("fetch_df", "fetch_arrow"):
        with pytest.raises(DataError, match=r"""^column "a day": Arrow cannot represent 'infinity'""") as caught:
            getattr(embedded.execute(sql), fetch)()
        assert caught.value.hint == "cast the column to VARCHAR"
    frame = embedded.execute(sql.replace("'-infinity'", "null")).fetch_df()
    assert len(frame) == rows
