"""sqlshell export: complete files, also after one that broke off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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


def export(
    program: Program, between: Plain, served: Served, folder: Path, *, breaks_at: int | None
) -> tuple[Done, str, list[str]]:
    """An export to a file that exists, what the file then has, and the names in its folder."""
    (folder / "o.csv").write_text("kept")
    between.drops = b"" if breaks_at is None else b"partitionID=%d" % breaks_at
    env = {"SQLSHELL_URL": between.url, "SQLSHELL_TOKEN": served.token}
    done = program("export", "--query", QUERY, "-o", "o.csv", "--retries", "0", env=env)
    return done, (folder / "o.csv").read_text(), sorted(path.name for path in folder.iterdir() if path.is_file())


@pytest.mark.slow("runs the program twice")
def test_an_export_that_breaks_off_keeps_the_earlier_file(
    program: Program, between: Plain, served: Served, tmp_path: Path
) -> None:
    done, content, names = export(program, between, served, tmp_path, breaks_at=3)
    assert (done.code, done.out, content, names) == (3, "", "kept", ["o.csv"])
    done, content, names = export(program, between, served, tmp_path, breaks_at=None)
    assert (done.code, done.out, content, names) == (0, "", EXPECTED, ["o.csv"])
    assert "5,000 rows written to o.csv" in done.err


@pytest.mark.slow("starts a service, runs the program twice")
def test_an_export_by_a_data_plane(program: Program, with_plane: tuple[Plain, Served], tmp_path: Path) -> None:
    done, content, _ = export(program, *with_plane, tmp_path, breaks_at=1)
    assert (done.code, content) == (3, "kept")
    done, content, _ = export(program, *with_plane, tmp_path, breaks_at=None)
    assert (done.code, content) == (0, EXPECTED)


@pytest.mark.slow("runs the program three times")
def test_exports_of_the_embedded_service(program: Program, tmp_path: Path) -> None:
    done = program("export", "--query", "select 1 as a, 'x;y' as b;", "-o", "a.jsonl")
    assert (done.code, done.err) == (0, "1 row written to a.jsonl\n")
    assert tmp_path.joinpath("a.jsonl").read_text() == '{"a":1,"b":"x;y"}\n'
    program("t.db", "-c", "create table t as from range(20000) r(i)")
    done = program("export", "t.db", "--table", "t", "-o", "t.csv")
    assert (done.code, done.err) == (0, "20,000 rows written to t.csv\n")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.jsonl", "t.csv", "t.db"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "a.csv"), "either --query or --table"),
        (("--query", "select 1", "--table", "t", "-o", "a.csv"), "either --query or --table"),
        (("--query", "select 1; select 2", "-o", "a.csv"), "exactly one statement"),
        (("--query", "\\q", "-o", "a.csv"), "exactly one statement"),
        (("--query", "create table t (i int)", "-o", "a.csv"), "export: CREATE TABLE returns no rows"),
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
    assert (done.code, done.err.partition("\n")[0]) == (2, "error: export: DROP TABLE returns no rows")
    done = program("export", "t.db", "--query", "insert into t values (7) returning i", "-o", "a.csv")
    assert (done.code, tmp_path.joinpath("a.csv").read_text()) == (0, "i\n7\n")
    done = program("t.db", stdin="drop table t\n\\export b.csv\n")
    assert (done.code, done.err.partition("\n")[0]) == (2, "<stdin>:1: error: \\export: DROP TABLE returns no rows")
    assert program("t.db", "--format", "csv", "-c", "select i from t").out == "i\n7\n"


def test_a_table_is_named_as_in_sql(program: Program, tmp_path: Path) -> None:
    program("w.duckdb", "-c", 'create table "no such" as select 1 as a')
    done = program("export", "w.duckdb", "--table", "no such", "-o", "a.csv")
    assert (done.code, "--table 'no such' is not the name of a table" in done.err) == (2, True)
    assert program("export", "w.duckdb", "--table", 'main."no such"', "-o", "a.csv").code == 0
    assert (tmp_path / "a.csv").read_text() == "a\n1\n"
