"""Fetches a 20-partition result through a proxy that breaks exchanges: the result is complete, or there is a clear
error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.statements.polling import StatementsClient, Submission
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import ShellError
from tests.faults.proxy import FAULTS, Exchange, proxied

ROWS = 20_000
SQL = f"select range as i, 'value ' || range as s, nullif(range % 7, 3) as n from range({ROWS})"
Outcome = Literal["whole", "failed", "wrong"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """`fault` at the exchanges `first` to `last` (from 0); `reads` says whether the statement may be sent twice."""

    fault: str
    first: int
    last: int
    reads: bool = True

    def __str__(self) -> str:
        where = f"exchange {self.first}" if self.first == self.last else f"exchanges {self.first} to {self.last}"
        return f"{self.fault}, {where}{'' if self.reads else ', not to be repeated'}"


@dataclass(frozen=True, slots=True)
class Tried:
    outcome: Outcome
    message: str
    posts: int
    """How often the service was given the statement."""


def expected() -> list[list[str | None]]:
    return [[str(i), f"value {i}", None if i % 7 == 3 else str(i % 7)] for i in range(ROWS)]


def scenarios(stages: Sequence[int]) -> list[Scenario]:
    """Every fault at every stage alone; storms from there on; faults of a submission that must not be repeated."""
    made = [Scenario(fault, stage, stage) for stage in stages for fault in FAULTS]
    made += [Scenario(fault, stage, stage + 40) for stage in stages for fault in ("storm of 503", "cut in mid-body")]
    made += [Scenario(fault, 0, 0, reads=False) for fault in FAULTS]
    return made


def tried(upstream: str, token: str, scenario: Scenario, whole: list[list[str | None]]) -> Tried:
    """Run one scenario against the service at `upstream`."""

    def choose(exchange: Exchange) -> str:
        return scenario.fault if scenario.first <= exchange.number <= scenario.last else ""

    with proxied(upstream, choose) as proxy:
        found, message = asyncio.run(_rows(proxy.url, token, scenario.reads))
        posts = sum(line.startswith("POST") for line in proxy.passed)
    if found is None:
        return Tried("failed", message, posts)
    return Tried("whole" if found == whole else "wrong", message, posts)


async def _rows(url: str, token: str, reads: bool) -> tuple[list[list[str | None]] | None, str]:
    transport = Transport(parse(url), token, network=NetworkOptions(retries=3, read_timeout=5))
    context = SessionContext(timezone="UTC")
    rows: list[list[str | None]] = []
    statements = StatementsClient(transport, ResultFactory(transport))
    try:
        async for result in statements.run(Submission(SQL, repeatable=reads), context):
            async for batch in result.batches:
                rows += batch.rows
    except ShellError as error:
        return None, error.message
    finally:
        await statements.aclose()
    return rows, ""
