"""The endpoint of a destination: a remote service, or the embedded one."""

from __future__ import annotations

from typing import NoReturn

from sqlshell.client.target import Target
from sqlshell.errors import Interrupted, PasswordMissing, ShellError, UsageError
from sqlshell.launch.clients import EMBEDDED_TARGET, Endpoint, endpoint_of
from sqlshell.launch.destination import Destination, RemoteService
from sqlshell.runtime.streams import Streams


def storage_name(destination: Destination) -> str:
    """The name of a service for its history and catalog files; "" for a service that no later shell can reach."""
    if isinstance(destination.service, RemoteService):
        return destination.service.target.name
    service = destination.service
    if service.server is not None:
        return service.server.shown
    return str(service.database.resolve()) if service.database is not None else ""


def open_endpoint(destination: Destination, streams: Streams, *, ask: bool = True, read_only: bool = False) -> Endpoint:
    """The running service of a destination. `ask` says whether to prompt for a missing token or password.

    With `read_only` an embedded service opens its file, or its sessions on PostgreSQL, read-only.
    """
    token, service = "", destination.service
    if (
        isinstance(service, RemoteService)
        and ask
        and not (service.token or service.token_command or destination.settings["offline"])
    ):
        token = _ask_for_token(service.target, streams)
    endpoint = endpoint_of(destination, token, read_only=read_only)
    if isinstance(service, RemoteService) or service.server is None or not (ask and streams.asks):
        return endpoint
    try:
        endpoint.ready()
    except PasswordMissing:
        endpoint.release()
        return endpoint_of(destination, read_only=read_only, password=_ask_for_password(service.server.shown))
    except ShellError:
        # Callers that wait for the endpoint report the error.
        pass
    return endpoint


def unopened_endpoint(destination: Destination) -> Endpoint:
    """An endpoint that sends nothing: it opens no file, starts no service and prompts for no token."""
    service = destination.service
    return Endpoint(service.target if isinstance(service, RemoteService) else EMBEDDED_TARGET, dial=_refuse)


def _refuse() -> NoReturn:
    raise UsageError("nothing is sent with --dry-run")


def _ask_for_password(server: str) -> str:
    """Raises Interrupted."""
    import getpass

    try:
        return getpass.getpass(f"password for {server}: ")
    except (EOFError, KeyboardInterrupt):
        raise Interrupted("interrupted; not connected") from None


def _ask_for_token(target: Target, streams: Streams) -> str:
    if not streams.asks:
        return ""
    import getpass

    return getpass.getpass(f"token for {target.name}: ").strip()
