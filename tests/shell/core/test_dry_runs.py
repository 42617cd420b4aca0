"""--dry-run prints what would be sent and sends nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sqlshell.errors import Exit
from sqlshell.origin import Trusted
from sqlshell.shell.commands import BUILTIN, table
from sqlshell.shell.components import ScriptModes
from tests.goldens import run_sessions
from tests.shell.core.scripted import Core, ScriptedClient


def dry_run(text: str, name: str = "x.sql", *, stop: bool = True) -> Core:
    async def work() -> Core:
        modes = ScriptModes(dry_run=True)
        core = Core(ScriptedClient(), modes=lambda _: modes)
        await core.shell.run_script([Trusted(text)], name, stop=stop)
        await core.shell.finish()
        return core

    core = asyncio.run(work())
    assert core.client.ran == []
    return core


def test_what_would_be_sent_is_printed_with_its_place() -> None:
    def printed(script: str) -> tuple[str, str]:
        core = dry_run(script)
        assert core.shell.exit == Exit.DONE
        return core.out, core.err

    run_sessions("sessions/dry runs.txt", printed)


def test_a_statement_without_an_end_is_printed_with_one() -> None:
    assert dry_run("select 1").out == "-- x.sql:1\nselect 1;\n"
    assert dry_run("select 1 -- end").out == "-- x.sql:1\nselect 1 -- end\n;\n"


@pytest.mark.parametrize(
    ("text", "printed", "said"),
    [
        (
            "\\set d `touch 'a b'` c\nselect :'d';",
            "-- x.sql:2\nselect '`touch ''a b''`c';\n",
            "`touch 'a b'` is not run; its text is used as the value",
        ),
        (
            "\\if `touch never`\nselect 1;\n\\else\nselect 2;\n\\endif\n",
            "-- x.sql:4\nselect 2;\n",
            "`touch never` is not run; the condition counts",
        ),
    ],
)
def test_a_command_in_backticks_is_told_and_not_run(text: str, printed: str, said: str) -> None:
    core = dry_run(text)
    assert core.out == printed
    assert said in core.err


@pytest.mark.parametrize("command", ["set x", "if", "elif", "i", "ir", "cd", "n", "getenv x", "prompt"])
def test_no_command_in_backticks_runs(tmp_path: Path, command: str) -> None:
    before = "\\if false\n" if command == "elif" else ""
    core = dry_run(f"{before}\\{command} `touch {tmp_path}/ran`\n", stop=False)
    assert not any(tmp_path.iterdir())
    assert "touch" in core.out + core.err


def test_a_transaction_that_is_left_open_is_told_where_it_begins() -> None:
    core = dry_run("select 1;\n\nbegin;\nselect 1;\n\nselect 2;")
    assert core.err.startswith("x.sql:3: warning: the open transaction was not committed")
    assert dry_run("begin;\nselect 1;\ncommit;").err == ""
    assert dry_run("begin;\ncommit;\nbegin;").err.startswith("x.sql:3: warning")


def test_included_scripts_are_printed_with_their_names(tmp_path: Path) -> None:
    inner = tmp_path / "inner.sql"
    inner.write_text("\nselect 2;")
    core = dry_run(f"select 1;\n\\i {inner}\nselect 3;")
    assert core.out == f"-- x.sql:1\nselect 1;\n-- {inner}:2\nselect 2;\n-- x.sql:3\nselect 3;\n"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("select 'a", Exit.STATEMENT, "x.sql:1: error[42601]: unterminated string at the end"),
        ('\nselect "a', Exit.STATEMENT, "x.sql:2: error[42601]: unterminated quoted identifier"),
        ("select $a$ b", Exit.STATEMENT, "unterminated dollar-quoted string"),
        ("select 1 /* b", Exit.STATEMENT, "unterminated comment"),
        ("select (1", Exit.STATEMENT, "missing closing parenthesis"),
        ("\\nosuch", Exit.USAGE, "unknown command \\nosuch"),
        ("\\watch a b c d e f", Exit.USAGE, "unexpected argument"),
        ("\\if true\nselect 1;", Exit.USAGE, "ends inside an \\if block"),
        ("\\i /no/such/file", Exit.USAGE, "cannot read /no/such/file"),
    ],
)
def test_what_can_be_found_without_running(text: str, code: Exit, said: str) -> None:
    core = dry_run(text)
    assert said in core.err
    assert core.shell.exit == code


def test_variables_that_are_not_set_are_warned_of() -> None:
    core = dry_run("select :x;")
    assert core.out == "-- x.sql:1\nselect :x;\n"
    assert "variable x is not set; :x is sent as written\n" in core.err
    assert core.shell.exit == Exit.DONE, "as in psql"


def test_a_condition_that_depends_on_a_result_is_false_and_said() -> None:
    core = dry_run("select 1 as x \\gset\n\\if :x\nselect 2;\n\\else\nselect 3;\n\\endif\nselect :x;\n")
    assert core.out == "-- x.sql:1 \\gset\nselect 1 as x;\n-- x.sql:5\nselect 3;\n-- x.sql:7\nselect :x;\n"
    assert "the condition of \\if depends on a result; it counts as false" in core.err
    assert "variable x is not set; :x is sent as written, unless a result sets it" in core.err
    assert core.shell.exit == Exit.DONE


def test_each_command_is_either_run_or_named() -> None:
    """Whoever adds a command decides: those that change what is sent run, and those that send are named with it."""
    run = {item.name for item in BUILTIN if item.changes == "text"}
    assert run == {
        *("set", "unset", "getenv", "prompt", "if", "elif", "else", "endif", "i", "ir", "cd", "n", "q", "r"),
        *("restrict", "unrestrict", "attach"),
    }
    assert not [item.name for item in BUILTIN if item.changes and item.sends]
    assert set(table(BUILTIN)) >= run
