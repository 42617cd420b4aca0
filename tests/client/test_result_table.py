"""A result's file as a table: its queries, what they may reach, and that nothing of it remains."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from sqlshell.client.http.transport import Transport
from sqlshell.client.results.result_file import QUERY_MEMORY, ResultFile, ResultTable
from sqlshell.client.target import Target
from sqlshell.errors import OutputError
from sqlshell.interface.models import ColumnInfo
from sqlshell.result import Column

COLUMNS = [Column("n", "BIGINT"), Column("s")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "of the table"
    made.mkdir()
    columns = msgspec.json.encode([ColumnInfo("n", "BIGINT"), ColumnInfo("s", "VARCHAR")]).decode()
    with duckdb.connect() as maker:
        maker.execute(
            f"COPY (SELECT i AS c0, 'row ' || i AS c1 FROM range(5) t(i)) TO '{made / 'f'}' "
            f"(FORMAT parquet, KV_METADATA {{columns: '{columns}', instants: '[]'}})"
        )
    return made


def opened(folder: Path, **given: Any) -> ResultTable:
    transport = Transport(Target("http", "127.0.0.1", 1), "")
    transport._secrets.add("row-3-row")
    file = ResultFile(lambda: transport, "/", "id", COLUMNS, 5, 1000, "UTC")
    return ResultTable(folder / "f", file, **given)


def using(folder: Path, work: Callable[[ResultTable], Awaitable[None]]) -> ResultTable:
    async def whole() -> ResultTable:
        table = opened(folder)
        try:
            await work(table)
        finally:
            table.close()
        return table

    return asyncio.run(whole())


def test_queries_of_a_table(folder: Path) -> None:
    async def work(table: ResultTable) -> None:
        found = await table.query(f"SELECT c0 FROM {table.source} WHERE file_row_number > 2 ORDER BY c0 DESC")
        assert found == [(4,), (3,)]
        texts = f"SELECT [if(c0 = 3, 'row-3-row', c1), NULL] FROM {table.source} WHERE c0 IN (2, 3)"
        assert await table.texts(texts) == [["row 2", None], ["***", None]]
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
        table.connection.execute("SELECT 1")
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

    table.connection.create_function("tick", tick, ["BIGINT"], "BIGINT")
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


def test_the_settings_of_an_instance(folder: Path) -> None:
    names = ["memory_limit", "parquet_metadata_cache", "temp_directory", "max_temp_directory_size"]
    table = opened(folder, memory=QUERY_MEMORY)
    found = table.connection.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in names)).fetchone()
    assert found == ("366.2 MiB", True, str(folder / "spilled"), "14.9 GiB")
    with pytest.raises(duckdb.PermissionException):
        table.connection.execute("FROM read_text('/etc/hostname')")
    table.close()


def test_a_table_that_nobody_has_any_more_leaves_nothing(folder: Path) -> None:
    table = opened(folder)
    del table
    gc.collect()
    assert not folder.exists()
