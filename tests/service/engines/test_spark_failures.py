"""Errors of Spark Connect servers: sqlStates, messages and places."""

from __future__ import annotations

import pytest

from tests.service.spark import Session, needs_sail, needs_spark

pytestmark = needs_spark

STATES = (
    ("selec 1", "42601"),
    ("select nosuch from range(3)", "42703"),
    ("select * from nosuch", "42P01"),
    ("insert into nosuch values (1)", "42P01"),
    ("drop schema nosuch", "42704"),
    ("select 1/0", "22012"),
    ("select cast('x' as int)", "22018"),
    ("select cast('2024-99-01' as date)", "22018"),
    ("select array(1, 2)[5]", "22003"),
)


@pytest.mark.parametrize(("sql", "state"), STATES)
def test_errors_have_sqlstates(session: Session, sql: str, state: str) -> None:
    assert session.failure(sql).sql_state == state
    assert session.rows("select 1") == [["1"]]


@pytest.mark.parametrize("sql", [sql for sql, _ in STATES])
def test_messages_contain_nothing_of_the_servers_program(session: Session, sql: str) -> None:
    message = session.failure(sql).message
    for noise in ("java.", "org.apache", "SQLSTATE", "== SQL", "ObjectName", "Identifier(", "\tat ", "[TABLE_OR"):
        assert noise not in message


def test_a_syntax_error_is_marked(session: Session) -> None:
    message = session.failure("select 'ä' as x,\n  1 as y\nfrmo t").message
    assert message.endswith("\n\nLINE 3: frmo t\n        ^"), message


@needs_sail
@pytest.mark.parametrize(
    ("sql", "state", "message"),
    [
        ("select nosuch from range(3)", "42703", 'column "nosuch" does not exist'),
        ("select a.id from range(3) b", "42703", 'column "a.id" does not exist'),
        ("select id from range(3) a, range(3) b", "42702", 'column "id" is ambiguous'),
        ("select nosuch(1)", "42883", 'function "nosuch" does not exist'),
        ("select * from nosuch.t", "42P01", 'table or view "t" does not exist'),
        ("create schema default", "42P06", 'schema "default" already exists'),
        ("select (select id from range(3))", "21000", "Scalar subquery returned more than one row"),
        ("select cast(300 as tinyint)", "22003", "Can't cast value 300 to type Int8"),
        ("analyze table t compute statistics", "0A000", "the server does not support ANALYZE TABLE"),
        ("select * from range(3) limit -1", "42000", "LIMIT must be >= 0, '-1' was provided"),
        ("select 1; select 2", "42601", "expected one statement"),
        ("select 'ä' frm from", "42601", None),
    ],
)
def test_what_sail_says_is_put_plainly(session: Session, sql: str, state: str, message: str | None) -> None:
    failure = session.failure(sql)
    assert failure.sql_state == state
    assert message is None or failure.message == message


def test_half_of_a_surrogate_pair_is_refused(session: Session) -> None:
    assert session.failure("select '\ud800'").sql_state == "42601"
    assert session.rows("select 1") == [["1"]]


@needs_sail
def test_the_end_of_a_statement_is_marked(session: Session) -> None:
    assert session.failure("select 1,\n x from  ").message == (
        "syntax error at the end of the statement: expected 'LATERAL', 'VALUES', '(', 'IDENTIFIER', or identifier\n\n"
        "LINE 2:  x from  \n               ^"
    )


SPARK = (
    (
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. SQLSTATE: 42601 (line 1, pos 0)\n\n"
        "== SQL ==\nselec 1\n^^^\n",
        "selec 1",
        "42601",
        "Syntax error at or near 'selec'.",
        (1, 0),
    ),
    (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `nosuch` cannot be "
        "resolved. Did you mean one of the following? [`id`]. SQLSTATE: 42703; line 2 pos 1;\n'Project ['nosuch]\n"
        "+- Range (0, 3, step=1)\n",
        "select\n nosuch\nfrom range(3)",
        "42703",
        "A column, variable, or function parameter with name `nosuch` cannot be resolved. Did you mean one of the "
        "following? [`id`].",
        (2, 1),
    ),
    (
        "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate it. SQLSTATE: 22012\n"
        "== SQL (line 1, position 8) ==\nselect 1/0\n       ^^^\n",
        "select 1/0",
        "22012",
        "Division by zero. Use `try_divide` to tolerate it.",
        (1, 7),
    ),
    (
        "Job aborted due to stage failure: Task 0 failed\n\nJVM stacktrace:\norg.apache.spark.SparkException\n"
        "\tat org.apache.spark.A.b(A.scala:1)",
        "select 1",
        "",
        "Job aborted due to stage failure: Task 0 failed",
        None,
    ),
    ("java.lang.IllegalStateException: no such thing", "select 1", "", "no such thing", None),
)
"""Messages of Apache Spark 4.0, the statement, and what is to be made of them."""


@pytest.mark.parametrize(("message", "sql", "state", "plain", "place"), SPARK, ids=[item[3][:20] for item in SPARK])
def test_what_apache_spark_says_is_put_plainly(
    message: str, sql: str, state: str, plain: str, place: tuple[int, int] | None
) -> None:
    from sqlshell.service.engines.spark import failures

    assert failures.state(message) == state
    assert failures.plain(message) == plain
    assert failures.place(message, sql) == place
