"""Network options: timeouts, retries, certificates, and the TLS context."""

from __future__ import annotations

import ssl

from msgspec import Struct

from sqlshell.errors import UsageError


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
                raise UsageError(
                    f"cannot use the CA file {self.ca_file}: {_reason(error)}",
                    "expected certificates in PEM format",
                ) from None
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
                raise UsageError(
                    f"cannot use the client certificate {names}: {_reason(error)}",
                    "the certificate and key must be PEM files, and the key must not have a passphrase",
                ) from None
        elif self.client_key:
            raise UsageError(
                "--client-key requires --client-cert", "add --client-cert FILE with the certificate for this key"
            )
        return context


def _no_password() -> str:
    raise ValueError("the key has a passphrase")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "not in PEM format"
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
