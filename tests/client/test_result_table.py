"""A result's file as a table: its queries, what they may reach, and that nothing of it remains."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import duckdb
import pytest

from sqlshell.client.results.result_table import ResultTable, open_duckdb
from sqlshell.errors import OutputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "of the table"
    made.mkdir()
    with duckdb.connect() as maker:
        maker.execute(f"COPY (SELECT i AS c0, 'row ' || i AS c1 FROM range(5) t(i)) TO '{made / 'f'}' (FORMAT parquet)")
    return made


def using(folder: Path, work: Callable[[ResultTable], Awaitable[None]]) -> ResultTable:
    async def whole() -> ResultTable:
        table = ResultTable(folder, folder / "f", [], lambda text: text.replace(b"row 3", b"***"))
        try:
            await work(table)
        finally:
            await table.aclose()
        return table

    return asyncio.run(whole())


def test_queries_of_a_table(folder: Path) -> None:
    async def work(table: ResultTable) -> None:
        found = await table.query(f"SELECT c0 FROM {table.source} WHERE file_row_number > 2 ORDER BY c0 DESC")
        assert found == [(4,), (3,)]
        assert await table.texts(f"SELECT [c1, NULL] FROM {table.source} WHERE c0 IN (2, 3) ORDER BY c0") == [
            ["row 2", None],
            ["***", None],
        ]
        with pytest.raises(OutputError) as caught:
            await table.query("SELECT * FROM nowhere")
        assert caught.value.message.startswith("cannot read the result: Catalog Error")
        assert "\n" not in caught.value.message
        assert await table.query("SELECT 1") == [(1,)]

    using(folder, work)


def test_nothing_of_a_table_remains(folder: Path) -> None:
    async def work(table: ResultTable) -> None:
        (folder / "spilled").mkdir(exist_ok=True)
        assert await table.query("SELECT 1") == [(1,)]

    table = using(folder, work)
    assert not folder.exists()
    with pytest.raises(duckdb.ConnectionException):
        table._root.execute("SELECT 1")
    with pytest.raises(RuntimeError, match="shutdown"):
        table._threads.submit(print)


ENDLESS = "SELECT sum(tick(i)) FROM range(1000000000000) t(i)"


def beginning(table: ResultTable) -> asyncio.Event:
    """An event that is set when the query ENDLESS runs."""
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def tick(number: int) -> int:
        if number == 0:
            loop.call_soon_threadsafe(begun.set)
        return number

    table._root.create_function("tick", tick, ["BIGINT"], "BIGINT")
    return begun


def test_a_query_that_nobody_waits_for_ends(folder: Path) -> None:
    async def work(table: ResultTable) -> None:
        begun = beginning(table)
        endless = asyncio.ensure_future(table.query(ENDLESS))
        await begun.wait()
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        # Queries run one after another: this one would wait for the other.
        assert await table.query("SELECT 1") == [(1,)]

    using(folder, work)


def test_a_table_that_is_closed_does_not_wait_for_its_query(folder: Path) -> None:
    async def work(table: ResultTable) -> None:
        begun = beginning(table)
        table._threads.submit(table._run, ENDLESS).add_done_callback(lambda done: done.exception())
        await begun.wait()

    using(folder, work)
    assert not folder.exists()


@pytest.mark.parametrize(("large", "spilled"), [(False, False), (True, False), (False, True)])
def test_the_settings_of_an_instance(folder: Path, large: bool, spilled: bool) -> None:
    names = ["memory_limit", "parquet_metadata_cache", "arrow_large_buffer_size", "temp_directory"]
    place = folder / "spilled" if spilled else None
    instance = open_duckdb(folder / "f", large=large, spilled=place)
    try:
        found = instance.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in names)).fetchone()
        assert found == ("366.2 MiB" if spilled else "1.1 GiB", True, large, str(place or ""))
        if spilled:
            assert instance.execute("SELECT current_setting('max_temp_directory_size')").fetchone() == ("14.9 GiB",)
        with pytest.raises(duckdb.PermissionException):
            instance.execute("FROM read_text('/etc/hostname')")
    finally:
        instance.close()
