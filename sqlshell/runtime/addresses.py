"""Classifies network addresses as public, private or loopback, however they are written."""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from collections.abc import Iterator
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")
_TRANSLATED: Final = ipaddress.IPv6Network("::ffff:0:0:0/96")
_THIS_HOST: Final = ipaddress.IPv4Network("0.0.0.0/8")
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""The only addresses of IPv6 that are assigned to hosts on the public internet."""

_SPECIAL: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        *("192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24"),
        *("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20"),
    )
)
"""Networks of the registries of special addresses that a version of Python may take for public ones."""

_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
_DOTS: Final = re.compile("[。．｡]")
_BLANK: Final = re.compile(r"\s")
_LOW: Final = 0xFFFFFFFF


def address_of(host: str) -> Address | None:
    """The IP address that a host is written as; None for a name.

    Accepts all forms that resolvers accept: `127.1`, `0177.0.0.1`, `0x7f000001`, `2130706433`, a scope
    (`fe80::1%eth0`), brackets, a final dot, and digits and dots of other scripts.
    """
    text = normalized_host(host).partition("%")[0].strip("[]")
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return _numbers(text)


def normalized_host(host: str) -> str:
    """A host in the form in which it is looked up: lower case, without a final dot, with ASCII digits and dots."""
    return _DOTS.sub(".", unicodedata.normalize("NFKC", host)).lower().rstrip(".")


def is_loopback(host: str) -> bool:
    """Whether a host, given by name or address, is this machine."""
    name = normalized_host(host)
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = address_of(host)
    return address is not None and any(_here(meant) for meant in meanings(address))


def is_private(address: str) -> bool:
    """Whether an address is not on the public internet, or leads to one that is not. Names are never private."""
    parsed = address_of(address)
    return parsed is None or parsed in _LOCAL_NAT64 or any(_inside(meant) for meant in meanings(parsed))


def same_address(one: str, other: str) -> bool:
    """Whether two addresses are equal."""
    first, second = address_of(one), address_of(other)
    return first is not None and second is not None and _canonical(first) == _canonical(second)


def meanings(address: Address) -> Iterator[Address]:
    """The address, or the IPv4 addresses that are mapped, translated or tunneled in it."""
    inner = [] if isinstance(address, ipaddress.IPv4Address) else list(_carried(address))
    yield from inner
    # An address whose purpose is to carry another has only that meaning; an ISATAP address may be in any network, so it
    # has both meanings.
    if not inner or int(address) >> 32 & _LOW in _ISATAP:
        yield address


def _carried(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    number = int(address)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif address.teredo is not None:
        yield from address.teredo
    elif (
        any(address in net for net in (_NAT64, _LOCAL_NAT64, _TRANSLATED))
        or (address in _COMPATIBLE and number > 0xFFFF)
        or number >> 32 & _LOW in _ISATAP
    ):
        yield ipaddress.IPv4Address(number & _LOW)


def _here(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_loopback or address in _THIS_HOST
    return address.is_loopback or address.is_unspecified


def _inside(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _UNICAST:
        return True
    return not address.is_global or address.is_multicast or any(address in net for net in _SPECIAL)


def _canonical(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _numbers(text: str) -> ipaddress.IPv4Address | None:
    """Parse one to four numbers, decimal, octal or hexadecimal. The last one covers the remaining bytes."""
    try:
        # It would ignore what follows a blank.
        return None if _BLANK.search(text) else ipaddress.IPv4Address(socket.inet_aton(text))
    except (OSError, ValueError):
        return None
