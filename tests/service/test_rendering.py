"""A value is the same string whichever statement returns it, and a statement that fails has changed nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb import rows as rows_module
from sqlshell.service.engines.duckdb.connection import DuckdbConnection
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.engine import Outcome, RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard
from sqlshell.service.results.time_zones import in_zone
from tests.cases import texts
from tests.service.values import every_value

ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata")
ShownColumn = tuple[list[ColumnInfo], list[list[list[str | None]]]]


class Kept(Discard):
    """A sink with a place for the engine's file."""

    def __init__(self, path: Path) -> None:
        self.rows: list[str] = []
        self.path = path

    def keep(self, rows: Sequence[str]) -> None:
        self.rows += rows

    def file(self) -> Path:
        return self.path


class Full(Kept):
    """A sink on a disk that is full."""

    def keep(self, rows: Sequence[str]) -> None:
        raise OSError(28, "No space left on device")


class Session:
    """An engine of its own and one connection."""

    def __init__(self, folder: Path) -> None:
        self.engine = DuckdbEngine()
        self.connection: DuckdbConnection = self.engine.connect()
        self.path = folder / "result"

    def run(self, sql: str, options: RunOptions | None = None) -> tuple[Outcome, bytes]:
        """What a statement came to, and its rows in one body."""
        sink = Kept(self.path)
        outcome = self.connection.run(sql, options or RunOptions(), sink)
        if outcome.filed is None:
            return outcome, ",".join(sink.rows).encode()
        parts = self.engine.read(self.path, 0, [rows for rows, _ in outcome.filed])
        self.path.unlink()
        return outcome, b",".join(parts)

    def rows(self, sql: str, options: RunOptions | None = None) -> list[list[str | None]]:
        return list(json.loads(b"[" + self.run(sql, options)[1] + b"]"))

    def shown(self, sql: str, options: RunOptions | None = None) -> ShownColumn:
        """The columns, and the rows in each zone."""
        outcome, body = self.run(sql, options)
        return outcome.columns or [], [json.loads(b"[" + in_zone(body, outcome.zoned, zone) + b"]") for zone in ZONES]

    def names(self, sql: str) -> list[str | None]:
        return [column.name for column in self.run(sql)[0].columns or []]

    def close(self) -> None:
        self.connection.close()
        self.engine.close()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, ShownColumn]]:
    """A session with all values as columns of the one row of `t`, and what a SELECT shows of it."""
    made = Session(tmp_path_factory.mktemp("values"))
    values = every_value()
    made.run("CREATE TABLE t AS SELECT " + ", ".join(f"{value} AS c{number}" for number, value in enumerate(values)))
    made.run("CREATE TABLE u AS FROM t LIMIT 0")
    made.run("PREPARE p AS SELECT * FROM t")
    made.run("CREATE MACRO m() AS TABLE SELECT * FROM t")
    yield made, made.shown("SELECT * FROM t")
    made.close()


@pytest.mark.slow("values of every type")
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO u FROM t RETURNING *",
        "UPDATE t SET c0 = c0 RETURNING *",
        "INSERT INTO u FROM t; DELETE FROM u RETURNING *",
        "WITH x AS (INSERT INTO u FROM t RETURNING *) SELECT * FROM x",
        "MERGE INTO t USING (SELECT 1) ON true WHEN MATCHED THEN UPDATE SET c0 = c0 RETURNING t.*",
        "EXECUTE p",
        "CALL m()",
    ],
)
def test_every_statement_shows_a_value_alike(table: tuple[Session, ShownColumn], sql: str) -> None:
    session, (columns, rows) = table
    *before, last = sql.split("; ")
    for text in before:
        session.run(text)
    found, shown = session.shown(last)
    session.run("DELETE FROM u")
    assert [column.type for column in found] == [column.type for column in columns]
    assert shown == rows


@pytest.mark.slow("values of every type")
def test_a_pivot_shows_a_value_alike(table: tuple[Session, ShownColumn]) -> None:
    session, (_, rows) = table
    # DuckDB's aggregates make 0.0 of a nested -0.0, so that such values are left out.
    chosen = [number for number, value in enumerate(every_value()) if "-0.0" not in value][::3]
    firsts = ", ".join(f"first(c{number}) AS c{number}" for number in chosen)
    source = ", ".join(f"c{number}" for number in chosen)
    _, shown = session.shown(f"PIVOT (SELECT 'k' AS k, {source} FROM t) ON k USING {firsts}")
    assert shown == [[[one[0][number] for number in chosen]] for one in rows]


