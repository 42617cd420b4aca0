"""Parts of the explorer: what it refuses, remembers and shows of a value and of a column; the clipboard."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from msgspec.structs import replace

from sqlshell.errors import OutputError, UsageError
from sqlshell.output.typed.text_table import text_table
from sqlshell.result import Batch, Column, Result, Table
from sqlshell.shell.explorer import browsing
from sqlshell.shell.explorer.arrangement import Arrangement, arranged
from sqlshell.shell.explorer.browsing import RememberedPositions, browse
from sqlshell.shell.explorer.summary import ColumnFacts, facts_of, pretty, summary
from sqlshell.shell.interactive import terminal as tty
from sqlshell.shell.interactive.editing.keys import _first_word, _indent
from sqlshell.shell.results.rows import result_of
from sqlshell.shell.results.rows import text_table as table_of_texts
from tests.shell.test_explorer_grid import grid

Made = TypeVar("Made")


def test_what_is_no_table_is_not_browsed() -> None:
    closed: list[bool] = []

    async def batches() -> AsyncGenerator[Batch, None]:
        try:
            yield Batch(1, rows=[["1"]])
        finally:
            closed.append(True)

    async def work() -> None:
        with pytest.raises(UsageError, match="returned no result set to browse"):
            await browse(Result([], batches()), None)
        rows = batches()
        await anext(rows)
        endless = Result([Column("a")], rows)
        endless.endless = cast("Any", object())
        with pytest.raises(UsageError, match="cannot browse an unbounded result"):
            await browse(endless, None)
        assert closed == [True]

    asyncio.run(work())


def test_the_places_of_the_latest_results_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "MOST_PLACES", 2)
    places = RememberedPositions()
    table = table_of_texts(["a"], [["1"]])

    def at(statement_id: str) -> int:
        shown = grid([Column("a")], [[str(number)] for number in range(9)])
        places.restore(replace(table, statement_id=statement_id), shown)
        return shown.row

    for number, name in enumerate(("one", "two", "one", "three", ""), 1):
        shown = grid([Column("a")], [[str(number)] for number in range(9)])
        shown.go(row=number)
        places.keep(replace(table, statement_id=name), shown)
    assert [at(name) for name in ("one", "two", "three", "", "other")] == [3, 0, 4, 0, 0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "NULL"),
        ("", ""),
        ("a\x1bb\n\tc", "a\\x1bb\n\tc"),
        ('{"a":[1,2]}', '{\n  "a": [\n    1,\n    2\n  ]\n}'),
        ("[]", "[]"),
        ("{", "{"),
        ("[1, x", "[1, x"),
        (' {"é": 1}', '{\n  "é": 1\n}'),
    ],
)
def test_a_value_alone(value: str | None, shown: str) -> None:
    assert pretty(Column("a"), value) == shown


async def of(column: Column, values: Sequence[str | None], use: Callable[[Table], Awaitable[Made]]) -> Made:
    table = await text_table(result_of([column], [[value] for value in values]))
    try:
        return await use(table)
    finally:
        table.close()


def facts_of_values(column: Column, values: Sequence[str | None]) -> ColumnFacts:
    return asyncio.run(of(column, values, lambda table: facts_of(table, 0)))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column("n", "INTEGER"), ["-1", "9", "10", "NaN", "x", None]),
        (Column("t"), ["-1", "10", "9", "NaN", "x", None]),
        (Column("b", "VARBINARY"), ["-1", "10", "9", "NaN", "x", None]),
    ],
)
def test_values_are_sorted_as_numbers_then_texts_then_nulls(column: Column, expected: list[str | None]) -> None:
    async def sort(table: Table) -> list[str | None]:
        result = await arranged(table, [column], Arrangement(None, (0, False)), 100)
        return [row[0] async for batch in result.batches for row in batch.rows]

    assert asyncio.run(of(column, [None, "10", "9", "x", "NaN", "-1"], sort)) == expected


def test_the_facts_of_numbers() -> None:
    facts = facts_of_values(Column("n", "DECIMAL(5,2)"), ["1.50", None, "3", "3", "NaN"])
    assert (facts.rows, facts.nulls, facts.distinct) == (5, 1, 3)
    assert facts.numbers is not None
    assert (facts.numbers.least, facts.numbers.most, facts.numbers.mean) == ("1.50", "3", 2.5)
    assert sum(facts.numbers.counts) == 3


def test_the_facts_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    facts = facts_of_values(Column("s"), [*"abbb", None, *"cdefghijkl"])
    assert (facts.numbers, facts.least, facts.most, len(facts.common)) == (None, "a", "l", 10)
    assert facts.common[0] == ("b", 3)
    lines = summary(Column("s\x1b", "VARCHAR"), facts, "all rows").split("\n")
    assert lines[:6] == ["s\\x1b  varchar", "all rows", "", "rows      15", "nulls     1", "distinct  12"]
    assert lines[6:10] == ["min       a", "max       l", "", "█" * 30 + " 3  b"]
    assert lines[10] == "█" * 10 + " 1  a"
    assert facts_of_values(Column("n", "INTEGER"), [None]) == ColumnFacts(1, 1, 0)
    assert summary(Column("n"), ColumnFacts(1, 1, 0), "x").endswith("distinct  0")


@pytest.mark.parametrize("tmux", [False, True])
def test_a_text_is_copied_by_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmux: bool) -> None:
    terminal = tmp_path / "tty"
    monkeypatch.setattr(tty, "Path", lambda _: terminal)
    monkeypatch.setenv("TMUX", "/tmp/tmux,1,0") if tmux else monkeypatch.delenv("TMUX", raising=False)
    data = bytes(tty.MOST_BYTES)
    tty.copy_text(data)
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"
    whole = f"\x1bPtmux;\x1b{sequence}\x1b\\" if tmux else sequence
    assert terminal.read_bytes() == whole.encode()
    with pytest.raises(OutputError, match="too large for the clipboard: 1,048,577 bytes; the limit is 1,048,576"):
        tty.copy_text(data + b"x")
    monkeypatch.setattr(tty, "Path", lambda _: tmp_path / "no" / "tty")
    with pytest.raises(OutputError, match="cannot copy: no terminal"):
        tty.copy_text(b"x")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("from t", "from"),
        (" from t", " from"),
        ("\n  from\nt", "\n  from"),
        ("a\nb c", "a"),
        ("a b\nc", "a"),
        ("from", "from"),
        ("  ", "  "),
    ],
)
def test_the_first_word_of_a_suggestion(text: str, word: str) -> None:
    assert _first_word(text) == word


@pytest.mark.parametrize(
    ("line", "indent"),
    [("select", ""), ("  select", "  "), ("select (", "  "), ("  f[ ", "    "), ("{", "  "), (")", ""), ("", "")],
)
def test_the_indentation_of_the_next_line(line: str, indent: str) -> None:
    assert _indent(line) == indent
