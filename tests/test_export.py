"""sqlshell export: complete files, interrupted exports that continue, and those that cannot continue."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.conftest import Done, Program, Served, serve, stop
from tests.test_loading import Plain

QUERY = "select i, 'x' || i as s from range(5000) r(i) order by i -- all"
EXPECTED = "i,s\n" + "".join(f"{i},x{i}\n" for i in range(5000))


@pytest.fixture
def between(served: Served) -> Iterator[Plain]:
    opened = Plain(served)
    yield opened
    opened.close()


@pytest.fixture
def with_plane(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Plain, Served]]:
    """A service whose rows come by its data plane, whose address is that of the connection that may break."""
    opened = Plain(served)
    options = ("--data-plane", "always", "--partition-rows", "1000", "--public-url", opened.url)
    running = serve(tmp_path_factory.mktemp("plane"), *options)
    opened.connect_to(running)
    yield opened, running
    opened.close()
    stop(running)


class Exports:
    """Exports of QUERY to o.csv, from a service whose connection may break."""

    def __init__(self, program: Program, between: Plain, served: Served, folder: Path) -> None:
        self._program = program
        self._env = {"SQLSHELL_URL": between.url, "SQLSHELL_TOKEN": served.token}
        self._between = between
        self.file = folder / "o.csv"
        self.parts = folder / "o.csv.parts"

    def run(self, *options: str, query: str = QUERY, file: str = "o.csv", breaks_at: int | None = None) -> Done:
        self._between.drops = b"" if breaks_at is None else b"partitionID=%d" % breaks_at
        return self._program("export", "--query", query, "-o", file, "--retries", "0", *options, env=self._env)


@pytest.fixture
def exports(program: Program, between: Plain, served: Served, tmp_path: Path) -> Exports:
    return Exports(program, between, served, tmp_path)


@pytest.mark.slow("runs the program twice")
def test_an_interrupted_export_continues(exports: Exports) -> None:
    exports.file.write_text("kept")
    done = exports.run(breaks_at=3)
    assert (done.code, done.out) == (3, "")
    assert (
        f"3 of 5 partitions are kept in {exports.parts.name}; continue with --resume (in \\export: resume)" in done.err
    )
    assert exports.file.read_text() == "kept"
    first, *lines = [json.loads(line) for line in (exports.parts / "manifest.jsonl").read_text().splitlines()]
    assert (first["counts"], [line["partition"] for line in lines]) == ([1000] * 5, [0, 1, 2])
    assert exports.parts.stat().st_mode & 0o077 == 0
    with (exports.parts / "manifest.jsonl").open("a") as file:
        file.write('{"partition":3,"byt')
    done = exports.run("--resume")
    assert (done.code, done.out) == (0, "")
    assert "3 of 5 partitions have already been fetched" in done.err
    assert "5,000 rows written to o.csv" in done.err
    assert exports.file.read_text() == EXPECTED
    assert not exports.parts.exists()


@pytest.mark.slow("starts a service, runs the program twice")
@pytest.mark.parametrize("breaks_at", [1, 3])
def test_an_export_by_a_data_plane_continues(
    program: Program, with_plane: tuple[Plain, Served], tmp_path: Path, breaks_at: int
) -> None:
    exports = Exports(program, *with_plane, tmp_path)
    done = exports.run(breaks_at=breaks_at)
    assert (done.code, done.out) == (3, "")
    assert (
        f"{breaks_at} of 5 partitions are kept in {exports.parts.name}; continue with --resume (in \\export: resume)"
        in done.err
    )
    done = exports.run("--resume")
    assert (done.code, done.out) == (0, ""), done.err
    assert f"{breaks_at} of 5 partitions have already been fetched" in done.err
    assert exports.file.read_text() == EXPECTED
    assert not exports.parts.exists()


class Cut(Plain):
    """A connection that is cut after some bytes of a result's file."""

    def __init__(self, served: Served) -> None:
        self.after: int | None = None
        self.asked: list[bytes] = []
        """The ranges that were requested."""
        super().__init__(served)

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        sent = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self.asked += re.findall(rb"[Rr]ange: (bytes=[0-9]+-)", data)
                sent += len(data) if sent or b"content-type: application/vnd.apache.parquet" in data else 0
                if self.after is not None and sent > self.after:
                    break
                target.sendall(data.replace(f":{self.url.rpartition(':')[2]}\r\n".encode(), b":%d\r\n" % self._port))
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.mark.slow("runs the program twice")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_broken_download_of_a_whole_result_continues(
    program: Program, served: Served, tmp_path: Path, form: str
) -> None:
    between = Cut(served)
    rows = 400_000
    query = f"select i, md5(i::varchar) as s from range({rows}) r(i)"
    env = {"SQLSHELL_URL": between.url, "SQLSHELL_TOKEN": served.token}
    file, parts = f"o.{form}", tmp_path / f"o.{form}.parts"

    def run(*options: str) -> Done:
        return program("export", "--query", query, "-o", file, "--retries", "0", *options, env=env)

    try:
        between.after = 6_000_000
        done = run()
        assert (done.code, done.out) == (3, ""), done.err
        assert f"MiB are kept in {parts.name}; continue with --resume" in done.err
        assert not (tmp_path / file).exists()
        had = (parts / "result.parquet").stat().st_size
        assert 5_000_000 < had <= 6_000_000
        assert not between.asked
        between.after = None
        done = run("--resume")
        assert (done.code, done.out) == (0, ""), done.err
        assert f"{had / (1 << 20):,.1f} MiB have already been fetched" in done.err
        assert between.asked == [b"bytes=%d-" % had]
        assert f"{rows:,} rows written to {file}" in done.err
    finally:
        between.close()
    counted = f"select count(*), count(distinct i), bool_and(s = md5(i::varchar)) from '{tmp_path / file}'"
    assert duckdb.execute(counted).fetchall() == [(rows, rows, True)]
    assert not parts.exists()


