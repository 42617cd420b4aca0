"""--dry-run prints what would be sent and sends nothing; --describe runs nothing that writes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sqlshell.errors import Exit, StatementError, Where
from sqlshell.origin import Own
from sqlshell.shell.commands import BUILTIN, table
from sqlshell.shell.scripts.modes import ScriptModes
from tests.shell.core.scripted import Answer, Core, ScriptedClient


def rehearse(text: str, name: str = "x.sql", *, stop: bool = True, describes: bool = False) -> Core:
    async def work() -> Core:
        modes = ScriptModes(rehearsal="describe" if describes else "dry-run")
        core = Core(ScriptedClient(), modes=lambda _: modes)
        # What a service announces that does not run a query of which no rows are wanted.
        core.session.connection.service.transport.extensions = frozenset({"batch"})
        await core.shell.run_script([Own(text)], name, stop=stop)
        await core.shell.finish()
        return core

    core = asyncio.run(work())
    assert describes or core.client.ran == []
    return core


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("select 1;", "-- x.sql:1\nselect 1;\n"),
        ("\n\nselect 1\n ;", "-- x.sql:3\nselect 1\n ;\n"),
        ("select 1", "-- x.sql:1\nselect 1;\n"),
        ("select 1 -- end", "-- x.sql:1\nselect 1 -- end\n;\n"),
        ("\\set n 5\nselect :n, :'n';", "-- x.sql:2\nselect 5, '5';\n"),
        ("\\set q 'select 1; select 2'\n:q;", "-- x.sql:2\nselect 1;\n-- x.sql:2\nselect 2;\n"),
        ("\\if false\nselect 1;\n\\else\nselect 2;\n\\endif\n", "-- x.sql:4\nselect 2;\n"),
        ("\\echo hi\n\\! touch never\n", "-- x.sql:1 \\echo hi (not run)\n-- x.sql:2 \\! touch never (not run)\n"),
        ("select 1 \\g /never/there.csv\n", "-- x.sql:1 \\g /never/there.csv\nselect 1;\n"),
        ("select 1 \\gset p_\n", "-- x.sql:1 \\gset p_\nselect 1;\n"),
        ("select 1;&\n", "-- x.sql:1\nselect 1;\n"),
        ("select 1;\n\\if :ERROR\nselect 2;\n\\endif\n", "-- x.sql:1\nselect 1;\n"),
        (
            "copy t from stdin;\na\nb\n\\.\nselect 1;\n",
            "-- x.sql:1\ncopy t from stdin;\n-- x.sql:2 2 lines of data (not sent)\n-- x.sql:5\nselect 1;\n",
        ),
        (
            "\\copy t from stdin\na\n",
            "-- x.sql:1 \\copy t from stdin (not run)\n-- x.sql:2 1 line of data (not sent)\n",
        ),
        ("\\set\n", "-- x.sql:1 \\set (not run)\n"),
        ("\\set d 'a`b`'\nselect :'d';", "-- x.sql:2\nselect 'a`b`';\n"),
        ("\\i `touch never`\n", "-- x.sql:1 \\i `touch never` (not run)\n"),
    ],
)
def test_what_is_printed(text: str, printed: str) -> None:
    core = rehearse(text)
    assert core.out == printed
    assert core.err == ""
    assert core.shell.exit == Exit.DONE


@pytest.mark.parametrize(
    ("text", "printed", "said"),
    [
        (
            "\\set d `touch 'a b'` c\nselect :'d';",
            "-- x.sql:2\nselect '`touch ''a b''`c';\n",
            "`touch 'a b'` is not run; used as written",
        ),
        (
            "\\if `touch never`\nselect 1;\n\\else\nselect 2;\n\\endif\n",
            "-- x.sql:4\nselect 2;\n",
            "`touch never` is not run; the condition counts",
        ),
    ],
)
def test_a_command_in_backticks_is_told_and_not_run(text: str, printed: str, said: str) -> None:
    core = rehearse(text)
    assert core.out == printed
    assert said in core.err


@pytest.mark.parametrize("describes", [False, True])
@pytest.mark.parametrize("command", ["set x", "if", "elif", "i", "ir", "cd", "n", "getenv x", "prompt", "parallel"])
def test_no_command_in_backticks_runs(tmp_path: Path, command: str, describes: bool) -> None:
    before = "\\if false\n" if command == "elif" else ""
    core = rehearse(f"{before}\\{command} `touch {tmp_path}/ran`\n", stop=False, describes=describes)
    assert not any(tmp_path.iterdir())
    assert describes or "touch" in core.out + core.err


def test_a_transaction_that_is_left_open_is_told_where_it_begins() -> None:
    core = rehearse("select 1;\n\nbegin;\nselect 1;\n\nselect 2;")
    assert core.err.startswith("x.sql:3: warning: the open transaction was not committed")
    assert rehearse("begin;\nselect 1;\ncommit;").err == ""
    assert rehearse("begin;\ncommit;\nbegin;").err.startswith("x.sql:3: warning")


def test_included_scripts_are_printed_with_their_names(tmp_path: Path) -> None:
    inner = tmp_path / "inner.sql"
    inner.write_text("\nselect 2;")
    core = rehearse(f"select 1;\n\\i {inner}\nselect 3;")
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
        ("\\i /no/such/file", Exit.USAGE, "no such script"),
    ],
)
def test_what_can_be_found_without_running(text: str, code: Exit, said: str) -> None:
    core = rehearse(text)
    assert said in core.err
    assert core.shell.exit == code


def test_variables_that_are_not_set_are_warned_of() -> None:
    core = rehearse("select :x;")
    assert core.out == "-- x.sql:1\nselect :x;\n"
    assert "variable x is not set; :x is sent as written\n" in core.err
    assert core.shell.exit == Exit.DONE, "as in psql"


def test_a_condition_that_depends_on_a_result_is_false_and_said() -> None:
    core = rehearse("select 1 as x \\gset\n\\if :x\nselect 2;\n\\else\nselect 3;\n\\endif\nselect :x;\n")
    assert core.out == "-- x.sql:1 \\gset\nselect 1 as x;\n-- x.sql:5\nselect 3;\n-- x.sql:7\nselect :x;\n"
    assert "the condition of \\if depends on a result; counted as false" in core.err
    assert "variable x is not set; :x is sent as written, unless a result sets it" in core.err
    assert core.shell.exit == Exit.DONE


def test_each_command_is_either_run_or_named() -> None:
    """Whoever adds a command decides: those that change what is sent run, and those that send are named with it."""
    run = {item.name for item in BUILTIN if item.changes == "text"}
    assert run == {
        *("set", "unset", "getenv", "prompt", "if", "elif", "else", "endif", "i", "ir", "cd", "n", "q", "r"),
        *("restrict", "unrestrict", "attach", "parallel", "end"),
    }
    assert not [item.name for item in BUILTIN if item.changes and item.sends]
    assert set(table(BUILTIN)) >= run


def test_describing_runs_what_reads_and_names_what_writes() -> None:
    core = rehearse("insert into t values (1);\nselect 2;\nshow tables;\n\\echo no\n", describes=True)
    assert [sql for sql, _ in core.client.ran] == ["(select 2\n) LIMIT 0", "show tables"]
    assert core.out == ("Statement,Script,Line,Column,Type,Nullable\n2,x.sql,2,a,INTEGER,\n3,x.sql,3,a,INTEGER,\n")
    assert "INSERT may write and is not run; its result is not described" in core.err
    assert all(batches.closed for batches in core.client.open)


def described(sql: str, answers: dict[str, Answer]) -> tuple[list[str], str]:
    """What is sent to describe a statement on the local service, and the errors."""

    async def work() -> Core:
        core = Core(ScriptedClient(answers), modes=lambda _: ScriptModes(rehearsal="describe"))
        core.session.connection.service.transport.extensions = frozenset({"engines"})
        await core.shell.run_script([Own(sql)], "x.sql", stop=False)
        await core.shell.finish()
        await core.shell.aclose()
        return core

    core = asyncio.run(work())
    return [text for text, _ in core.client.ran], core.err


def wrong(state: str, message: str, offset: int | None = None) -> Answer:
    return Answer(rows=(), error=StatementError(message, where=Where(state, offset=offset)))


def test_an_error_of_a_description_is_about_the_statement_and_not_about_what_surrounds_it() -> None:
    limited = "(select x\n) LIMIT 0"
    shown = "Binder Error: no x\n\nLINE 1: (select x\n                ^"
    sent, err = described("select x;\n", {limited: wrong("42703", shown, offset=9)})
    assert sent == [limited]
    assert "(select" not in err
    assert "1 | select x\n" in err
    sent, err = described("select x;\n", {limited: wrong("42703", "no x", offset=8)})
    assert "x.sql:1:8" in err
    # Of an unfinished statement the error is that of the statement alone.
    sent, err = described("select x;\n", {limited: wrong("42601", "at )"), "select x": wrong("42601", "at the end")})
    assert sent == [limited, "select x"]
    assert "at the end" in err
    assert "at )" not in err
    sent, err = described("show x;\n", {"show x": wrong("42601", "at x")})
    assert sent == ["show x"]
    assert "at x" in err
