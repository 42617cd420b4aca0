"""Why a connection could not be opened: decided on exception types and error numbers."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from typing import Final

from sqlshell.errors import ConnectionFailed, Unreachable

_PRIVATE_CA: Final = "use --ca-file FILE if it was issued by a private CA"
_HOST_NAME: Final = "check the host name in the URL"
_CERTIFICATE_HINTS: Final = {
    18: _PRIVATE_CA,  # X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT
    19: _PRIVATE_CA,  # X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN
    20: _PRIVATE_CA,  # X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY
    21: _PRIVATE_CA,  # X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE
    62: _HOST_NAME,  # X509_V_ERR_HOSTNAME_MISMATCH
    64: _HOST_NAME,  # X509_V_ERR_IP_ADDRESS_MISMATCH
}
_NO_TLS: Final = {"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"}
"""What OpenSSL calls an answer in plain text, depending on its version."""


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
                    f"cannot verify the certificate of {name}: {cause.verify_message}",
                    _CERTIFICATE_HINTS.get(cause.verify_code, ""),
                )
            case ssl.SSLError():
                return _handshake_failed(name, cause)
            case socket.gaierror():
                return Unreachable(
                    f"cannot resolve the host name of {name}", "check the spelling and the network connection"
                )
            case ConnectionRefusedError():
                hint = "check that the service is running" + ("" if local else " and that the port is correct")
                return ConnectionFailed(f"connection refused by {name}", hint)
            case FileNotFoundError() if local:
                message = f"cannot connect to {name}: no such socket"
                return Unreachable(message, "check that the service is running (sqlshell serve --uds)")
            case PermissionError() if local:
                return Unreachable(f"cannot connect to {name}: permission denied", "check the socket's owner and mode")
            case OSError():
                number = cause.errno or number
    why = os.strerror(number) if number else str(error) or type(error).__name__
    return ConnectionFailed(f"cannot connect to {name}: {why}")


def _handshake_failed(name: str, error: ssl.SSLError) -> Unreachable:
    # A symbol of OpenSSL's, such as TLSV13_ALERT_CERTIFICATE_REQUIRED.
    symbol = (error.reason or "").upper()
    alert = symbol.partition("_ALERT_")[2]
    reason = (alert or symbol).replace("_", " ").lower() or str(error)
    if alert == "CERTIFICATE_REQUIRED":
        return Unreachable(f"{name} requires a client certificate", "use --client-cert FILE")
    if alert == "UNKNOWN_CA":
        reason = "unknown CA"
    if "CERTIFICATE" in alert or alert == "UNKNOWN_CA":
        # Some services send this without having been sent a certificate.
        return Unreachable(f"{name} requires a valid client certificate: {reason}", "use --client-cert FILE")
    hint = "the service may not use TLS: try http://" if symbol in _NO_TLS else ""
    return Unreachable(f"TLS handshake with {name} failed: {reason}", hint)
