"""Partitions are limited in rows and in bytes, whatever the rows look like, and no row is lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.engines.files.disk_space import DiskSpace
from sqlshell.service.engines.files.render import finished, finished_bytes, row
from sqlshell.service.engines.files.result_files import ResultFiles
from sqlshell.service.failure import Failure
from sqlshell.service.results import results
from sqlshell.service.results.results import Discard, Layout, Spool

ROWS = 60_000
"""More than DuckDB's estimate for a result to become a file of the engine's own."""

lengths = st.lists(st.one_of(st.integers(0, 30), st.sampled_from([99, 100, 101, 300])), max_size=60)


def spooled(rows: Sequence[str], partition_rows: int, at_once: int, file: Path) -> Spool:
    spool = Spool(lambda: file, partition_rows)
    for first in range(0, len(rows), at_once):
        spool.keep(rows[first : first + at_once])
    spool.finish()
    return spool


@settings(max_examples=150, deadline=None)
@given(lengths, st.integers(1, 12), st.integers(1, 25), st.sampled_from([50, 1 << 20]))
@example([0] * 9 + [14, 17, 0, 0, 12], 4, 1, 50)
def test_a_text_is_cut_by_rows_and_bytes(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], partition_rows: int, at_once: int, memory: int
) -> None:
    rows = [json.dumps([str(number) + "é" * length]) for number, length in enumerate(lengths)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "PARTITION_BYTES", 200)
        patch.setattr(results, "IN_RECORD", memory)
        patch.setattr(results, "IN_MEMORY", memory)
        spool = spooled(rows, partition_rows, at_once, tmp_path_factory.mktemp("spool") / "rows")
    layout = spool.layout
    parts = [spool.partition(number) for number in range(len(layout.counts))]
    decoded = [json.loads(b"[" + part + b"]") for part in parts]
    assert [item for part in decoded for item in part] == [json.loads(text) for text in rows]
    assert [len(part) for part in decoded] == layout.counts
    assert sum(layout.counts) == layout.rows == len(rows)
    for part, count in zip(parts, layout.counts, strict=True):
        assert count <= partition_rows
        assert len(part) <= 200 or count == 1
    for part, following in pairwise(parts):
        # No partition ends before it has to.
        first = json.dumps(json.loads(b"[" + following + b"]")[0])
        assert len(json.loads(b"[" + part + b"]")) == partition_rows or len(part) + 1 + len(first.encode()) > 200


@pytest.mark.parametrize("memory", [50, 1 << 20])
@pytest.mark.parametrize("finished", [True, False])
def test_a_dropped_result_takes_no_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: int, finished: bool
) -> None:
    monkeypatch.setattr(results, "IN_RECORD", memory)
    monkeypatch.setattr(results, "IN_MEMORY", memory)
    file = tmp_path / "rows"
    spool = Spool(lambda: file, 2)
    spool.keep(['["first"]'] * 11)
    if finished:
        spool.finish()
    assert file.exists() == (memory == 50)
    spool.drop()
    assert list(tmp_path.iterdir()) == []
    assert (spool.layout, spool.body, spool.size) == (Layout(partition_rows=2), b"", 0)
    # Rows may still arrive, and are dropped too.
    spool.keep(['["late"]'] * 11)
    spool.drop()
    assert list(tmp_path.iterdir()) == []
    assert spool.partition(0) == b""


def test_the_space_of_a_file_is_counted_while_it_is_written(tmp_path: Path) -> None:
    space, path = DiskSpace(1000), tmp_path / "file"
    with space.watch(path, lambda: None):
        path.write_bytes(bytes(1000))
    assert path.exists()

    def nothing_is_taken() -> None:
        with pytest.raises(Failure, match="would exceed"):
            space.take(1001)
        space.take(1000)
        space.give(1000)

    nothing_is_taken()
    interrupted = threading.Event()
    with pytest.raises(Failure, match="would exceed"), space.watch(path, interrupted.set):
        path.write_bytes(bytes(1001))
        assert interrupted.wait(30)
        # As an engine reports that it was interrupted.
        raise OSError
    assert not path.exists()
    with pytest.raises(OSError, match="of the engine"), space.watch(path, interrupted.set):
        path.write_bytes(bytes(1000))
        raise OSError("of the engine")
    assert not path.exists()
    with pytest.raises(Failure, match="would exceed"), space.watch(path, lambda: None):
        # It may be written before anybody looked.
        path.write_bytes(bytes(1001))
    assert not path.exists()
    nothing_is_taken()


class Filed(Discard):
    """A sink that takes a file alone."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, rows: Sequence[str]) -> None:
        raise AssertionError("a large result goes to a file")

    def file(self) -> Path:
        return self._path


