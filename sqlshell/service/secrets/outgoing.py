"""Outgoing requests of the service, only to allowed addresses.

A name is resolved, once, only if the operator allowed it or it is `localhost`; the connection is made to the address
that was checked. No proxy is used, no redirect is followed, and the content of a response is not shown to anybody.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Final

from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.runtime.addresses import Address, meanings
from sqlshell.service.failure import Failure
from sqlshell.unreachable import Cause, why_failed

SECONDS: Final = 5.0
"""The total time for the requests of a statement; TERMINATE QUERY cannot interrupt them."""

MOST: Final = 1 << 20
"""Maximum bytes of a response that are read."""

MAX_PATH: Final = 1000
"""The longest path of a URL, in characters."""

_URL: Final = re.compile(
    r"(https?)://(?:\[([0-9a-f:.]+)\]|([a-z0-9_][a-z0-9_.-]{0,252}))(?::([0-9]{1,5}))?"
    r"((?:/[\w.~!$&'()*+,;=:@%-]*)*)",
    re.ASCII | re.IGNORECASE,
)
_PORTS: Final = {"http": 80, "https": 443}
_WHY: Final = {
    Cause.CERTIFICATE: "the certificate is not trusted",
    Cause.REFUSED: "connection refused",
    **dict.fromkeys(
        (Cause.TLS, Cause.NOT_TLS, Cause.NO_CLIENT_CERTIFICATE, Cause.CLIENT_CERTIFICATE), "the TLS handshake failed"
    ),
}
"""Reasons for a failed connection; what the host says of itself is left out."""


class Target(Struct, frozen=True):
    """The target of a request: `scheme` is http or https, `path` has no trailing slash."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.place}{self.path}"

    @property
    def address(self) -> Address | None:
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None


def read_target(text: str) -> Target:
    """Parse a URL. Raises Failure; its message does not contain the URL, which may contain a password."""
    found = _URL.fullmatch(text.strip())
    if found is not None:
        scheme, literal, name, port, path = found.groups()
        scheme, host = scheme.lower(), (literal or name).lower()
        target = Target(scheme, host, int(port or _PORTS[scheme]), path.rstrip("/"))
        if 0 < target.port < 1 << 16 and (name or target.address) and len(path) <= MAX_PATH:
            return target
    expected = "expected URLs such as https://registry.example.com:8081, without a user, password, query or fragment"
    raise Failure("22023", f"'uris': {expected}")


def get(target: Target, headers: Mapping[str, str], hosts: Collection[str] | None, until: float) -> tuple[int, bytes]:
    """Send a GET request; returns the status and up to MOST bytes of the response.

    `hosts` are the hosts, as HOST or HOST:PORT, that the operator allows in addition to loopback; None allows all.
    `until` is a time of the monotonic clock. In a thread. Raises Failure: 42501 for a host that is not allowed, 57015
    for a host that does not respond.
    """
    try:
        addresses = _allowed_addresses(target, hosts, until)
        return asyncio.run(asyncio.wait_for(_request(target, addresses, headers), until - time.monotonic()))
    except TimeoutError:
        message = f"{target.place} did not respond within {SECONDS:g} s"
        raise Failure(sqlstate.REMOTE_UNAVAILABLE, message) from None


def _allowed_addresses(target: Target, hosts: Collection[str] | None, until: float) -> Sequence[Address]:
    """The addresses of a target that may be connected to. Resolves no name that is not allowed. Raises Failure."""
    literal, local = target.address, target.host == "localhost"
    here = local or (literal is not None and _is_here(literal))
    if not here and hosts is not None and not {target.host, target.place} & set(hosts):
        remedy = f"allow them with sqlshell serve --registry-host {target.host}"
        raise Failure(sqlstate.PRIVILEGE, f"connections to {target.place} are not allowed; {remedy}")
    if literal is not None:
        return [literal]
    try:
        resolved = _resolve(target).result(until - time.monotonic())
    except TimeoutError:
        raise
    except (OSError, UnicodeError):
        raise Failure(sqlstate.REMOTE_UNAVAILABLE, f"cannot resolve host {target.host!r}") from None
    fit = [address for address in resolved if (_is_here if local else _is_fit)(address)]
    if not fit:
        raise Failure(sqlstate.PRIVILEGE, f"connections to the address of {target.host!r} are not allowed")
    return fit


def _resolve(target: Target) -> Future[list[Address]]:
    """Resolve a name in a daemon thread, because the resolver may take longer than the timeout."""
    resolved: Future[list[Address]] = Future()

    def look() -> None:
        try:
            found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
            addresses = (ipaddress.ip_address(str(item[4][0]).partition("%")[0]) for item in found)
            resolved.set_result(list(dict.fromkeys(addresses)))
        except (OSError, UnicodeError) as error:
            resolved.set_exception(error)

    threading.Thread(target=look, daemon=True, name="looking up").start()
    return resolved


async def _request(target: Target, addresses: Sequence[Address], headers: Mapping[str, str]) -> tuple[int, bytes]:
    import httpx

    host = target.place.removesuffix(f":{_PORTS[target.scheme]}")
    sent = {"Accept": "application/json", "Accept-Encoding": "identity", **headers, "Host": host}
    # The caller limits the time.
    async with httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=None, headers=sent) as client:
        for address in addresses:
            url = httpx.URL(target.url).copy_with(host=str(address))
            try:
                async with client.stream("GET", url, extensions={"sni_hostname": target.host}) as answer:
                    body = bytearray()
                    async for chunk in answer.aiter_raw():
                        body += chunk
                        if len(body) >= MOST:
                            break
                    return answer.status_code, bytes(body[:MOST])
            except httpx.ConnectError as error:
                failed = _WHY.get(why_failed(error).cause, "cannot connect")
            except (httpx.HTTPError, httpx.InvalidURL, ValueError):
                failed = "the response is not valid HTTP"
    raise Failure(sqlstate.REMOTE_UNAVAILABLE, f"{target.place}: {failed}")


def _is_here(address: Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _is_fit(address: Address) -> bool:
    """Whether a resolved address is no multicast, unspecified or link-local address, nor carries one."""
    meant = [address, *meanings(address)]
    return not any(item.is_multicast or item.is_unspecified or item.is_link_local for item in meant)
