"""The asyncio twin: the same names and the same answers."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import sqlshell
from sqlshell import dbapi
from sqlshell.dbapi import AsyncConnection, AsyncCursor, Connection, Cursor, aconnect
from tests.conftest import Served, clean_environment


def test_the_twins_have_the_same_names() -> None:
    for sync, twin in ((Connection, AsyncConnection), (Cursor, AsyncCursor)):
        ours, theirs = ({name for name in dir(kind) if not name.startswith("_")} for kind in (sync, twin))
        assert ours == theirs
        for name in theirs:
            if inspect.isfunction(getattr(twin, name)) and name in vars(twin):
                given = [list(inspect.signature(getattr(kind, name)).parameters) for kind in (sync, twin)]
                assert given[0] == given[1], name
    assert sqlshell.aconnect is aconnect


def test_statements_and_rows(served: Served) -> None:
    async def work() -> None:
        async with await aconnect(served.url, token=served.token) as connection:
            cursor = connection.cursor()
            await cursor.execute("create temp table t (i integer, s varchar)")
            await cursor.executemany("insert into t values (?, ?)", [(i, f"it's {i}") for i in range(2500)])
            assert cursor.rowcount == 2500
            await cursor.execute("select * from t where i >= ? order by i", [5])
            assert await cursor.fetchone() == (5, "it's 5")
            assert await cursor.fetchmany(2) == [(6, "it's 6"), (7, "it's 7")]
            assert [row[0] async for row in cursor] == list(range(8, 2500))
            await cursor.execute("select 1; select 2")
            assert await cursor.fetchall() == [(1,)]
            assert await cursor.nextset()
            assert await cursor.fetchall() == [(2,)]
            assert await cursor.nextset() is None
            with pytest.raises(dbapi.ProgrammingError) as caught:
                await connection.execute("select * from nowhere")
            assert caught.value.sqlstate == "3D020"
            await connection.rollback()
            assert not connection.in_transaction
            connection.autocommit = True
            connection.schema = "public"
            async with await connection.execute("select current_schema()") as reading:
                assert await reading.fetchall() == [("public",)]
            await cursor.close()
            with pytest.raises(dbapi.InterfaceError):
                await cursor.fetchone()
        assert connection.closed
        with pytest.raises(dbapi.InterfaceError):
            connection.cursor()

    asyncio.run(work())


def test_tasks_share_a_connection(tmp_path: Path) -> None:
    async def work() -> None:
        async with await aconnect(tmp_path / "a.duckdb", autocommit=True) as connection:

            async def ask(number: int) -> int:
                cursor = await connection.execute("select ?", [number])
                [(found,)] = await cursor.fetchall()
                return int(found)

            assert await asyncio.gather(*map(ask, range(20))) == list(range(20))

    asyncio.run(work())


@pytest.mark.slow("many rows")
def test_a_fetch_that_was_canceled_loses_no_row(served: Served) -> None:
    async def work() -> None:
        async with await aconnect(served.url, token=served.token, autocommit=True) as connection:
            cursor = await connection.execute("select range, repeat('x', 200) from range(200000) order by 1")
            assert len(await cursor.fetchmany(10)) == 10
            while True:
                fetching = asyncio.ensure_future(cursor.fetchall())
                # Some partitions have arrived by then, and others have not.
                for _ in range(100_000):
                    if fetching.done() or (cursor.rownumber or 0) >= 1000:
                        break
                    await asyncio.sleep(0)
                if fetching.cancel():
                    break
            with pytest.raises(asyncio.CancelledError):
                await fetching
            assert cursor.rownumber == 10
            with pytest.raises(dbapi.InterfaceError, match="a fetch was interrupted"):
                await cursor.fetch_arrow()
            assert [row[0] async for row in cursor] == list(range(10, 200000))
            assert cursor.rownumber == 200000

    asyncio.run(work())


@pytest.mark.parametrize("by", ["cancel", "task"])
def test_a_statement_is_ended(served: Served, by: str) -> None:
    async def work() -> None:
        async with (
            await aconnect(served.url, token=served.token, autocommit=True) as connection,
            await aconnect(served.url, token=served.token, autocommit=True) as other,
        ):
            cursor = connection.cursor()
            running = asyncio.ensure_future(
                cursor.execute("select count(*) as ended from range(100000) a, range(100000) b, range(100) c")
            )
            for _ in range(3000):
                if cursor.statement_id:
                    break
                await asyncio.sleep(0.01)
            statement_id = cursor.statement_id
            if by == "cancel":
                await connection.cancel()
                with pytest.raises(dbapi.OperationalError) as caught:
                    await running
                assert caught.value.sqlstate == "57000"
            else:
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
            listed = await (await other.execute("list queries")).fetchall()
            assert [row for row in listed if statement_id in row and "57000" in row] or not [
                row for row in listed if statement_id in row and "running" in row
            ]
            assert await (await connection.execute("select 1")).fetchall() == [(1,)]

    asyncio.run(work())


LONG = "select count(*) from range(10000000) a, range(1000000) b where hash(a.range) = hash(b.range + 1) + a.range"


def test_closing_while_tasks_wait_for_statements() -> None:
    async def work() -> None:
        connection = await aconnect(":memory:")
        tasks = [asyncio.create_task(connection.execute(sql)) for sql in (LONG, "select 1")]
        for _ in range(10000):
            running = connection._session._running
            if running is not None and running.statement_id:
                break
            await asyncio.sleep(0.01)
        await connection.close()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [(type(each), str(each)) for each in found] == [(dbapi.InterfaceError, "the connection is closed")] * 2

    asyncio.run(work())


def test_a_connection_belongs_to_its_event_loop() -> None:
    async def opened() -> tuple[AsyncConnection, AsyncCursor]:
        connection = await aconnect(":memory:")
        return connection, await connection.execute("select 1")

    async def used(connection: AsyncConnection, cursor: AsyncCursor) -> None:
        for use in (connection.execute("select 1"), connection.commit(), connection.cancel(), cursor.fetchall()):
            with pytest.raises(dbapi.InterfaceError, match="another event loop"):
                await use
        await connection.close()
        assert connection.closed

    asyncio.run(used(*asyncio.run(opened())))
    with warnings.catch_warnings():
        # The sockets of a loop that has ended cannot be closed.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_tasks_share_a_cursor(served: Served) -> None:
    async def read(cursor: AsyncCursor) -> list[int]:
        found: list[int] = []
        while rows := await cursor.fetchmany(97):
            found += [row[0] for row in rows]
        return found

    async def work() -> None:
        async with await aconnect(served.url, token=served.token) as connection:
            cursor = await connection.execute("select range from range(50000)")
            parts = await asyncio.gather(*(read(cursor) for _ in range(4)))
            assert sorted(number for part in parts for number in part) == list(range(50000))

    asyncio.run(work())


def test_tasks_that_share_a_cursor_wait_for_each_others_statements(served: Served) -> None:
    async def work() -> None:
        async with await aconnect(served.url, token=served.token) as connection:
            cursor = connection.cursor()
            rows = [(number,) for number in range(4)]
            await cursor.execute("create temp table many (i integer)")
            parts = [
                cursor.executemany("insert into many values (?)", rows),
                cursor.execute("select 1"),
                cursor.fetchall(),
                cursor.executemany("update many set i = ?", rows),
                cursor.execute("select 2 where (select count(*) from many) = 4"),
                cursor.fetchall(),
            ]
            _, _, one, _, _, two = await asyncio.gather(*parts)
            assert (one, two) == ([(1,)], [(2,)])

    asyncio.run(work())


LEFT = """
import asyncio, gc, os, warnings, sqlshell

