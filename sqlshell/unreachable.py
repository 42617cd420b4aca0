"""Why a connection could not be opened, decided on exception types and error numbers."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from msgspec import Struct

_NO_TLS: Final = {"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"}
"""OpenSSL's reasons for a plain-text response, depending on its version."""


class Cause(Enum):
    """The cause of a failed connection."""

    CERTIFICATE = auto()
    """The peer's certificate could not be verified."""
    NO_CLIENT_CERTIFICATE = auto()
    """The peer requires a client certificate."""
    CLIENT_CERTIFICATE = auto()
    """The peer does not accept the client certificate."""
    NOT_TLS = auto()
    """The peer responded in plain text."""
    TLS = auto()
    HOST_NAME = auto()
    """The host name could not be resolved."""
    REFUSED = auto()
    NO_SOCKET = auto()
    PERMISSION = auto()
    OTHER = auto()


class FailureReason(Struct, frozen=True):
    """Why a connection failed: `reason` in words, `verify_code` is OpenSSL's for a certificate, else 0."""

    cause: Cause
    reason: str
    verify_code: int = 0


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error, its cause, the cause of that, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def why_failed(error: BaseException) -> FailureReason:
    """The system's or OpenSSL's error that caused a library's error, explained."""
    number = 0
    for cause in causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return FailureReason(Cause.CERTIFICATE, cause.verify_message, cause.verify_code)
            case ssl.SSLError():
                return _handshake(cause)
            case socket.gaierror():
                return FailureReason(Cause.HOST_NAME, (cause.strerror or str(cause)).lower())
            case ConnectionRefusedError():
                return FailureReason(Cause.REFUSED, "connection refused")
            case FileNotFoundError():
                return FailureReason(Cause.NO_SOCKET, "no such socket")
            case PermissionError():
                return FailureReason(Cause.PERMISSION, "permission denied")
            case ConnectionResetError():
                # asyncio raises it without a number.
                number = errno.ECONNRESET
            case OSError():
                number = cause.errno or number
    return FailureReason(Cause.OTHER, os.strerror(number).lower() if number else str(error) or type(error).__name__)


def _handshake(error: ssl.SSLError) -> FailureReason:
    # The name of an OpenSSL error, such as TLSV13_ALERT_CERTIFICATE_REQUIRED.
    symbol = (error.reason or "").upper()
    alert = symbol.partition("_ALERT_")[2]
    reason = (alert or symbol).replace("_", " ").lower() or str(error)
    if alert == "CERTIFICATE_REQUIRED":
        return FailureReason(Cause.NO_CLIENT_CERTIFICATE, reason)
    if alert == "UNKNOWN_CA":
        return FailureReason(Cause.CLIENT_CERTIFICATE, "unknown CA")
    if "CERTIFICATE" in alert:
        # Some services send this although they have received no certificate.
        return FailureReason(Cause.CLIENT_CERTIFICATE, reason)
    return FailureReason(Cause.NOT_TLS if symbol in _NO_TLS else Cause.TLS, reason)
