"""Syntax help, the tour, the doctor, and the list of themes."""

from __future__ import annotations

import pytest

from sqlshell.sql import keywords
from sqlshell.sql.analysis.kinds import verb
from sqlshell.sql.syntax import NOT_LOCAL, SYNTAX, supported_statements, syntax
from tests.conftest import Program, Served


def test_every_statement_has_its_syntax() -> None:
    for name in (*keywords.STATEMENTS, *keywords.LOCAL_STATEMENTS):
        if name not in {"END APPLICATION"}:
            assert syntax(name), name
    for name in keywords.CREATE_OBJECTS:
        assert f"CREATE {name}" in SYNTAX, name
    for name in keywords.LIST_OBJECTS:
        assert name in SYNTAX["LIST"], name
    for name in keywords.DROP_OBJECTS:
        assert name in SYNTAX["DROP"], name
    for name, text in SYNTAX.items():
        assert verb(name) in text.upper(), name


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("create stream", "CREATE STREAM"),
        ("CREATE  stream ", "CREATE STREAM"),
        ("create", "CREATE DATABASE"),
        ("selct", "SELECT"),
        ("drop table", "DROP"),
        ("list streams", "LIST"),
        ("terminate", "TERMINATE QUERY"),
    ],
)
def test_syntax_is_found(asked: str, first: str) -> None:
    assert syntax(asked)[0][0] == first


def test_help_in_scripts(program: Program) -> None:
    for asked in ("create stream", "CREATE   STREAM", "create stream;"):
        told = program("-c", f"\\h {asked}").err
        assert told.startswith("CREATE STREAM\n  CREATE STREAM name"), told
        assert "CREATE TABLE" not in told
    assert "TERMINATE QUERY" in program("-c", "\\h").err
    assert program("-c", "\\h qqqqqq").code == 2


def test_a_command_is_explained_as_it_is_typed(program: Program) -> None:
    for text in ("\\? \\x", "\\? x", "\\help \\x", "\\?  \\x  "):
        told = program("-c", text)
        assert told.out.startswith("\\x [on|off|auto]"), (text, told)
        assert "Expanded display" not in told.err
    assert program("-c", "\\? \\q", "-c", "select 1 as a", "--format", "csv").out.endswith("a\n1\n")


def test_what_the_present_service_takes(program: Program, served: Served) -> None:
    env = {"SQLSHELL_TOKEN": served.token}
    for argv in ([], [served.url, "-c", "select 1"]):
        told = program("-q", *argv, "-c", "\\h", env=env).err
        assert "MERGE INTO" in told
        assert "GRANT" not in told
    assert "GRANT" in supported_statements(local=False)
    assert "MERGE INTO" not in supported_statements(local=False)
    assert {"SELECT", "CREATE STREAM", "CREATE API_TOKEN"} <= set(supported_statements(local=False)) & set(
        supported_statements(local=True)
    )
    assert "(not supported by this service)" in program("-c", "\\h grant").err
    assert "(not supported by this service)" not in program("-c", "\\h create table").err


def test_the_local_service_refuses_what_help_leaves_out(program: Program) -> None:
    """Each begun as its syntax begins."""
    texts = [SYNTAX[name].partition("\n")[0].partition("  ")[0].partition(" [")[0] for name in sorted(NOT_LOCAL)]
    done = program("--on-error", "continue", "-q", stdin=";\n".join(texts) + ";\n")
    refused = [line for line in done.err.splitlines() if " error 0A000" in line]
    assert len(refused) == len(NOT_LOCAL), done.err


def test_the_tour_runs(program: Program) -> None:
    found = program("-q", "-c", "\\tutorial", "-c", "select 1 as after", "--format", "csv")
    assert found.code == 0
    assert found.out.endswith("after\n1\n")
    assert "8/8" in found.err
    # One step alone is a mistake, and it is the last.
    assert found.err.count("error 42") == 1, found.err
    assert "pricee" in found.err.partition("8/8")[2].partition("error 42")[2]
    assert "failed" not in found.err


def test_the_doctor(program: Program, served: Served) -> None:
    env = {"SQLSHELL_TOKEN": served.token}
    well = program("doctor", served.url, env=env)
    assert well.code == 0, well.out
    for word in ("connection:", "first response: 200", "token: accepted", "clock:", "(environment)"):
        assert word in well.out
    assert served.token not in well.out
    ill = program("doctor", served.url, env={"SQLSHELL_TOKEN": "wrong"})
    assert ill.code == 3
    assert "token: rejected" in ill.out
    assert program("doctor", "http://127.0.0.1:9", env=env).code == 3
    assert program("doctor", "http://no.such.host.invalid", env=env).code == 3
    assert program("doctor").code == 0
    inside = program(served.url, "-c", "\\doctor", env=env)
    assert "token: accepted" in inside.err


def test_the_themes_are_shown(program: Program) -> None:
    found = program("--list-themes")
    assert found.code == 0
    assert len(found.out.splitlines()) >= 10
    assert "\x1b" not in found.out


@pytest.mark.parametrize("name", ["prompt", "rprompt", "toolbar", "title"])
def test_templates_are_checked(program: Program, name: str) -> None:
    found = program("-c", "select 1", env={f"SQLSHELL_{name.upper()}": "{nonsense}"})
    assert found.code == 2
    assert "nonsense" in found.err
    assert "database" in found.err


def test_the_help_of_an_api_token_names_its_role(program: Program, served: Served) -> None:
    shown = program("-c", "\\h create api_token")
    assert "WITH ('role' = " in shown.out + shown.err
    remote = {"SQLSHELL_URL": served.url, "SQLSHELL_TOKEN": served.token}
    made = program("-c", "create api_token help_of_token with ('role' = 'writer')", "-c", "list api_tokens", env=remote)
    assert made.code == 0, made.err
    assert "help_of_token" in made.out
    program("-c", "drop api_token help_of_token", env=remote)
