"""What commands do and say where nothing is wrong, and the bounds of those that read whole results."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from pathlib import Path

import pytest

from sqlshell.context import SessionContext
from sqlshell.errors import Exit, StatementError, Where
from sqlshell.origin import Trusted
from sqlshell.shell.commands import query_buffer, results
from sqlshell.shell.commands.sample_data import EXISTING
from sqlshell.shell.interactive import terminal as tty
from tests.shell.core.scripted import Answer, Core, ScriptedClient


def run(script: str, client: ScriptedClient | None = None) -> Core:
    async def work() -> Core:
        core = Core(client)
        core.session.options.on_error = "continue"
        await core.shell.run_script([Trusted(script)], "")
        await core.shell.aclose()
        return core

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("script", "err"),
    [
        ("\\attach -", "0 files detached\n"),
        ("\\attach", "no file is attached\n"),
        ("\\p", "the query buffer is empty\n"),
        ("\\timing on\n\\timing", "Timing is on.\nTiming is off.\n"),
        ("\\timing\n\\timing\n\\timing", "Timing is on.\nTiming is off.\nTiming is on.\n"),
        ("\\x\n\\x", "Expanded display is on.\nExpanded display is off.\n"),
        ("\\pset expanded\n\\pset expanded", "Expanded display is on.\nExpanded display is off.\n"),
        ("\\pset tuples_only\n\\pset t", "Tuples only is on.\nTuples only is off.\n"),
        ("\\pset expanded yes\n\\pset expanded No", "Expanded display is on.\nExpanded display is off.\n"),
        ("\\pset footer\n\\pset footer", "Default footer is off.\nDefault footer is on.\n"),
        (
            "\\pset border 2",
            "warning: psql's border has no effect: \\pset table_style selects the frame of tables\n",
        ),
        ("\\pset null", "Null display is the default of the format.\n"),
        ("\\pset null NULL\n\\pset null", 'Null display is "NULL".\nNull display is "NULL".\n'),
        ("\\theme", "* default\n"),
        ("\\timing on;", "Timing is on.\n"),
        ("\\timing ;", "Timing is on.\n"),
        ("\\pset notify 5m\n\\pset notify", "Notify is 300s.\nNotify is 300s.\n"),
        ("\\refresh", "reloading the names for completion\n"),
        ("\\warn a  b", "a b\n"),
        ("\\set ON_ERROR_ROLLBACK OFF", ""),
    ],
)
def test_what_a_command_says(script: str, err: str) -> None:
    core = run(script + "\n")
    assert (core.err, core.out, core.shell.exit) == (err, "", Exit.DONE)


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("\\echo a  b\n\\qecho c", "a b\nc\n"),
        ("\\echo -n a\n\\echo b", "ab\n"),
        ("\\set x 1\n\\echo :x :y :'x'", "1 :y '1'\n"),
        ("\\set x 1\n\\unset x\n\\echo :x", ":x\n"),
        ("select 1 \\gset x_\n\\echo :x_a", "1\n"),
        ("select 1 \\gdesc", "name,type,nullable\na,INTEGER,\n"),
        ("select 1 \\g (format=json)", '[{"a":1}]\n'),
        ("select 1 \\gexec", "a\n1\n"),
    ],
)
def test_what_a_command_prints(script: str, out: str) -> None:
    core = run(script + "\n")
    assert (core.out, core.err, core.shell.exit) == (out, "", Exit.DONE)


def test_a_statement_without_rows_has_nothing_to_run() -> None:
    core = run("insert \\gexec\n", ScriptedClient({"insert": Answer(rows=())}))
    assert (core.err, len(core.client.ran), core.shell.exit) == ("", 1, Exit.DONE)


def test_files_wait_for_the_statement_that_names_them(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jar", tmp_path / "two.jar"
    one.write_bytes(b"1" * 1234)
    two.write_bytes(b"22")
    script = f"\\attach {one}\n\\attach {two}\n\\attach\n\\attach -\n\\attach\n"
    core = run(script)
    assert core.err == (
        f"{one} (1,234 bytes) is attached to the next statement that names 'one.jar'\n"
        f"{two} (2 bytes) is attached to the next statement that names 'two.jar'\n"
        f"  {one} (1,234 bytes)\n  {two} (2 bytes)\n"
        "2 files detached\nno file is attached\n"
    )
    core = run(f"\\attach {one}\n\\attach {one}\nselect 'one.jar';\n\\attach\n")
    assert core.err.endswith("no file is attached\n")


@pytest.mark.parametrize(
    ("script", "err"),
    [
        ("\\trust x .*", "error: variable x is not set\nhelp: \\set lists the variables\n"),
        (
            "\\set x 1\n\\trust x [",
            "error: '[' is not a valid regular expression: unterminated character set at position 0\n"
            "help: example: '[a-z0-9_]+[.]csv'\n",
        ),
        ("\\set x 12\n\\trust x 1", "error: the value of x does not match '1'\nhelp: \\echo :x shows it\n"),
        ("\\set x 12\n\\trust x [0-9]+", ""),
    ],
)
def test_a_value_is_trusted_for_its_form(script: str, err: str) -> None:
    assert run(script + "\n").err == err


def test_a_value_of_the_service_becomes_trusted(tmp_path: Path) -> None:
    path = tmp_path / "1"
    script = f"select 1 \\gset\n\\cd {tmp_path}\nselect 1 \\g :a\n\\trust a [0-9]\nselect 1 \\g :a\n"
    with contextlib.chdir(Path.cwd()):
        core = run(script)
    assert core.err.count("error: ") == 1
    assert "came from" in core.err
    assert path.read_text() == "a\n1\n"


ROWS = Answer(rows=(("1", "2"), ("3",)))


@pytest.mark.parametrize(("most", "fits"), [(3, True), (2, False)])
def test_the_bounds_of_what_reads_a_whole_result(monkeypatch: pytest.MonkeyPatch, most: int, fits: bool) -> None:
    monkeypatch.setattr(results, "MOST_ROWS", most)
    monkeypatch.setattr(query_buffer, "MOST_STATEMENTS", most)
    core = run("select 1 \\chart\n", ScriptedClient({"select 1": ROWS}))
    assert (f"the chart shows only the first {most} rows\n" in core.err) == (not fits)
    core = run("select 1 \\clip\n", ScriptedClient({"select 1": ROWS}))
    assert (f"too many rows to copy: more than {most}\n" in core.err) == (not fits)
    core = run("select 1 \\crosstab\n", ScriptedClient({"select 1": ROWS}))
    assert (f"too many rows to pivot: more than {most}\n" in core.err) == (not fits)
    core = run("select 1 \\gexec\n", ScriptedClient({"select 1": ROWS}))
    assert (f"\\gexec: the result has more than {most} rows\n" in core.err) == (not fits)
    assert len(core.client.ran) == (4 if fits else 1)


@pytest.mark.parametrize(
    ("script", "copied"),
    [
        ("\\pset csv_safe on\n\\t on\nselect '=1+1' as a \\clip csv\n", b"'=1+1\n"),
        ("\\pset insert_table t\nselect '=1+1' as a \\clip insert\n", b"INSERT INTO t"),
    ],
)
def test_the_clipboard_gets_what_a_file_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, copied: bytes
) -> None:
    terminal = tmp_path / "tty"
    monkeypatch.setattr(tty, "Path", lambda _: terminal)
    monkeypatch.delenv("TMUX", raising=False)
    run(script, ScriptedClient({"select '=1+1' as a": Answer(rows=(("=1+1",),))}))
    data = base64.b64decode(terminal.read_bytes().split(b";")[2].rstrip(b"\x07"))
    assert data.startswith(copied)


def test_a_result_that_is_refused_starts_no_command_and_leaves_no_file(tmp_path: Path) -> None:
    core = run(
        f"\\format insert\nselect 1 \\g |touch {tmp_path}/started\nselect 1 \\g {tmp_path}/out.sql\n",
        ScriptedClient({"select 1": ROWS}),
    )
    assert core.err.count("error: ") == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("most", "fits"), [(3, True), (2, False)])
def test_the_longest_value_of_a_variable(monkeypatch: pytest.MonkeyPatch, most: int, fits: bool) -> None:
    monkeypatch.setattr(query_buffer, "LONGEST_VALUE", most)
    core = run("select 1 \\gset\n\\echo :a\n", ScriptedClient({"select 1": Answer(rows=(("abc",),))}))
    assert core.out == ("abc\n" if fits else ":a\n")
    assert ("\\gset: the value of a has 3 characters; the limit is 2\n" in core.err) == (not fits)


@pytest.mark.parametrize("knows_duckdb", [True, False])
def test_sample_data_are_made_only_by_the_local_service(knows_duckdb: bool) -> None:
    failure = StatementError("unknown function", where=Where("42883"))
    client = ScriptedClient({} if knows_duckdb else {EXISTING: Answer((), error=failure)})
    core = run("\\demo\n", client)
    assert (core.shell.exit, core.out) == (Exit.USAGE, "")
    assert "\\demo requires the local service" in core.err
    assert [sql for sql, _ in client.ran] == [EXISTING]


def test_the_names_of_a_context_cannot_look_like_other_lines() -> None:
    async def work() -> Core:
        core = Core(context=SessionContext(database="d\n  target  https://bank", schema="a\tb"))
        await core.run("\\context\n")
        return core

    lines = asyncio.run(work()).err.splitlines()
    assert sum(line.startswith("  target ") for line in lines) == 1
    assert any("d\\n  target  https://bank" in line for line in lines)
    assert any("a\\tb" in line for line in lines)
