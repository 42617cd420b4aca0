"""Files that no output may destroy: the database, the file that is loaded, and those that statements read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Program

pytestmark = pytest.mark.slow("runs the program many times")


@pytest.fixture
def database(program: Program, tmp_path: Path) -> Path:
    assert program("w.duckdb", "-c", "create table t as select 1 as a").code == 0
    (tmp_path / "link.duckdb").symlink_to("w.duckdb")
    (tmp_path / "hard.duckdb").hardlink_to(tmp_path / "w.duckdb")
    return tmp_path / "w.duckdb"


@pytest.mark.parametrize("name", ["w.duckdb", "../{}/w.duckdb", "link.duckdb", "hard.duckdb", "w.duckdb.wal"])
def test_no_output_replaces_the_database(program: Program, database: Path, name: str) -> None:
    before, name = database.read_bytes(), name.format(database.parent.name)
    for argv in (
        ("w.duckdb", "-c", "from t", "-o", name, "--format", "csv"),
        ("w.duckdb", "-c", "from t", "--stats", name),
        ("w.duckdb", "-c", f"\\copy t to '{name}' with (format csv)"),
        ("w.duckdb", "-c", "from t", "-c", f"\\w {name}"),
        ("export", "w.duckdb", "--table", "t", "-o", name, "--format", "csv"),
    ):
        done = program(*argv)
        assert (done.code, f"cannot write to {name}: it is the " in done.err) == (1, True), (argv, done)
        assert database.read_bytes() == before
        assert not database.with_name("w.duckdb.wal").exists()


@pytest.mark.parametrize("name", ["m.csv", "link.csv", "hard.csv"])
def test_rejected_rows_do_not_replace_the_file(program: Program, database: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "m.csv"
    file.write_text("a\n1\nx\n")
    (tmp_path / "link.csv").symlink_to("m.csv")
    (tmp_path / "hard.csv").hardlink_to(file)
    done = program("import", "m.csv", "w.duckdb", "--table", "t", "--max-errors", "1", "--rejects", name)
    assert (done.code, f"cannot write rejected rows to {name}: it is the file to load" in done.err) == (2, True), done
    assert file.read_text() == "a\n1\nx\n"
    done = program("import", "m.csv", "w.duckdb", "--table", "t", "--max-errors", "1", "--rejects", "link.duckdb")
    assert (done.code, "it is the database of this session" in done.err) == (1, True), done
    assert program("w.duckdb", "--format", "csv", "-c", "from t").out == "a\n1\n"


def test_a_data_file_may_be_replaced_by_what_was_read_from_it(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("i\n" + "".join(f"{number}\n" for number in range(100_000)))
    assert program("a.csv", "-c", "select i + 1 as i from a", "-o", "a.csv").code == 0
    assert file.read_text() == "i\n" + "".join(f"{number}\n" for number in range(1, 100_001))
    done = program("a.csv", "-c", "select 1", "--stats", "a.csv")
    assert (done.code, "cannot write to a.csv: it is read by this session" in done.err) == (1, True), done


def test_a_name_may_begin_with_a_tilde(program: Program, tmp_path: Path) -> None:
    (tmp_path / "~t.csv").write_text("a\n1\n")
    assert program("~t.csv", "--format", "csv", "-c", 'from "~t"').out == "a\n1\n"
    assert program("import", "~t.csv", "w.duckdb", "--table", "t", "--create").code == 0
    (tmp_path / "~x.sql").write_text("select a from t;")
    assert program("w.duckdb", "--format", "csv", "-f", "~x.sql", "-o", "~o.csv").code == 0
    assert (tmp_path / "~o.csv").read_text() == "a\n1\n"
    done = program("-f", "~none.sql")
    assert (done.code, done.err) == (2, "error: cannot read ~none.sql: no such file or directory\n")
