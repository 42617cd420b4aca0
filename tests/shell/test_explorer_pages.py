"""The explorer keeps few partitions in memory, limited by rows and bytes, and can show every row."""

from __future__ import annotations

import asyncio
import json

import pytest
from msgspec.structs import replace
from prompt_toolkit.styles import default_ui_style, merge_styles

from sqlshell.client.results.partitions import PartitionReader
from sqlshell.result import Batch, Column, Result
from sqlshell.shell.explorer import pages
from sqlshell.shell.explorer.browsing import RememberedPositions
from sqlshell.shell.explorer.grid import Grid
from sqlshell.shell.explorer.pages import Pages
from sqlshell.shell.interactive.look.themes import load


def result(widths: list[int], *, told: bool) -> Result:
    """A result with a partition of two rows for each of `widths`."""
    bodies = [
        json.dumps({"data": [[f"{number}"], ["x" * width]]}, separators=(",", ":")).encode()
        for number, width in enumerate(widths)
    ]

    async def fetch(number: int) -> Batch:
        return Batch(1, body=bodies[number], number=number)

    first = Batch(1, body=bodies[0])
    counts = [2] * len(widths) if told else None
    batches = PartitionReader(fetch, first, len(widths), 2)
    return Result([Column("a")], batches, row_counts=counts, partition=fetch if told else None)


def test_what_is_kept_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_BYTES", 1000)

    async def walk() -> list[int]:
        made = Pages(result([10] * 20 + [2000] * 5 + [10] * 20, told=True))
        await made.open()
        here = []
        for number in [*range(45), *reversed(range(45))]:
            row = await made.load_row(2 * number)
            assert row == [str(number)]
            here.append(sum(1 for _ in made.loaded_rows()) // 2)
        return here

    here = asyncio.run(walk())
    assert here[:20] == list(range(1, 21))
    assert set(here[21:25]) == {2}
    assert here[-1] == 20


def test_what_can_only_be_read_from_its_beginning_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_SEQUENTIAL_BYTES", 1000)

    async def look(widths: list[int]) -> tuple[int, bool]:
        made = Pages(result(widths, told=False))
        await made.open()
        return made.total, made.truncated

    assert asyncio.run(look([300] * 20)) == (8, True)
    assert asyncio.run(look([3] * 20)) == (40, False)


def test_bytes_are_seen_as_hexadecimal_digits_and_left_as_they_came() -> None:
    async def look() -> tuple[object, object, object]:
        batches = PartitionReader(_nothing, Batch(1, rows=[["YWI="], [None]]), 1, 1)
        made = Pages(Result([Column("b", "VARBINARY")], batches, row_counts=[2], partition=_nothing))
        await made.open()
        return made.row(0), [row for _, row in made.loaded_rows()], made.original(0)

    async def _nothing(number: int) -> Batch:
        raise AssertionError(f"partition {number} is here already")

    assert asyncio.run(look()) == (["\\x6162"], [["\\x6162"], [None]], ["YWI="])


def test_a_result_is_left_and_found_at_the_same_place() -> None:
    async def work() -> None:
        shown = replace(result([10] * 40, told=True), statement_id="one")
        made = Pages(shown)
        await made.open()
        grid, places = Grid(made), RememberedPositions()
        grid.lines(60, 20)
        grid.go(row=30)
        grid.lines(60, 20)
        grid.go(row=25)
        before = grid.lines(60, 20)
        assert (grid.row, grid.top) == (25, 13)
        places.keep(shown, grid)
        again, other = Grid(made), Grid(made)
        places.restore(shown, again)
        assert again.lines(60, 20) == before
        places.restore(replace(shown, statement_id="another"), other)
        assert (other.row, other.top) == (0, 0)

    asyncio.run(work())


@pytest.mark.parametrize(("state", "extent"), [("00000", "all rows"), ("01R01", "only the first 6 rows")])
def test_statistics_say_whether_the_result_was_stopped_at_the_row_limit(state: str, extent: str) -> None:
    async def look() -> tuple[bool, str]:
        made = Pages(replace(result([1, 1, 1], told=True), sql_state=state))
        await made.open()
        return made.limited, made.extent

    assert asyncio.run(look()) == (state == "01R01", extent)


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_table_has_the_characters_of_the_locale(monkeypatch: pytest.MonkeyPatch, locale: str) -> None:
    monkeypatch.setenv("LC_ALL", locale)

    async def look() -> str:
        made = Pages(replace(result([3] * 40, told=True), statement_id="one"))
        await made.open()
        return "".join(text for line in Grid(made).lines(7, 60) for _, text in line)

    assert asyncio.run(look()).isascii() == (locale == "C")


def test_nested_values_in_a_cell_are_those_of_a_table() -> None:
    columns = [Column("s", "STRUCT<a INTEGER, b VARCHAR>"), Column("m", "MAP<INTEGER, VARCHAR>"), Column("t")]
    row: list[str | None] = ['{"a":1,"b":"x\x1b"}', '{"1":"y"}', '{"a":1}']

    async def look() -> str:
        batches = PartitionReader(_nothing, Batch(3, rows=[row]), 1, 1)
        made = Pages(Result(columns, batches, row_counts=[1], partition=_nothing))
        await made.open()
        return "".join(text for _, text in Grid(made).lines(80, 2)[1])

    async def _nothing(number: int) -> Batch:
        raise AssertionError(f"partition {number} is here already")

    assert asyncio.run(look()).split("│")[:3] == ['1  {"a": 1, "b": "x\\x1b"} ', ' {"1": "y"} ', ' {"a":1} ']


def test_values_have_the_colors_of_a_table() -> None:
    columns = [Column("n", "BIGINT"), Column("b", "BOOLEAN"), Column("d", "DATE"), Column("s", "STRUCT<a INTEGER>")]
    row: list[str | None] = ["-1234567", "true", "2026-01-02", '{"a":1}']

    async def look() -> list[tuple[str, str]]:
        batches = PartitionReader(_nothing, Batch(2, rows=[row, row]), 1, 1)
        made = Pages(Result(columns, batches, row_counts=[2], partition=_nothing))
        await made.open()
        grid = Grid(made)
        grid.lines(80, 3)
        return [(style, text) for style, text in grid.lines(80, 3)[2] if text.strip() not in {"", "│"}]

    async def _nothing(number: int) -> Batch:
        raise AssertionError(f"partition {number} is here already")

    assert asyncio.run(look()) == [
        ("class:continuation", "2 "),
        ("class:negative", "-1"),
        ("class:digits", "234"),
        ("class:negative", "567"),
        ("class:boolean", "true"),
        ("class:date", "2026-01-02"),
        ("", "{"),
        ("class:id", '"a"'),
        ("", ": 1}"),
    ]


def test_a_selected_null_has_the_colors_of_the_selection() -> None:
    async def look() -> str:
        batches = PartitionReader(_nothing, Batch(1, rows=[[None]]), 1, 1)
        made = Pages(Result([Column("a")], batches, row_counts=[1], partition=_nothing))
        await made.open()
        return next(style for style, text in Grid(made).lines(20, 2)[1] if text.strip() == "NULL")

    async def _nothing(number: int) -> Batch:
        raise AssertionError(f"partition {number} is here already")

    style = merge_styles([default_ui_style(), load("paper").style()])
    (selected,) = {style.get_attrs_for_style_str(each) for each in (asyncio.run(look()), "class:selected")}
    assert selected.bgcolor
