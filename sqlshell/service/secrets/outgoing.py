"""Requests that the service makes to others: each to an address that was looked up once and is allowed.

A name is looked up only where the operator allowed it, or where it is `localhost`; the connection is made to the very
address that was judged. No proxy is used, no redirect followed, and what an answer says is given to nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Failure

SECONDS: Final = 5.0
"""How long the requests of a statement may take with all that belongs to them: TERMINATE QUERY cannot shorten it."""

MOST: Final = 1 << 20
"""Bytes of an answer that are read."""

ADDRESSES: Final = 4
"""Addresses of one host that are tried."""

_HOST: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,252})")
_PATH: Final = re.compile(r"(?:/[\w.~!$&'()*+,;=:@%-]*)*", re.ASCII)
_PORTS: Final = {"http": 80, "https": 443}
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Target(Struct, frozen=True):
    """Where a request goes: `scheme` is http or https, `path` is without a slash at its end."""

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
        """The value of Host."""
        return self.place.removesuffix(f":{_PORTS[self.scheme]}")

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.place}{self.path}"


def read_target(text: str) -> Target:
    """A URL as a target. Raises Failure; its message never repeats a password."""
    text = text.strip()
    if not text.isprintable():
        raise _no_url("it has control characters")
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise _no_url("it is not a URL") from None
    if parts.scheme.lower() not in _PORTS:
        raise _no_url("a URL such as https://registry.example.com:8081 is expected")
    if parts.username is not None or parts.password is not None:
        raise _no_url("a user and a password have options of their own")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise _no_url("a query or fragment is not allowed")
    if not (_literal(host) or _HOST.fullmatch(host)) or "%" in host:
        raise _no_url("its host is neither a name nor an address")
    if port == 0 or not _PATH.fullmatch(parts.path) or len(parts.path) > 1000:
        raise _no_url("its port or its path is invalid")
    scheme = parts.scheme.lower()
    return Target(scheme, host, port or _PORTS[scheme], parts.path.rstrip("/"))


def get(target: Target, headers: Mapping[str, str], hosts: Collection[str] | None, until: float) -> tuple[int, bytes]:
    """The status and up to MOST bytes of the answer to a GET. `hosts` are those that the operator allows beside this
    machine's loopback, as HOST or HOST:PORT; None allows any. `until` is a time of the monotonic clock.

    In a thread. Raises Failure: 42501 for a host that is not allowed, 57015 for one that does not answer.
    """
    check_allowed(target, hosts)
    try:
        return asyncio.run(_within(target, headers, until - time.monotonic()))
    except TimeoutError:
        said = f"{target.place} did not answer within {SECONDS:g} seconds"
        raise Failure(sqlstate.REMOTE_UNAVAILABLE, said) from None


def check_allowed(target: Target, hosts: Collection[str] | None) -> None:
    """Raises Failure for a host that may not be asked. Nothing is looked up for that."""
    literal = _literal(target.host)
    here = target.host == "localhost" or (literal is not None and _is_here(literal))
    if not here and hosts is not None and not {target.host, target.place} & set(hosts):
        said = f"the service may not ask {target.place}: it asks this machine's loopback, and hosts that are allowed"
        raise Failure(sqlstate.PRIVILEGE, f"{said} (sqlshell serve --registry-host {target.host})")


async def _within(target: Target, headers: Mapping[str, str], seconds: float) -> tuple[int, bytes]:
    async with asyncio.timeout(seconds):
        addresses = await _addresses(target)
        return await _answer(target, addresses, headers)


async def _addresses(target: Target) -> Sequence[_Address]:
    """The addresses of a target that may be connected to. Raises Failure."""
    literal = _literal(target.host)
    if literal is not None:
        return [literal]
    try:
        found = await _looked_up(target)
    except (OSError, UnicodeError):
        raise Failure(sqlstate.REMOTE_UNAVAILABLE, f"there is no host {target.host!r}") from None
    known = list(dict.fromkeys(ipaddress.ip_address(str(item[4][0]).partition("%")[0]) for item in found))
    fit = [item for item in known if _is_fit(item, target.host == "localhost")]
    if not fit:
        raise Failure(sqlstate.PRIVILEGE, f"the service may not connect to the address of {target.host!r}")
    return fit[:ADDRESSES]


async def _looked_up(target: Target) -> list[Any]:
    """What the resolver says. In a thread that nobody waits for once the time is over: it may take far longer."""
    loop = asyncio.get_running_loop()
    looked: asyncio.Future[list[Any]] = loop.create_future()

    def told(found: list[Any] | None, error: Exception | None) -> None:
        if looked.done():
            return
        if error is not None:
            looked.set_exception(error)
        else:
            looked.set_result(found or [])

    def look() -> None:
        found: list[Any] | None = None
        failed: Exception | None = None
        try:
            found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            failed = error
        with contextlib.suppress(RuntimeError):
            # The loop may be closed by now.
            loop.call_soon_threadsafe(told, found, failed)

    threading.Thread(target=look, daemon=True, name="looking up").start()
    return await looked


async def _answer(target: Target, addresses: Sequence[_Address], headers: Mapping[str, str]) -> tuple[int, bytes]:
    import httpx

    sent = {"Accept": "application/json", "Accept-Encoding": "identity", **headers, "Host": target.named}
    extensions: dict[str, Any] = {"sni_hostname": target.host}
    secure = target.scheme == "https"
    # The caller's clock ends it.
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
                failed = f"{target.place}: the answer is not HTTP"
    raise Failure(sqlstate.REMOTE_UNAVAILABLE, failed)


def _why_not_connected(error: BaseException | None) -> str:
    """Why there is no connection, by the error of the system that is behind the library's."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return "the certificate is not trusted"
        if isinstance(error, ssl.SSLError):
            return "the answer is not TLS"
        if isinstance(error, ConnectionRefusedError):
            return "connection refused"
        error = error.__cause__ or error.__context__
    return "no connection can be made"


def _literal(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_here(address: _Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _is_fit(address: _Address, local: bool) -> bool:
    """Whether an address that a name stands for may be asked: no name leads to what only its own machine or link has,
    but for that of this machine."""
    if local:
        return _is_here(address)
    meant = (address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None) or address
    return not (meant.is_multicast or meant.is_unspecified or meant.is_link_local)


def _no_url(why: str) -> Failure:
    return Failure("22023", f"'uris': {why}")
