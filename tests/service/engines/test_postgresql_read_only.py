"""--read-only on PostgreSQL: the shell refuses statements that write, and the server what they call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from sqlshell.service.engines.engine import RunOptions
from tests.conftest import Program
from tests.service.engines.conftest import Runner

pytestmark = pytest.mark.usefixtures("postgresql_server")

PREPARED = """
create table t (a int);
create function note() returns int language sql as 'insert into t values (1) returning a';
create function lower(x int) returns int language sql as 'insert into t values (2) returning a';
create function plus(x int, y text) returns int language sql as 'insert into t values (3) returning a';
create operator + (leftarg = int, rightarg = text, function = plus);
create view vw as select note() as a;
"""


@pytest.fixture
def prepared(program: Program, postgresql_database: str) -> str:
    assert program(postgresql_database, "-q", stdin=PREPARED).code == 0
    return postgresql_database


@pytest.mark.parametrize("sql", ["select * from vw", "select lower(1)", "select 1 + 'a'::text"])
def test_the_server_refuses_what_a_query_calls(program: Program, prepared: str, sql: str) -> None:
    done = program(prepared, "--read-only", "-c", sql)
    assert done.code == 1 and "error[25006]: cannot execute INSERT in a read-only transaction" in done.err, done
    assert program(prepared, "--format", "csv", "-c", "select count(*) as n from t").out == "n\n0\n"


@pytest.mark.parametrize(
    "sql",
    [
        "set transaction read write",
        "begin read write",
        "start transaction isolation level serializable, read write",
        "set session characteristics as transaction read write",
        "set transaction_read_only = off",
        "set local default_transaction_read_only = off",
        "set default_transaction_read_only to off",
        "reset default_transaction_read_only",
    ],
)
def test_a_statement_that_makes_the_session_writable_is_not_sent(program: Program, prepared: str, sql: str) -> None:
    done = program(prepared, "--read-only", "-c", sql)
    assert done.code == 2 and "--read-only allows only statements that read" in done.err, done


def test_reading_and_the_catalog_commands_work(program: Program, prepared: str) -> None:
    script = "begin read only;\nselect 1 as a;\ncommit;\nreset all;\nset timezone = 'UTC';\n\\d t\nselect * from vw;\n"
    done = program(prepared, "--read-only", "--format", "csv", stdin=script)
    assert done.out.startswith("a\n1\n") and "a,integer" in done.out
    assert done.code == 1 and done.err.count("error") == 1 and "error[25006]" in done.err


@pytest.fixture
def runner(prepared: str) -> Iterator[Runner]:
    """A session in which nothing but the server refuses statements."""
    from sqlshell.service.engines.postgresql.engine import PostgresqlEngine

    with contextlib.closing(PostgresqlEngine(prepared, read_only=True)) as engine:
        yield Runner(engine.connect(), RunOptions(timezone=""))


@pytest.mark.parametrize(
    "sql", ["reset all", "discard all", "select set_config('default_transaction_read_only', 'off', false)"]
)
def test_the_session_stays_read_only(runner: Runner, sql: str) -> None:
    runner.run(sql)
    assert runner.fails("insert into t values (1)")[0] == "25006"


def test_another_database_is_read_only_too(runner: Runner) -> None:
    runner.session.use("postgres", "")
    assert runner.fails("create table never (a int)")[0] == "25006"


def test_a_program_reads_only(prepared: str) -> None:
    from sqlshell import dbapi

    with (
        dbapi.connect(prepared, read_only=True, autocommit=True) as connection,
        pytest.raises(dbapi.Error, match="read-only transaction"),
    ):
        connection.execute("select * from vw")
