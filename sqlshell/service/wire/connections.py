"""Limits the connections of a service, and chooses which one to close for a new one."""

from __future__ import annotations

import ipaddress
import resource
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache

from msgspec import Struct
from starlette.types import Scope

from sqlshell.service.bounds import Bounds, limit_note
from sqlshell.service.http.budget import SHARE
from sqlshell.service.wire.scheduling import ParseScheduler

KEY = "sqlshell.connection"
"""Key of the connection in a request's scope."""

STALLED_SECONDS = 1.0
"""How long a peer may leave data unread before its connection may be closed for others of the same token."""

FILES = 100
"""File descriptors that are reserved for other uses than connections: a number, and below a fraction of all."""
PART = 0.2


class Connection(Struct, eq=False):
    """One connection. `address` is the peer's ("" for a unix socket), `token` the last valid token, or "".

    `busy` is true while a request with a valid token is being handled. abort() closes the connection at once.
    """

    address: str
    abort: Callable[[], None]
    token: str = ""
    busy: bool = False
    gone: bool = False
    backlog_token: str = ""
    """The token to which its backlog is counted."""


class Connections:
    """Limits the number of connections.

    A new connection replaces the oldest from the same address that has not sent a valid token; if there is none, an
    idle one of the token with the most connections. It is refused only if all are busy.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.backlog = Backlog(bounds.unread_size)
        self.parsing = ParseScheduler()
        self._all = 0
        self._strangers: dict[str, OrderedDict[Connection, None]] = {}
        self._resting: dict[str, OrderedDict[Connection, None]] = {}
        self._addresses: dict[str, int] = {}
        self._tokens: dict[str, int] = {}

    def enter(self, connection: Connection) -> tuple[int, str] | None:
        """Register a connection; returns None, or the status and message of the refusal."""
        address = connection.address
        bound = self._bounds.address_connections
        if address and self._addresses.get(address, 0) >= bound and not self._make_room(address):
            return 429, f"too many connections from this address: {bound} {limit_note('address_connections')}"
        bound = self._bounds.connections
        if self._all >= bound and not self._make_room(self._address_with_most_connections()):
            return 503, f"too many connections: {bound} {limit_note('connections')}"
        self._all += 1
        self._addresses[address] = self._addresses.get(address, 0) + 1
        self._strangers.setdefault(address, OrderedDict())[connection] = None
        return None

    def leave(self, connection: Connection) -> None:
        """Unregister a connection. Has no effect if it is not registered."""
        self.backlog.note(connection, 0)
        if connection.gone:
            return
        if connection.token:
            self._count(self._tokens, connection.token, -1)
            self._drop(self._resting, connection)
        elif not self._drop(self._strangers, connection):
            return
        connection.gone = True
        self._all -= 1
        self._count(self._addresses, connection.address, -1)

    def note_token(self, connection: Connection, token: str) -> str:
        """Note that a request has a valid token; returns "", or the message of a refusal."""
        if connection.gone or connection.token == token:
            return ""
        bound = self._bounds.token_connections
        if self._tokens.get(token, 0) >= bound:
            return f"too many connections of this token: {bound} {limit_note('token_connections')}"
        if connection.token:
            self._count(self._tokens, connection.token, -1)
        else:
            self._drop(self._strangers, connection)
        connection.token = token
        self._tokens[token] = self._tokens.get(token, 0) + 1
        if not connection.busy:
            self._rest(connection)
        return ""

    def note_busy(self, connection: Connection, *, busy: bool) -> None:
        """Note whether a request is being handled."""
        if connection.gone or connection.busy == busy:
            return
        connection.busy = busy
        if not connection.token:
            return
        if busy:
            self._drop(self._resting, connection)
        else:
            self._rest(connection)

    def _rest(self, connection: Connection) -> None:
        self._resting.setdefault(connection.address, OrderedDict())[connection] = None

    def _make_room(self, address: str) -> bool:
        strangers = self._strangers.get(address)
        if strangers:
            connection = next(iter(strangers))
        else:
            resting = self._resting.get(address)
            if not resting:
                return False
            connection = max(resting, key=lambda one: self._tokens[one.token])
        self.leave(connection)
        connection.abort()
        return True

    def _address_with_most_connections(self) -> str:
        """Of connections without a valid token; if there are none, of idle ones."""
        kept = self._strangers or self._resting
        return max(kept, key=lambda address: len(kept[address]), default="")

    @staticmethod
    def _count(counts: dict[str, int], key: str, more: int) -> None:
        counts[key] = counts.get(key, 0) + more
        if not counts[key]:
            del counts[key]

    @staticmethod
    def _drop(kept: dict[str, OrderedDict[Connection, None]], connection: Connection) -> bool:
        of_address = kept.get(connection.address)
        if of_address is None or connection not in of_address:
            return False
        del of_address[connection]
        if not of_address:
            del kept[connection.address]
        return True


class Backlog:
    """The unsent data of connections, beyond what a transport buffers.

    Each token may have a share of `most` bytes. If it exceeds that, the connection whose peer has not read for the
    longest time, at least STALLED_SECONDS, is closed.
    """

    def __init__(self, most: int) -> None:
        self._share = most // SHARE
        self._kept: dict[str, OrderedDict[Connection, tuple[int, float]]] = {}

    def note(self, connection: Connection, size: int) -> None:
        """Set the number of unsent bytes of a connection."""
        if connection.backlog_token != connection.token or not size:
            kept = self._kept.get(connection.backlog_token)
            if kept is not None and connection in kept:
                del kept[connection]
                if not kept:
                    del self._kept[connection.backlog_token]
        if not size:
            return
        connection.backlog_token = connection.token
        now = time.monotonic()
        kept = self._kept.setdefault(connection.token, OrderedDict())
        kept[connection] = size, kept[connection][1] if connection in kept else now
        if sum(waiting for waiting, _ in kept.values()) > self._share:
            oldest, (_, since) = next(iter(kept.items()))
            if oldest is not connection and now - since >= STALLED_SECONDS:
                del kept[oldest]
                oldest.abort()


class RequestConnection:
    """The connection in a request's scope, for the code that checks tokens."""

    def __init__(self, connections: Connections, connection: Connection) -> None:
        self._connections = connections
        self._connection = connection

    def note_token(self, token: str) -> str:
        """Note that a request has a valid token; returns "", or the message of a refusal."""
        return self._connections.note_token(self._connection, token)

    @property
    def gone(self) -> bool:
        return self._connection.gone


