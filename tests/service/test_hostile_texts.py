"""Texts that are meant to take long to read take no longer than others of the same length."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from functools import partial
from typing import Any

import pytest

from sqlshell.service.dialect import changes, lexer
from sqlshell.service.engines.duckdb.copying import check_files, copied_out
from sqlshell.service.engines.duckdb.statement import check_setting
from sqlshell.service.failure import Failure
from sqlshell.service.objects.grammar import INTERFACE
from sqlshell.service.objects.query import Application
from sqlshell.service.objects.relation import without_key
from sqlshell.service.statements.texts import read_text, redacted_statements
from sqlshell.sql.analysis.tokens import first_word
from sqlshell.sql.script.splitting import split

N = 20_000

TEXTS = {
    "empty comments": "/**/" * (N // 4) + "x",
    "blanks": " " * N + "x",
    "unclosed comments": "create " + "/*" * (N // 2),
    "comments before a name": "create database" + "/**/ " * (N // 5),
    "blanks in a statement": "create or replace database" + " " * N + "!",
    "quotes": "create database " + "'" * (N + 1),
    "double quotes": 'create database "' + '""' * (N // 2),
    "parts of a name": "drop database " + "a . " * (N // 4),
    "options": "create store x with (" + "a=b," * (N // 4) + "!)",
    "columns": "create stream x (" + "a int, " * (N // 7) + "primary key (a))",
    "types": "create stream x (a " + "array<" * (N // 6) + "int)",
    "options of a table": "create table x with (" + "'a' = 'b', " * (N // 11) + "!) as select 1",
    "a table and its columns": "create table x (" + "a int, " * (N // 7) + "b int) with (a = b) as select 1",
    "backticks": "drop relation " + "`" * (N + 1),
    "dots": "list entities in " + "a." * (N // 2),
    "numbers": "create store x with (a = " + "1e+" * (N // 3) + ")",
    "values": "insert into entity e value " + "('a')," * (N // 6),
    "a function's types": "create function f (x int) returns " + "array<" * (N // 6) + "int",
    "parentheses before a select": "insert into x " + "(" * N + "select 1",
    "names of columns": "insert into x (" + "a, " * (N // 3) + "b) select 1",
    "brackets": "create stream x " + "(" * N,
    "a long name": "drop database " + "a" * N + " x",
    "ends of an application": "begin application x " + "end application " * (N // 16) + "x",
    "conflicts": "insert into s " + "on conflict " * (N // 12),
    "explained": "explain (" * (N // 9),
    "dollars": "select " + "$a$ " * (N // 4),
    "settings": "set " + "/*" * (N // 2),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
@pytest.mark.usefixtures("bounded")
def test_a_text_is_read_in_linear_time(text: str) -> None:
    with contextlib.suppress(Failure):
        INTERFACE.read(text)
    changes.read_change(text)
    changes.change_of(text)
    without_key(text)
    for verbs in (lexer.WRITES, lexer.READS):
        lexer.targets(text, verbs)
    first_word(text)
    assert copied_out(text, paths=True) is None
    check_files(text)
    assert not check_setting(text, lambda: "")
    assert split(text) is not None


def test_comments_and_blanks_are_no_part_of_a_statement() -> None:
    asked: Any = INTERFACE.read("/**//**/ use -- x\n database /* y */ d")
    assert (asked.title, asked.names) == ("USE DATABASE", ("d",))
    application = "begin application a create table t (i int); insert into t values (1); end application"
    found = INTERFACE.read(f"/* one */ {application}  ")
    assert isinstance(found, Application)
    assert (found.name, len(found.statements)) == ("a", 2)
    assert INTERFACE.read("begin application a select 1; end application x") is None


def test_the_others_run_while_statements_are_looked_through_for_secrets() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def looked() -> int:
        running = asyncio.ensure_future(others())
        await asyncio.sleep(0)
        before = turns
        given = [f"create table t{number} (a int)" for number in range(2000)]
        given[1500] = "create secret x with ('secret_string' = 'hush')"
        found = await read_text(len(given) * 30, partial(redacted_statements, given), "o")
        running.cancel()
        assert [number for number, item in enumerate(found) if item is not None] == [1500]
        assert found[1500] is not None and "hush" not in found[1500].text
        return turns - before

    assert asyncio.run(looked()) > 0


def test_a_long_text_of_one_organization_delays_only_its_own() -> None:
    """One reader for all of them let 4 MB of one delay others by 10 s."""
    held = threading.Event()
    order: list[str] = []

    async def reads() -> None:
        slow = asyncio.ensure_future(read_text(1 << 20, held.wait, "slow"))
        own = asyncio.ensure_future(read_text(1 << 20, lambda: order.append("own"), "slow"))
        await read_text(1 << 20, lambda: order.append("other"), "other")
        held.set()
        await asyncio.gather(slow, own)

    asyncio.run(reads())
    assert order == ["other", "own"]
