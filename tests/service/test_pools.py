"""A pool admits its owners in turn, and each owner has a share of a full queue."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from sqlshell.service.failure import Failure
from sqlshell.service.organizations.pools import Pool, Size
from tests.conftest import serve, stop
from tests.service.client import Client


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
        async with contextlib.AsyncExitStack() as last:
            places = [contextlib.AsyncExitStack() for _ in range(3)]
            held = [asyncio.ensure_future(each.enter_async_context(pool.admit("a"))) for each in (*places, last)]
            await asyncio.sleep(0)
            assert pool.waiting == 3
            # One of the four is for other owners.
            pool.resize(Size(4, 100))
            assert pool.waiting == 1
            await asyncio.gather(*held[:3])
            pool.resize(Size(1, 100))
            for place, waiting in zip(places, (1, 1, 0), strict=True):
                await place.aclose()
                assert pool.waiting == waiting
            await held[3]
        assert not pool.is_used

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


def test_a_reader_with_many_long_statements_keeps_nobody_out(tmp_path: Path) -> None:
    served = serve(tmp_path, "--threads", "1")
    try:
        with Client(served) as owner:
            token = owner.rows("create api_token many")[0][1] or ""
            with Client(served, token) as reader:
                request = {"statement": "select count(*) from range(100000000000) a, range(1000) b"}
                sent = [reader.http.post("/v2/statements", json=request).json() for _ in range(20)]
                assert owner.rows("select 1") == [["1"]]
                states = [reader.http.get(f"/v2/statements/{item['statementID']}").json()["sqlState"] for item in sent]
                assert states == ["03000"] * 20
            # It ends what the token runs.
            owner.rows("drop api_token many")
    finally:
        stop(served)
