"""Data files and data on stdin as TARGET."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlshell.errors import UsageError
from sqlshell.launch.targets import views_of
from tests.conftest import Program, clean_environment
from tests.terminal.terminal import Terminal


def test_files_and_directories_become_views(tmp_path: Path) -> None:
    tmp_path.joinpath("d").mkdir()
    for name in ("a.csv", "b.parquet.zst", "d/c.jsonl.gz", "d/.hidden.csv", "d/other.txt"):
        tmp_path.joinpath(name).touch()
    texts = [str(tmp_path / name) for name in ("a.csv", "d", "b.parquet.zst")]
    assert {name: path.name for name, path in views_of(texts).items()} == {
        "a": "a.csv",
        "c": "c.jsonl.gz",
        "b": "b.parquet.zst",
    }


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a.csv", "d"), "would both become the view A"),
        (("a.csv", "a.csv"), "would both become the view a"),
        (("a.csv", "x.db"), "x.db' is not a data file"),
        (("a.csv", "none.csv"), "no such file"),
        (("a.csv", "empty"), "contains no data file"),
    ],
)
def test_files_that_cannot_be_views(tmp_path: Path, names: tuple[str, ...], said: str) -> None:
    for folder in ("d", "empty"):
        tmp_path.joinpath(folder).mkdir()
    for name in ("a.csv", "d/A.json", "x.db"):
        tmp_path.joinpath(name).touch()
    with pytest.raises(UsageError) as caught:
        views_of([str(tmp_path / name) for name in names])
    assert said in caught.value.message


def parquet(folder: Path) -> bytes:
    path = folder / "made.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM (VALUES (1), (2)) v(a)) TO '{path}'")
    return path.read_bytes()


@pytest.mark.slow("runs the program four times")
def test_data_on_stdin_are_a_view(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("b.csv").write_text("a,z\n2,joined\n")
    query = (
        "-q",
        "--format",
        "csv",
        "-c",
        "select z from stdin join b using (a)",
        "-c",
        "select count(*) as n from stdin",
    )
    inputs: tuple[tuple[bytes, tuple[str, ...]], ...] = (
        (b"a,x\n1,p\n2,q\n", ()),
        (gzip.compress(b'[{"a":1},{"a":2}]', mtime=0), ()),
        (parquet(tmp_path), ()),
        (b"a\tx\n1\tp,p\n2\tq,q\n", ("--input-format", "tsv")),
    )
    for data, options in inputs:
        done = program("-", "b.csv", *options, *query, stdin=data)
        assert (done.code, done.out, done.err) == (0, "z\njoined\nn\n2\n", "")


@pytest.mark.parametrize(
    ("argv", "data", "said"),
    [
        (("-", "-f", "-"), "a\n1\n", "stdin contains data, so it cannot also be a script"),
        (("-", "-c", "from stdin"), "", "stdin has no data"),
        (("-", "stdin.csv", "-c", "from stdin"), "a\n1\n", "would both become the view stdin"),
        (("-", "-", "-c", "from stdin"), "a\n1\n", "only once"),
        (("--input-format", "csv", "-c", "select 1"), "", "--input-format requires the TARGET -"),
        (("stdin.csv", "https://host/v2", "-c", "select 1"), "", "'https://host/v2' is not a data file"),
        (("jobs", "https://host/v2"), "", "help: write a backslash command as -c '\\jobs'"),
        (("jobs",), "", "help: write a backslash command as -c '\\jobs'"),
        (("x",), "", "error: the directory x contains no data file\nhelp: data files end in"),
        (("-", "--input-format", "json", "-c", "from stdin"), "a,b\n", "error: stdin, record 1, byte 1"),
    ],
)
def test_targets_that_cannot_be(program: Program, tmp_path: Path, argv: tuple[str, ...], data: str, said: str) -> None:
    tmp_path.joinpath("stdin.csv").write_text("a\n1\n")
    tmp_path.joinpath("x").mkdir()
    done = program(*argv, stdin=data)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.slow("a terminal")
def test_statements_come_from_the_terminal(tmp_path: Path) -> None:
    command = f"printf 'a\\n6\\n7\\n' | {sys.executable} -m sqlshell -q --no-rc -"
    terminal = Terminal(tmp_path, command=("sh", "-c", command))
    try:
        terminal.prompt()
        terminal.enter("select product(a)::int as n from stdin;")
        terminal.wait("42")
        terminal.prompt()
        terminal.type("\x04")
        assert terminal.end() == 0
    finally:
        terminal.close()


def test_without_a_terminal_statements_are_options(tmp_path: Path) -> None:
    argv = (sys.executable, "-m", "sqlshell", "-")
    done = subprocess.run(
        argv,
        input="a\n1\n",
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "stdin is data, and there is no terminal to read statements from" in done.stderr


@pytest.mark.slow("runs the program four times")
@pytest.mark.parametrize("name", ["b.json", "b.json.gz"])
def test_an_array_behind_a_byte_order_mark_is_read_as_its_rows(program: Program, tmp_path: Path, name: str) -> None:
    data = b'\xef\xbb\xbf\n [{"a":1},{"a":2.5}]'
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    shown = ("--format", "csv", "-q")
    done = program(*shown, name, "-c", "from b")
    assert (done.code, done.out) == (0, "a\n1.0\n2.5\n"), done
    done = program(*shown, "-", "-c", "from stdin", stdin=data)
    assert (done.code, done.out) == (0, "a\n1.0\n2.5\n"), done
    done = program("import", name, "w.duckdb", "--table", "t", "--create")
    assert (done.code, "2 rows" in done.err) == (0, True), done
    assert program(*shown, "w.duckdb", "-c", "from t").out == "a\n1.0\n2.5\n"


@pytest.mark.slow("runs the program six times")
def test_a_number_sign_is_data_behind_the_header_of_csv(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("# made today\na,b\n1,x # y\n#2,z\n3,w\n")
    found = program(str(path), "-c", "from a", "--format", "csv")
    assert (found.code, found.out) == (0, "a,b\n1,x # y\n#2,z\n3,w\n"), found.err


def test_the_text_of_null_does_not_make_a_column_one_of_texts(program: Program, tmp_path: Path) -> None:
    (tmp_path / "n.tsv").write_text("a\td\tt\n1\t2026-01-02\tx\n\\N\t\\N\t\\N\n")
    (tmp_path / "n.csv").write_text("a,d,t\n1,2026-01-02,x\nNA,NA,NA\n")
    for name, options in (("n.tsv", ()), ("n.csv", ("--with", "NULL 'NA'"))):
        done = program("import", name, "--table", "t", "--create", "--dry-run", *options)
        assert done.code == 0 and "a BIGINT -> a BIGINT" in done.err and "d DATE -> d DATE" in done.err, done
        assert program("import", name, f"{name}.duckdb", "--table", "t", "--create", *options).code == 0
        done = program("-q", "--format", "csv", f"{name}.duckdb", "-c", "from t")
        assert done.out == "a,d,t\n1,2026-01-02,x\n,,\n"


@pytest.mark.slow("runs the program")
def test_what_duckdb_does_not_keep_of_parquet_is_a_warning(program: Program, tmp_path: Path) -> None:
    decimals = pa.array([Decimal(5), None], pa.decimal256(40, 0))
    instants = pa.array([1, 2], pa.timestamp("ns"))
    table = pa.table({"d": decimals, "n": [1, 2], "t": instants})
    pq.write_table(table, tmp_path / "p.parquet", use_deprecated_int96_timestamps=True)
    done = program("import", "p.parquet", "w.duckdb", "--table", "t", "--create")
    assert done.code == 0, done
    assert 'warning: p.parquet, column "d": decimals of 40 digits are read as DOUBLE' in done.err
    assert 'warning: p.parquet, column "t": timestamps of the type INT96 are read as microseconds' in done.err
    assert "column n" not in done.err


@pytest.mark.slow("runs the program eight times")
def test_what_is_no_data_file_and_no_database_says_what_to_do(program: Program, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f.csv")
    (tmp_path / "a.csv").write_text("a\n1\n")
    for target in (("f.csv",), ("a.csv", "f.csv")):
        done = program(*target, "-c", "from f")
        assert (done.code, "error: f.csv is not a regular file" in done.err, "sqlshell - " in done.err) == (
            2,
            True,
            True,
        )
    done = program("/dev/stdin", "-c", "from stdin", stdin="a\n1\n")
    assert (done.code, "/dev/stdin is not a regular file" in done.err) == (2, True), done
    (tmp_path / "a.csv.bak").write_text("a\n1\n" * 20)
    done = program("a.csv.bak", "-c", "select 1")
    assert (done.code, "sqlshell - < FILE" in done.err) == (2, True), done
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04\n1,2\n" * 20)
    done = program("a.xlsx", "-c", "select 1")
    assert (done.code, "save it as csv" in done.err) == (2, True), done
    done = program("import", "a.xlsx", "w.duckdb", "--table", "t", "--create")
    assert (done.code, "a.xlsx is a spreadsheet" in done.err) == (2, True), done
    (tmp_path / "u.csv").write_bytes("a,b\n1,2\n".encode("utf-16"))
    done = program("u.csv", "-c", "from u")
    assert (done.code, "iconv -f UTF-16" in done.err, "latin1" in done.err) == (2, True, False), done
    (tmp_path / "m.csv").write_bytes(b"a,b\r\n1,2\n3,4\r\n" * 5)
    assert "LINE 1" not in program("m.csv", "-c", "from m").err


@pytest.mark.slow("runs the program three times")
def test_an_empty_file_name_and_a_table_of_two_words_are_refused(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    done = program("import", "", "w.duckdb", "--table", "t")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: FILE: the file name is empty")
    done = program("import", "a.csv", "w.duckdb", "--table", "a b", "--create")
    assert (done.code, "error: --table 'a b' is not the name of a table" in done.err) == (2, True), done
    assert not (tmp_path / "w.duckdb").exists()
    assert program("import", "a.csv", "w.duckdb", "--table", '"a b"', "--create").code == 0


def test_a_damaged_parquet_file_is_not_called_a_wrong_value(program: Program, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": list(range(5000))}), tmp_path / "d.parquet", compression="brotli")
    data = bytearray((tmp_path / "d.parquet").read_bytes())
    data[200:2200] = bytes(byte ^ 0x5A for byte in data[200:2200])
    (tmp_path / "d.parquet").write_bytes(data)
    done = program("import", "d.parquet", "w.duckdb", "--table", "t", "--create")
    assert (done.code, "cannot read d.parquet: " in done.err, "cannot be converted" in done.err) == (2, True, False), (
        done
    )


@pytest.mark.slow("a file system of its own")
def test_a_full_disk_of_temporary_files_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    mounted = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=1m tmpfs small && exec "$@"', "sh")
    (tmp_path / "small").mkdir()
    try:
        subprocess.run([*mounted, "true"], cwd=tmp_path, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a file system of limited size cannot be mounted here")
    (tmp_path / "y.csv").write_text("a\n" + "".join(f"{os.urandom(20).hex()}\n" for _ in range(100_000)))
    done = subprocess.run(
        [*mounted, sys.executable, "-m", "sqlshell", "import", "y.csv", "w.duckdb", "--table", "t", "--create"],
        cwd=tmp_path,
        env=clean_environment(tmp_path) | {"TMPDIR": str(tmp_path / "small")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done
    assert done.stderr.startswith("error: cannot load y.csv: the disk of the temporary files is full\n"), done
    assert "TMPDIR" in done.stderr


def test_the_separator_line_of_excel_is_no_header(program: Program, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("sep=;\na;b\n1;2\n")
    done = program("import", "s.csv", "w.duckdb", "--table", "t", "--create")
    assert (done.code, "s.csv: the first line, sep=;, is Excel's" in done.err) == (2, True), done
