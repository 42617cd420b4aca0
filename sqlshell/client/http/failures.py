"""The errors for requests that failed: httpx's as ours, and why a connection could not be opened."""

from __future__ import annotations

from typing import Final

import httpx

from sqlshell.client.http.options import NetworkOptions
from sqlshell.errors import ConnectionBroken, ConnectionFailed, NotHttp, ShellError, Unreachable, UsageError
from sqlshell.text import how_to_install
from sqlshell.unreachable import Cause, why_failed

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


FAILURES: Final = (httpx.TransportError, httpx.InvalidURL, UnicodeError, ImportError)
"""The errors of sending a request and receiving its response. A host's name may be none (UnicodeError), a proxy may
require a package (ImportError).
"""

_CLIENT_CERTIFICATE: Final = {Cause.NO_CLIENT_CERTIFICATE, Cause.CLIENT_CERTIFICATE}


def failure_of(
    error: Exception, base: str, network: NetworkOptions, *, answering: bool, known: bool, local: bool
) -> ShellError:
    """The error for one of FAILURES of the service `base`.

    `answering` says that the status and the headers have been received, `known` that the service has responded before,
    `local` that it is a Unix socket.
    """
    match error:
        case httpx.ConnectTimeout():
            hint = "check the host and port, or use a longer --connect-timeout"
            return ConnectionFailed(f"connection to {base} timed out after {network.connect_timeout:g} s", hint)
        case httpx.ReadTimeout():
            return ConnectionBroken(
                f"no data from {base} for {network.read_timeout:g} s", "use a longer --read-timeout"
            )
        case httpx.ConnectError():
            return connection_failed(base, error, local=local)
        case httpx.RemoteProtocolError() if answering:
            return ConnectionBroken(f"{base} closed the connection in the middle of the response: {error}")
        # Errors of h11 mean invalid HTTP; a closed connection has no further cause.
        case httpx.RemoteProtocolError(__cause__=cause) if cause is None or cause.__cause__ is None:
            doubt = "" if known else "; it may not be an HTTP server"
            return ConnectionBroken(f"{base} closed the connection without a response{doubt}")
        case httpx.RemoteProtocolError():
            hint = "check whether the URL should start with http:// or https://"
            return NotHttp(f"{base} did not send an HTTP response: {error}", hint)
        case httpx.PoolTimeout():
            hint = "wait for other statements to finish, or try again"
            return ConnectionFailed(f"no free connection to {base}", hint)
        case httpx.TimeoutException():
            return ConnectionBroken(f"sending the request to {base} timed out")
        case httpx.ProxyError():
            hint = "check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
            return ConnectionFailed(f"the proxy for {base} refused the connection: {error}", hint)
        case httpx.InvalidURL() | httpx.UnsupportedProtocol() | UnicodeError():
            return UsageError(f"invalid URL {base}: {error}")
        case ImportError():
            message = f"the proxy for {base} requires a package that is not installed: {error}"
            return UsageError(message, how_to_install("'httpx[socks]'"))
    return connection_lost(base, error)


def connection_lost(name: str, error: BaseException) -> ConnectionFailed:
    """The error for a connection to `name` that was lost before the response; Unreachable if a retry cannot help."""
    failed = why_failed(error)
    # TLS 1.3 reports a client certificate that is missing or refused after the handshake, from the client's view.
    if failed.cause in _CLIENT_CERTIFICATE:
        return connection_failed(name, error)
    return ConnectionBroken(f"the connection to {name} was lost: {failed.reason}")


def connection_failed(name: str, error: BaseException, *, local: bool = False) -> ConnectionFailed:
    """The error for a connection to `name` that could not be opened; Unreachable if a retry cannot help.

    `local` says that it is a Unix socket.
    """
    failed = why_failed(error)
    match failed.cause:
        case Cause.CERTIFICATE:
            return Unreachable(
                f"cannot verify the certificate of {name}: {failed.reason}",
                _CERTIFICATE_HINTS.get(failed.verify_code, ""),
            )
        case Cause.NO_CLIENT_CERTIFICATE:
            return Unreachable(f"{name} requires a client certificate", "use --client-cert FILE")
        case Cause.CLIENT_CERTIFICATE:
            return Unreachable(f"{name} requires a valid client certificate: {failed.reason}", "use --client-cert FILE")
        case Cause.TLS | Cause.NOT_TLS:
            hint = "the service may not use TLS: try http://" if failed.cause is Cause.NOT_TLS else ""
            return Unreachable(f"TLS handshake with {name} failed: {failed.reason}", hint)
        case Cause.HOST_NAME:
            return Unreachable(f"cannot resolve the host name of {name}", "check its spelling, DNS and VPN")
        case Cause.REFUSED:
            hint = "check that the service is running" + ("" if local else " and that the port is correct")
            return ConnectionFailed(f"connection refused by {name}", hint)
        case Cause.NO_SOCKET if local:
            return Unreachable(
                f"cannot connect to {name}: {failed.reason}", "check that the service is running (sqlshell serve --uds)"
            )
        case Cause.PERMISSION if local:
            return Unreachable(f"cannot connect to {name}: {failed.reason}", "check the socket's owner and mode")
    return ConnectionFailed(f"cannot connect to {name}: {failed.reason}")
