"""Reads and starts requests in turn, so that many requests of one client do not delay those of others."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable

REQUESTS_PER_ITERATION = 4
"""The number of requests of one organization that start in one iteration of the event loop."""

STRANGERS = "strangers"
"""Takes the place of the organization when requests without a token wait for their turn: one in each iteration."""

SLICE_SECONDS = 0.001
"""How long the data of one client is parsed in one iteration of the event loop; longer only for a single step."""

UNPARSED = 32 << 20
"""Bytes that may wait to be parsed. Beyond that data is parsed as it arrives, so that the memory is limited."""


class RequestScheduler:
    """Starts requests in turn by token: REQUESTS_PER_ITERATION of each organization in one iteration of the event loop.

    Of STRANGERS one starts.
    """

    def __init__(self) -> None:
        self._begun: dict[str, int] = {}
        self._waiting: dict[str, OrderedDict[str, deque[asyncio.Future[None]]]] = {}
        self._planned = False

    async def take(self, organization: str, token: str) -> None:
        """Wait for the turn of a request."""
        begun = self._begun.get(organization, 0)
        if begun < _each(organization) and organization not in self._waiting:
            self._begun[organization] = begun + 1
            self._plan()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(organization, OrderedDict()).setdefault(token, deque()).append(turn)
        self._plan()
        await turn

    def _plan(self) -> None:
        if not self._planned:
            self._planned = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Start the requests of the next iteration."""
        self._planned = False
        self._begun.clear()
        for organization, tokens in list(self._waiting.items()):
            begun = 0
            while begun < _each(organization) and tokens:
                token, turns = next(iter(tokens.items()))
                turn = turns.popleft()
                tokens.move_to_end(token)
                if not turns:
                    del tokens[token]
                if not turn.done():
                    turn.set_result(None)
                    begun += 1
            self._begun[organization] = begun
            if not tokens:
                del self._waiting[organization]
        if self._begun:
            self._plan()


def _each(organization: str) -> int:
    return 1 if organization == STRANGERS else REQUESTS_PER_ITERATION


class ParseScheduler:
    """Parses what connections send, for SLICE_SECONDS of each client in one iteration of the event loop.

    A client is a token, or the address of connections that have not sent a valid one.
    """

    def __init__(self) -> None:
        self._used: dict[str, float] = {}
        self._waiting: dict[str, deque[tuple[int, Callable[[], object]]]] = {}
        self._size = 0
        self._planned = False

    def parse(self, client: str, size: int, work: Callable[[], object]) -> bool:
        """Do `work`, which parses `size` bytes, now or in a later iteration; returns whether it is done.

        `work` takes one step, and returns something true if there is another one.
        """
        if (client in self._waiting or self._used.get(client, 0.0) >= SLICE_SECONDS) and self._size + size <= UNPARSED:
            self._waiting.setdefault(client, deque()).append((size, work))
            self._size += size
            return False
        while self._work(client, work):
            if self._used[client] >= SLICE_SECONDS and self._size + size <= UNPARSED:
                self._waiting.setdefault(client, deque()).appendleft((size, work))
                self._size += size
                return False
        return True

    def _work(self, client: str, work: Callable[[], object]) -> object:
        if not self._planned:
            self._planned = True
            asyncio.get_running_loop().call_soon(self._next)
        began = time.perf_counter()
        try:
            return work()
        finally:
            self._used[client] = self._used.get(client, 0.0) + time.perf_counter() - began

    def _next(self) -> None:
        """Parse what waits for this iteration."""
        self._planned = False
        self._used.clear()
        for client, waiting in list(self._waiting.items()):
            while waiting and self._used.get(client, 0.0) < SLICE_SECONDS:
                size, work = waiting.popleft()
                self._size -= size
                if self._work(client, work):
                    waiting.appendleft((size, work))
                    self._size += size
            if not waiting:
                del self._waiting[client]
