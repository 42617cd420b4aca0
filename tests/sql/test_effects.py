"""Effects of statements: each line of effects.txt has a statement, its kind, and its fate under two policies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlshell.errors import UsageError
from sqlshell.sql.analysis.effects import effects, first_without_rows
from sqlshell.sql.analysis.lexed import lexed
from sqlshell.sql.analysis.policy import Policy, check_patterns

TABLE = Path(__file__).with_name("effects.txt")
ASKED = ("DROP", "TRUNCATE", "DELETE WITHOUT WHERE", "UPDATE WITHOUT WHERE", "COPY TO")


def rows() -> Iterator[tuple[str, str, str, str]]:
    for line in TABLE.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            sql, kind, outcome = line.split(" => ")
            read_only, _, confirmed = outcome.partition(" | ")
            yield sql.replace("\\n", "\n"), kind, read_only, confirmed


def outcome(policy: Policy, sql: str) -> str:
    try:
        asyncio.run(policy.check(sql, None))
    except UsageError as error:
        return "asked" if "--yes" in error.hint else "refused"
    return "allowed"


@pytest.mark.parametrize(("sql", "kind", "read_only", "confirmed"), list(rows()))
def test_what_becomes_of_a_statement(sql: str, kind: str, read_only: str, confirmed: str) -> None:
    assert kind in [item.name for item in effects(sql)]
    assert outcome(Policy(read_only=True), sql) == read_only
    assert outcome(Policy(confirm=ASKED), sql) == confirmed
    assert outcome(Policy(confirm=ASKED, yes=True), sql) == "allowed"
    everything = outcome(Policy(confirm=("type-name",)), sql)
    assert everything == ("allowed" if read_only == "allowed" else "asked")


@pytest.mark.parametrize(
    ("pattern", "sql", "expected"),
    [
        ("DELETE WITHOUT WHERE", "truncate t", "asked"),
        ("DELETE WITHOUT WHERE", "truncate table t", "asked"),
        ("DELETE", "truncate t", "asked"),
        ("DELETE WITHOUT WHERE", "create or replace table t as select 1", "allowed"),
        ("DROP", "create or replace table t as select 1", "asked"),
        ("DROP TABLE", "create or replace table t as select 1", "asked"),
        ("DROP TABLE", "create or replace view v as select 1", "allowed"),
        ("CREATE TABLE", "create or replace table t as select 1", "asked"),
        ("DROP", "truncate t", "allowed"),
        ("TRUNCATE", "delete from t", "allowed"),
    ],
)
def test_what_takes_data_away_by_another_name_is_asked_about(pattern: str, sql: str, expected: str) -> None:
    assert outcome(Policy(confirm=(pattern,)), sql) == expected


def test_the_table_is_as_long_as_promised() -> None:
    assert len(list(rows())) >= 120


@pytest.mark.parametrize(
    ("confirm", "answer", "sent"),
    [
        (ASKED, "y", True),
        (ASKED, " YES ", True),
        (ASKED, "", False),
        (ASKED, "n", False),
        (ASKED, "production", False),
        (("type-name",), "production", True),
        (("type-name",), "y", False),
        (("type-name",), "Production", False),
    ],
)
def test_the_person_decides(confirm: tuple[str, ...], answer: str, sent: bool) -> None:
    asked: list[str] = []

    async def ask(question: str, *, keys: str = "") -> str:
        asked.append(question)
        return answer

    policy = Policy(confirm=confirm, name="production")
    if sent:
        asyncio.run(policy.check("drop table t", ask))
    else:
        with pytest.raises(UsageError, match="not sent"):
            asyncio.run(policy.check("drop table t", ask))
    assert "DROP TABLE" in asked[0]
    assert "production" in asked[0]


@pytest.mark.parametrize(
    ("policy", "words", "hint"),
    [
        (Policy(read_only=True, read_only_by="--read-only"), "--read-only allows only", "start without --read-only"),
        (Policy(read_only=True, read_only_by="profile 'p'"), "profile 'p' allows only", "start without profile 'p'"),
        (Policy(read_only=True, confirm=("DROP",), yes=True), "--read-only allows only", "start without --read-only"),
        (Policy(confirm=("DROP",), name="production"), "DROP TABLE on production", "--yes"),
        (Policy(confirm=("type-name",)), "DROP TABLE on this service", "--yes"),
    ],
)
def test_a_refusal_says_where_and_what_to_do(policy: Policy, words: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        asyncio.run(policy.check("drop table t", None))
    assert words in caught.value.message
    assert hint in caught.value.hint
    asyncio.run(policy.check("select 1", None))


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        (("DROP", "drop table", "GRANT usage", "WRITE"), ""),
        (("type-name",), ""),
        (("type-name", "nonsense"), ""),
        ((), ""),
        (("DROP", "DORP"), "'DORP' is not a kind of statement"),
        (("GRANT",), ""),
        (("GRANT a b",), "'GRANT a b' is not"),
        (("type-nam",), "'type-nam' is not"),
    ],
)
def test_patterns_that_no_statement_meets_are_refused(patterns: tuple[str, ...], words: str) -> None:
    if not words:
        check_patterns(patterns, "confirm")
        return
    with pytest.raises(UsageError, match=words) as caught:
        check_patterns(patterns, "confirm")
    assert caught.value.message.startswith("confirm: ")
    assert caught.value.hint


def test_yes_answers_for_what_read_only_lets_pass() -> None:
    asyncio.run(Policy(read_only=True, confirm=("SELECT",), yes=True).check("select 1", None))
    with pytest.raises(UsageError, match="requires confirmation"):
        asyncio.run(Policy(read_only=True, confirm=("SELECT",)).check("select 1", None))


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("select 1", ""),
        ("select my_function(x), nextval('s') from t for update", ""),
        ("(values (1)); ", ""),
        ("with a as (select 1) from a", ""),
        ("unpivot t on a, b into name k value v", ""),
        ("show tables", ""),
        ("describe insert into t values (1)", ""),
        ("explain delete from t", ""),
        ("explain analyze select 1", ""),
        ("pragma table_info('t')", ""),
        ("insert into t values (1) returning i", ""),
        ("with a as (select 1) update t set i = 1 returning *", ""),
        ("with a as (delete from t returning *) select * from a", ""),
        ("drop table t", "DROP TABLE"),
        ("select 1; drop table t", "DROP TABLE"),
        ("insert into t values ('returning')", "INSERT"),
        ("insert into t select (returning) from u", "INSERT"),
        ('update t set i = 1 where "returning"', "UPDATE"),
        ("with a as (delete from t where x) select 1", "DELETE"),
        ("explain analyze delete from t where x", "EXPLAIN ANALYZE"),
        ("select 1 into u", "SELECT INTO"),
        ("begin", "BEGIN"),
        ("use d", "USE"),
        ("attach 'a.db' (read_only)", "ATTACH"),
        ("copy t to 'x'", "COPY TO"),
        ("call f()", "CALL"),
    ],
)
def test_which_statement_returns_no_rows(sql: str, name: str) -> None:
    assert first_without_rows(lexed(sql)) == name
