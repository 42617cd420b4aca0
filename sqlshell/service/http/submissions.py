"""Splits submissions into statements; long texts are read in pieces in a thread, so that none delays the others."""

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
"""How statements begin that may give the service secrets. In other statements only options are looked at."""

LOOKED_THROUGH = 64 << 10
"""Characters that are searched for secrets at once: a regular expression makes other threads wait."""

OVERLAP = 4 << 10
"""Characters that are searched again together with the following piece."""

HEAD = 4 << 10
"""Characters that are kept of a statement with secrets that is longer than LOOKED_THROUGH."""

SHORT = 4 << 10
"""Texts of up to this many characters are read at once, in the event loop."""

PIECE = 16 << 10
"""Characters of a longer text that are read before it is the turn of another text."""

GLANCE = 1 << 10
"""Characters of a submission that are searched for secrets in the event loop, which takes about a millisecond."""

LARGE = 256 << 10
"""Memory is returned to the system after texts longer than this many characters."""


class Texts:
    """Reads long texts in one thread, a piece for each owner in turn, so that they use at most one processor."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._turns = Pool("texts", Size(1, 1 << 30))
        self._large = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reading")

    async def split(self, text: str, owner: str, left: Callable[[], bool] = bool) -> list[Item]:
        """The statements and commands of a text. `left` says whether its sender has disconnected.

        Raises BadRequest if the sender has disconnected or there are too many statements.
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
                    raise BadRequest("the client disconnected")
            self._check(found)
        found += scanner.items(None)
        self._check(found)
        return found

    async def read(self, sql: str, owner: str) -> Own | None:
        """Parse a statement of the dialect: the result of dialect.read(). Raises Failure."""
        return await self.run(owner, partial(read, sql)) if takes_long(sql) else read(sql)

    async def is_engines(self, sql: str, owner: str) -> bool:
        """Whether a statement is for the engine, rather than about objects of the service."""
        try:
            return await self.read(sql, owner) is None
        except Failure:
            return False

    async def secretless(self, given: Sequence[str], owner: str) -> list[Secretless | None]:
        """The text without secrets of each statement that contains secrets; None for the other statements."""
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
        """The beginning of a long statement without its secrets, or None if the statement contains no secrets."""
        keeps = MAY_HOLD_SECRETS.match(sql) is not None
        for start in range(0, len(sql), LOOKED_THROUGH):
            piece = sql[start : start + LOOKED_THROUGH + OVERLAP]
            holds, keeps = await self.run(owner, partial(_looked_through, piece, keeps))
            if holds:
                return await self.run(owner, partial(_beginning, sql))
        return None

    async def rest(self) -> None:
        """Return memory to the system if large texts were read since the last call."""
        if self._large:
            self._large = False
            await asyncio.get_running_loop().run_in_executor(self._thread, _give_back)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Run a function in the thread when it is the owner's turn."""
        async with self._turns.admit(owner):
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _check(self, found: list[Item]) -> None:
        if len(found) > self._most and sum(isinstance(item, Statement) for item in found) > self._most:
            said = f"request.statement has more than {self._most} statements {met('statements')}"
            raise BadRequest(f"{said}; split it into several requests", 413)


def _secretless(sql: str) -> Secretless | None:
    from sqlshell.sql.analysis.secrets import may_hold_secrets, redacted, redacted_options, removed_values

    redact = redacted if MAY_HOLD_SECRETS.match(sql) else redacted_options
    shown = redact(sql) if may_hold_secrets(sql) else sql
    return Secretless(shown, removed_values(sql, shown)) if shown != sql else None


def _looked_through(piece: str, keeps: bool) -> tuple[bool, bool]:
    """Whether a piece of a statement contains secrets, and whether the following piece may contain secrets too.

    `keeps` says whether this piece may contain secrets anywhere, not only in options.
    """
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
    # An exception and its traceback form a cycle that refers to the text.
    gc.collect()
    give_back()


def _items(scanner: Scanner, piece: str) -> list[Item]:
    return [*scanner.items(piece)]
