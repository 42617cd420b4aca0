"""The explorer's table: the cursor, columns that move, widen and stay in view, rows in another order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import pytest

from sqlshell.client.results.partitions import PartitionReader
from sqlshell.result import Batch, Column, Result
from sqlshell.shell.explorer.grid import NARROWEST, WIDEST, Grid, GridPosition
from sqlshell.shell.explorer.pages import Pages

Row = list[str | None]


@pytest.fixture(autouse=True)
def _utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


def grid(columns: Sequence[Column], *partitions: Sequence[Row]) -> Grid:
    """A grid of these partitions, of which the first is in memory."""

    async def fetch(number: int) -> Batch:
        return Batch(len(columns), rows=list(partitions[number]), number=number)

    async def opened() -> Grid:
        batches = PartitionReader(fetch, await fetch(0), len(partitions), 1)
        counts = [len(rows) for rows in partitions]
        pages = Pages(Result(list(columns), batches, row_counts=counts, partition=fetch))
        await pages.open()
        return Grid(pages)

    return asyncio.run(opened())


def numbers(count: int) -> Grid:
    return grid([Column("n", "INTEGER"), Column("s")], [[str(number), f"row {number}"] for number in range(count)])


def wide(*widths: int) -> Grid:
    """One row, whose columns have these widths and the names of the alphabet."""
    columns = [Column(chr(ord("a") + number)) for number in range(len(widths))]
    return grid(columns, [["x" * width for width in widths]])


def drawn(shown: Grid, width: int, height: int) -> list[str]:
    return ["".join(text for _, text in line) for line in shown.lines(width, height)]


def names(shown: Grid, width: int) -> str:
    """The names of the columns in view."""
    return drawn(shown, width, 2)[0].replace(" ", "").replace("│", "")


def test_a_row_on_the_screen() -> None:
    shown = numbers(2)
    lines = drawn(shown, 24, 5)
    assert [line.split("│")[:2] for line in lines[1:3]] == [["1    0 ", " row 0 "], ["2    1 ", " row 1 "]]
    assert lines[3:] == ["~", ""]
    assert all(len(line) == 24 for line in lines[:3])
    assert all(len(line) == 9 for line in drawn(shown, 9, 3))
    empty = grid([Column("a")], [])
    assert drawn(empty, 20, 4)[1:] == ["~", "", ""]


def test_columns_that_fit() -> None:
    shown = wide(10, 10, 10, 10, 10)
    assert shown.frozen == 1
    # The number of the row takes two cells, and each column three more for its edges.
    assert names(shown, 2 + 5 * 13) == "abcde"
    assert names(shown, 2 + 5 * 13 - 2) == "abcd"
    assert names(shown, 2 + 3 * 13) == "abc"
    shown.go(place=3)
    assert names(shown, 2 + 3 * 13) == "acd"
    assert shown.left == 2
    shown.go(place=1)
    assert names(shown, 2 + 3 * 13) == "abc"
    shown.go(place=4)
    assert names(shown, 2 + 3 * 13) == "ade"
    shown.go(place=0)
    assert names(shown, 2 + 3 * 13) == "ade"
    shown.frozen = 0
    shown.go(place=0)
    assert names(shown, 2 + 3 * 13) == "abc"
    # A column that is too wide is shown as far as there is room.
    assert names(wide(30, 30), 20).startswith("a")


@pytest.mark.parametrize(("width", "frozen"), [(24, 1), (25, 0)])
def test_a_narrow_first_column_stays_in_view(width: int, frozen: int) -> None:
    assert wide(width, 1).frozen == frozen
    assert wide(width).frozen == 0


def test_columns_are_as_wide_as_their_values() -> None:
    shown = grid([Column("a"), Column("long name"), Column("c")], [["xx", None, "x" * 60]])
    assert [item.width for item in shown.columns] == [NARROWEST, 9, WIDEST]
    shown.resize(4)
    assert shown.columns[0].width == NARROWEST + 4
    shown.resize(-20)
    assert shown.columns[0].width == NARROWEST
    shown.resize(1)
    shown.lines(80, 3)
    # A width that was chosen stays.
    assert (shown.columns[0].width, shown.columns[0].chosen, shown.columns[1].chosen) == (NARROWEST + 1, True, False)
    shown.go(place=1)
    shown.resize(-2)
    shown.lines(80, 3)
    assert shown.columns[1].width == 7


def test_a_column_widens_for_rows_that_come_into_view() -> None:
    narrow: Row = ["x"]
    rows: list[Row] = [*[narrow] * 300, ["x" * 20]]
    shown = grid([Column("a")], rows)
    assert shown.columns[0].width == NARROWEST
    shown.lines(80, 3)
    assert shown.columns[0].width == NARROWEST
    shown.go(row=300)
    shown.lines(80, 3)
    assert shown.columns[0].width == 20
    shown.go(row=0)
    shown.lines(80, 3)
    assert shown.columns[0].width == 20


def test_a_place_is_restored_as_far_as_it_is_there() -> None:
    shown = numbers(30)
    for row, top, found in ((0, 0, (0, 1, 0)), (25, 20, (25, 1, 20)), (29, 29, (29, 1, 29)), (99, 99, (29, 1, 29))):
        shown.restore(GridPosition(row, 9, top, 0, 1))
        assert (shown.row, shown.place, shown.top) == found
        assert shown.position == GridPosition(found[0], 1, found[2], 0, 1)


def test_cells_are_selected_from_the_anchor_to_the_cursor() -> None:
    shown = grid([Column(name) for name in "abc"], [["x"] * 3] * 9)
    assert shown.selection() == (range(1), [shown.columns[0]])
    shown.go(5, 2)
    shown.anchor = (3, 1)
    for corner in ((3, 1), (5, 2)):
        assert shown.selection() == (range(3, 6), shown.columns[1:])
        shown.anchor, (shown.row, shown.place) = (5, 2), corner
    shown.anchor, shown.row, shown.place = (1, 1), 0, 1
    marked = [
        [number for number, (style, text) in enumerate(line) if "class:selected" in style and text.strip() == "x"]
        for line in shown.lines(40, 4)[1:]
    ]
    assert [len(each) for each in marked] == [1, 1, 0]


def test_what_is_under_the_mouse() -> None:
    shown = wide(3, 5, 3)
    # 0 and 1 are the number of the row, 2 to 7 the first column with its edges.
    for x, y, expected in (
        (1, 1, None),
        (2, 1, (0, 0)),
        (7, 1, (0, 0)),
        (8, 1, (0, 1)),
        (15, 1, (0, 1)),
        (16, 1, (0, 2)),
        (22, 1, None),
        (8, 0, None),
        (8, 2, None),
    ):
        assert shown.cell_at(x, y, 60) == expected
    tall = numbers(30)
    tall.lines(60, 6)
    tall.go(row=20)
    assert tall.cell_at(4, 1, 60) == (tall.top, 0)
    assert tall.cell_at(4, 2, 60) == (tall.top + 1, 0)


def test_values_that_were_searched_for_are_marked() -> None:
    shown = numbers(4)
    shown.pattern = re.compile("row [13]")
    marked = [
        [text for style, text in line if "class:search" in style and "selected" not in style]
        for line in shown.lines(60, 5)[1:]
    ]
    assert marked == [[], ["row 1"], [], ["row 3"]]
    shown.go(1, 1)
    assert not any("search" in style for style, _ in shown.lines(60, 5)[2])


@pytest.mark.parametrize(
    ("text", "width", "right", "shown"),
    [
        ("ab", 4, False, "ab  "),
        ("ab", 4, True, "  ab"),
        ("abcd", 4, False, "abcd"),
        ("abcde", 4, False, "abc…"),
        ("日本語", 4, False, "日… "),
        ("日本", 4, False, "日本"),
        ("日本", 3, True, "日…"),
        ("ab", 1, False, "…"),
        ("ab", 0, False, ""),
    ],
)
def test_a_text_takes_the_cells_of_its_column(text: str, width: int, right: bool, shown: str) -> None:
    assert numbers(1)._fitted(text, width, right=right) == shown


def test_types_stand_below_the_names_if_there_is_room() -> None:
    shown = grid([Column("n", "INTEGER"), Column("at", "TIMESTAMP(6)")], [["7", "2026-01-01 10:00:00"]])
    assert [line.split("│")[:2] for line in drawn(shown, 40, 12)[:3]] == [
        ["     n ", " at                  "],
        ["   int ", " timestamp           "],
        ["1    7 ", " 2026-01-01 10:00:00 "],
    ]
    assert shown.cell_at(4, 1, 40) is None
    assert shown.cell_at(4, 2, 40) == (0, 0)


def test_an_id_that_repeats_the_number_of_its_row_stands_alone() -> None:
    rows: list[Row] = [[str(number), "x"] for number in range(1, 30)]
    assert drawn(grid([Column("id", "INTEGER"), Column("s")], rows), 20, 3)[1].startswith("   1 │ x ")
    rows[20] = ["7", "x"]
    assert drawn(grid([Column("id", "INTEGER"), Column("s")], rows), 20, 3)[1].startswith(" 1    1 │ x ")
