"""The explorer filters, sorts and counts all rows of a large result, as it does those in memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TypeVar

import pytest

from sqlshell.client.http.transport import Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.statements.client import Submission
from sqlshell.client.statements.polling import StatementsClient
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import OutputError
from sqlshell.interface.types import Kind
from sqlshell.output.changes import with_hex
from sqlshell.output.typed.text_table import text_table
from sqlshell.result import Column, Result, Rows
from sqlshell.shell.explorer.arrangement import Arrangement, arranged
from sqlshell.shell.explorer.explorer import pattern
from sqlshell.shell.explorer.grid import Grid
from sqlshell.shell.explorer.pages import Pages
from sqlshell.shell.explorer.summary import facts_of, summary
from sqlshell.shell.results.rows import result_of
from tests.conftest import Served

ROWS = 4_000
"""DuckDB estimates many more, so that the service keeps them as a file."""
SELECT = f"""
select ((i * 7919) % 1009)::integer as code, case when i % 10 = 0 then null else 'Name ' || (i * 37) % 5003 end as name,
       (i % 777) / 8 as score, case when i % 3 = 0 then null else encode('b' || i % 11) end as bytes,
       timestamptz '2024-01-01 00:00:00+00' + to_hours(i % 1000) as at, (i * 31 % 997)::hugeint as big
from (select range // 100 from range({100 * ROWS}) where range % 100 = 0) t(i)
"""
CONTEXT = SessionContext(timezone="Europe/Berlin")

Made = TypeVar("Made")


def with_result(served: Served, work: Callable[[Pages, Rows], Awaitable[Made]]) -> Made:
    """Do something with the pages of the result, and all its rows as they are shown."""

    async def with_pages(result: Result, rows: Rows) -> Made:
        pages = Pages(result)
        await pages.open()
        try:
            return await work(pages, rows)
        finally:
            await pages.close()

    return with_unread(served, with_pages)


def with_unread(served: Served, work: Callable[[Result, Rows], Awaitable[Made]]) -> Made:
    """Do something with the result before any of its rows is read, and all its rows as they are shown."""

    statement, rows = _submitted(served)

    async def read(client: StatementsClient) -> Made:
        async for result in client.fetch(statement, CONTEXT):
            return await work(result, rows)
        raise AssertionError("no result")

    return _with_client(served, read)


@cache
def _submitted(served: Served) -> tuple[str, Rows]:
    """The result's statement, and all its rows as they are shown; it runs once for all tests."""

    async def submit(client: StatementsClient) -> tuple[str, Rows]:
        rows: Rows = []
        async for result in client.run(Submission(SELECT, repeatable=True), CONTEXT):
            async for batch in result.batches:
                rows += with_hex(batch.rows, result.columns)
            statement = result.statement_id
        return statement, rows

    return _with_client(served, submit)


def _with_client(served: Served, work: Callable[[StatementsClient], Awaitable[Made]]) -> Made:
    async def run() -> Made:
        transport = Transport(parse(served.url), served.token)
        try:
            return await work(StatementsClient(transport, ResultFactory(transport), None))
        finally:
            await transport.aclose()

    return asyncio.run(run())


async def all_of(result: Result) -> list[tuple[int, list[str | None]]]:
    """The number of each row of an arrangement, and the row as it is shown."""
    pages = Pages(result)
    await pages.open()
    found = []
    for number in pages.partitions():
        await pages.load(number)
        shown = [pages.row(at) for at in pages.rows_of(number)]
        found += [(int(row[-1] or 0), row[:-1]) for row in shown if row is not None]
    assert len(found) == pages.total
    return found


def as_shown(pages: Pages) -> list[Column]:
    """The columns, but text where bytes are shown as hexadecimal digits."""
    return [column if column.kind is not Kind.BYTES else Column(column.name) for column in pages.columns]


@pytest.mark.parametrize(
    ("keep", "down"),
    [
        (None, False),
        (None, True),
        ((1, "ame 1\\d+$"), True),
        ((3, "6234"), False),
        ((4, "T1"), True),
        ((1, "(no"), True),
    ],
)
def test_all_rows_are_arranged_as_those_in_memory(served: Served, down: bool, keep: tuple[int, str] | None) -> None:
    async def work(pages: Pages, rows: Rows) -> None:
        table = await pages._file()
        assert table is not None
        wanted = (keep[0], pattern(keep[1])) if keep is not None else None
        columns = as_shown(pages)
        texts = await text_table(result_of(columns, rows))
        for at in range(len(columns)):
            order = Arrangement(wanted, (at, down))
            expected = await all_of(await arranged(texts, columns, order, 1_500))
            assert await all_of(await arranged(table, pages.columns, order, 1_500)) == expected
        texts.close()

    with_result(served, work)


def test_statistics_of_all_rows_are_those_of_the_same_rows_in_memory(served: Served) -> None:
    async def work(pages: Pages, rows: Rows) -> None:
        table = await pages._file()
        assert table is not None
        texts = await text_table(result_of(as_shown(pages), rows))
        for at, column in enumerate(pages.columns):
            assert summary(column, await facts_of(table, at), "") == summary(column, await facts_of(texts, at), "")
        texts.close()

    with_result(served, work)


def test_a_line_has_the_number_of_its_row(served: Served) -> None:
    async def work(pages: Pages, rows: Rows) -> None:
        table = await pages._file()
        assert table is not None
        grid = Grid(pages)
        source = Pages(await arranged(table, pages.columns, Arrangement(None, (0, True)), 1000))
        await source.open()
        grid.show(source)
        assert grid.count == ROWS
        number = grid.number(0)
        assert number is not None
        assert grid.line(0) is not None
        assert rows[number][0] == "1008" == max(rows, key=lambda row: int(row[0] or 0))[0]
        # A row that is not in memory has a place, but no number yet.
        assert (grid.line(3_500), grid.number(3_500)) == (None, None)
        await source.load_row(3_500)
        assert grid.number(3_500) is not None
        grid.show(pages)
        assert grid.number(3_500) == 3_500

    with_result(served, work)


def test_a_pattern_that_duckdb_refuses_is_an_error_and_leaves_the_table_usable(served: Served) -> None:
    async def work(pages: Pages, rows: Rows) -> None:
        table = await pages._file()
        assert table is not None
        with pytest.raises(OutputError):
            await arranged(table, pages.columns, Arrangement((1, pattern("(?=x)"))), 1000)
        assert len(await all_of(await arranged(table, pages.columns, Arrangement(), 1_500))) == ROWS

    with_result(served, work)


def test_a_canceled_query_is_interrupted(served: Served) -> None:
    async def work(pages: Pages, rows: Rows) -> None:
        table = await pages._file()
        assert table is not None
        begun = threading.Event()

        def note(number: int) -> int:
            begun.set()
            return number

        table.connection.create_function("begun", note, ["BIGINT"], "BIGINT")
        endless = table.query("SELECT max(begun(range)) FROM range(1000000000000)")
        running = asyncio.ensure_future(endless)
        await asyncio.to_thread(begun.wait)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        ((count,),) = await table.query(f"SELECT count(*) FROM {table.source}")
        assert count == ROWS

    with_result(served, work)
