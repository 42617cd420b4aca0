"""The table of a whole result that a chart reads is closed, whatever becomes of the chart."""

from __future__ import annotations

import asyncio

import pytest

from sqlshell.errors import OutputError
from sqlshell.result import Result
from sqlshell.shell.charts.charts import Chart
from sqlshell.shell.commands import results
from sqlshell.shell.commands.results import _whole_chart
from tests.shell.test_explorer_screen import COLUMNS, Held, Partitions, Whole, numbered


async def large(whole: Held | Whole) -> Result:
    partitions = Partitions([row[:2] for row in numbered(2)], [row[:2] for row in numbered(2)], columns=COLUMNS[:2])
    result = await partitions.result()
    result.whole = whole  # type: ignore[assignment]
    return result


@pytest.mark.parametrize(("most", "asked"), [(3, True), (4, False)])
def test_the_table_is_read_if_there_are_more_rows_than_are_read_otherwise(
    monkeypatch: pytest.MonkeyPatch, most: int, asked: bool
) -> None:
    monkeypatch.setattr(results, "MOST_ROWS", most)

    async def work() -> tuple[Chart | None, Held, Result]:
        held = Held()
        result = await large(held)
        return await _whole_chart(result, ["hist", "id"]), held, result

    figure, held, _ = asyncio.run(work())
    assert ((figure.series[0].ys, figure.labels) if figure else None) == (
        ([1.0, 1.0, 1.0, 1.0], ["0", "1", "2", "3"]) if asked else None
    )
    assert held.closed == asked


def test_the_table_is_closed_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MOST_ROWS", 3)

    async def work() -> None:
        held = Held()
        held.error = OutputError("gone")
        result = await large(held)
        with pytest.raises(OutputError, match="gone"):
            await _whole_chart(result, [])
        assert held.closed
        assert await anext(result.batches, None) is None

    asyncio.run(work())


def test_the_rows_are_left_where_the_service_has_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MOST_ROWS", 3)

    async def work() -> None:
        whole = Whole()
        result = await large(whole)
        assert await _whole_chart(result, ["hist", "id"]) is None
        assert whole.asked == 1
        assert [len(batch.rows) async for batch in result.batches] == [2, 2]

    asyncio.run(work())
