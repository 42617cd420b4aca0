"""The settings of a service, and those of its numbers that are options of `sqlshell serve`."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

UNLIMITED = 1 << 62
"""No limit."""

ORGANIZATION_FACTOR = 5
"""All tokens of an organization together may use this many times the limit of one token."""


class Settings(Struct, frozen=True):
    """Sizes are in bytes or characters, times in seconds.

    What differs between deployments is an option of `sqlshell serve`; the others are limits that ordinary clients do
    not reach.
    """

    # What clients see.
    partition_rows: int = 10_000
    row_limits: bool = False
    """Whether `parameters.rowLimit` of a request is used, as in the embedded service."""
    data_plane: str = "off"
    """off, large or always."""
    public_url: str = ""
    stream_scheme: str = "ws"
    """ws or http."""
    legacy: bool = False
    legacy_anonymous: bool = False

    # What is kept: the oldest results of an organization are removed first.
    retention: float = 86_400.0
    quota: int = 10 << 30
    records: int = 1_000_000

    # What a service may reach.
    store_roots: tuple[Path, ...] = ()
    """The folders of stores; () allows every folder but the service's own."""
    registry_hosts: tuple[str, ...] = ()
    """The hosts of schema registries, in addition to loopback addresses."""

    # An organization's engine: its threads (0: one per core) and its memory ("": a share of the machine's).
    threads: int = 0
    memory: str = ""
    grace: float = 10.0
    """The time for running statements after SIGTERM."""

    # A submission.
    statement_limit: int = 16 << 20
    statements: int = 1000
    attachment_limit: int = 1 << 30
    attachments: int = 20

    # A token: its sessions, and its statements that have not finished.
    sessions: int = 100
    all_sessions: int = 1000
    waiting: int = 2000
    waiting_size: int = 64 << 20

    # An organization; `seconds` is the time of a statement, 0 for no limit.
    objects: int = 500
    name_length: int = 255
    option_length: int = 4096
    resources_size: int = 10 << 30
    running: int = 32
    seconds: float = 3600.0
    spill_size: int = 20 << 30

    # A result: its columns, and the bytes of their names and types as JSON.
    columns: int = 4000
    columns_size: int = 8 << 20

    # A connection: `body_seconds` is the longest pause of a body, `write_seconds` how long a client may stop reading.
    connections: int = 4000
    token_connections: int = 500
    url_size: int = 16 << 10
    header_size: int = 64 << 10
    header_seconds: float = 15.0
    body_seconds: float = 30.0
    write_seconds: float = 60.0

    # Memory and disk for all requests together.
    bodies_size: int = 512 << 20
    uploads_size: int = 16 << 30
    unread_size: int = 256 << 20


MOST = 10**9
"""The largest value of a numeric option, in its unit."""


class Number(Struct, frozen=True):
    """A number of Settings that is an option of `sqlshell serve`: in units of `unit`, from `least` to `most`."""

    name: str
    help: str
    unit: int = 1
    least: float = 1
    most: float = MOST
    kind: type[int] | type[float] = int
    flag: str = ""
    """The option if it is not that of limit_option()."""

    @property
    def option(self) -> str:
        return self.flag or limit_option(self.name)

    @property
    def default(self) -> float:
        """The default in units."""
        return self.kind(getattr(Settings(), self.name) / self.unit)

    def setting(self, given: float) -> float:
        """Return the value of the setting for a given number of units."""
        value = given * self.unit
        return int(value) if isinstance(getattr(Settings(), self.name), int) else value


def limit_option(name: str) -> str:
    """Return the option of `sqlshell serve` that sets a limit."""
    return "--max-" + name.replace("_", "-")


def limit_note(name: str) -> str:
    """Return the end of an error message that names the option of the limit that was reached."""
    return f"(limit set by sqlshell serve {limit_option(name)})"


MIB, GIB = 1 << 20, 1 << 30

NUMBERS = (
    Number(
        "partition_rows",
        "maximum rows of a partition of a result; a partition also ends at 8 MiB",
        most=10_000_000,
        flag="--partition-rows",
    ),
    Number("threads", "threads of each organization's engine; 0 = one per core", least=0, most=1024, flag="--threads"),
    Number("retention", "hours to keep a finished statement and its result", 3600, 0, kind=float, flag="--retention"),
    Number(
        "quota",
        "maximum GiB of the results of an organization; the oldest are removed first",
        GIB,
        0,
        kind=float,
        flag="--quota",
    ),
    Number("grace", "seconds to wait for running statements after SIGTERM", least=0, kind=float, flag="--grace"),
    Number(
        "statement_limit",
        "maximum size of the SQL of a request, in units of 1,048,576 characters",
        MIB,
        most=1024,
        flag="--max-statement",
    ),
    Number("attachment_limit", "maximum MiB of all attachments of a request", MIB, 0, flag="--max-attachments"),
    Number("sessions", "maximum sessions of a token"),
    Number("all_sessions", "maximum sessions of the service"),
    Number("waiting", "maximum unfinished statements of a token; an organization may have five times as many"),
    Number("objects", "maximum objects of each kind in an organization: databases, stores, streams, tokens, …"),
    Number("running", "maximum running statements of an organization; each uses a thread", most=1000),
    Number("seconds", "maximum seconds that a statement may run; 0 = no limit", least=0, kind=float),
    Number("spill_size", "maximum GiB of temporary files of an organization's running statements", GIB, 0),
    Number("connections", "maximum connections; at most four fifths of the limit of open files"),
    Number("token_connections", "maximum connections with the same token"),
    Number("bodies_size", "maximum MiB of all request bodies being received; each organization may use a quarter", MIB),
    Number(
        "uploads_size",
        "maximum GiB of all attachments of unfinished statements; each organization may use a quarter",
        GIB,
    ),
    Number(
        "unread_size",
        "maximum MiB of all rows that clients have not read yet; each organization may use a quarter",
        MIB,
    ),
)
"""The numbers that are options of `sqlshell serve`, in the order of its help."""

EMBEDDED = Settings(
    row_limits=True,
    records=10_000,
    statements=UNLIMITED,
    name_length=UNLIMITED,
    option_length=UNLIMITED,
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
"""The settings of the embedded service, which has one user."""
