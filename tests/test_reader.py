"""The reader of a script's output may exit early, and the writer of its input may be missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sqlshell.origin import Trusted
from sqlshell.output.sinks.command import CommandSink
from sqlshell.output.sinks.file import FileSink
from tests.conftest import Done, Program, Served, clean_environment


def in_shell(folder: Path, line: str, stdin: str = "") -> Done:
    """A line of bash, in which $S is the program."""
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; S='{sys.executable} -m sqlshell -q --format csv'; {line}"],
        input=stdin,
        capture_output=True,
        env=clean_environment(folder),
        cwd=folder,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow("a pipeline of processes")
@pytest.mark.parametrize(("options", "given"), (("", "-f -"), ("--on-error continue", "-f outer.sql")))
def test_nothing_runs_behind_a_reader_that_left(tmp_path: Path, options: str, given: str) -> None:
    script = "select range from range(1000000);\ncopy (select 1 as a) to 'ran.csv';\n\\! touch ran\n"
    tmp_path.joinpath("inner.sql").write_text(script)
    tmp_path.joinpath("outer.sql").write_text(f"\\i inner.sql\n{script}")
    done = in_shell(tmp_path, f"$S {options} {given} -c '\\! touch ran' | head -1", script)
    assert (done.code, done.out, done.err) == (141, "range\n", "")
    assert [path.name for path in tmp_path.glob("ran*")] == []


@pytest.mark.slow("a pipeline of processes")
def test_what_is_sent_together_ends_at_the_rows(tmp_path: Path, served: Served) -> None:
    script = "create or replace table gone (a int);\nselect range from range(1000000);\ninsert into gone values (1);\n"
    remote = f"export SQLSHELL_URL={served.url} SQLSHELL_TOKEN={served.token};"
    assert in_shell(tmp_path, f"{remote} $S | head -1", script).code == 141
    assert in_shell(tmp_path, f"{remote} $S -c 'from gone' -c 'drop table gone'").out == "a\n"


@pytest.mark.slow("a pipeline of processes")
def test_reads_that_are_sent_together_end_with_their_reader(tmp_path: Path, served: Served) -> None:
    script = "".join(f"select {number} as a;\n" for number in range(3000)) + "\\! touch ran\n"
    remote = f"export SQLSHELL_URL={served.url} SQLSHELL_TOKEN={served.token};"
    for service in ("", remote):
        done = in_shell(tmp_path, f"{service} $S -v | grep -m 1 -v a", script)
        assert (done.code, done.out) == (141, "0\n")
        assert "had already run" not in done.err
    assert [path.name for path in tmp_path.glob("ran*")] == []


@pytest.mark.slow("a pipeline of processes")
def test_a_stream_whose_reader_left_is_terminated(tmp_path: Path, served: Served) -> None:
    remote = f"export SQLSHELL_URL={served.url} SQLSHELL_TOKEN={served.token};"
    setup = "create stream unread (i int); insert into unread values (1), (2);"
    assert in_shell(tmp_path, f"{remote} $S", setup).code == 0
    # The reader exits after all rows that there are: no write fails.
    done = in_shell(tmp_path, f"{remote} $S -c 'print entity unread from beginning' | head -3")
    assert (done.code, done.out, done.err) == (141, "i\n1\n2\n", "")
    listed = in_shell(tmp_path, f"{remote} $S --format jsonl -c 'list queries' -c 'drop stream unread'").out
    printed = [json.loads(line) for line in listed.splitlines() if "print entity unread" in line]
    assert [query["ActualState"] for query in printed] == ["terminated"]


@pytest.mark.slow("a pipeline of processes")
def test_echo_notices_too(tmp_path: Path) -> None:
    done = in_shell(tmp_path, "(sleep 0.3; yes '\\echo x' | head -30000; echo '\\! touch ran') | $S | true")
    assert (done.code, done.err) == (141, "")
    assert not tmp_path.joinpath("ran").exists()


@pytest.mark.slow("a pipeline of processes")
def test_a_command_that_does_not_read_all_ends_no_script(tmp_path: Path) -> None:
    done = in_shell(tmp_path, "$S", "select range from range(1000000) \\g |head -1\nselect 2 as b;")
    assert (done.code, done.out) == (0, "range\nb\n2\n")


def test_results_of_what_did_not_fail_are_kept(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("out.csv").write_text("before\n")
    going = ("-q", "--on-error", "continue", "-o", "out.csv")
    done = program(*going, stdin="select 1 as a; select nope; select 3 as c;")
    assert done.code == 1
    assert tmp_path.joinpath("out.csv").read_text() == "a\n1\nc\n3\n"
    assert "warning: out.csv contains only the results of the statements that succeeded" in done.err
    program("-q", "-o", "out.csv", stdin="select 2 as a; select nope;")
    assert tmp_path.joinpath("out.csv").read_text() == "a\n1\nc\n3\n"


@pytest.mark.parametrize(
    ("options", "script", "code"),
    [
        ("-o out.csv", "create table t (i int);", 0),
        ("-o out.csv", "\\echo no result", 0),
        ("-o out.csv --on-error continue", "selec; selec;", 1),
        ("", "\\o out.csv\ncreate table t (i int);\n\\o\n", 0),
        ("", "\\tee out.csv\ncreate table t (i int);\n\\tee\n", 0),
    ],
)
def test_a_file_stays_as_it_was_without_a_result(
    program: Program, tmp_path: Path, options: str, script: str, code: int
) -> None:
    tmp_path.joinpath("out.csv").write_text("before\n")
    done = program("-q", *options.split(), stdin=script)
    assert done.code == code
    assert tmp_path.joinpath("out.csv").read_text() == "before\n"
    told = [line for line in done.err.splitlines() if "out.csv" in line]
    assert told == ["warning: out.csv was not written: no statement returned a result"]
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith("csv") or "out" in path.name] == ["out.csv"]


def test_a_result_without_a_byte_is_one(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("out.jsonl").write_text("before\n")
    done = program("-q", "-o", "out.jsonl", "-c", "select 1 where false")
    assert (done.code, done.err, tmp_path.joinpath("out.jsonl").read_text()) == (0, "", "")
    done = program("-q", stdin="select 1 where false \\g other.jsonl\n")
    assert (done.code, done.err, tmp_path.joinpath("other.jsonl").read_text()) == (0, "", "")


def test_rows_of_a_result_that_breaks_off_are_taken_back(tmp_path: Path) -> None:
    sink = FileSink(Trusted(str(tmp_path / "out")))
    sink.write(b"whole\n")
    sink.mark()
    sink.write(b"broken")
    sink.rewind()
    sink.write(b"next\n")
    sink.close()
    assert tmp_path.joinpath("out").read_text() == "whole\nnext\n"


def test_a_script_that_includes_is_named(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("inner.sql").write_text("\nselect nope;")
    tmp_path.joinpath("middle.sql").write_text("select 1;\n\\i inner.sql\n")
    tmp_path.joinpath("outer.sql").write_text("\n\n\\i middle.sql\n\\i missing.sql\n")
    done = program("-q", "--on-error", "continue", "-f", "outer.sql")
    told = [line for line in done.err.splitlines() if line.startswith(("inner", "middle", "outer"))]
    assert [line.partition(" ")[0] for line in told] == [
        "inner.sql:2:8:",
        "middle.sql:2:",
        "outer.sql:3:",
        "outer.sql:4:",
    ]
    assert "outer.sql:4: error: cannot read missing.sql: no such file or directory" in told[-1]


@pytest.mark.parametrize(
    "argv", (("--timezone", "Europe/Berlim"), ("--timezone", "nowhere"), ("--timezone", "../../etc/passwd"))
)
def test_time_zones_are_known_before_anything_is_sent(program: Program, argv: tuple[str, ...]) -> None:
    done = program("http://127.0.0.1:1", *argv, "-c", "select 1")
    assert done.code == 2
    assert "error: unknown time zone" in done.err


def test_a_time_zone_of_the_environment(program: Program) -> None:
    done = program("-q", "-c", "select 1", env={"SQLSHELL_TIMEZONE": "Europe/Berlim"})
    assert (done.code, done.out) == (2, "")
    assert 'did you mean "Europe/Berlin"?' in done.err


@pytest.mark.slow("a pipeline of processes")
@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    (
        ("$S -c 'select 1 as a' >&-", 1, "", "error: cannot write to stdout: it is closed\n"),
        ("$S -c 'select 1 as a' <&-", 0, "a\n1\n", ""),
        ("$S -c 'select 1 as a' 2>&-", 0, "a\n1\n", ""),
        ("$S -c 'select nope' <&- >&- 2>&-", 1, "", ""),
        ("$S <&-", 2, "", "error: cannot read stdin: it is closed\n"),
        ("$S -f - <&-", 2, "", "error: cannot read stdin: it is closed\n"),
        (
            "$S kept.duckdb -c 'create table t as select 1 a' -c '\\echo x' <&- >&- 2>&-; $S kept.duckdb -c 'from t'",
            0,
            "a\n1\n",
            "",
        ),
        ("$S --version >&-", 1, "", "error: cannot write to stdout: it is closed\n"),
        ("$S --help >&-", 1, "", "error: cannot write to stdout: it is closed\n"),
        ("$S -c 'select 1 as a' >/dev/full", 1, "", "error: cannot write to stdout: no space left on device\n"),
        ("$S -f . ", 2, "", "error: cannot read .: is a directory\n"),
    ),
)
def test_descriptors_that_are_closed(tmp_path: Path, line: str, code: int, out: str, err: str) -> None:
    assert in_shell(tmp_path, line) == Done(code, out, err)


def test_stdin_that_is_a_directory_ends_python_itself(tmp_path: Path) -> None:
    done = in_shell(tmp_path, "$S < .")
    assert (done.code, done.out) == (1, "")
    assert "<stdin> is a directory" in done.err


@pytest.mark.slow("runs the program")
def test_the_time_is_the_statements(program: Program) -> None:
    done = program("-q", stdin="select 1 \\g |cat > /dev/null; sleep 3\n\\echo :ELAPSED\n")
    assert done.code == 0
    assert float(done.out) < 3


def test_what_a_command_reads_is_counted_apart() -> None:
    sink = CommandSink(Trusted("cat > /dev/null; sleep 0.1"))
    sink.write(b"rows")
    sink.close()
    assert sink.waited >= 0.1
