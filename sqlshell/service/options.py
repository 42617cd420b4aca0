"""The options of a service."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from sqlshell.service.bounds import Bounds
from sqlshell.service.engines.engine import Limits


class Options(Struct, frozen=True):
    """Sizes are bytes, times are seconds.

    `row_limits` says whether `parameters.rowLimit` of a request is used, as in the embedded service. `data_plane` is
    off, large or always; `stream_scheme` is ws or http. `retention` is how long a finished statement is kept, `quota`
    how much disk space the results of an organization may use, and `records` how many of its statements are kept; the
    oldest are removed first. `statement_limit` counts characters. Stores may only be in `store_roots`; () allows every
    folder but the service's own. `registry_hosts` are the hosts, in addition to loopback addresses, where schema
    registries may be.
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
