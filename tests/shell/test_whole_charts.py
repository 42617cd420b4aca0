"""\\chart draws all rows of a large result, as it does those in memory."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from sqlshell.errors import UsageError
from sqlshell.result import Batch, Partitions, Result, Rows
from sqlshell.shell.charts.charts import Chart
from sqlshell.shell.charts.drawn_rows import chart
from sqlshell.shell.commands import results
from sqlshell.shell.explorer.pages import Pages
from tests.conftest import Program, Served
from tests.shell.test_whole_rows import with_result, with_unread


@pytest.mark.parametrize(
    "words",
    [
        "",
        "bar name score code",
        "line code score big",
        "line at score",
        "scatter score code at name",
        "line name score",
        "scatter name score code",
        "hist code",
        "hist score",
        "hist big",
        "heat name big score",
        "heat at code score",
    ],
)
def test_all_rows_are_drawn_as_those_in_memory(served: Served, words: str) -> None:
    async def work(pages: Pages, rows: Rows) -> None:
        table = await pages._file()
        assert table is not None
        made = await chart(table, pages.columns, words.split())
        wanted = await results._chart_of_rows(pages.columns, rows, words.split())
        assert made is not None
        assert (made.kind, made.x, made.y, made.labels, made.rows, made.notes, made.moments) == (
            wanted.kind,
            wanted.x,
            wanted.y,
            wanted.labels,
            wanted.rows,
            wanted.notes,
            wanted.moments,
        )
        for one, other in zip(made.series, wanted.series, strict=True):
            assert one.xs == other.xs
            assert one.ys == pytest.approx(other.ys, nan_ok=True)
        assert points_of(made)

    with_result(served, work)


def points_of(figure: Chart) -> int:
    return sum(not math.isnan(y) for item in figure.series for y in item.ys)


def test_more_texts_than_an_axis_has_places(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlshell.shell.charts.drawn_rows.MOST_TEXTS", 1)

    async def work(pages: Pages, rows: Rows) -> None:
        table = await pages._file()
        assert table is not None
        assert await chart(table, pages.columns, ["line", "name", "score"]) is None

    with_result(served, work)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("hist name", "name contains no numbers to count"),
        ("scatter code name", "code and name contain no points"),
        ("nope", 'no column "nope"'),
    ],
)
def test_what_cannot_be_drawn(served: Served, words: str, said: str) -> None:
    async def work(pages: Pages, rows: Rows) -> None:
        table = await pages._file()
        assert table is not None
        with pytest.raises(UsageError, match=said):
            await chart(table, pages.columns, words.split())

    with_result(served, work)


class Noted:
    """Batches that note whether they are closed."""

    def __init__(self, batches: Partitions) -> None:
        self._batches = batches
        self.closed = False

    def __aiter__(self) -> Noted:
        return self

    async def __anext__(self) -> Batch:
        return await anext(aiter(self._batches))

    async def aclose(self) -> None:
        self.closed = True
        await self._batches.aclose()


@pytest.mark.parametrize(
    ("words", "texts", "came", "closed"),
    [
        ("hist code", 100, "drawn", True),
        ("line name score", 1, "undrawn", False),
        ("hist name", 100, "refused", True),
    ],
)
def test_the_partitions_of_a_whole_chart_are_not_read(
    served: Served, monkeypatch: pytest.MonkeyPatch, words: str, texts: int, came: str, closed: bool
) -> None:
    monkeypatch.setattr("sqlshell.shell.charts.drawn_rows.MOST_TEXTS", texts)
    monkeypatch.setattr(results, "MOST_ROWS", 100)

    async def work(result: Result, rows: Rows) -> None:
        batches = Noted(result.batches)
        try:
            figure = await results._whole_chart(replace(result, batches=batches), words.split())
            assert came == ("undrawn" if figure is None else "drawn")
        except UsageError:
            assert came == "refused"
        assert batches.closed == closed
        if not closed:
            assert sum([len(batch.rows) async for batch in batches]) == len(rows)

    with_unread(served, work)


def test_points_above_texts_of_a_large_result(program: Program) -> None:
    rows = results.MOST_ROWS + 50_000
    texts = "case when i % 3 = 2 then repeat('x', 40) || (i // 3 % 2) else 'text ' || i % 3 end"
    sql = f"select {texts} as t, i // {rows - 1} as last from range({rows}) s(i)"
    ran = program("-c", f"{sql} \\chart scatter t last")
    assert (ran.code, "only the first" in ran.err) == (0, False), ran.err
    assert "text 1" in ran.out


def test_a_large_result_is_drawn_whole(program: Program) -> None:
    rows = results.MOST_ROWS + 50_000
    ran = program("-c", f"select range as n from range({rows}) \\chart hist n")
    assert (ran.code, "only the first" in ran.err) == (0, False), ran.err
    assert sum(int(line.rpartition(" ")[2].replace(",", "")) for line in ran.out.splitlines()[1:]) == rows
