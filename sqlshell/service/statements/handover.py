"""Secrets that statements made: each is handed over once, to the token that sent its statement."""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

MOST = 100
"""Secrets of one token that wait for it to look; behind so many the oldest are lost."""


class Secret(Struct, frozen=True):
    """The value, and the name of what it belongs to."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"


class Handover:
    """The secrets that nobody has seen yet, in memory alone. Used from one thread."""

    def __init__(self) -> None:
        self._waiting: dict[str, OrderedDict[str, Secret]] = {}

    def keep(self, token_id: str, statement_id: str, secret: Secret) -> None:
        own = self._waiting.setdefault(token_id, OrderedDict())
        own[statement_id] = secret
        while len(own) > MOST:
            own.popitem(last=False)

    def take(self, token_id: str, statement_id: str) -> Secret | None:
        """The secret of this token's statement, the first time that it asks."""
        own = self._waiting.get(token_id)
        found = own.pop(statement_id, None) if own else None
        if not own:
            self._waiting.pop(token_id, None)
        return found

    def forget(self, token_id: str) -> None:
        """The token is gone, and what waited for it."""
        self._waiting.pop(token_id, None)