@pytest.mark.slow("large results")
@pytest.mark.parametrize("sql", ["SELECT * FROM t", "EXECUTE p"])
def test_a_large_result_shows_a_value_alike(
    table: tuple[Session, ShownColumn], monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    session, (_, rows) = table
    monkeypatch.setattr(rows_module, "is_large", lambda rows, kinds: rows > 0)
    outcome, _ = session.run(sql)
    assert [rows for rows, _ in outcome.filed or ()] == [1]
    assert session.shown(sql)[1] == rows


@pytest.mark.slow("values of every type")
def test_a_limited_result_shows_a_value_alike(table: tuple[Session, ShownColumn]) -> None:
    session, shown = table
    assert session.shown("SELECT * FROM t", RunOptions(row_limit=1)) == shown


def test_results_of_many_rows_are_whole_and_in_order(session: Session) -> None:
    session.run("CREATE TABLE t (i INTEGER, z TIMESTAMPTZ)")
    outcome, body = session.run(
        "INSERT INTO t SELECT range, make_timestamptz(range * 1000000) FROM range(60000) RETURNING *"
    )
    rows = json.loads(b"[" + body + b"]")
    assert sum(count for count, _ in outcome.filed or ()) == 60_000
    assert [row[0] for row in rows] == [str(number) for number in range(60_000)]
    assert rows[59_999] == ["59999", "1970-01-01 16:39:59Z"]


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("sql", ["UPDATE t SET i = 2\nRETURNING nosuch", "INSERT INTO t\nSELECT nosuch RETURNING i"])
def test_an_unknown_column_is_shown_where_it_is(one_row: Session, sql: str, opened: bool) -> None:
    if opened:
        one_row.run("BEGIN")
    with pytest.raises(Failure, match=r"nosuch(?s:.*)\n\nLINE 2: .*nosuch.*\n +\^{6}$"):
        one_row.run(sql)
    if opened:
        one_row.run("ROLLBACK")
    assert one_row.rows("FROM t") == [["1"]]


WIDE = "i, repeat(chr((97 + i % 26)::INT), 5000) AS s"
RETURNING = (
    f"INSERT INTO t SELECT range FROM range(30000) RETURNING {WIDE}",
    f"UPDATE t SET i = i RETURNING {WIDE}",
    f"DELETE FROM t RETURNING {WIDE}",
    f"WITH x AS (UPDATE t SET i = i RETURNING i) SELECT {WIDE} FROM x",
)


@pytest.mark.slow("large results")
@pytest.mark.parametrize("sql", RETURNING)
def test_returned_rows_count_against_the_memory_limit_and_are_moved_to_disk(
    session: Session, tmp_path: Path, sql: str
) -> None:
    session.run("CREATE TABLE t AS SELECT range::INT AS i FROM range(30000)")
    session.run(f"SET temp_directory = '{tmp_path / 'spilled'}'")
    session.run("SET threads = 2")
    session.run("SET memory_limit = '100MB'")
    session.run("SET max_temp_directory_size = '0 bytes'")
    with pytest.raises(Failure, match=r"(?i)out of memory|temp"):
        session.run(sql)
    assert session.rows("SELECT count(*), sum(i) FROM t") == [["30000", "449985000"]]
    session.run("SET max_temp_directory_size = '1 GB'")
    assert len(session.rows(sql)) == 30_000
    assert session.rows("SELECT count(*) FROM duckdb_tables()") == [["1"]]


def test_an_error_in_what_is_returned_is_at_its_place_and_changes_nothing(session: Session) -> None:
    session.run("CREATE TABLE t AS SELECT 'a' AS s")
    with pytest.raises(Failure, match=r"(?s)LINE 2: RETURNING s::INT"):
        session.run("UPDATE t SET s = 'b'\nRETURNING s::INT")
    assert session.rows("FROM t") == [["a"]]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("INSERT INTO t VALUES (1) RETURNING i, i, 5 AS I", ["i", "i", "I"]),
        ("INSERT INTO t VALUES (1) RETURNING i, 2 AS i_1, i", ["i", "i_1", "i"]),
        ("WITH x AS (INSERT INTO t VALUES (1) RETURNING i) SELECT i, i AS i FROM x", ["i", "i"]),
        ("INSERT INTO t VALUES (1) RETURNING i AS a_1", ["a_1"]),
    ],
)
def test_names_that_occur_twice_stay_as_they_are(session: Session, sql: str, names: list[str]) -> None:
    session.run("CREATE TABLE t (i INTEGER)")
    assert session.names(sql) == names
    assert session.rows("SELECT count(*) FROM t") == [["1"]]


WRITES = [
    "INSERT INTO t VALUES (2) RETURNING i",
    "UPDATE t SET i = 3 RETURNING i",
    "DELETE FROM t RETURNING i",
    "WITH x AS (INSERT INTO t VALUES (2) RETURNING i) SELECT i FROM x",
    "MERGE INTO t USING (SELECT 1 AS n) ON t.i = n WHEN MATCHED THEN UPDATE SET i = 4 RETURNING t.i",
    "EXECUTE p",
]


@pytest.fixture
def one_row(session: Session) -> Session:
    session.run("CREATE TABLE t (i INTEGER)")
    session.run("INSERT INTO t VALUES (1)")
    session.run("PREPARE p AS INSERT INTO t VALUES (9) RETURNING i")
    return session


