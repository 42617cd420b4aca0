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
)
"""The bounds of the embedded service, whose only user may do anything."""


def flag(name: str) -> str:
    """The option of `sqlshell serve` that sets a bound."""
    return "--max-" + name.replace("_", "-")


def met(name: str) -> str:
    """How an error ends that says which bound was met."""
    return f"(sqlshell serve {flag(name)})"
