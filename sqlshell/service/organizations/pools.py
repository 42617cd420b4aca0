"""Compute pools: limits on running statements, on queued statements, and on the time of a statement."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.service.failure import Failure
from sqlshell.text import any_of, format_count

DEFAULT = "default"
SIZES: Mapping[str, int] = {"small": 4, "medium": 8, "large": 16}
"""The number of statements that run at once in a pool of a named size."""

_SIZE, _IDLE = "compute_pool.size", "compute_pool.timeout_min"
_OTHER_NAMES: Mapping[str, str] = {"size": _SIZE, "auto.suspend.minutes": _IDLE}
_WITHOUT_EFFECT = frozenset({"access_region", "auto.suspend", "max.units", "min.units"})
"""Options for pools of machines that some clients always send; they are ignored."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}


class Size(Struct, frozen=True):
    """The limits of a pool. `timeout` is in seconds, 0 for none; `name` is the name of its size.

    `idle` is the idle timeout in minutes that clients set; it has no effect, because an idle pool uses no resources.
    """

    concurrency: int = 16
    queue: int = 1000
    timeout: float = 0.0
    name: str = ""
    idle: int = 0

    @property
    def reserved(self) -> int:
        """The number of slots for owners that run nothing in the pool, so that no owner can hold all slots."""
        return max(1, self.concurrency // 4) if self.concurrency > 1 else 0


class Pool:
    """Admits statements to one pool, in turn by owner; the last quarter of its slots only if the owner runs nothing in
    it. Used from one event loop.
    """

    def __init__(self, name: str, size: Size) -> None:
        self.name = name
        self.size = size
        self._running: Counter[str] = Counter()
        """The number of running statements by owner."""
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """Waiting statements by owner; the first owner is next."""
        self._turns: dict[str, asyncio.Future[None]] = {}
        """Waiting statements by name."""
        self.waiting = 0

    @contextlib.asynccontextmanager
    async def admit(self, owner: str = "", name: str = "") -> AsyncIterator[None]:
        """Wait for a slot in the pool and hold it; `name` is for place(). Raises Failure (53000) if its queue is full.

        Each owner has a share of the queue, so that no owner can fill it alone.
        """
        if self._has_slot(owner):
            self._running[owner] += 1
        else:
            await self._wait(owner, name)
        try:
            yield
        finally:
            self._release(owner)

    def place(self, owner: str, name: str) -> int:
        """Return the place of a waiting statement in the queue, from 1, as owners take turns; 0 if it does not wait."""
        turn, queue = self._turns.get(name), self._queues.get(owner, deque())
        if turn is None or turn not in queue:
            return 0
        behind, before = queue.index(turn), True
        place = behind + 1
        for other, waiting in self._queues.items():
            if other == owner:
                before = False
            else:
                place += min(len(waiting), behind + before)
        return place

    async def _wait(self, owner: str, name: str) -> None:
        queue = self._queues.get(owner)
        own, owners = len(queue or ()), len(self._queues) + (queue is None)
        if self.waiting >= self.size.queue and own >= self.size.queue // owners:
            most = format_count(self.size.queue, "statement")
            message = f'the queue of compute pool "{self.name}" is full ({most}); try again later'
            raise Failure(sqlstate.LIMIT, message)
        if queue is None:
            queue = self._queues[owner] = deque()
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self.waiting += 1
        if name:
            self._turns[name] = turn
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release(owner)
            elif turn in queue:
                self.waiting -= 1
                queue.remove(turn)
                if not queue:
                    del self._queues[owner]
            raise
        finally:
            self._turns.pop(name, None)

    @property
    def is_used(self) -> bool:
        """Whether statements run or wait in it."""
        return bool(self._running or self._queues)

    def resize(self, size: Size) -> None:
        """Change the limits; statements that wait are admitted if there is room for them now."""
        self.size = size
        self._admit_waiting()

    def _has_slot(self, owner: str) -> bool:
        """Whether there is a slot for a further statement of this owner."""
        reserved = self.size.reserved if self._running[owner] else 0
        return self._running.total() + reserved < self.size.concurrency

    def _release(self, owner: str) -> None:
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while (owner := next(filter(self._has_slot, self._queues), None)) is not None:
            queue = self._queues.pop(owner)
            turn = queue.popleft()
            self.waiting -= 1
            if queue:
                self._queues[owner] = queue
            if not turn.done():
                turn.set_result(None)
                self._running[owner] += 1


def read_size(given: Mapping[str, str], before: Size | None = None) -> Size:
    """Parse the WITH options of a pool; options that are not given are as in `before`. Raises Failure."""
    given = {_OTHER_NAMES.get(name, name): value for name, value in given.items()}
    known = {"concurrency", "queue", "timeout", _SIZE, _IDLE, *_WITHOUT_EFFECT}
    for name in given:
        if name not in known:
            message = f"unknown option {name[:80]!r} of a compute pool; expected {any_of(sorted(known))}"
            raise Failure(sqlstate.INVALID_PARAMETER, message)
    size = before or Size()
    if _SIZE in given:
        named = given[_SIZE].lower()
        if named not in SIZES:
            raise Failure("22023", f"{_SIZE}: expected {any_of(list(SIZES))}, not {named[:40]!r}")
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
    """Parse a duration such as 500ms, 30s, 10m, 2h or 1d. Raises Failure."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)\s*", text)
    if not match:
        raise Failure("22023", f"{name}: expected a duration such as 30s, 10m or 2h, not {text!r}")
    return float(match[1]) * _UNITS[match[2]]


def _whole(text: str, name: str, least: int, most: int) -> int:
    if not re.fullmatch(r"\d{1,9}", text) or not least <= int(text) <= most:
        raise Failure("22023", f"{name}: expected a number from {least} to {most}, not {text!r}")
    return int(text)
