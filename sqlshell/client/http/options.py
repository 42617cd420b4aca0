"""Network options: timeouts, retries, certificates, the TLS context, and the proxy of a service."""

from __future__ import annotations

import os
import ssl
from urllib.parse import unquote

from msgspec import Struct

from sqlshell.client.target import Target
from sqlshell.errors import UsageError, reason


class NetworkOptions(Struct, frozen=True):
    """Network options. Times are in seconds. `timeout` limits one request including its retries, and the time that
    its data takes at 16 KiB a second is added; `retries` is their maximum.

    `ca_file` replaces the system's CA certificates; `client_cert` and `client_key` are PEM files, and the certificate's
    file may contain the key. `private_data_plane` allows data planes at private addresses. `answer_limit` is the
    maximum size of a decompressed response in bytes, 0 for decompress.bound(); `download_limit` that of a downloaded
    file, 0 for no limit. With `offline` every request is a UsageError.
    """

    connect_timeout: float = 10.0
    read_timeout: float = 120.0
    timeout: float = 300.0
    retries: int = 5
    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""
    insecure: bool = False
    private_data_plane: bool = False
    answer_limit: int = 0
    download_limit: int = 1 << 30
    offline: bool = False

    def tls(self) -> ssl.SSLContext:
        """The context of every TLS connection, including websockets. Raises UsageError that names the wrong file."""
        if self.ca_file:
            try:
                context = ssl.create_default_context(cafile=self.ca_file)
            except (OSError, ssl.SSLError) as error:
                hint = _unopened(error, "--ca-file") or "expected certificates in PEM format"
                raise UsageError(f"cannot use the CA file {self.ca_file}: {_reason(error)}", hint) from None
        else:
            context = ssl.create_default_context()
            paths = ssl.get_default_verify_paths()
            if not (paths.cafile or paths.capath):
                import certifi

                context.load_verify_locations(certifi.where())
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_cert:
            try:
                context.load_cert_chain(self.client_cert, self.client_key or None, password=_no_password)
            except (OSError, ssl.SSLError, ValueError) as error:
                names = f"{self.client_cert} {self.client_key}".strip()
                hint = "the certificate and key must be PEM files, and the key must not have a passphrase"
                hint = _unopened(error, "--client-cert and --client-key") or hint
                raise UsageError(f"cannot use the client certificate {names}: {_reason(error)}", hint) from None
        elif self.client_key:
            raise UsageError(
                "--client-key requires --client-cert", "add --client-cert FILE with the certificate for this key"
            )
        return context


def _no_password() -> str:
    raise ValueError("the key has a passphrase")


def _unopened(error: Exception, options: str) -> str:
    """The remedy for a file that cannot be opened; "" for one with other contents than expected."""
    opened = isinstance(error, ssl.SSLError) or not isinstance(error, OSError)
    return "" if opened else f"check the path in {options}"


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "not in PEM format"
    return reason(error)


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