@pytest.fixture
def engine() -> Iterator[DuckdbEngine]:
    made = DuckdbEngine()
    yield made
    made.close()


@pytest.mark.parametrize(
    "text",
    [
        "repeat('x', 300)",
        "repeat('\"', (case when range % 997 = 0 then 30000 else 3 end)::int)",
        "case when range > 59000 then repeat('long', 500) end",
        "case when range = 777 then repeat('a', 300000) else '' end",
        "[repeat('x', 300)]",
        "repeat('x', 300)::blob",
        "range",
        "null::timestamp",
    ],
)
def test_a_file_of_the_engine_is_cut_by_rows_and_bytes(engine: DuckdbEngine, tmp_path: Path, text: str) -> None:
    sql = f"select range as i, {text} as t from range({ROWS})"
    connection = engine.connect()
    options = RunOptions(partition_rows=7_000, partition_bytes=100_000)
    outcome = connection.run(sql, options, Filed(tmp_path / "result"))
    connection.close()
    assert outcome.filed is not None
    counts = [count for count, _ in outcome.filed]
    assert sum(counts) == ROWS
    assert max(counts) <= 7_000
    parts = engine.read(tmp_path / "result", 0, counts)
    # A quote is two bytes of JSON, and the last row of a partition may be as large as it likes.
    assert max(map(len, parts)) <= 2 * (100_000 + 30_000) + 600_000 * ("300000" in text)
    found = [item for part in parts for item in json.loads(b"[" + part + b"]")]
    assert [item[0] for item in found] == list(map(str, range(ROWS)))
    some = sum(counts[:1]), counts[1:3]
    assert engine.read(tmp_path / "result", *some) == parts[1:3]


REPEATS = 25_000
"""Rows with repeated values, 5 kB each."""

TABLES = [
    f"create table same as select range as i, repeat('x', 5000) as s from range({REPEATS})",
    f"create table few as select range as i, repeat(md5((range % 20)::varchar), 150) as s from range({REPEATS})",
]
REPEATED = {
    "an expression": "select range as i, repeat('x', 5000) as s from range({rows})",
    "a cross join": "select i, s from range({rows}) r(i), (select repeat('é', 2500) as s)",
    "an object": "select range as i, json_object('k', repeat('x', 5000)) as s from range({rows})",
    "a list": "select range as i, [repeat('x', 2500), repeat('y', 2500)] as s from range({rows})",
    "a struct": "select range as i, {{'a': {{'b': repeat('x', 5000)}}}} as s from range({rows})",
    "a map": "select range as i, map {{'a': repeat('x', 5000)}} as s from range({rows})",
    "bytes": "select range as i, repeat('x', 5000)::blob as s from range({rows})",
    "some": "select range as i, case when range > 3000 then repeat('x', 5000) end as s from range({rows})",
    "long and short": "select range as i, if(range // 2048 % 2 = 0, 'x', repeat('y', 9999)) as s from range({rows})",
    "many columns": "select range as i, " + ", ".join(["repeat('x', 50) as s"] * 99) + " from range({rows})",
    "a table": "select * from same",
    "a table in another order": "select {rows} - 1 - i as i, s from same order by same.i desc",
    "a dictionary": "from few",
    "a dictionary and a computed text": "select i, s || (i % 5) as s from few",
    "a dimension": "select same.i, few.s from same, few where few.i = 7 order by same.i",
    "an object for many": "select same.i, {{'a': few.s}} as s from same, few where few.i = 7 order by same.i",
}
"""Columns of repeated values, which DuckDB holds once for many rows."""


def decoded_groups(path: Path) -> list[int]:
    """The bytes of the texts in each row group of a file."""
    with duckdb.connect() as reader:
        rows = f"read_parquet('{path}', file_row_number = true)"
        described = reader.execute(f"describe from {rows}").fetchall()
        length = {"VARCHAR": "strlen", "BLOB": "octet_length"}
        sizes = [f"coalesce({length[kind]}({name}), 0)" for name, kind, *_ in described if kind in length]
        groups = reader.execute(
            "select any_value(row_group_num_rows) from parquet_metadata(?) group by row_group_id order by row_group_id",
            [str(path)],
        ).fetchall()
        found = reader.execute(f"select {' + '.join(sizes)} from {rows} order by file_row_number")
        return [sum(size for (size,) in found.fetchmany(count)) for (count,) in groups]


