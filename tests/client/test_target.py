"""Base URLs and data source names."""

from __future__ import annotations

import pytest

from sqlshell.client.target import parse
from sqlshell.errors import UsageError


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("https://host", "https://host"),
        ("https://host/v2", "https://host"),
        ("https://host/v2/", "https://host"),
        ("https://HOST:8443/api/v2", "https://host:8443/api"),
        ("http://127.0.0.1:8765/v2/statements", "http://127.0.0.1:8765"),
        ("http://[::1]:80/", "http://[::1]"),
    ],
)
def test_with_and_without_v2(text: str, base: str) -> None:
    assert parse(text).base == base


def test_a_dsn_carries_token_and_context() -> None:
    target = parse("https://:t%2Fk@host/v2?sessionID=s&timezone=UTC&organizationID=o&databaseName=d&storeName=")
    assert target.token == "t/k"
    assert dict(target.parts) == {"session_id": "s", "timezone": "UTC", "organization": "o", "database": "d"}
    assert target.base == "https://host"
    assert "t/k" not in repr(target)


@pytest.mark.parametrize(
    ("text", "loopback"),
    [
        ("http://127.0.0.1", True),
        ("http://127.9.9.9:1", True),
        ("http://localhost:1", True),
        ("http://[::1]", True),
        ("unix:///run/s", True),
        ("http://127.0.0.1.evil.example", False),
        ("http://10.0.0.1", False),
    ],
)
def test_loopback(text: str, loopback: bool) -> None:
    assert parse(text).loopback is loopback


def test_origins_differ_by_scheme_host_and_port() -> None:
    urls = ["https://h", "http://h", "https://h:444", "https://i", "unix:///h"]
    assert len({parse(url).origin for url in urls}) == len(urls)
    assert parse("https://h:443/a").origin == parse("https://H/b").origin


@pytest.mark.parametrize(
    "text",
    [
        "ftp://host",
        "https://",
        "https://:secret@",
        "http://h:99999",
        "http://[::1",
        "https://:secret@h?x=1",
        "unix://relative/x",
    ],
)
def test_what_is_no_url_is_told_without_its_token(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert "secret" not in caught.value.message + caught.value.hint
