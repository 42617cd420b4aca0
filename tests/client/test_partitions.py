"""Partitions are read in order, ahead within a window, and again after a failure."""

from __future__ import annotations

import asyncio
import gc

import pytest

from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Transport
from sqlshell.client.results.partitions import PartitionFetcher, PartitionReader
from sqlshell.client.target import parse
from sqlshell.errors import ConnectionFailed, NotAuthenticated
from sqlshell.result import Batch
from tests.client.test_statements import ID, done, scripted


def batch(number: int) -> Batch:
    return Batch(1, rows=[[str(number)]], number=number)


def test_each_once_and_in_order_whatever_arrives_first() -> None:
    flying: list[int] = []
    most: list[int] = []

    async def fetch(number: int) -> Batch:
        flying.append(number)
        most.append(len(flying))
        await asyncio.sleep(0.002 * (number % 3))
        flying.remove(number)
        return batch(number)

    async def read() -> list[int]:
        return [item.number async for item in PartitionReader(fetch, batch(0), 20, 3)]

    assert asyncio.run(read()) == list(range(20))
    assert max(most) == 3


def test_large_partitions_are_fetched_one_at_a_time() -> None:
    flying: list[int] = []
    most: list[tuple[int, int]] = []
    sizes = [10, 10, 10, 10, 3 << 20, *[10] * 4, 9 << 20, *[10] * 5]

    async def fetch(number: int) -> Batch:
        flying.append(number)
        most.append((number, len(flying)))
        await asyncio.sleep(0)
        flying.remove(number)
        return Batch(1, body=bytes(sizes[number]), number=number)

    async def read() -> list[int]:
        reader = PartitionReader(fetch, Batch(1, body=bytes(10)), len(sizes), 4)
        found = []
        async for item in reader:
            found.append(item.number)
            # Whoever writes takes longer than whoever fetches.
            for _ in range(5):
                await asyncio.sleep(0)
        return found

    assert asyncio.run(read()) == list(range(len(sizes)))
    in_flight = dict(most)
    assert in_flight[4] > 1
    assert all(in_flight[number] == 1 for number in range(14, len(sizes)))


@pytest.mark.parametrize(
    ("mebibytes", "ahead"), [(0, 4), (1, 4), (2, 4), (3, 2), (4, 2), (5, 1), (8, 1), (9, 1), (99, 1)]
)
def test_fewer_partitions_are_fetched_ahead_if_they_are_large(mebibytes: int, ahead: int) -> None:
    begun: list[int] = []

    async def fetch(number: int) -> Batch:
        begun.append(number)
        return sized(number)

    def sized(number: int) -> Batch:
        made = Batch(1, rows=[], number=number)
        made.size = mebibytes << 20
        return made

    async def read() -> None:
        reader = PartitionReader(fetch, sized(0), 20, 4)
        for number in range(3):
            assert (await anext(reader)).number == number
            for _ in range(9):
                await asyncio.sleep(0)
            assert begun == list(range(1, number + ahead + 1))
        await reader.aclose()

    asyncio.run(read())


def test_a_failed_fetch_leaves_the_same_partition_next() -> None:
    failures = {2: 2, 5: 1}

    async def fetch(number: int) -> Batch:
        if failures.get(number, 0):
            failures[number] -= 1
            raise ConnectionFailed("broken")
        return batch(number)

    async def read() -> tuple[list[int], int]:
        reader = PartitionReader(fetch, batch(0), 7, 2)
        seen: list[int] = []
        errors = 0
        while True:
            try:
                seen.append((await anext(reader)).number)
            except ConnectionFailed:
                errors += 1
            except StopAsyncIteration:
                return seen, errors

    assert asyncio.run(read()) == (list(range(7)), 3)


def test_closing_cancels_what_is_in_flight() -> None:
    cancelled: list[int] = []

    async def fetch(number: int) -> Batch:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(number)
            raise
        return batch(number)

    async def read() -> None:
        reader = PartitionReader(fetch, batch(0), 10, 3)
        await anext(reader)
        await asyncio.sleep(0)
        await reader.aclose()
        assert cancelled == [1, 2, 3]
        with pytest.raises(StopAsyncIteration):
            await anext(reader)

    asyncio.run(read())


def test_the_next_partitions_are_fetched_while_one_is_read() -> None:
    begun: list[int] = []

    async def fetch(number: int) -> Batch:
        begun.append(number)
        return batch(number)

    async def read() -> None:
        reader = PartitionReader(fetch, batch(0), 10, 3)
        found = []
        for number in range(3):
            found.append((await anext(reader)).number)
            await asyncio.sleep(0)
            assert begun == list(range(1, number + 4))
        assert found == [0, 1, 2]
        await reader.aclose()

    asyncio.run(read())


def test_a_fetch_that_failed_for_nobody_is_not_reported() -> None:
    reported: list[object] = []

    async def fetch(number: int) -> Batch:
        raise ConnectionFailed("broken")

    async def read() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        await anext(PartitionReader(fetch, batch(0), 10, 3))
        await asyncio.sleep(0)
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(read())
    assert reported == []


@pytest.mark.parametrize(
    ("refusals", "renews", "asked", "renewed"), [(1, True, 2, 1), (2, True, 2, 1), (1, False, 1, 0)]
)
def test_a_refused_partition_is_asked_for_once_more_with_another_token(
    refusals: int, renews: bool, asked: int, renewed: int
) -> None:
    made: list[Transport] = []

    async def work(url: str) -> bytes:
        async def refresh() -> Transport:
            made.append(Transport(parse(url), "another", network=NetworkOptions(retries=0)))
            return made[-1]

        first = Transport(parse(url), "first", network=NetworkOptions(retries=0))
        fetcher = PartitionFetcher(first, f"/v2/statements/{ID}", {}, ID, None, refresh if renews else None)
        try:
            return bytes(await fetcher.body(1))
        finally:
            for transport in (first, *made):
                await transport.aclose()

    answers = [(401, {"message": "expired"})] * refusals + [(200, done(data=[["1"]]))]
    with scripted(*answers) as state:
        if refusals == 1 and renews:
            assert b'"1"' in asyncio.run(work(state.url))
        else:
            with pytest.raises(NotAuthenticated):
                asyncio.run(work(state.url))
    tokens = [headers["Authorization"] for _, _, headers, _ in state.asked]
    assert tokens == ["Bearer first", "Bearer another"][:asked]
    assert len(made) == renewed