@pytest.mark.parametrize(
    ("source", "prepared"),
    [
        ("an expression", False),
        pytest.param("a list", True, marks=pytest.mark.slow("large results")),
        pytest.param("bytes", True, marks=pytest.mark.slow("large results")),
        *(pytest.param(name, False, marks=pytest.mark.slow("large results")) for name in REPEATED),
    ],
)
def test_the_bytes_of_row_groups_are_bounded_where_values_are_repeated(
    engine: DuckdbEngine, tmp_path: Path, source: str, prepared: bool
) -> None:
    connection = engine.connect()
    for table in TABLES:
        connection.run(table, RunOptions(), Filed(Path()))
    sql = REPEATED[source].format(rows=REPEATS)
    if prepared:
        connection.run(f"prepare p as {sql}", RunOptions(), Filed(Path()))
        sql = "execute p"
    outcome = connection.run(sql, RunOptions(), Filed(tmp_path / "result"))
    connection.close()
    assert outcome.filed is not None
    groups = decoded_groups(tmp_path / "result")
    assert max(groups) <= 10 << 20
    assert sum(groups) > 90 << 20
    with duckdb.connect() as reader:
        found = reader.execute(f"select c0 from read_parquet('{tmp_path / 'result'}')").fetchall()
    assert [i for (i,) in found] == [*range(REPEATS)]


def test_the_bytes_of_row_groups_are_bounded_in_a_converted_file(tmp_path: Path) -> None:
    spool = spooled([f'["{number}","{"x" * 5000}"]' for number in range(20_000)], 1 << 20, 100, tmp_path / "rows")
    assert spool.path is not None
    columns = [ColumnInfo("i", "BIGINT", True), ColumnInfo("s", "VARCHAR", True)]
    ResultFiles().convert(spool.path, spool.layout.ends, columns, [], tmp_path / "result")
    groups = decoded_groups(tmp_path / "result")
    assert max(groups) <= 10 << 20
    assert sum(groups) == 5000 * 20_000


@pytest.mark.parametrize(
    ("sql", "large"),
    [
        ("select range as i, 'text ' || range as s from range({rows})", True),
        ("select range as i, [range] as l from range({rows})", True),
        ("select 'x'::blob as b from range({rows})", True),
        ("select range as i, range::decimal(9, 2) as d, uuid() as u from range({rows})", False),
        ("select s from (select range::varchar as s from range(1000000)) limit {rows}", True),
        ("select s from (select range::varchar as s from range(1000000)) limit 10", False),
    ],
)
def test_results_of_texts_become_files_sooner(engine: DuckdbEngine, tmp_path: Path, sql: str, large: bool) -> None:
    kept: list[str] = []
    sink = Filed(tmp_path / "result")
    sink.keep = kept.extend  # type: ignore[assignment]
    connection = engine.connect()
    outcome = connection.run(sql.format(rows=500), RunOptions(), sink)
    assert (outcome.filed is not None) == large
    assert bool(kept) != large
    few = connection.run(sql.format(rows=499), RunOptions(), sink)
    connection.close()
    assert few.filed is None


CONNECTION = duckdb.connect()
SPECIAL = st.text(st.sampled_from('"\\N,[]\0\n\t\x1f\x7f\u2028é😀 ab'), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | SPECIAL, min_size=1, max_size=8))
def test_rows_are_the_json_of_their_values(values: list[str | None]) -> None:
    kinds = [CONNECTION.type("VARCHAR"), CONNECTION.type("VARCHAR[]"), CONNECTION.type("INTEGER")]
    source = "(SELECT a, [a] AS b, CASE WHEN a IS NOT NULL THEN 1 END AS c FROM (SELECT unnest($1::VARCHAR[]) AS a))"
    rows = CONNECTION.execute(f"SELECT {row(kinds, ['a', 'b', 'c'])} FROM {source}", [values]).fetchall()
    found = [json.loads(finished(text)) for (text,) in rows]
    assert [finished_bytes(text.encode()) for (text,) in rows] == [finished(text).encode() for (text,) in rows]
    assert [(a, json.loads(b), c) for a, b, c in found] == [(a, [a], None if a is None else "1") for a in values]


def test_rows_that_nobody_sees_need_no_file(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    for sql in ("from range(60000)", "create table t (i int)", "insert into t select * from range(60000) returning i"):
        assert connection.run(sql, RunOptions(), Discard()).sql_state == "00000"
