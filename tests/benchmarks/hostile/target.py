"""The target of an attack, and its connections: raw bytes on sockets, or plain requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Target:
    """A service, a token of the attacker's organization, and for how many seconds it is attacked.

    The attack begins when going(), together() or rest() is first asked: what it prepares before that is not looked at.
    `counts` is what the attack did, for the row that tells of it.
    """

    url: str
    token: str
    seconds: float
    until: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0

    def begin(self) -> None:
        """The attack begins. Does nothing the second time."""
        if not self.until:
            self.until = time.monotonic() + self.seconds
            sys.stdout.write("begun\n")
            sys.stdout.flush()

    def going(self) -> bool:
        self.begin()
        return time.monotonic() < self.until

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + number

    def head(self, first: str, *lines: str) -> bytes:
        """A request's headers, with the host and the token."""
        own = [f"Host: {urlsplit(self.url).netloc}", f"Authorization: Bearer {self.token}"]
        return "\r\n".join([first, *own, *lines, "", ""]).encode()

    async def dial(self) -> Wire:
        return await asyncio.open_connection(*self.address)

    def client(self) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=60, trust_env=False)

    async def run(self, wire: httpx.AsyncClient, sql: str, session: str = "") -> dict[str, Any]:
        """A statement to its end; the last answer, {} where there was none."""
        with self.failures():
            answer = await wire.post("/v2/statements", json={"statement": sql, "parameters": {"sessionID": session}})
            while answer.status_code == 202:
                await asyncio.sleep(0.05)
                answer = await wire.get(f"/v2/statements/{answer.json()['statementID']}")
            self.count(str(answer.status_code))
            return dict(answer.json())
        return {}

    @contextlib.contextmanager
    def failures(self) -> Iterator[None]:
        """Count what the service does against the attack: connections that it closes, answers that are none."""
        try:
            yield
        except (OSError, httpx.HTTPError, EOFError, json.JSONDecodeError):
            self.count("cut off")

    @contextlib.asynccontextmanager
    async def together(self, work: Callable[[], Awaitable[None]], number: int) -> AsyncIterator[None]:
        """`number` tasks that do `work` again and again, in turns, until the end."""

        async def one() -> None:
            while self.going():
                with self.failures():
                    await work()
                await asyncio.sleep(0)

        self.begin()
        tasks = [asyncio.ensure_future(one()) for _ in range(number)]
        try:
            yield
            await asyncio.wait(tasks, timeout=max(0.0, self.until - time.monotonic()) + 1)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def rest(self) -> None:
        """Until the end of the attack."""
        self.begin()
        await asyncio.sleep(max(0.0, self.until - time.monotonic()))


Attack = Callable[[Target], Awaitable[None]]
"""An attack runs until `target.going()` is false. What it raises then is a mistake of the benchmark."""