@pytest.mark.slow("runs the program three times")
def test_a_damaged_beginning_of_a_whole_result_is_not_used(program: Program, served: Served, tmp_path: Path) -> None:
    between = Cut(served)
    query = "select i, md5(i::varchar) as s from range(400000) r(i)"
    env = {"SQLSHELL_URL": between.url, "SQLSHELL_TOKEN": served.token}
    try:
        between.after = 1_000_000
        assert program("export", "--query", query, "-o", "o.csv", "--retries", "0", env=env).code == 3
        between.after = None
        with (tmp_path / "o.csv.parts" / "result.parquet").open("r+b") as file:
            file.seek(1000)
            file.write(b"no")
        done = program("export", "--query", query, "-o", "o.csv", "--resume", env=env)
        assert (done.code, "result.parquet is damaged" in done.err, "start again without --resume" in done.err) == (
            1,
            True,
            True,
        )
        assert program("export", "--query", query, "-o", "o.csv", env=env).code == 0
    finally:
        between.close()
    assert not (tmp_path / "o.csv.parts").exists()


@pytest.mark.slow("runs the program eight times")
def test_what_cannot_continue_says_why(exports: Exports) -> None:
    assert "there is no interrupted export to o.csv" in exports.run("--resume").err
    exports.run(breaks_at=2)
    assert "contains the result of another statement" in exports.run("--resume", query="select 1").err
    manifest = exports.parts / "manifest.jsonl"
    kept = manifest.read_text()
    exports.parts.joinpath("1").write_bytes(b"{}")
    done = exports.run("--resume")
    assert (done.code, "1 is damaged" in done.err, exports.file.exists()) == (1, True, False)
    first = json.loads(kept.splitlines()[0])
    manifest.write_text(kept.replace(first["statement_id"], "00000000-0000-4000-8000-000000000000"))
    done = exports.run("--resume")
    assert done.code == 3
    assert "has expired on the service\nhelp: start again without --resume" in done.err
    manifest.write_text(kept.replace('"target":"http', '"target":"https'))
    assert "contains the result of another service" in exports.run("--resume").err
    exports.parts.joinpath("mine").touch()
    assert "contains mine, which does not belong to an export" in exports.run().err
    exports.parts.joinpath("mine").unlink()
    assert exports.run().code == 0
    assert exports.file.read_text() == EXPECTED
    assert not exports.parts.exists()


