"""How a service is run."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from sqlshell.service.bounds import Bounds
from sqlshell.service.engines.engine import Limits


class Options(Struct, frozen=True):
    """Sizes are bytes, times are seconds.

    `row_limits` is whether a request's `parameters.rowLimit` counts, as it does when embedded. `data_plane` is off,
    large or always, `stream_scheme` ws or http. `retention` is how long a finished statement stays findable, `quota`
    what the results of an organization may take, and `records` how many statements of it are kept; the oldest go first.
    `statement_limit` counts characters. `store_roots` are the folders that stores may be in, () for any that are not
    the service's own. `registry_hosts` are the hosts, beside this machine's loopback, at which schema registries are
    asked.
    """

    partition_rows: int = 10_000
    row_limits: bool = False
    data_plane: str = "off"
    public_url: str = ""
    stream_scheme: str = "ws"
    retention: float = 86_400.0
    quota: int = 10 << 30
    records: int = 1_000_000
    statement_limit: int = 16 << 20
    attachment_limit: int = 1 << 30
    attachments: int = 20
    legacy: bool = False
    legacy_anonymous: bool = False
    store_roots: tuple[Path, ...] = ()
    registry_hosts: tuple[str, ...] = ()
    grace: float = 10.0
    engine: Limits = field(default_factory=Limits)
    bounds: Bounds = field(default_factory=Bounds)