@pytest.mark.parametrize("sql", WRITES)
def test_rows_that_cannot_be_kept_take_the_statement_back(one_row: Session, sql: str) -> None:
    with pytest.raises(OSError):
        one_row.connection.run(sql, RunOptions(), Full(one_row.path))
    assert one_row.rows("SELECT i FROM t") == [["1"]]


def test_a_failure_to_render_fails_the_open_transaction(one_row: Session) -> None:
    one_row.run("BEGIN")
    one_row.run("INSERT INTO t VALUES (5)")
    with pytest.raises(OSError):
        one_row.connection.run(WRITES[0], RunOptions(), Full(one_row.path))
    with pytest.raises(Failure) as caught:
        one_row.run("SELECT 1")
    assert caught.value.sql_state == "25P02"
    one_row.run("ROLLBACK")
    assert one_row.rows("SELECT i FROM t") == [["1"]]


def test_statements_that_return_rows_run_once_and_in_the_open_transaction(one_row: Session) -> None:
    one_row.run("CREATE SEQUENCE s")
    assert one_row.rows("INSERT INTO t SELECT nextval('s') + 100 RETURNING i") == [["101"]]
    assert one_row.rows("WITH x AS (INSERT INTO t SELECT nextval('s') + 100 RETURNING i) SELECT i FROM x") == [["102"]]
    one_row.run("BEGIN")
    assert one_row.rows("EXECUTE p") == [["9"]]
    one_row.run("ROLLBACK")
    assert one_row.rows("SELECT i FROM t ORDER BY i") == [["1"], ["101"], ["102"]]
    assert one_row.rows("SELECT nextval('s')") == [["3"]]


def test_a_call_that_wants_no_transaction_has_none(session: Session) -> None:
    assert session.run("FORCE CHECKPOINT")[0].message == "FORCE"
    assert session.run("CHECKPOINT")[0].message == "CHECKPOINT"


def test_a_commit_that_fails_has_ended_its_transaction(session: Session) -> None:
    session.run("CREATE TABLE k (i INTEGER PRIMARY KEY)")
    other = session.engine.connect()
    other.run("BEGIN", RunOptions(), Kept(session.path))
    other.run("INSERT INTO k VALUES (1)", RunOptions(), Kept(session.path))
    session.run("BEGIN")
    session.run("INSERT INTO k VALUES (1)")
    other.run("COMMIT", RunOptions(), Kept(session.path))
    other.close()
    with pytest.raises(Failure, match="Failed to commit"):
        session.run("COMMIT")
    assert not session.connection.transaction
    assert session.rows("DELETE FROM k RETURNING i") == [["1"]]
    assert session.rows("SELECT i FROM k") == []


def test_statements_that_the_package_has_no_name_for_run(session: Session) -> None:
    outcome, body = session.run("SHOW EXTERNAL RESOURCES")
    assert [column.name for column in outcome.columns or []][:2] == ["name", "type"]
    assert body == b""


INSTANTS = [
    ("2023-07-30 23:37:45.12Z", "Europe/Berlin", "2023-07-31 01:37:45.12+02:00"),
    ("2023-12-30 03:37:45Z", "Europe/Berlin", "2023-12-30 04:37:45+01:00"),
    ("2023-12-30 03:37:45.123456789Z", "Asia/Kolkata", "2023-12-30 09:07:45.123456789+05:30"),
    ("9999-12-31 23:59:59Z", "Asia/Kolkata", "10000-01-01 05:29:59+05:30"),
    ("12345-07-01 23:59:59.5Z", "Europe/Berlin", "12345-07-02 01:59:59.5+02:00"),
    ("294247-01-10 04:00:54.775806Z", "Asia/Tokyo", "294247-01-10 13:00:54.775806+09:00"),
    ("0001-01-01 00:00:00Z", "America/New_York", "0001-12-31 (BC) 19:03:58-04:56:02"),
    ("0044-03-15 (BC) 10:00:00.5Z", "Europe/Berlin", "0044-03-15 (BC) 10:53:28.5+00:53:28"),
    ("0001-12-31 (BC) 23:30:00Z", "Europe/Berlin", "0001-01-01 00:23:28+00:53:28"),
    ("infinity", "Europe/Berlin", "infinity"),
]


@pytest.mark.parametrize(("kept", "zone", "text"), INSTANTS)
def test_an_instant_in_a_zone(kept: str, zone: str, text: str) -> None:
    assert json.loads(in_zone(json.dumps([kept]).encode(), [(0, True)], zone)) == [text]


@pytest.mark.parametrize(
    ("value", "text"),
    texts("rendering", "zones"),
)
def test_instants_follow_the_zone_wherever_they_are(session: Session, value: str, text: str) -> None:
    outcome, body = session.run(f"SELECT {value} AS v")
    assert json.loads(in_zone(body, outcome.zoned, "Europe/Berlin")) == [text]
