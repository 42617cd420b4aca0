"""Compute pools: how many statements run at once, how many wait, and how long one may run."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Failure

DEFAULT = "default"
SIZES: Mapping[str, int] = {"small": 4, "medium": 8, "large": 16}
"""How many statements run at once in a pool of a size that clients name."""

_SIZE, _IDLE = "compute_pool.size", "compute_pool.timeout_min"
_OTHER_NAMES: Mapping[str, str] = {"size": _SIZE, "auto.suspend.minutes": _IDLE}
_WITHOUT_EFFECT = frozenset({"access_region", "auto.suspend", "max.units", "min.units"})
"""Options of pools of machines, which some clients always send."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}


class Size(Struct, frozen=True):
    """What a pool admits. `timeout` is seconds, 0 for none; `name` is that of its size, and `idle` the minutes that
    clients wrote as its timeout, which end nothing here: a pool at rest takes nothing."""

    concurrency: int = 16
    queue: int = 1000
    timeout: float = 0.0
    name: str = ""
    idle: int = 0


class Pool:
    """The admission of one pool, to each owner in turn; lives in one event loop."""

    def __init__(self, name: str, size: Size) -> None:
        self.name = name
        self.size = size
        self._free = size.concurrency
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """Who waits, by owner: the first one's turn is next."""
        self.waiting = 0

    @contextlib.asynccontextmanager
    async def admit(self, owner: str = "") -> AsyncIterator[None]:
        """A place in the pool. Raises Failure (53000) when its queue is full.

        Of a full queue each owner has a share, so that none of them fills it alone.
        """
        if self._free:
            self._free -= 1
        else:
            await self._wait(owner)
        try:
            yield
        finally:
            self._release()

    async def _wait(self, owner: str) -> None:
        queue = self._queues.get(owner)
        own, owners = len(queue or ()), len(self._queues) + (queue is None)
        if self.waiting >= self.size.queue and own >= self.size.queue // owners:
            said = f"compute pool {self.name!r} is busy and its queue of {self.size.queue} is full"
            raise Failure(sqlstate.LIMIT, said)
        if queue is None:
            queue = self._queues[owner] = deque()
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release()
            elif turn in queue:
                self.waiting -= 1
                queue.remove(turn)
                if not queue:
                    del self._queues[owner]
            raise

    def _release(self) -> None:
        """Give the place to the next one."""
        while self._queues:
            owner, queue = self._queues.popitem(last=False)
            turn = queue.popleft()
            self.waiting -= 1
            if queue:
                self._queues[owner] = queue
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


def read_size(given: Mapping[str, str], before: Size | None = None) -> Size:
    """The size that WITH options name; what they leave out is as `before`. Raises Failure for what is no size."""
    given = {_OTHER_NAMES.get(name, name): value for name, value in given.items()}
    known = {"concurrency", "queue", "timeout", _SIZE, _IDLE, *_WITHOUT_EFFECT}
    for name in given:
        if name not in known:
            said = f"{name[:80]!r} is not an option of a compute pool: {', '.join(sorted(known))}"
            raise Failure(sqlstate.INVALID_PARAMETER, said)
    size = before or Size()
    if _SIZE in given:
        named = given[_SIZE].lower()
        if named not in SIZES:
            raise Failure(sqlstate.SYNTAX, f"{_SIZE}: {named[:40]!r} is not one of {', '.join(SIZES)}")
        size = replace(size, concurrency=SIZES[named], name=named)
    if "concurrency" in given:
        size = replace(size, concurrency=_whole(given["concurrency"], "concurrency", 1, 10_000), name="")
    queue = _whole(given.get("queue", str(size.queue)), "queue", 0, 1_000_000)
    idle = _whole(given.get(_IDLE, str(size.idle)), _IDLE, 0, 1_000_000)
    timeout = seconds(given["timeout"], "timeout") if "timeout" in given else size.timeout
    return replace(size, queue=queue, idle=idle, timeout=timeout)


def size_of(detail: Mapping[str, Any]) -> Size:
    rest = str(detail.get("size", "")), int(detail.get("timeout_min", 0))
    return Size(int(detail["concurrency"]), int(detail["queue"]), float(detail["timeout"]), *rest)


def seconds(text: str, name: str) -> float:
    """A duration such as 500ms, 30s, 10m, 2h or 1d. Raises Failure."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)\s*", text)
    if not found:
        raise Failure(sqlstate.SYNTAX, f"{name}: {text!r} is not a duration, such as 30s, 10m or 2h")
    return float(found[1]) * _UNITS[found[2]]


def _whole(text: str, name: str, least: int, most: int) -> int:
    if not re.fullmatch(r"\d{1,9}", text) or not least <= int(text) <= most:
        raise Failure(sqlstate.SYNTAX, f"{name}: {text!r} is not a number from {least} to {most}")
    return int(text)
