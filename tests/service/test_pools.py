"""A pool admits its owners in turn, and each owner has a share of a full queue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sqlshell.service.failure import Failure
from sqlshell.service.organizations.pools import Pool, Size
from sqlshell.service.statements.reading_thread import PIECE, ReadingThread
from sqlshell.service.statements.splitting import split

Work = Callable[[str], Awaitable[None]]


async def admitted(pool: Pool, owners: str) -> str:
    """The owners in the order in which they get the pool's only place; they come in the order given."""
    found: list[str] = []

    async def work(owner: str) -> None:
        async with pool.admit(owner):
            found.append(owner)
            await asyncio.sleep(0)

    async with pool.admit("first"):
        tasks = [asyncio.ensure_future(work(owner)) for owner in owners]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert pool.waiting == 0
    return "".join(found)


def test_owners_take_turns() -> None:
    assert asyncio.run(admitted(Pool("p", Size(1, 100)), "aaaaabbc")) == "abcabaaa"


@pytest.mark.parametrize("owners", ["a", "aaaaabbc", "abcabc", "cba", "bbbbacc"])
def test_the_place_in_the_queue_is_the_one_in_which_it_is_admitted(owners: str) -> None:
    async def run() -> None:
        pool, found = Pool("p", Size(1, 100)), []

        async def work(owner: str, name: str) -> None:
            async with pool.admit(owner, name):
                found.append(name)

        async with pool.admit("first"):
            names = [f"s{number}" for number in range(len(owners))]
            tasks = [asyncio.ensure_future(work(*each)) for each in zip(owners, names, strict=True)]
            await asyncio.sleep(0)
            places = {name: pool.place(owner, name) for owner, name in zip(owners, names, strict=True)}
        await asyncio.gather(*tasks)
        assert sorted(places, key=places.__getitem__) == found
        assert sorted(places.values()) == list(range(1, len(owners) + 1))
        assert pool.place("a", "s0") == 0

    asyncio.run(run())


def test_a_pool_that_grows_admits_those_that_wait_and_one_that_shrinks_admits_no_more() -> None:
    async def run() -> None:
        pool = Pool("p", Size(1, 100))
        places = [pool.admit("a") for _ in range(4)]
        held = [asyncio.ensure_future(place.__aenter__()) for place in places]
        await asyncio.sleep(0)
        assert pool.waiting == 3
        pool.resize(Size(3, 100))
        assert pool.waiting == 1
        pool.resize(Size(1, 100))
        for waiting in (1, 1, 0):
            await asyncio.sleep(0)
            pool._release()
            assert pool.waiting == waiting
        pool._release()
        assert not pool.is_used
        await asyncio.gather(*held)

    asyncio.run(run())


def test_a_full_queue_has_a_share_for_each() -> None:
    async def run() -> None:
        pool = Pool("p", Size(1, 4))
        async with pool.admit("x"):
            waiting = [asyncio.ensure_future(pool.admit("a").__aenter__()) for _ in range(4)]
            await asyncio.sleep(0)
            with pytest.raises(Failure, match=r"is full \(4 statements\)"):
                await pool.admit("a").__aenter__()
            for _ in range(2):
                waiting.append(asyncio.ensure_future(pool.admit("b").__aenter__()))
                await asyncio.sleep(0)
            with pytest.raises(Failure):
                await pool.admit("b").__aenter__()
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert pool.waiting == 0

    asyncio.run(run())


def test_one_that_leaves_the_queue_takes_no_place() -> None:
    async def run() -> str:
        pool = Pool("p", Size(1, 10))
        async with pool.admit("x"):
            gone = [asyncio.ensure_future(pool.admit("a").__aenter__()) for _ in range(3)]
            await asyncio.sleep(0)
            gone[0].cancel()
            gone[2].cancel()
        # The place is the second one's, which is canceled with it in its hands.
        gone[1].cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        return await admitted(pool, "ab")

    assert asyncio.run(run()) == "ab"


def test_long_texts_are_read_in_turn() -> None:
    async def run() -> list[str]:
        thread, ended = ReadingThread(), []

        async def read(owner: str, size: int) -> None:
            assert len(await split("select '" + "x" * size + "'", owner, thread, 10)) == 1
            ended.append(owner)

        await asyncio.gather(*(read("many", 20 * PIECE) for _ in range(8)), read("one", 3 * PIECE))
        thread.close()
        return ended

    assert asyncio.run(run())[0] == "one"
