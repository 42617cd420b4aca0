"""Brackets that are nested deeply are refused before DuckDB parses them; those inside literals and comments count for
nothing.
"""

from __future__ import annotations

import pytest

from sqlshell.service.engines.duckdb.statement import MOST_NESTED, check_nesting
from sqlshell.service.failure import Failure
from tests.conftest import Served
from tests.service.client import Client

DEEP = "(" * (MOST_NESTED + 1)
WIDE = "(" * (3 * MOST_NESTED)


@pytest.mark.parametrize(
    "sql",
    [
        f"select {DEEP}",
        f"select {DEEP}1{')' * len(DEEP)}",
        f"select {'[' * len(DEEP)}",
        f"select {'([{' * MOST_NESTED}",
        f"select e'\\'', {DEEP}",
        f"select '(', \"(\", $$($$, a$b$, {DEEP}",
        f"/* ' */ -- $$\nselect {DEEP}",
        f"select '\ud800', {DEEP}",
    ],
    ids=["open", "closed", "lists", "mixed", "escape", "quotes", "comments", "surrogate"],
)
def test_deep_brackets_are_refused(sql: str) -> None:
    with pytest.raises(Failure, match="nested too deeply") as raised:
        check_nesting(sql)
    assert raised.value.sql_state == "54000"


@pytest.mark.parametrize(
    "sql",
    [
        f"select {'(' * MOST_NESTED}1{')' * MOST_NESTED}",
        f"select '{WIDE}', \"{WIDE}\"",
        f"select e'\\'{WIDE}'",
        f"select $a${WIDE}$a$, $${WIDE}$$",
        f"/* {WIDE} */ select 1 -- {WIDE}",
        f"insert into t values {'(1, (2)), ' * 5000}(1, 2)",
        f"insert into t values {'(1, $$($$), ' * 5000}(1, 2)",
    ],
    ids=["deep", "quotes", "escape", "dollars", "comments", "rows", "rows of brackets"],
)
def test_other_brackets_are_not(sql: str) -> None:
    check_nesting(sql)


@pytest.mark.parametrize("before", ["select ", "explain select ", "list queries where ", "create view v as select "])
def test_a_service_refuses_them_in_every_statement(served: Served, before: str) -> None:
    with Client(served) as client:
        answer = client.run(before + "(" * 2000)
        assert answer["sqlState"] in {"54000", "42601"}, answer
        assert before.startswith("list") or "nested too deeply" in answer["message"], answer
        assert client.rows(f"select {'(' * 400}1{')' * 400}") == [["1"]]
