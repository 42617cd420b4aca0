"""Limits on what one client may use of a shared service. Each limit is an option of `sqlshell serve`."""

from __future__ import annotations

from msgspec import Struct

UNLIMITED = 1 << 62
"""No limit."""

ORGANIZATION_FACTOR = 5
"""All tokens of an organization together may use this many times the limit of one token."""


class Bounds(Struct, frozen=True):
    """Counts, except that those in `..._size` are in bytes or characters and `seconds` in seconds (0: no limit).

    For one submission: `statements`. For a token: `sessions`; `waiting`, the statements that have not finished; and
    `waiting_size`, the size of their texts. For an organization: `objects` of each kind, `resources_size` of their
    files, `running` statements at once, `spill_size` of the temporary files of statements. `name` is the length of a
    name, `option` the length of a value of WITH, in characters. For a result: `columns`, and `columns_size`, the bytes
    of their names and types as JSON.

    For a request: `url_size` and `header_size`, the time until its header is complete (`header_seconds`), and the time
    that its body may pause (`body_seconds`). All `connections`, `token_connections` with one
    token; `write_seconds` is how long a client may stop reading. For memory: `bodies_size`
    of all requests being received, `unread_size` of all rows that are rendered but not yet sent. For disk:
    `uploads_size` of the attachments of unfinished statements.
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
    columns_size: int = 8 << 20
    seconds: float = 3600.0
    spill_size: int = 20 << 30
    url_size: int = 16 << 10
    header_size: int = 64 << 10
    connections: int = 4000
    token_connections: int = 500
    header_seconds: float = 15.0
    body_seconds: float = 30.0
    write_seconds: float = 60.0
    bodies_size: int = 512 << 20
    uploads_size: int = 16 << 30
    unread_size: int = 256 << 20


EMBEDDED_BOUNDS = Bounds(
    statements=UNLIMITED,
    name=UNLIMITED,
    option=UNLIMITED,
    sessions=UNLIMITED,
    all_sessions=UNLIMITED,
    waiting=UNLIMITED,
    waiting_size=UNLIMITED,
    objects=UNLIMITED,
    resources_size=UNLIMITED,
    running=64,
    columns=UNLIMITED,
    columns_size=UNLIMITED,
    seconds=0.0,
    spill_size=0,
    bodies_size=UNLIMITED,
    uploads_size=UNLIMITED,
    unread_size=UNLIMITED,
)
"""The limits of the embedded service, which has one user."""


def limit_option(name: str) -> str:
    """The option of `sqlshell serve` that sets a limit."""
    return "--max-" + name.replace("_", "-")


def limit_note(name: str) -> str:
    """The end of an error message that names the option of the limit that was reached."""
    return f"(limit set by sqlshell serve {limit_option(name)})"
