"""All connections of a service: how many there are, whose they are, and which one makes room for another."""

from __future__ import annotations

import ipaddress
import resource
import time
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct
from starlette.types import Scope

from sqlshell.service.bounds import Bounds, met
from sqlshell.service.wire.budget import SHARE

KEY = "sqlshell.connection"
"""Where a request's scope has its connection."""

STALLED_SECONDS = 1.0
"""How long a peer lets its bytes wait before its connection may end for others of the same token."""

FILES = 100
"""Descriptors that are kept for all but connections, and the part of all that is."""
PART = 0.2


class Connection(Struct, eq=False):
    """One connection. `address` is the peer's ("" at a unix socket), `token` the one it used last, "" for a stranger's.

    `busy` is true while a request of a known token is under way. abort() ends the connection at once.
    """

    address: str
    abort: Callable[[], None]
    token: str = ""
    busy: bool = False
    gone: bool = False
    noted: str = ""
    """The token for which its backlog counts."""


class Connections:
    """Keeps the number of connections within the bounds.

    A new one takes the place of the oldest from the same address that has not yet shown a token; where there is none,
    of one that rests, of the token that has the most. Only where all are at work the new one is refused.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.backlog = Backlog(bounds.unread_size)
        self._all = 0
        self._strangers: dict[str, OrderedDict[Connection, None]] = {}
        self._resting: dict[str, OrderedDict[Connection, None]] = {}
        self._addresses: dict[str, int] = {}
        self._tokens: dict[str, int] = {}

    def enter(self, connection: Connection) -> tuple[int, str] | None:
        """Take a connection in; else the status and the words with which it is refused."""
        address = connection.address
        bound = self._bounds.address_connections
        if address and self._addresses.get(address, 0) >= bound and not self._make_room(address):
            return 429, f"there are {bound} connections from this address {met('address_connections')}"
        bound = self._bounds.connections
        if self._all >= bound and not self._make_room(self._most_strangers()):
            return 503, f"there are {bound} connections {met('connections')}"
        self._all += 1
        self._addresses[address] = self._addresses.get(address, 0) + 1
        self._strangers.setdefault(address, OrderedDict())[connection] = None
        return None

    def leave(self, connection: Connection) -> None:
        """Does nothing for a connection that was not taken in, or has left."""
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

    def known(self, connection: Connection, token: str) -> str:
        """A request has shown a token: "", or why it is refused."""
        if connection.gone or connection.token == token:
            return ""
        bound = self._bounds.token_connections
        if self._tokens.get(token, 0) >= bound:
            return f"this token has {bound} connections {met('token_connections')}"
        if connection.token:
            self._count(self._tokens, connection.token, -1)
        else:
            self._drop(self._strangers, connection)
        connection.token = token
        self._tokens[token] = self._tokens.get(token, 0) + 1
        if not connection.busy:
            self._rest(connection)
        return ""

    def work(self, connection: Connection, *, busy: bool) -> None:
        """A request begins, or none is under way any more."""
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
            found = next(iter(strangers))
        else:
            resting = self._resting.get(address)
            if not resting:
                return False
            found = max(resting, key=lambda one: self._tokens[one.token])
        self.leave(found)
        found.abort()
        return True

    def _most_strangers(self) -> str:
        kept = self._strangers or self._resting
        return max(kept, key=lambda address: len(kept[address]), default="")

    @staticmethod
    def _count(counts: dict[str, int], key: str, more: int) -> None:
        counts[key] = counts.get(key, 0) + more
        if not counts[key]:
            del counts[key]

    @staticmethod
    def _drop(kept: dict[str, OrderedDict[Connection, None]], connection: Connection) -> bool:
        found = kept.get(connection.address)
        if found is None or connection not in found:
            return False
        del found[connection]
        if not found:
            del kept[connection.address]
        return True


class Backlog:
    """What has been handed to connections, and is more than a transport takes at once.

    For each token that is no more than a share of `most` bytes. Past it the connection ends whose peer has let them
    wait longest, STALLED_SECONDS at least.
    """

    def __init__(self, most: int) -> None:
        self._share = most // SHARE
        self._kept: dict[str, OrderedDict[Connection, tuple[int, float]]] = {}

    def note(self, connection: Connection, size: int) -> None:
        """So many bytes wait for a connection's peer now."""
        if connection.noted != connection.token or not size:
            kept = self._kept.get(connection.noted)
            if kept is not None and connection in kept:
                del kept[connection]
                if not kept:
                    del self._kept[connection.noted]
        if not size:
            return
        connection.noted = connection.token
        now = time.monotonic()
        kept = self._kept.setdefault(connection.token, OrderedDict())
        kept[connection] = size, kept[connection][1] if connection in kept else now
        if sum(waiting for waiting, _ in kept.values()) > self._share:
            oldest, (_, since) = next(iter(kept.items()))
            if oldest is not connection and now - since >= STALLED_SECONDS:
                del kept[oldest]
                oldest.abort()


class Known:
    """A connection as a request's scope has it: for whoever looks at tokens."""

    def __init__(self, connections: Connections, connection: Connection) -> None:
        self._connections = connections
        self._connection = connection

    def shows(self, token: str) -> str:
        """A request's token is a good one: "", or why the request is refused all the same."""
        return self._connections.known(self._connection, token)

    @property
    def gone(self) -> bool:
        return self._connection.gone


def refusal(scope: Scope, token: str) -> str:
    """Tell the connection of a request which token that showed: "", or why the request is refused."""
    known = scope.get(KEY)
    return known.shows(token) if isinstance(known, Known) else ""


def left(scope: Scope) -> bool:
    """Whether the connection of a request is known to be gone."""
    known = scope.get(KEY)
    return isinstance(known, Known) and known.gone


def peer(address: object) -> str:
    """What a connection counts for: the address of its peer, the network of 64 bits of one in IPv6, "" for none."""
    if not isinstance(address, tuple) or not address:
        return ""
    try:
        found = ipaddress.ip_address(str(address[0]).partition("%")[0])
    except ValueError:
        return str(address[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def descriptors() -> int:
    """Let this process open as many files as the system allows; how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Where the hard limit is none, macOS takes no more than this.
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


def fitting(connections: int, files: int) -> int:
    """How many connections so many descriptors are enough for."""
    return max(1, min(connections, files - max(FILES, int(files * PART))))
