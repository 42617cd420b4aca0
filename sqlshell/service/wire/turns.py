"""Starts requests in turn, so that many requests of one organization do not delay those of others."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

EACH = 4
"""The number of requests of one organization that start in one iteration of the event loop."""


class Turns:
    """Starts requests: EACH of each organization in one iteration of the event loop, in turn by token."""

    def __init__(self) -> None:
        self._begun: dict[str, int] = {}
        self._waiting: dict[str, OrderedDict[str, deque[asyncio.Future[None]]]] = {}
        self._planned = False

    async def take(self, organization: str, token: str) -> None:
        """Wait for the turn of a request."""
        begun = self._begun.get(organization, 0)
        if begun < EACH and organization not in self._waiting:
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
            while begun < EACH and tokens:
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
