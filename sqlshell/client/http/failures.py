"""Why a connection could not be opened: decided on exception types and error numbers."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator

from sqlshell.errors import ConnectionFailed, Unreachable


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what caused it, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def connection_failed(name: str, error: BaseException, *, local: bool = False) -> ConnectionFailed:
    """The error for a connection to `name` that could not be opened; Unreachable if a retry is of no use.

    `local` says that it is a unix socket.
    """
    number = 0
    for cause in causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return Unreachable(
                    f"the certificate of {name} is not trusted: {cause.verify_message}",
                    "use --ca-file FILE if a private authority issued it",
                )
            case ssl.SSLError() if "CERTIFICATE" in (cause.reason or "").upper():
                # A symbol of OpenSSL's, such as TLSV13_ALERT_CERTIFICATE_REQUIRED.
                return Unreachable(f"{name} requires a client certificate", "use --client-cert FILE")
            case ssl.SSLError():
                return Unreachable(f"{name} does not speak TLS", "use http:// if the service has no TLS")
            case socket.gaierror():
                return Unreachable(f"cannot resolve the host name of {name}", "check its spelling")
            case ConnectionRefusedError():
                hint = "check that the service is running" + ("" if local else " and the port is right")
                return ConnectionFailed(f"connection refused by {name}", hint)
            case FileNotFoundError() if local:
                message = f"cannot connect to {name}: the socket does not exist"
                return Unreachable(message, "check that the service is running (sqlshell serve --uds)")
            case PermissionError() if local:
                return Unreachable(f"cannot connect to {name}: permission denied", "check the socket's owner and mode")
            case OSError():
                number = cause.errno or number
    why = os.strerror(number) if number else str(error) or type(error).__name__
    return ConnectionFailed(f"cannot connect to {name}: {why}")