@pytest.mark.slow("runs the program six times")
def test_an_export_that_begins_again_ends_the_earlier_one(exports: Exports) -> None:
    exports.run(breaks_at=2)
    # Its statement fails before there is a result.
    assert exports.run(query="select * from no_such_table").code == 1
    assert "there is no interrupted export to o.csv" in exports.run("--resume").err
    exports.run(breaks_at=2)
    assert exports.run(query="select 1").code == 0
    assert "there is no interrupted export to o.csv" in exports.run("--resume").err


@pytest.mark.slow("runs the program four times")
def test_exports_that_need_no_partitions(program: Program, tmp_path: Path) -> None:
    done = program("export", "--query", "select 1 as a, 'x;y' as b;", "-o", "a.jsonl")
    assert (done.code, done.err) == (0, "1 row written to a.jsonl\n")
    assert tmp_path.joinpath("a.jsonl").read_text() == '{"a":1,"b":"x;y"}\n'
    program("t.db", "-c", "create table t as from range(20000) r(i)")
    done = program("export", "t.db", "--table", "t", "-o", "t.csv")
    assert (done.code, done.err) == (0, "20,000 rows written to t.csv\n")
    done = program("export", "t.db", "--table", "t", "-o", "t.csv", "--resume")
    assert (done.code, "the embedded service does not keep results after it exits" in done.err) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.jsonl", "t.csv", "t.db"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "a.csv"), "either --query or --table"),
        (("--query", "select 1", "--table", "t", "-o", "a.csv"), "either --query or --table"),
        (("--query", "select 1; select 2", "-o", "a.csv"), "exactly one statement"),
        (("--query", "\\q", "-o", "a.csv"), "exactly one statement"),
        (("--query", "create table t (i int)", "-o", "a.csv"), "export: CREATE TABLE is not a query"),
        (("--query", "select 1", "-o", "a.foo"), "unknown file extension .foo"),
        (("--query", "select 1", "-o", "/dev/stdout", "--format", "csv"), "writes to a file"),
        (("--query", "select 1", "-o", "none/a.csv"), "create the directory first"),
    ],
)
def test_wrong_exports(program: Program, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    done = program("export", *options)
    assert done.code in {1, 2}
    assert said in done.err
    assert not tmp_path.joinpath("a.csv").exists()


def test_only_statements_with_rows_are_sent(program: Program, tmp_path: Path) -> None:
    program("t.db", "-c", "create table t (i int)")
    done = program("export", "t.db", "--query", "drop table t", "-o", "a.csv")
    assert (done.code, done.err.partition("\n")[0]) == (2, "error: export: DROP TABLE is not a query")
    done = program("export", "t.db", "--query", "insert into t values (7) returning i", "-o", "a.csv")
    assert (done.code, tmp_path.joinpath("a.csv").read_text()) == (0, "i\n7\n")
    done = program("t.db", stdin="drop table t\n\\export b.csv\n")
    assert (done.code, done.err.partition("\n")[0]) == (2, "<stdin>:1: error: \\export: DROP TABLE is not a query")
    assert program("t.db", "--format", "csv", "-c", "select i from t").out == "i\n7\n"


def test_a_table_is_named_as_in_sql(program: Program, tmp_path: Path) -> None:
    program("w.duckdb", "-c", 'create table "no such" as select 1 as a')
    done = program("export", "w.duckdb", "--table", "no such", "-o", "a.csv")
    assert (done.code, "--table 'no such' is not the name of a table" in done.err) == (2, True)
    assert program("export", "w.duckdb", "--table", 'main."no such"', "-o", "a.csv").code == 0
    assert (tmp_path / "a.csv").read_text() == "a\n1\n"
