"""Syntax help, the tour, the doctor, and the list of themes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlshell.shell.commands.help_text import START, first_steps
from sqlshell.sql import keywords
from sqlshell.sql.analysis.kinds import verb
from sqlshell.sql.syntax import LOCAL_SYNTAX, NOT_LOCAL, SYNTAX, supported_statements, syntax
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


@pytest.mark.parametrize("width", [32, 79, 120])
def test_the_first_steps_fit(width: int) -> None:
    lines = first_steps(width).splitlines()
    assert max(map(len, lines)) <= width
    assert all(any(line.strip().startswith(typed) for line in lines) for typed, _ in START)


@pytest.mark.slow("runs the program five times")
def test_help_in_scripts(program: Program) -> None:
    for asked in ("create stream", "CREATE   STREAM", "create stream;"):
        told = program("-c", f"\\h {asked}").err
        assert told.startswith("CREATE STREAM\n  CREATE STREAM name"), told
        assert "CREATE TABLE" not in told
    assert "TERMINATE QUERY" in program("-c", "\\h").err
    assert program("-c", "\\h qqqqqq").code == 2


@pytest.mark.slow("runs the program five times")
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
    refused = [line for line in done.err.splitlines() if " error[0A000]" in line]
    assert len(refused) == len(NOT_LOCAL), done.err


@pytest.mark.slow("runs the program")
def test_the_tour_runs(program: Program) -> None:
    found = program("-q", "-c", "\\tutorial", "-c", "select 1 as after", "--format", "csv")
    assert found.code == 0
    assert found.out.endswith("after\n1\n")
    assert "10/10" in found.err
    # One step alone is a mistake, and it is the last.
    assert found.err.count("error[42") == 1, found.err
    assert "staus" in found.err.partition("10/10")[2].partition("error[42")[2]
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
    remote = served.environment
    made = program("-c", "create api_token help_of_token with ('role' = 'writer')", "-c", "list api_tokens", env=remote)
    assert made.code == 0, made.err
    assert "help_of_token" in made.out
    program("-c", "drop api_token help_of_token", env=remote)


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["-c", "\\copyy"], "did you mean \\copy?"),
        (["--fromat", "csv"], "did you mean --format?"),
        (["serve", "--prot", "1"], "did you mean --port?"),
        (["--qqqq"], "sqlshell --help all lists the options"),
        (["sevre"], "did you mean sqlshell serve?"),
        (["wrok"], 'did you mean "work"?'),
        (["qqqq"], "known profiles: work;"),
    ],
)
def test_what_is_mistyped_gets_its_nearest(program: Program, tmp_path: Path, argv: list[str], hint: str) -> None:
    (tmp_path / "config.toml").write_text("[profiles.work]\nurl = 'work.duckdb'\n")
    done = program(*argv, env={"SQLSHELL_CONFIG_DIR": str(tmp_path)})
    assert done.code == 2
    assert hint in done.err


def test_the_help_of_serve_names_units(program: Program) -> None:
    told = program("serve", "--help", "all").out
    assert "RANGE" not in told
    for word in ("--port PORT", "--retention HOURS", "--quota GIB", "--max-running N", "--max-seconds SECONDS"):
        assert word in told


@pytest.mark.slow("runs the program twice")
def test_the_sample_data_are_the_same_each_time(program: Program, tmp_path: Path) -> None:
    count = (
        "select (select count(*) from shop.customers) as customers, (select count(*) from shop.products) as products, "
        "(select sum(id) from shop.orders) as orders, (select sum(quantity * price) from shop.order_items) as revenue, "
        "(select max(ordered_at) from shop.orders) as latest"
    )
    for name in ("one", "two"):
        done = program(str(tmp_path / f"{name}.duckdb"), "-c", "\\demo", "-c", count, "--format", "csv")
        assert done.out == (
            "customers,products,orders,revenue,latest\n2000,160,5000050000,20234246.09,2025-12-31 06:06:53\n"
        ), done
        assert "100,000 orders" in done.err


@pytest.mark.slow("runs the program ten times")
def test_the_sample_data_and_what_is_yours(program: Program, tmp_path: Path) -> None:
    database = str(tmp_path / "mine.duckdb")
    assert program(database, "-c", "\\demo").code == 0
    assert program(database, "-c", "\\demo", "-c", "\\jobs", "--format", "csv").out.count("\n") == 1
    again = program(database, "-c", "\\demo")
    assert (again.code, "already" in again.err) == (0, True)
    refused = program(database, "-c", "\\demo off")
    assert refused.code == 2
    assert "use --yes" in refused.err
    # What the user put into the schema stays, and so does the schema.
    kept = program(database, "--yes", "-c", "create view shop.mine as select 1 as a", "-c", "\\demo off")
    assert kept.code == 0
    assert "is kept, because it contains mine" in kept.err
    assert program(database, "-c", "select * from shop.mine", "--format", "csv").out == "a\n1\n"
    theirs = program(database, "-c", "\\demo")
    assert theirs.code == 2
    assert "but \\demo did not create it" in theirs.err
    assert "no sample data" in program("-c", "\\demo off").err
    ambiguous = program(str(tmp_path / "shop.duckdb"), "-c", "\\demo")
    assert ambiguous.code == 2
    assert "database and schema would both be named shop" in ambiguous.err
    assert program("-c", "begin", "-c", "\\demo").code == 2
    assert program("--read-only", "-c", "\\demo").code == 2


@pytest.mark.slow("runs the program twice")
def test_the_sample_data_on_a_service(program: Program, served: Served) -> None:
    env = {"SQLSHELL_TOKEN": served.token}
    made = program(
        served.url, "-c", "\\demo", "-c", "select count(*) as n from shop.orders", "--format", "csv", env=env
    )
    assert made.out == "n\n100000\n", made.err
    gone = program(served.url, "--yes", "-c", "\\demo off", "-c", "select * from shop.orders", env=env)
    assert "was dropped" in gone.err
    assert gone.code == 1


CLAUSES = """
    WITH RECURSIVE w(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM w WHERE a < 9)
    SELECT DISTINCT ON (a) w.a AS a, row_number() OVER ordered AS n
    FROM w TABLESAMPLE 100% LEFT JOIN range(3) u(b) ON a = b SEMI JOIN range(50) s(c) ON a = c CROSS JOIN (SELECT 1)
    WHERE a >= 0
    GROUP BY a
    HAVING count(*) > 0
    WINDOW ordered AS (PARTITION BY 1 ORDER BY a)
    QUALIFY n < 7
    USING SAMPLE 100%
    UNION ALL BY NAME SELECT 100 AS a, 0 AS n
    ORDER BY ALL DESC NULLS LAST
    LIMIT 50%
    OFFSET 1
"""
"""Every clause of `\\h select`, in its order."""


def test_the_clauses_of_a_select_are_those_of_the_engine(program: Program) -> None:
    shown = program("-c", "\\h select").err
    heads = [line.split("  ")[0].strip() for line in LOCAL_SYNTAX["SELECT"].split("\n")]
    clauses = [head for head in heads if head.isupper() and head[0] not in "[{"]
    assert clauses[:3] == ["SELECT", "FROM", "WHERE"]
    begins = [CLAUSES.index(f"\n    {clause.partition(' {')[0]}") for clause in clauses]
    assert begins == sorted(begins)
    assert all(clause in shown for clause in clauses)
    done = program("-c", CLAUSES, "--format", "csv")
    assert done.out == "a,n\n6,6\n5,5\n4,4\n", done.err


def test_other_services_have_the_syntax_of_the_interface() -> None:
    assert "QUALIFY" not in syntax("select")[0][1]
    assert "QUALIFY" in syntax("select", local=True)[0][1]
