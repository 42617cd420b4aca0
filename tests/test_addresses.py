"""A table of addresses: how a host is written, what it means, and which services may name it."""

from __future__ import annotations

import pytest

from sqlshell.client.http.options import proxy_for
from sqlshell.client.results.dataplane import address_check, data_plane
from sqlshell.client.target import parse
from sqlshell.errors import ServiceError
from sqlshell.interface.models import DataplaneRequest
from sqlshell.runtime.addresses import address_of, is_loopback, is_private, same_address

HERE = (
    "127.0.0.1", "127.9.9.9", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "2130706433",
    "017700000001",
    "0X7F.1", "127.0.0.1.", "１２７.０.０.１", "127。0。0。1", "::1", "[::1]", "::1%lo", "0:0:0:0:0:0:0:1",
    "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "::7f00:1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b:1::127.0.0.1", "2002:7f00:1::", "2002:7f00:0001::1", "fe80::5efe:127.0.0.1",
    "2001:db8::200:5efe:127.0.0.1", "2001:0:808:808:0:0:80ff:fffe", "0.0.0.0", "0", "0.1.2.3", "::", "::ffff:0.0.0.0",
    "localhost", "LOCALHOST", "localhost.", "a.localhost", "ｌｏｃａｌｈｏｓｔ",
)  # fmt: skip
INSIDE = (
    "10.0.0.1", "012.0.0.1", "0xa.1", "167772161", "172.16.0.1", "192.168.0.1", "192.168.257", "169.254.169.254",
    "2852039166", "0xa9fea9fe", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", 
    "64:ff9b:1::8.8.8.8", "2002:a9fe:a9fe::1", "2002:c0a8:1::", "::192.168.0.1", "fe80::1%eth0", "fe80::5efe:8.8.8.8",
    "fc00::1", "fd12::1", "fec0::1", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255",
    "240.0.0.1",    "ff02::1", "2001:db8::1", "3fff::1", "5f00::1", "4000::1", "100::1", "100:0:0:1::1", "2001:1::1",
    "2001:20::1", "2620:4f:8000::1", "192.88.99.1", "192.0.0.9", "192.31.196.1", "192.52.193.1", "192.175.48.1",
    "::ffff:192.88.99.1", "64:ff9b::192.88.99.1",    "not an address", "", "1.2.3.4.5", "300.1.1.1",
)  # fmt: skip
OUTSIDE = (
    "8.8.8.8", "8.8.2056", "010.8.8.8", "134744072", "0x08080808", "8.8.8.8.", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
    "2002:808:808::1", "2606:4700::1111", "[2606:4700::1111]", "1.1.1.1",
)  # fmt: skip


@pytest.mark.parametrize("host", HERE)
def test_what_is_this_machine(host: str) -> None:
    assert is_loopback(host)
    assert is_private(host)


@pytest.mark.parametrize("host", INSIDE)
def test_what_is_inside_of_a_network(host: str) -> None:
    assert is_private(host)
    assert not is_loopback(host)


@pytest.mark.parametrize("host", OUTSIDE)
def test_what_is_outside(host: str) -> None:
    assert not is_private(host)
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "host", ["localhost.example", "127.0.0.1.example", "1e3", "08.0.0.1", "0x7g.1", "notlocalhost", "7f.0.0.1"]
)
def test_what_is_a_name(host: str) -> None:
    assert address_of(host) is None
    assert not is_loopback(host)


def test_two_ways_to_write_one_address() -> None:
    assert same_address("::ffff:10.0.0.1", "10.0.0.1")
    assert same_address("fe80::1%eth0", "fe80::1")
    assert not same_address("10.0.0.1", "10.0.0.2")
    assert not same_address("name", "name")


@pytest.mark.parametrize("host", [*HERE, *(host for host in INSIDE if address_of(host) is not None)])
def test_a_service_elsewhere_may_not_name_such_a_plane(host: str) -> None:
    """Before anything is connected to: behind a proxy it is the proxy that would go there."""
    api = parse("https://sql.example/v2")
    bare = host.strip("[]")
    written = f"[{bare}]" if ":" in bare else bare
    plane = data_plane(DataplaneRequest(token="t", uri=f"https://{written}/v2"), api, "1")
    with pytest.raises(ServiceError, match="private address"):
        address_check(plane, api, (), allowed=False)
    assert address_check(plane, api, (), allowed=True) is None
    if address_of(host) is not None:
        assert address_check(plane, api, (plane.target.host,), allowed=False) is not None


@pytest.mark.parametrize("host", HERE)
def test_this_machine_is_reached_by_no_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:1")
    bare = host.strip("[]")
    target = parse(f"http://{f'[{bare}]' if ':' in bare else bare}/v2")
    assert target.loopback
    assert proxy_for(target) == ""
    assert proxy_for(parse("http://8.8.8.8/v2")) == "http://proxy.example:1"