def note_token(scope: Scope, token: str) -> str:
    """Note the valid token of a request for its connection; returns "", or the message of a refusal."""
    known = scope.get(KEY)
    return known.note_token(token) if isinstance(known, RequestConnection) else ""


def is_disconnected(scope: Scope) -> bool:
    """Whether the client of a request has disconnected."""
    known = scope.get(KEY)
    return isinstance(known, RequestConnection) and known.gone


def peer(address: object) -> str:
    """The address by which a connection is counted: the peer's IPv4 address, its /64 network in IPv6, or ""."""
    return _counted(str(address[0])) if isinstance(address, tuple) and address else ""


@lru_cache(1024)
def _counted(host: str) -> str:
    """Cached, because reading an address takes a quarter of the time of a connection that is opened and closed."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def raise_descriptor_limit() -> int:
    """Raise the limit of open files as far as the system allows; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS accepts at most 10240 if the hard limit is unlimited.
    for wanted in (hard, min(10240, hard) if hard != resource.RLIM_INFINITY else 10240):
        if wanted == soft:
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            continue
        break
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft != resource.RLIM_INFINITY else 1 << 30


def fitting_connections(connections: int, files: int) -> int:
    """The number of connections that fit into a limit of open files."""
    return max(1, min(connections, files - max(FILES, int(files * PART))))