async def settled(count):
    for _ in range(3000):
        gc.collect()
        if len(os.listdir("/dev/fd")) <= count:
            return True
        await asyncio.sleep(0.01)
    return False

async def main():
    async with await sqlshell.aconnect(":memory:") as connection:
        await connection.execute("select 1")
    gc.collect()
    count = len(os.listdir("/dev/fd"))
    for seconds in (0.001, 0.01, 0.02, 0.05, 0.1):
        try:
            async with asyncio.timeout(seconds):
                connection = await sqlshell.aconnect(":memory:")
        except TimeoutError:
            continue
        await connection.close()
    assert await settled(count), "canceled"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            connection = await sqlshell.aconnect(":memory:")
            await connection.execute("select 1")
            del connection
            gc.collect()
        remedy = 'call close(), or use "with" or "async with"'
        assert [str(each.message) for each in said] == [f"a connection was not closed; {remedy}"] * 3, said
        # They refer to the connections.
        said.clear()
    assert await settled(count), "abandoned"

asyncio.run(main())
"""


@pytest.mark.slow("many connections")
def test_a_connection_that_is_canceled_or_left_open_holds_no_descriptors(tmp_path: Path) -> None:
    env = clean_environment(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=300, check=False, env=env
    )
    assert done.returncode == 0, done.stderr
