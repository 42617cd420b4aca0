"""Splits submissions into statements; long texts are read in pieces in a thread, so that none delays the others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from sqlshell.service.bounds import met
from sqlshell.service.dialect import Own, Reading
from sqlshell.service.http.body import BadRequest
from sqlshell.service.organizations.pools import Pool, Size
from sqlshell.service.statements.ledger import RedactedStatement
from sqlshell.sql.analysis.lexed import Lexed, lexed
from sqlshell.sql.script.items import Item, Statement
from sqlshell.sql.script.scanner import Scanner

T = TypeVar("T")

MAY_HOLD_SECRETS = re.compile(
    r"\s*+(?:--|/\*|\\|(?:create|update|alter|drop|attach|set|begin|copy|desc|describe|explain|pragma|call|prepare"
    r"|insert\s++into\s++entity)(?!\w))",
    re.I,
)
"""Beginnings of statements that may contain secrets anywhere. In other statements only options are searched."""

LOOKED_THROUGH = 16 << 10
"""Characters that are searched for secrets at once: a regular expression makes other threads wait."""

OVERLAP = 4 << 10
"""Characters that are searched again together with the following piece."""

HEAD = 4 << 10
"""Maximum characters that are stored of a statement with secrets that is longer than LOOKED_THROUGH."""

SHORT = 1 << 10
"""Texts of up to this many characters are read at once, in the event loop."""

PIECE = 16 << 10
"""Characters of a longer text that are read before it is the turn of another text."""

GLANCE = 1 << 10
"""Characters of a submission that are searched for secrets in the event loop, which takes about a millisecond."""


class Texts:
    """Reads long texts in one thread, a piece for each owner in turn, so that they use at most one processor."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._turns = Pool("texts", Size(1, 1 << 30))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reading")

    async def split(self, text: str, owner: str, left: Callable[[], bool] = bool) -> list[Item]:
        """The statements and commands of a text. `left` says whether its sender has disconnected.

        Raises BadRequest if the sender has disconnected or there are too many statements.
        """
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

    async def read(self, reading: Reading, owner: str) -> Own | None:
        """Parse a statement of the dialect: the result of reading.own(). Raises Failure."""
        return await self.run(owner, reading.own) if reading.takes_long else reading.own()

    async def is_engines(self, reading: Reading, owner: str) -> bool:
        """Whether a statement is for the engine, rather than about objects of the service."""
        return await self.run(owner, reading.is_engines) if reading.takes_long else reading.is_engines()

    async def secretless(self, given: Sequence[str], owner: str) -> list[RedactedStatement | None]:
        """The text without secrets of each statement that contains secrets; None for the other statements."""
        found: list[RedactedStatement | None] = [None] * len(given)
        from sqlshell.sql.analysis.secrets import OPTIONS, may_hold_secrets

        looked: Iterable[tuple[int, Lexed]] = ((number, lexed(sql)) for number, sql in enumerate(given))
        if sum(map(len, given)) <= SHORT:
            looked = [item for item in looked if MAY_HOLD_SECRETS.match(item[1].text) or OPTIONS.search(item[1].text)]
            if sum(len(item.text) for _, item in looked) <= GLANCE:
                looked = [item for item in looked if may_hold_secrets(item[1])]
        piece: list[tuple[int, Lexed]] = []
        size = 0
        for number, statement in looked:
            if len(statement.text) > LOOKED_THROUGH:
                found[number] = await self._long_secretless(statement.text, owner)
                continue
            piece.append((number, statement))
            size += len(statement.text)
            if size >= PIECE:
                await self._add_secretless(found, piece, owner)
                piece, size = [], 0
        if piece:
            await self._add_secretless(found, piece, owner)
        return found

    async def _add_secretless(
        self, found: list[RedactedStatement | None], piece: Sequence[tuple[int, Lexed]], owner: str
    ) -> None:
        made = await self.run(owner, lambda: [_secretless(statement) for _, statement in piece])
        for (number, _), secretless in zip(piece, made, strict=True):
            found[number] = secretless

    async def _long_secretless(self, sql: str, owner: str) -> RedactedStatement | None:
        """The beginning of a long statement without its secrets, or None if the statement contains no secrets."""
        keeps = MAY_HOLD_SECRETS.match(sql) is not None
        for start in range(0, len(sql), LOOKED_THROUGH):
            piece = sql[start : start + LOOKED_THROUGH + OVERLAP]
            holds, keeps = await self.run(owner, partial(_looked_through, piece, keeps))
            if holds:
                return await self.run(owner, partial(_beginning, sql))
        return None

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


def _secretless(statement: Lexed) -> RedactedStatement | None:
    from sqlshell.sql.analysis.secrets import may_hold_secrets, redacted, redacted_options, removed_values

    sql = statement.text
    redact = redacted if MAY_HOLD_SECRETS.match(sql) else redacted_options
    shown = redact(statement) if may_hold_secrets(statement) else sql
    return RedactedStatement(shown, removed_values(statement, shown)) if shown != sql else None


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


def _beginning(sql: str) -> RedactedStatement:
    from sqlshell.sql.analysis.secrets import redacted

    return RedactedStatement(redacted(sql[:HEAD]), (), cut=True)


def _items(scanner: Scanner, piece: str) -> list[Item]:
    return [*scanner.items(piece)]
