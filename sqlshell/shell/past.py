"""The results of the last statements: asked for again by their ids, so that showing a result keeps nothing of it."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from sqlshell.client.watch import Client, Watch
from sqlshell.errors import UsageError
from sqlshell.result import Result
from sqlshell.shell.session import Session

if TYPE_CHECKING:
    from sqlshell.output.formats import Summary
    from sqlshell.shell.port import Consumer

KEPT = 10
NAMES = ("_", *(f"_{number}" for number in range(1, KEPT)))
"""`_` is the last result, `_1` the one before it."""

Opener = Callable[[], Awaitable[Result]]


class Past:
    """The last results that had columns, the latest first."""

    def __init__(self, client: Client, session: Session) -> None:
        self._client = client
        self._session = session
        self._known: deque[tuple[str, Opener | None]] = deque(maxlen=KEPT)

    def noting(self, show: Consumer) -> Consumer:
        """The same consumer, whose results are remembered."""

        async def shown(result: Result) -> Summary:
            summary = await show(result)
            if result.columns and result.endless is None and result.statement_id:
                self.note(result.statement_id)
            return summary

        return shown

    def note(self, key: str, opener: Opener | None = None) -> None:
        """A result is the latest: by its statementID, or by what opens it again."""
        if self._known and self._known[0][0] == key:
            return
        self._known.appendleft((key, opener))

    def key(self, name: str) -> str:
        """What tells the result of that name from others. Raises UsageError where there is none."""
        return self._entry(name)[0]

    @asynccontextmanager
    async def opened(self, name: str = "_") -> AsyncIterator[Result]:
        """A result, from its first row. Raises UsageError where there is none, and what fetching it raises."""
        key, opener = self._entry(name)
        if opener is not None:
            yield await opener()
            return
        fetched = self._client.fetch(key, self._session.context, Watch())
        try:
            async for result in fetched:
                if result.columns:
                    yield result
                    return
            raise UsageError(f"the result {name} has no rows to look at")
        finally:
            await fetched.aclose()

    def _entry(self, name: str) -> tuple[str, Opener | None]:
        if name not in NAMES:
            raise UsageError(f"{name} is no result", f"results are {NAMES[0]}, {NAMES[1]} … {NAMES[-1]}")
        number = NAMES.index(name)
        if number >= len(self._known):
            raise UsageError(
                "no statement has given rows yet" if not self._known else f"there are {len(self._known)} results",
                "run one first: select …;",
            )
        return self._known[number]
