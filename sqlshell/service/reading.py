"""A submission's text as statements: long ones a piece at a time in a thread, so that no text holds up the others."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from sqlshell.service.body import BadRequest
from sqlshell.service.bounds import met
from sqlshell.sql.items import Item, Statement
from sqlshell.sql.scanner import Scanner

SHORT = 16 << 10
"""Characters that are read at once, in the event loop."""


class Texts:
    """Reads one long text after another, so that many of them take no more than one processor."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reading")

    async def split(self, text: str) -> list[Item]:
        """The statements and commands of a text. Raises BadRequest where there are too many."""
        if len(text) <= SHORT:
            return self._split(text)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._split, text)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _split(self, text: str) -> list[Item]:
        scanner = Scanner()
        found: list[Item] = []
        for start in range(0, len(text), SHORT):
            found += scanner.items(text[start : start + SHORT])
            self._check(found)
        found += scanner.items(None)
        self._check(found)
        return found

    def _check(self, found: list[Item]) -> None:
        if len(found) > self._most and sum(isinstance(item, Statement) for item in found) > self._most:
            said = f"request.statement has more than {self._most} statements {met('statements')}"
            raise BadRequest(f"{said}: send them in several requests", 413)
