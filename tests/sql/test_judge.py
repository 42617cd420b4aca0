"""The check for writing reads a statement as DuckDB does: whitespace, functions, and texts that are
meant to take long.
"""

from __future__ import annotations

import re

import duckdb
import pytest

from sqlshell.shell.commands.arguments import _NAME as argument_name
from sqlshell.sql.analysis.effects import effects
from sqlshell.sql.analysis.kinds import is_repeatable
from sqlshell.sql.analysis.secrets import redacted
from sqlshell.sql.analysis.tokens import FOREIGN, tokens
from sqlshell.sql.completion.expected import expected
from sqlshell.sql.duckdb_types import duckdb_type
from sqlshell.sql.identifiers import Pattern
from sqlshell.sql.lexer import SqlshellLexer
from sqlshell.sql.script.splitting import complete, split

BLANKS = {chr(code) for code in range(0x10000) if re.match(f"[ \t\n\r\f\v{FOREIGN}]", chr(code))}
READING = {"uuid", "random"}
"""What DuckDB marks as having effects, which change nothing that lasts."""


def test_blanks_are_those_of_duckdb() -> None:
    """Each character of the plane between two words that are one word where it is a letter."""
    with duckdb.connect() as engine:
        found = set()
        for number in [*range(1, 0xD800), *range(0xE000, 0x10000)]:
            char = chr(number)
            # The tokenizer is asked about many at once: a blank ends the word before it.
            if not char.isalnum():
                found.add(char)
        blanks = {char for char in found if _is_blank(engine, char)}
    assert blanks == BLANKS


def _is_blank(engine: duckdb.DuckDBPyConnection, char: str) -> bool:
    """Whether `selectCHAR1` is a query; a sign of an operator is none, for it stands at no start either."""
    if char in "+-.@~!":
        return False
    try:
        return bool(engine.execute(f"{char}select{char}4711{char}").fetchall() == [(4711,)])
    except duckdb.Error:
        return False


def test_no_function_that_writes_is_repeated() -> None:
    with duckdb.connect() as engine:
        listed = engine.execute("select function_name from duckdb_functions() where has_side_effects").fetchall()
    assert {name for (name,) in listed if is_repeatable(f"select {name}(x)")} <= READING


@pytest.mark.parametrize("blank", sorted(BLANKS))
def test_a_blank_hides_no_statement(blank: str) -> None:
    for sql in (f"delete{blank}from{blank}t", f"with x as ({blank}copy{blank}(select 1) to 'f') select 1"):
        assert any(item.writes for item in effects(sql))
        assert not is_repeatable(sql)
    assert not effects(f"select{blank}1")[0].writes
    assert is_repeatable(f"with x as ({blank}select 1) select * from x")


MANY = 8_000
HOSTILE = (
    "(" * MANY,
    ")" * MANY,
    "'" * (MANY + 1),
    '"' * (MANY + 1),
    "`" * (MANY + 1),
    "\\'" * MANY,
    "e'" * MANY,
    "$a$ $b " * MANY,
    "$" * MANY,
    "[" * MANY,
    " " * MANY,
    "\n" * MANY,
    "\u200b" * MANY,
    "/**/" * MANY + "delete",
    "explain" + "/**/" * MANY + "analyze delete from t",
    "/* " * MANY,
    "/*/" * MANY,
    "*/" * MANY,
    "--\n" * MANY,
    "-" * MANY,
    "with x as (" * MANY,
    "explain analyze " * MANY,
    "(copy " * MANY,
    "f(a," * MANY,
    "select " + ", f(a)" * MANY,
    "password = " * MANY,
    "token " + "'a' " * MANY,
    "'a' || " * MANY,
    "://a:" * MANY,
    "a:" * MANY + "@",
    "'token" + ":" * MANY,
    "'password" + "a" * MANY,
    "'" + "x.token." * MANY,
    "create secret (" * MANY,
    "create " * MANY + "secret (",
    "-- password\n" * MANY,
    "begin application " * MANY,
    "case " * MANY,
    "create function f begin atomic " + "case " * MANY,
    "select 1 " + "# " * MANY + "\n",
)


@pytest.mark.parametrize("sql", HOSTILE, ids=lambda text: repr(text[:20]))
@pytest.mark.usefixtures("bounded")
def test_no_text_takes_for_ever(sql: str) -> None:
    assert len(effects(sql)) >= 0
    assert is_repeatable(sql) in {True, False}
    assert redacted(sql) is not None
    assert sum(len(token.text) for token in tokens(sql)) <= len(sql)
    assert split(sql) is not None
    assert complete(sql) in {True, False}
    assert sum(len(text) for _, text in SqlshellLexer().get_tokens(sql[:8_000])) == len(sql[:8_000])


@pytest.mark.usefixtures("bounded")
def test_names_and_types_take_no_longer() -> None:
    assert not Pattern("*a*a*a*a*a*b").matches("a" * 5_000)
    assert not Pattern("*" * 30 + "b").matches("a" * 5_000)
    assert Pattern("*a*b?*c").matches("xxaybzc")
    assert not Pattern("a*b*a").matches("ab")
    assert Pattern("a*a").matches("aa")
    assert not Pattern("a*a").matches("a")
    for text in ('"' * MANY, '"a"' * MANY, '"a".' * MANY, "a." * MANY):
        assert argument_name.match(text) is not None
        assert expected(text, len(text)) is not None
    assert duckdb_type(f"STRUCT<a INT{' ' * MANY}x>") is not None
