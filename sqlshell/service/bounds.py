"""What one client may take of a service that others use too. Every bound is an option of `sqlshell serve`."""

from __future__ import annotations

from msgspec import Struct

WITHOUT = 1 << 62
"""A bound that nothing meets."""

TOGETHER = 5
"""How many times the bound of a token all tokens of an organization may take together."""


class Bounds(Struct, frozen=True):
    """Counts; `_size` is bytes or characters, `seconds` is seconds and 0 for none.

    Of one submission: `statements`. Of a token: `sessions`, `waiting` statements that have not ended and the size of
    their texts. Of an organization: `objects` of each kind, `resources_size` of their files, statements `running` at
    once, `spill_size` of what statements write while they run. `name` is the characters of a name, `option` those of
    a value of WITH.

    Of a request: the bytes of its `url` and its `header`, how long its header may take in all and its `body` stand
    still. Of connections: all, those of an `address`, those of a `token`; `write_seconds` is for how long a reader may
    take nothing. Of memory: `bodies_size` of all requests that arrive, `unread_size` of all rows that have been
    rendered and not been taken; and `uploads_size` of all attachments whose statements have not ended.
    """

    statements: int = 1000
    name: int = 255
    option: int = 4096
    sessions: int = 100
    all_sessions: int = 1000
    waiting: int = 2000
    waiting_size: int = 64 << 20
    objects: int = 500
    resources_size: int = 10 << 30
    running: int = 32
    columns: int = 4000
    seconds: float = 3600.0
    spill_size: int = 20 << 30
    url_size: int = 16 << 10
    header_size: int = 64 << 10
    connections: int = 4000
    address_connections: int = 1000
    token_connections: int = 500
    header_seconds: float = 15.0
    body_seconds: float = 30.0
    write_seconds: float = 60.0
    bodies_size: int = 512 << 20
    uploads_size: int = 16 << 30
    unread_size: int = 256 << 20


FREE = Bounds(
    statements=WITHOUT,
    name=WITHOUT,
    option=WITHOUT,
    sessions=WITHOUT,
    all_sessions=WITHOUT,
    waiting=WITHOUT,
    waiting_size=WITHOUT,
    objects=WITHOUT,
    resources_size=WITHOUT,
    running=64,
    columns=WITHOUT,
    seconds=0.0,
    spill_size=0,
    bodies_size=WITHOUT,
    uploads_size=WITHOUT,
    unread_size=WITHOUT,
)
"""The bounds of the embedded service, whose only user may do anything."""


def flag(name: str) -> str:
    """The option of `sqlshell serve` that sets a bound."""
    return "--max-" + name.replace("_", "-")


def met(name: str) -> str:
    """How an error ends that says which bound was met."""
    return f"(sqlshell serve {flag(name)})"
