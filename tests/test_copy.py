"""COPY between a script and the service: data lines never run, and rows come back in their order."""

from __future__ import annotations

import pytest

from tests.conftest import Program, Served

DUMP = """create table t (i int, s text);
insert into t values (7, 'kept');
copy t (i, s) from stdin;
1\tx;delete from t;
2\t\\q
\\.
select count(*) as n from t;
"""


@pytest.mark.parametrize("options", ((), ("--no-commands",)))
def test_data_lines_are_never_run(program: Program, options: tuple[str, ...]) -> None:
    done = program("-q", "--format", "csv", "--on-error", "continue", *options, stdin=DUMP)
    assert (done.code, done.out) == (1, "n\n1\n")
    assert done.err.count(": error") == 1
    assert "stdin:3: error 0A000" in done.err
    assert "skipped" in done.err


def test_a_file_and_a_command_refuse_alike(program: Program, served: Served) -> None:
    done = program(
        *("-q", "--format", "csv", "--on-error", "continue", "-c", DUMP, "-c", "drop table t"),
        env={"SQLSHELL_URL": served.url, "SQLSHELL_TOKEN": served.token},
    )
    assert (done.code, done.out) == (1, "n\n1\n")
    assert "0A000" in done.err


def test_data_behind_a_variable_are_not_guessed_at(program: Program) -> None:
    script = "create table t (i int);\n\\set from 'from stdin'\ncopy t :from;\n1;drop table t;\n\\.\n"
    done = program("-q", "--on-error", "continue", "-f", "-", "-c", "from t", stdin=script)
    assert done.code == 2
    assert done.err.count("error") == 1
    assert "stdin:3: error: a variable makes this COPY" in done.err


def test_unknown_commands_have_no_data_that_runs(program: Program) -> None:
    script = "create table t (i int);\n\\copy t from stdin\n1;drop table t;\n\\.\nfrom t;"
    done = program("-q", "--format", "csv", "--on-error", "continue", stdin=script)
    assert (done.code, done.out) == (2, "i\n")
