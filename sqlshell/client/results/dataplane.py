"""The location of a data plane, and whether the client may connect to it. The location is sent by the service.

A uri has one of the forms that running services send: `…/v2`, `…/v2/statements` and `…/v2/statements/{id}` for a result
set, with http, https, ws or wss for a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from urllib.parse import quote, urlsplit

from msgspec import Struct

from sqlshell.client.target import DEFAULT_PORTS, Target
from sqlshell.errors import ProtocolError, ServiceError
from sqlshell.interface.models import DataplaneRequest
from sqlshell.runtime.addresses import address_of, is_loopback, is_private, normalized_host, same_address

RESULT_SET, STREAMING = "result-set", "streaming"
LONGEST_URI = 8_192

_SCHEMES = {RESULT_SET: {"http", "https"}, STREAMING: {"http", "https", "ws", "wss"}}
_PLAIN = {"ws": "http", "wss": "https"}


class DataPlane(Struct, frozen=True):
    """A data plane: `path` is that of the statement or stream, `same` says whether its origin is that of the API."""

    target: Target
    path: str
    token: str
    same: bool

    @property
    def websocket(self) -> str:
        """The websocket URL of the stream: ws instead of http, wss instead of https."""
        scheme = "wss" if self.target.scheme == "https" else "ws"
        return f"{scheme}{self.target.base.removeprefix(self.target.scheme)}{self.path}"


def data_plane(request: DataplaneRequest, api: Target, statement_id: str) -> DataPlane:
    """The location of the rows according to a response. Raises ProtocolError if the interface does not allow it."""
    kind = request.request_type or RESULT_SET
    if kind not in _SCHEMES:
        raise ProtocolError(f"unknown data plane type {kind[:40]!r} from {api.name}")
    uri = request.uri or ""
    refused = f"invalid data plane URI {uri[:200]!r} from {api.name}"
    if not uri or len(uri) > LONGEST_URI or any(char <= " " or char == "\x7f" for char in uri):
        raise ProtocolError(f"{refused}: not a URI")
    try:
        parts = urlsplit(uri)
        port = parts.port
        host = parts.hostname or ""
    except ValueError:
        raise ProtocolError(f"{refused}: not a URI") from None
    scheme = parts.scheme.lower()
    if scheme not in _SCHEMES[kind]:
        raise ProtocolError(f"{refused}: unsupported scheme {scheme or 'none'}")
    if not host:
        raise ProtocolError(f"{refused}: must contain a host")
    if parts.username is not None or parts.password is not None:
        raise ProtocolError(f"invalid data plane URI from {api.name}: must not contain a user name")
    if parts.fragment:
        raise ProtocolError(f"{refused}: must not contain a fragment")
    scheme = _PLAIN.get(scheme, scheme)
    if api.scheme == "https" and scheme != "https":
        raise ProtocolError(f"{refused}: the service uses https, so its data plane must use TLS too")
    path = _path(parts.path, request.statement_id or statement_id, refused) if kind == RESULT_SET else parts.path
    if parts.query:
        if kind == RESULT_SET:
            raise ProtocolError(f"{refused}: must not contain a query string")
        path += f"?{parts.query}"
    target = Target(scheme, host.lower(), port or DEFAULT_PORTS[scheme])
    near = _origin(target) == _origin(api) or (bool(api.uds) and normalized_host(target.host) == "localhost")
    token = request.token or ""
    if any(not "!" <= char <= "~" for char in token):
        raise ProtocolError(f"{api.name} sent a data plane token with characters that HTTP headers do not allow")
    return DataPlane(target, path or "/", token, near)


def _origin(target: Target) -> tuple[str, str, int]:
    return target.scheme, normalized_host(target.host), target.port


def _path(path: str, statement_id: str, refused: str) -> str:
    path = path.rstrip("/")
    head, separator, tail = path.rpartition("/v2")
    if not separator or (tail and not tail.startswith("/")):
        raise ProtocolError(f"{refused}: it does not end in /v2, /v2/statements or /v2/statements/ID")
    steps = tail.strip("/").split("/") if tail else []
    if steps and (steps[0] != "statements" or len(steps) > 2):
        raise ProtocolError(f"{refused}: it does not end in /v2, /v2/statements or /v2/statements/ID")
    if len(steps) == 2:
        return path
    if not statement_id:
        raise ProtocolError(f"{refused}: no statementID")
    return f"{head}/v2/statements/{quote(statement_id, safe='')}"


def address_check(
    plane: DataPlane, api: Target, peers: Collection[str], *, allowed: bool
) -> Callable[[str], None] | None:
    """A function that checks each address of a data plane before a connection; None if any address is allowed.

    A remote service must not direct clients to addresses that only they can reach: loopback, link-local, private.
    `peers` are the addresses of the service itself. Raises ServiceError if the data plane is given by such an address,
    because a proxy would connect to it.
    """
    if allowed or api.loopback:
        return None

    def check_address(address: str) -> None:
        if not is_private(address) or any(same_address(address, peer) for peer in peers):
            return
        raise ServiceError(
            f"{api.name} names a data plane at the private address {address}; refusing to connect",
            "to allow it, set private_data_plane = true in the profile",
        )

    host = plane.target.host
    if is_loopback(host) or address_of(host) is not None:
        check_address(host)
    return check_address
