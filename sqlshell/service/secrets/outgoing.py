"""Outgoing requests of the service, only to allowed addresses.

A name is resolved, once, only if the operator allowed it or it is `localhost`; the connection is made to the address
that was checked. No proxy is used, no redirect is followed, and the content of a response is not shown to anybody.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.runtime.addresses import meanings
from sqlshell.service.failure import Failure
from sqlshell.unreachable import Cause, why_failed

SECONDS: Final = 5.0
"""The total time for the requests of a statement; TERMINATE QUERY cannot interrupt them."""

MOST: Final = 1 << 20
"""Maximum bytes of a response that are read."""

ADDRESSES: Final = 4
"""The maximum number of addresses of one host that are tried."""

_HOST: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,252})")
_PATH: Final = re.compile(r"(?:/[\w.~!$&'()*+,;=:@%-]*)*", re.ASCII)
_PORTS: Final = {"http": 80, "https": 443}
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Target(Struct, frozen=True):
    """The target of a request: `scheme` is http or https, `path` has no trailing slash."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def named(self) -> str:
        """The value of the Host header."""
        return self.place.removesuffix(f":{_PORTS[self.scheme]}")

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.place}{self.path}"


def read_target(text: str) -> Target:
    """Parse a URL. Raises Failure; its message never contains a password."""
    text = text.strip()
    if not text.isprintable():
        raise _no_url("the URL contains control characters")
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise _no_url("the URL is not valid") from None
    if parts.scheme.lower() not in _PORTS:
        raise _no_url("expected a URL such as https://registry.example.com:8081")
    if parts.username is not None or parts.password is not None:
        raise _no_url("the URL must not contain a user or password; use the options for them")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise _no_url("the URL must not contain a query or fragment")
    if not (_literal(host) or _HOST.fullmatch(host)) or "%" in host:
        raise _no_url("the host of the URL is not valid")
    if port == 0 or not _PATH.fullmatch(parts.path) or len(parts.path) > 1000:
        raise _no_url("the port or the path of the URL is not valid")
    scheme = parts.scheme.lower()
    return Target(scheme, host, port or _PORTS[scheme], parts.path.rstrip("/"))


def get(target: Target, headers: Mapping[str, str], hosts: Collection[str] | None, until: float) -> tuple[int, bytes]:
    """Send a GET request; returns the status and up to MOST bytes of the response.

    `hosts` are the hosts, as HOST or HOST:PORT, that the operator allows in addition to loopback; None allows all.
    `until` is a time of the monotonic clock. In a thread. Raises Failure: 42501 for a host that is not allowed, 57015
    for a host that does not respond.
    """
    check_allowed(target, hosts)
    try:
        return asyncio.run(_within(target, headers, until - time.monotonic()))
    except TimeoutError:
        message = f"{target.place} did not respond within {SECONDS:g} seconds"
        raise Failure(sqlstate.REMOTE_UNAVAILABLE, message) from None


def check_allowed(target: Target, hosts: Collection[str] | None) -> None:
    """Raises Failure if a host is not allowed. Does not resolve names."""
    literal = _literal(target.host)
    here = target.host == "localhost" or (literal is not None and _is_here(literal))
    if not here and hosts is not None and not {target.host, target.place} & set(hosts):
        message = f"connections to {target.place} are not allowed (sqlshell serve --registry-host {target.host})"
        raise Failure(sqlstate.PRIVILEGE, message)


async def _within(target: Target, headers: Mapping[str, str], seconds: float) -> tuple[int, bytes]:
    async with asyncio.timeout(seconds):
        addresses = await _addresses(target)
        return await _answer(target, addresses, headers)


async def _addresses(target: Target) -> Sequence[_Address]:
    """The allowed addresses of a target. Raises Failure."""
    literal = _literal(target.host)
    if literal is not None:
        return [literal]
    try:
        resolved = await _looked_up(target)
    except (OSError, UnicodeError):
        raise Failure(sqlstate.REMOTE_UNAVAILABLE, f"cannot resolve host {target.host!r}") from None
    known = list(dict.fromkeys(ipaddress.ip_address(str(item[4][0]).partition("%")[0]) for item in resolved))
    fit = [item for item in known if _is_fit(item, target.host == "localhost")]
    if not fit:
        raise Failure(sqlstate.PRIVILEGE, f"connections to the address of {target.host!r} are not allowed")
    return fit[:ADDRESSES]


async def _looked_up(target: Target) -> list[Any]:
    """Resolve a name in a daemon thread, because the resolver may take longer than the timeout."""
    loop = asyncio.get_running_loop()
    looked: asyncio.Future[list[Any]] = loop.create_future()

    def deliver(addresses: list[Any] | None, error: Exception | None) -> None:
        if looked.done():
            return
        if error is not None:
            looked.set_exception(error)
        else:
            looked.set_result(addresses or [])

    def look() -> None:
        addresses: list[Any] | None = None
        failed: Exception | None = None
        try:
            addresses = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            failed = error
        with contextlib.suppress(RuntimeError):
            # The loop may have been closed.
            loop.call_soon_threadsafe(deliver, addresses, failed)

    threading.Thread(target=look, daemon=True, name="looking up").start()
    return await looked


async def _answer(target: Target, addresses: Sequence[_Address], headers: Mapping[str, str]) -> tuple[int, bytes]:
    import httpx

    sent = {"Accept": "application/json", "Accept-Encoding": "identity", **headers, "Host": target.named}
    extensions: dict[str, Any] = {"sni_hostname": target.host}
    secure = target.scheme == "https"
    # The caller limits the time.
    async with httpx.AsyncClient(trust_env=False, follow_redirects=False, verify=secure, timeout=None) as client:
        for address in addresses:
            host = f"[{address}]" if address.version == 6 else str(address)
            url = f"{target.scheme}://{host}:{target.port}{target.path}"
            try:
                async with client.stream("GET", url, headers=sent, extensions=extensions) as answer:
                    body = bytearray()
                    async for chunk in answer.aiter_raw():
                        body += chunk
                        if len(body) >= MOST:
                            break
                    return answer.status_code, bytes(body[:MOST])
            except httpx.ConnectError as error:
                failed = f"{target.place}: {_why_not_connected(error)}"
            except (httpx.HTTPError, httpx.InvalidURL, ValueError):
                failed = f"{target.place}: the response is not valid HTTP"
    raise Failure(sqlstate.REMOTE_UNAVAILABLE, failed)


def _why_not_connected(error: BaseException) -> str:
    """The reason for a failed connection; what the host says of itself is left out."""
    match why_failed(error).cause:
        case Cause.CERTIFICATE:
            return "the certificate is not trusted"
        case Cause.TLS | Cause.NOT_TLS | Cause.NO_CLIENT_CERTIFICATE | Cause.CLIENT_CERTIFICATE:
            return "the TLS handshake failed"
        case Cause.REFUSED:
            return "connection refused"
    return "cannot connect"


def _literal(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_here(address: _Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _is_fit(address: _Address, local: bool) -> bool:
    """Whether a resolved address is allowed: no multicast, unspecified or link-local address, also none that another
    one carries; loopback if `local`.
    """
    if local:
        return _is_here(address)
    meant = [address, *meanings(address)]
    return not any(item.is_multicast or item.is_unspecified or item.is_link_local for item in meant)


def _no_url(why: str) -> Failure:
    return Failure("22023", f"'uris': {why}")
