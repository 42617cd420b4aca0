"""Large results of PostgreSQL, which are kept as a file: their values and partitions are those of small ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Spool
from tests.service.engines.conftest import Runner, stored

if TYPE_CHECKING:
    from sqlshell.service.engines.postgresql.engine import PostgresqlEngine

pytestmark = pytest.mark.usefixtures("postgresql_server")

ROWS = 60_000
"""Enough for a file."""


def test_every_text_is_the_same_in_a_file(runner: Runner, postgresql: PostgresqlEngine, tmp_path: Path) -> None:
    """Each character, NULL, the empty text and what looks like an escape, at each end of a row."""
    texts = (
        "select chr(n) from generate_series(1, 55000) n union all select U&'\\+01F600' || repeat('\\', n) || 'N' "
        "from generate_series(0, 5) n union all values (null), (''), ('\\N'), ('\\\\N'), ('\\n'), (E'\\\\\\n'), "
        "(E'a\\tb'), ('\"'), ('\\.'), (U&'\\FEFFx'), ('null'), ('true'), ('1')"
    )
    few = runner.run(f"select t from ({texts}) x(t) order by t", row_limit=20_000).rows
    for columns in ("t", "t, 1 as n, t as u", "true as b, t"):
        sql = f"select {columns} from ({texts}) x(t) order by t"
        found = stored(runner, postgresql, sql, tmp_path / "result")
        at = columns.split(", ").index("t")
        assert [row[at] for row in found[:20_000]] == [row[0] for row in few]
        assert len(found) == 55_000 + 6 + 13
        assert {len(row) for row in found} == {columns.count(",") + 1}


def test_one_column_of_nothing(runner: Runner, postgresql: PostgresqlEngine, tmp_path: Path) -> None:
    sql = f"select case when n % 3 = 0 then '' when n % 3 = 1 then null else 'x' end from generate_series(1, {ROWS}) n"
    found = stored(runner, postgresql, sql, tmp_path / "result")
    assert found == [[None], ["x"], [""]] * (ROWS // 3)


def test_many_rows_of_no_columns_are_text(runner: Runner, tmp_path: Path) -> None:
    spool = Spool(lambda: tmp_path / "rows", 10_000)
    outcome = runner.session.run(f"select from generate_series(1, {ROWS})", RunOptions(), spool)
    assert (outcome.columns, outcome.filed) == ([], None)
    spool.finish(None)
    assert json.loads(b"[" + spool.partition(5) + b"]") == [[]] * 10_000


def test_rows_that_a_statement_returns_are_typed(runner: Runner, postgresql: PostgresqlEngine, tmp_path: Path) -> None:
    runner.run("create temp table returned (n int, b bool, x bytea, t text)")
    values = r"n, n % 2 = 0, '\x00ff'::bytea, case when n % 3 > 0 then E'a\tb\\' end"
    insert = f"insert into returned select {values} from generate_series(1, {ROWS}) n returning *"
    rows = stored(runner, postgresql, insert, tmp_path / "rows")
    assert rows[:3] == [
        ["1", "false", "AP8=", "a\tb\\"],
        ["2", "true", "AP8=", "a\tb\\"],
        ["3", "false", "AP8=", None],
    ]
    assert len(rows) == ROWS


def test_partitions_are_bounded_in_rows_and_bytes(runner: Runner, postgresql: PostgresqlEngine, tmp_path: Path) -> None:
    sql = f"select n, repeat('x', 1000) from generate_series(1, {ROWS}) n"
    spool = Spool(lambda: tmp_path / "result", 5000)
    outcome = runner.session.run(sql, RunOptions(partition_rows=5000, partition_bytes=1 << 20), spool)
    assert outcome.filed is not None
    assert max(rows for rows, _ in outcome.filed) < 1100
    assert sum(rows for rows, _ in outcome.filed) == ROWS


def test_a_row_limit_ends_a_large_result(runner: Runner, postgresql: PostgresqlEngine, tmp_path: Path) -> None:
    runner.run("create temp sequence counted")
    counted = "(select nextval('counted') from generate_series(1, 100000)) x(n)"
    for source in ("generate_series(1, 100000) n", counted):
        found = stored(runner, postgresql, f"select n from {source}", tmp_path / "result", row_limit=70_001)
        assert len(found) == 70_001


def test_a_failure_in_the_middle_keeps_nothing(runner: Runner, tmp_path: Path) -> None:
    spool = Spool(lambda: tmp_path / "result", 10_000)
    with pytest.raises(Failure) as raised:
        runner.session.run(f"select 1 / (n - {3 * ROWS}) from generate_series(1, {4 * ROWS}) n", RunOptions(), spool)
    assert raised.value.sql_state == "22012"
    assert (tmp_path / "result").exists()
    spool.drop()
    assert not (tmp_path / "result").exists()
    assert runner.run("select 1").rows == [["1"]]


def test_a_file_that_cannot_be_written_ends_the_statement(runner: Runner) -> None:
    spool = Spool(lambda: Path("/dev/full"), 10_000)
    with pytest.raises(OSError, match="No space"):
        runner.session.run(f"select n, md5(n::text) from generate_series(1, {20 * ROWS}) n", RunOptions(), spool)
    assert runner.run("select 1").rows == [["1"]]


def test_text_that_is_not_utf8_has_replacement_characters() -> None:
    from sqlshell.service.engines.postgresql.rows import table_of

    table = table_of([b"1\ta\xffb\n", b"\\N\t\\N\n"], [ColumnInfo("n", "INTEGER"), ColumnInfo("t", "VARCHAR")])
    assert [table["c0"].to_pylist(), table["c1"].to_pylist()] == [[1, None], ["a\ufffdb", None]]
