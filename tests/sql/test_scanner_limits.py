"""Hostile and unbounded scripts: only the unfinished statement is kept in memory."""

from __future__ import annotations

import tracemalloc

import pytest

from sqlshell.sql.script.scanner import Scanner, Statement
from sqlshell.sql.script.splitting import split
from tests.sql.test_scanner import fed

pytestmark = pytest.mark.usefixtures("both_ways")

MANY = 30_000


@pytest.mark.parametrize(
    "text",
    [
        *(
            "(" * MANY,
            ")" * MANY,
            "'" * (MANY + 1),
            "`" * MANY,
            "$" * (MANY + 1),
            "\\" * MANY,
            "\\;" * MANY,
            "a" * MANY,
        ),
        *("(a;" * MANY, "e'" * MANY, "e'a'\n" * MANY, "$a$b$c" * MANY, "$" + "a" * MANY),
        f"${'a' * MANY}$" + f"${'a' * (MANY - 1)}$" * 3,
        "create function " + "begin case " * MANY,
        "begin application " + "end; " * MANY,
    ],
)
def test_hostile_text_is_one_statement(text: str) -> None:
    [item] = split(text)
    assert isinstance(item, Statement)
    assert not item.terminated
    assert fed([text[at : at + 61] for at in range(0, len(text), 61)]) == [item]


@pytest.mark.parametrize("text", ["/*" * MANY, "-" * MANY, ";" * MANY, "/* " + "*" * MANY, "/*" + "a; " * MANY])
def test_hostile_text_is_no_statement(text: str) -> None:
    assert split(text) == []
    assert fed([text[at : at + 61] for at in range(0, len(text), 61)]) == []


@pytest.mark.slow("long texts")
def test_many_commands_on_a_line() -> None:
    assert len(split("\\p" * MANY)) == MANY
    assert len(split("select 1" + "\n\\p" * MANY)) == MANY + 1
    assert len(split("select 1 " + "\\p" * MANY)) == MANY + 1


@pytest.mark.slow("long texts")
def test_long_statements_in_small_pieces() -> None:
    text = "insert into a values ('" + "x" * MANY + "', " + ", ".join(["1"] * MANY) + ");"
    assert fed(list(text)) == [Statement(text[:-1], 1, 0, True, ending=";", column=1)]


@pytest.mark.slow("long texts")
def test_only_the_pending_statement_is_held() -> None:
    long = "x;" * 200
    chunk = f"insert into a values (1, '{long}'); -- {long}\nselect E'\\'', $a$;$a$ /* /* e */ */;\n" * 75
    scanner, count = Scanner(), 0
    assert len([*scanner.items(chunk)]) == 150
    tracemalloc.start()
    try:
        for _ in range(4_000_000 // len(chunk)):
            count += len([*scanner.items(chunk)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 4_000_000 // len(chunk) * 150
    assert peak < 30 * len(chunk)
