"""Attacks by SQL: texts that take long to read, statements that use all resources, sessions, streams."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.benchmarks.hostile.target import Attack, Target

CHANGING = "/* {} */ "
"""Before a statement, so that none is like the one before it."""

AT_ONCE = 16
ROUNDS = 20
"""How many statements are terminated at once, and how often what is left is looked at."""


async def _post(target: Target, wire: httpx.AsyncClient, sql: str, **more: object) -> None:
    answer = await wire.post("/v2/statements", json={"statement": sql} | more)
    target.count(str(answer.status_code))


async def texts(target: Target, text: str, number: int = 4) -> None:
    """The same text again and again, which is refused, or fails, or is done at once."""
    async with target.client() as wire, target.together(partial(_post, target, wire, text), number):
        pass


def statements(*sql: str, number: int = 8) -> Attack:
    return partial(_statements, sql=sql, number=number)


async def _statements(target: Target, sql: Sequence[str], number: int) -> None:
    """Each of `number` clients runs these to their ends, or to the end of the attack."""
    async with target.client() as wire:

        async def work() -> None:
            for text in sql:
                await target.run(wire, CHANGING.format(uuid.uuid4()) + text)

        async with target.together(work, number):
            pass
        await _terminate_all(wire)


async def _terminate_all(wire: httpx.AsyncClient) -> None:
    """End what the attack left, so that the next one is not refused because of it."""

    async def terminate(query: str) -> None:
        await wire.post("/v2/statements", json={"statement": f"terminate query '{query}'"})

    for _ in range(ROUNDS):
        found = await wire.post("/v2/statements", json={"statement": "list queries"})
        left = [row[0] for row in found.json().get("data") or () if row[4] in {"running", "queued"}]
        if not left:
            return
        for start in range(0, len(left), AT_ONCE):
            await asyncio.gather(*(terminate(query) for query in left[start : start + AT_ONCE]))


async def sessions(target: Target) -> None:
    """A session with a temporary table for each statement."""
    async with target.client() as wire:

        async def work() -> None:
            parameters = {"sessionID": str(uuid.uuid4())}
            sql = "create temporary table t as select range as i from range(1000)"
            await _post(target, wire, sql, parameters=parameters)

        async with target.together(work, 16):
            pass


async def batches(target: Target, number: int = 1000, sql: str = "select {}") -> None:
    """Batches as large as they may be, most of which are refused: what was sent before has not ended."""
    request = {"statements": [sql.format(one) for one in range(number)]}
    async with target.client() as wire:

        async def work() -> None:
            answer = await wire.post("/v2/statements", json=request)
            target.count(str(answer.status_code))

        async with target.together(work, 8):
            pass


async def contexts(target: Target) -> None:
    async with target.client() as wire:

        async def work() -> None:
            large = str(uuid.uuid4()) + "x" * 1_000_000
            await _post(target, wire, "select 1", database=large, parameters={"sessionID": large})

        async with target.together(work, 8):
            pass


async def lists(target: Target) -> None:
    """LIST QUERIES when there are as many as it lists."""
    async with target.client() as wire:
        await wire.post("/v2/statements", json={"statements": [f"select {one}" for one in range(1000)]})
        async with target.together(partial(_post, target, wire, "list queries"), 8):
            pass


async def flood(target: Target) -> None:
    """As many statements as are taken, and nobody waits for them."""
    async with target.client() as wire:
        async with target.together(partial(_post, target, wire, "select count(*) from range(3000000000)"), 32):
            pass
        await _terminate_all(wire)


async def _prepared(target: Target, wire: httpx.AsyncClient, sql: str) -> dict[str, Any]:
    """The answer to a statement that the attack needs: it is sent again while what was sent before lets it fail."""
    for _ in range(ROUNDS):
        answer = await target.run(wire, sql)
        if answer.get("sqlState") == "00000":
            return answer
        await asyncio.sleep(1)
    raise SystemExit(f"{sql}: {answer}")


async def streams(target: Target) -> None:
    """Eight endless SELECTs whose projections take a processor each, and rows for them."""
    async with target.client() as wire:
        await _prepared(target, wire, "create stream heavy (i bigint)")
        heavy = "md5(repeat(i::varchar, 3000000)) || '{}'"
        asked = [await _prepared(target, wire, f"select {heavy.format(number)} as a from heavy") for number in range(8)]

        async def read(one: dict[str, str]) -> None:
            try:
                async with connect(one["uri"], proxy=None) as socket:
                    await socket.send(json.dumps({"type": "auth", "accessToken": one["token"], "sessionId": ""}))
                    async for _ in socket:
                        target.count("rows")
            except (OSError, WebSocketException):
                target.count("cut off")

        opened = [one["metadata"]["dataplaneRequest"] for one in asked]
        target.count("streams", len(opened))
        readers = [asyncio.ensure_future(read(one)) for one in opened]

        async def write() -> None:
            await target.run(wire, "insert into heavy select range from range(2000)", "writer")

        async with target.together(write, 1):
            pass
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        for one in asked:
            await wire.post("/v2/statements", json={"statement": f"terminate query '{one.get('statementID')}'"})
        await target.run(wire, "drop stream heavy")


RECURSION = "with recursive r as (select 1 as i union all select i + 1 from r) select max(i) from r"
GROWTH = "with recursive r as (select repeat('x', 1000) as s union all select s || s from r) select count(*) from r"
PATTERN = "regexp_matches(repeat('a', 100000) || range::varchar, '(a*)*(a*)*(a|aa)*b')"

SQL: dict[str, Attack] = {
    "6,000 statements in a text": partial(texts, text="x;" * 6000),
    "a text of empty comments": partial(texts, text="/**/" * 4_000_000 + "x"),
    "a text of quotes": partial(texts, text="select " + "''" * 4_000_000, number=2),
    "a text of brackets": partial(texts, text="select " + "(" * 8_000_000, number=2),
    "3,000 open brackets": partial(texts, text="select " + "(" * 3000),
    "a text of dollars": partial(texts, text="select " + "$a$ " * 2_000_000, number=2),
    "an application of a MiB": partial(texts, text=f"begin application a {'end ' * 250_000} end application"),
    "long names": partial(texts, text="drop database " + "a" * 1_000_000),
    "options without end": partial(texts, text="create store s with (" + "'a'='b'," * 7000 + "x)"),
    "a million columns": statements("select " + ",".join(map(str, range(1_000_000))), number=2),
    "repeat bombs": statements("select repeat('x', 1000000000)", "select repeat(['x'], 1000000000)"),
    "range bombs": statements("select range(10000000000)", "select count(*) from range(1000000000000)"),
    "recursive CTEs": statements(RECURSION, GROWTH),
    "regular expressions": statements(f"select count(*) from range(1000000) where {PATTERN}"),
    "heavy sorts": statements("select * from (select random() as a from range(100000000)) order by a"),
    "results without end": statements("select md5(range::varchar) || repeat('x', 500) from range(1000000000)"),
    "deep expressions": statements(f"select {'(' * 900}1{')' * 900}", f"select {'1+' * 20_000}1"),
    "refused batches": batches,
    "batches that fail": partial(batches, sql="select x{}"),
    "many sessions": sessions,
    "large contexts": contexts,
    "lists of queries": lists,
    "a flood of statements": flood,
    "heavy streams": streams,
}
