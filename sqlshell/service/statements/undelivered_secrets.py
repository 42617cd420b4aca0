"""One-time delivery of secrets that statements created: each is shown once, to the token that sent the statement."""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

MOST = 100
"""The maximum number of undelivered secrets of one token; if there are more, the oldest are lost."""


class Secret(Struct, frozen=True):
    """A secret value, and the name of its object."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"


class UndeliveredSecrets:
    """The undelivered secrets, only in memory. Used from one thread."""

    def __init__(self) -> None:
        self._waiting: dict[str, OrderedDict[str, Secret]] = {}

    def keep(self, token_id: str, statement_id: str, secret: Secret) -> None:
        own = self._waiting.setdefault(token_id, OrderedDict())
        own[statement_id] = secret
        while len(own) > MOST:
            own.popitem(last=False)

    def take(self, token_id: str, statement_id: str) -> Secret | None:
        """Return the secret of this token's statement on the first call, then None."""
        own = self._waiting.get(token_id)
        secret = own.pop(statement_id, None) if own else None
        if not own:
            self._waiting.pop(token_id, None)
        return secret

    def forget(self, token_id: str) -> None:
        """Discard the secrets of a dropped token."""
        self._waiting.pop(token_id, None)
