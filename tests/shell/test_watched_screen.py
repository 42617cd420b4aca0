"""The screen of \\watch: each result in place of the one before it, as far as the terminal has room."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sqlshell.result import Batch, Column, Result
from sqlshell.shell.results.rows import collect
from sqlshell.shell.running.repeating import Repeat, _changes, _View


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> tuple[_View, list[str]]:
    """A view on a terminal of 20 columns and 6 rows, and what it draws."""
    found: list[str] = []
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((20, 6)))
    output = SimpleNamespace(draw=found.append)
    parts = cast("Any", SimpleNamespace(session=None, result_output=output, diagnostics=None))
    return _View(parts, Repeat(1.0)), found


def lines(text: str) -> list[str]:
    return text.removeprefix("\x1b[?7l").removesuffix("\r\n\x1b[?7h").rpartition("\r\x1b[J")[2].split("\r\n")


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (1, ["line 0"]),
        (5, [f"line {number}" for number in range(5)]),
        (6, ["line 0", "line 1", "line 2", "line 3", "… 2 more lines"]),
        (9, ["line 0", "line 1", "line 2", "line 3", "… 5 more lines"]),
    ],
)
def test_lines_that_do_not_fit_are_counted(drawn: tuple[_View, list[str]], count: int, shown: list[str]) -> None:
    view, found = drawn
    view._draw([f"line {number}" for number in range(count)])
    assert lines(found[0]) == shown
    assert "A" not in found[0]
    view._draw(["x" * 30])
    assert found[1].startswith(f"\x1b[?7l\x1b[{len(shown)}A\r\x1b[J")
    assert lines(found[1]) == ["x" * 19 + "…"]


def test_a_low_terminal_has_three_lines(drawn: tuple[_View, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((20, 2)))
    view, found = drawn
    view._draw(["a", "b", "c", "d"])
    assert lines(found[0]) == ["a", "b", "… 2 more lines"]


def test_cells_that_changed() -> None:
    assert _changes([], [["1"]]) == frozenset()
    assert _changes([["1", "2"], ["3", None]], [["1", "x"], ["3", None]]) == {(0, 1)}
    assert _changes([["1"]], [["1", "2"], ["3", "4"]]) == {(0, 1), (1, 0), (1, 1)}
    assert _changes([["1"], ["2"]], [["1"]]) == frozenset()


@pytest.mark.parametrize(
    ("most", "endless", "read", "rows", "complete"),
    [
        (9, False, 3, 6, True),
        (6, False, 3, 6, True),
        (6, True, 3, 6, False),
        (5, False, 3, 5, False),
        (4, False, 3, 4, False),
        (4, True, 2, 4, False),
        (3, False, 2, 3, False),
        (1, False, 1, 1, False),
    ],
)
def test_no_more_is_read_than_is_shown(most: int, endless: bool, read: int, rows: int, complete: bool) -> None:
    async def work() -> None:
        count = 0
        closed: list[bool] = []

        async def batches() -> AsyncGenerator[Batch, None]:
            nonlocal count
            try:
                for _ in range(3):
                    count += 1
                    yield Batch(1, rows=[["a"], ["b"]])
            finally:
                closed.append(True)

        result = Result([Column("a")], batches())
        result.endless = cast("Any", object()) if endless else None
        summary, found = await collect(result, most)
        assert (count, summary.rows, len(found), summary.complete) == (read, rows, rows, complete)
        assert closed == [True]

    asyncio.run(work())
