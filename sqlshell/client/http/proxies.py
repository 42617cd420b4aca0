"""Selects the proxy for a service from the usual environment variables: HTTPS_PROXY, ALL_PROXY, NO_PROXY."""

from __future__ import annotations

import os
from urllib.parse import unquote

from sqlshell.client.target import Target
from sqlshell.errors import UsageError


def proxy_for(target: Target) -> str:
    """The URL of the proxy, "" for none; a service on this machine never has one. Raises UsageError."""
    if target.loopback or not any(name.lower().endswith("_proxy") and value for name, value in os.environ.items()):
        return ""
    from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

    proxies = getproxies_environment()
    url = proxies.get(target.scheme) or proxies.get("all") or ""
    if not url or proxy_bypass_environment(f"{target.host}:{target.port}", proxies):
        return ""
    if "://" not in url:
        url = f"http://{url}"
    scheme = url.partition("://")[0].lower()
    if scheme not in {"http", "https", "socks5", "socks5h"}:
        raise UsageError(f"unsupported proxy scheme {scheme}://", "use http, https or socks5")
    return url


def secrets_of(url: str) -> list[str]:
    """The password in a proxy's URL, as written and as sent."""
    user = url.partition("://")[2].rpartition("@")[0]
    password = user.partition(":")[2]
    return [password, unquote(password)] if password else []
