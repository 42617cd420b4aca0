"""A submission's text as statements: long ones a piece at a time in a thread, so that no text holds up the others."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from sqlshell.service.bounds import met
from sqlshell.service.dialect import Own, read, takes_long
from sqlshell.service.engines.engine import Failure
from sqlshell.service.http.body import BadRequest
from sqlshell.service.organizations.pools import Pool, Size
from sqlshell.service.organizations.unused_memory import give_back
from sqlshell.service.statements.ledger import Secretless
from sqlshell.sql.script.items import Item, Statement
from sqlshell.sql.script.scanner import Scanner

T = TypeVar("T")

MAY_HOLD_SECRETS = re.compile(
    r"\s*+(?:--|/\*|\\|(?:create|update|alter|drop|attach|set|begin|copy|desc|describe|explain|pragma|call|prepare"
    r"|insert\s++into\s++entity)(?!\w))",
    re.I,
)
"""How statements begin that give the service something to keep; what the others hold is data, but for their options."""

LOOKED_THROUGH = 64 << 10
"""Characters of a statement that are looked through for secrets at once: other threads wait for each pattern."""

OVERLAP = 4 << 10
"""Characters that are looked through again with those behind them."""

HEAD = 4 << 10
"""Characters that are kept of a statement that is too long to be looked through and has secrets in them."""

SHORT = 4 << 10
"""Characters that are read at once, in the event loop."""

PIECE = 16 << 10
"""Characters of a longer text that are read before it is another one's turn."""

GLANCE = 1 << 10
"""Characters of a submission's statements that are looked through for secrets in the event loop: it takes a
millisecond."""

LARGE = 256 << 10
"""Characters of a text from which its memory is given back to the system."""


class Texts:
    """Reads long texts in one thread, a piece of each owner's in turn: they take no more than one processor."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._turns = Pool("texts", Size(1, 1 << 30))
        self._large = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reading")

    async def split(self, text: str, owner: str, left: Callable[[], bool] = bool) -> list[Item]:
        """The statements and commands of a text. `left` says whether its sender is gone, and nobody needs them.

        Raises BadRequest, where there are too many too.
        """
        self._large = self._large or len(text) > LARGE
        scanner = Scanner()
        found: list[Item] = []
        for start in range(0, len(text), PIECE):
            piece = text[start : start + PIECE]
            if len(text) <= SHORT:
                found += scanner.items(piece)
            else:
                found += await self.run(owner, partial(_items, scanner, piece))
                if left():
                    raise BadRequest("the client left")
            self._check(found)
        found += scanner.items(None)
        self._check(found)
        return found

    async def read(self, sql: str, owner: str) -> Own | None:
        """What a statement of the dialect asks for, as dialect.read() has it. Raises Failure."""
        return await self.run(owner, partial(read, sql)) if takes_long(sql) else read(sql)

    async def is_engines(self, sql: str, owner: str) -> bool:
        """Whether a statement is the engine's to run, and not one about the service's own objects."""
        try:
            return await self.read(sql, owner) is None
        except Failure:
            return False

    async def secretless(self, given: Sequence[str], owner: str) -> list[Secretless | None]:
        """What is kept and shown of each of these statements that holds secrets, None for those that hold none."""
        found: list[Secretless | None] = [None] * len(given)
        from sqlshell.sql.analysis.secrets import OPTIONS, may_hold_secrets

        looked, size = [*range(len(given))], 0
        if sum(map(len, given)) <= SHORT:
            looked = [n for n in looked if MAY_HOLD_SECRETS.match(given[n]) or OPTIONS.search(given[n])]
            if sum(len(given[n]) for n in looked) <= GLANCE:
                looked = [n for n in looked if may_hold_secrets(given[n])]
        piece: list[int] = []
        for number in looked:
            if len(given[number]) > LOOKED_THROUGH:
                found[number] = await self._long_secretless(given[number], owner)
                continue
            piece.append(number)
            size += len(given[number])
            if size >= PIECE:
                await self._add_secretless(found, given, piece, owner)
                piece, size = [], 0
        if piece:
            await self._add_secretless(found, given, piece, owner)
        return found

    async def _add_secretless(
        self, found: list[Secretless | None], given: Sequence[str], numbers: Sequence[int], owner: str
    ) -> None:
        made = await self.run(owner, lambda: [_secretless(given[number]) for number in numbers])
        for number, secretless in zip(numbers, made, strict=True):
            found[number] = secretless

    async def _long_secretless(self, sql: str, owner: str) -> Secretless | None:
        """The beginning of a long statement, if secrets stand anywhere in it."""
        keeps = MAY_HOLD_SECRETS.match(sql) is not None
        for start in range(0, len(sql), LOOKED_THROUGH):
            piece = sql[start : start + LOOKED_THROUGH + OVERLAP]
            holds, keeps = await self.run(owner, partial(_looked_through, piece, keeps))
            if holds:
                return await self.run(owner, partial(_beginning, sql))
        return None

    async def rest(self) -> None:
        """Give back what large texts took, if there were any since the last time."""
        if self._large:
            self._large = False
            await asyncio.get_running_loop().run_in_executor(self._thread, _give_back)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Do a piece of work in the thread, when it is its owner's turn."""
        async with self._turns.admit(owner):
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _check(self, found: list[Item]) -> None:
        if len(found) > self._most and sum(isinstance(item, Statement) for item in found) > self._most:
            said = f"request.statement has more than {self._most} statements {met('statements')}"
            raise BadRequest(f"{said}: send them in several requests", 413)


def _secretless(sql: str) -> Secretless | None:
    from sqlshell.sql.analysis.secrets import may_hold_secrets, redacted, redacted_options, removed_values

    redact = redacted if MAY_HOLD_SECRETS.match(sql) else redacted_options
    shown = redact(sql) if may_hold_secrets(sql) else sql
    return Secretless(shown, removed_values(sql, shown)) if shown != sql else None


def _looked_through(piece: str, keeps: bool) -> tuple[bool, bool]:
    """Whether a piece of a statement holds secrets, and whether the text behind it is more than data. `keeps` says so
    of the piece itself."""
    from sqlshell.sql.analysis.secrets import OPTIONS, may_hold_secrets, redacted

    if not keeps:
        begun = OPTIONS.search(piece)
        if begun is None:
            return False, False
        piece = piece[begun.start() :]
    return may_hold_secrets(piece) and redacted(piece) != piece, True


def _beginning(sql: str) -> Secretless:
    from sqlshell.sql.analysis.secrets import redacted

    return Secretless(redacted(sql[:HEAD]), (), cut=True)


def _give_back() -> None:
    # The error of a statement and what met it refer to each other, and to the text.
    gc.collect()
    give_back()


def _items(scanner: Scanner, piece: str) -> list[Item]:
    return [*scanner.items(piece)]
