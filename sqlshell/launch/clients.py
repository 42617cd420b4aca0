"""Connections to services by settings: the endpoint, its client, and the policy for statements."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from sqlshell.client.http.network import Dial
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.trace import Trace
from sqlshell.client.http.transport import NewToken, Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.service import Service
from sqlshell.client.statements.client import Client, StreamLimits
from sqlshell.client.statements.polling import StatementsClient
from sqlshell.client.target import Target
from sqlshell.config.settings import BY_NAME
from sqlshell.config.values import Settings
from sqlshell.errors import UsageError
from sqlshell.interface.models import ENGINE_TYPES
from sqlshell.launch.credentials import run_token_command
from sqlshell.launch.destination import Destination, RemoteService
from sqlshell.runtime.paths import use_database, use_source
from sqlshell.sql.analysis.policy import Policy, check_patterns

EMBEDDED_TARGET = Target("http", "sqlshell.localhost", 80, known_as="the embedded service")


def _nothing() -> None:
    return None


class Endpoint(Struct, frozen=True):
    """A running service: its address, its token, and how to dial it if not by TCP."""

    target: Target
    token: str = ""
    dial: Dial | None = None
    ready: Callable[[], None] = _nothing
    """Wait until the service responds. Raises ShellError if it cannot be started."""
    release: Callable[[], None] = _nothing
    """Stop the service if it runs in this process, and wait for it. May be called again."""

    def __repr__(self) -> str:
        return f"Reached({self.target!r})"


def network_of(settings: Settings) -> NetworkOptions:
    return NetworkOptions(
        connect_timeout=settings["connect_timeout"],
        read_timeout=settings["read_timeout"],
        timeout=settings["timeout"] or 1e9,
        retries=settings["retries"],
        ca_file=settings["ca_file"],
        client_cert=settings["client_cert"],
        client_key=settings["client_key"],
        insecure=settings["insecure"],
        private_data_plane=settings["private_data_plane"],
        answer_limit=settings["answer_limit"] << 20,
        download_limit=settings["download_limit"] << 20,
    )


def endpoint_of(destination: Destination, token: str = "", *, read_only: bool = False, password: str = "") -> Endpoint:
    """The running service for a destination; `token` is used for a remote service without a configured token, and
    `password` for an engine that is a server.

    With `read_only` an embedded service opens its file, or its sessions on PostgreSQL, read-only. Raises UsageError.
    """
    if isinstance(destination.service, RemoteService):
        return Endpoint(destination.service.target, destination.service.token or token)
    if destination.settings["offline"]:
        raise UsageError("--offline requires a remote service", "example: sqlshell https://host/v2 --offline -c …")
    from sqlshell.launch.embedded import start_embedded, start_on_server

    service = destination.service
    if service.server is not None:
        embedded = start_on_server(service.server.engine, service.server.url, password, read_only=read_only)
    else:
        embedded = start_embedded(service.database, views=service.views, read_only=read_only)
    unprotect = protected(destination)

    def release() -> None:
        embedded.close()
        unprotect()

    return Endpoint(EMBEDDED_TARGET, embedded.token, embedded.dial, embedded.wait, release)


def protected(destination: Destination) -> Callable[[], None]:
    """Let no output destroy the files of an embedded service, until the function that is returned is called."""
    service, uses = destination.service, list[Callable[[], None]]()
    if not isinstance(service, RemoteService):
        uses += [use_source(path) for path in (service.views or {}).values()]
        uses += [use_database(service.database)] if service.database is not None else []

    def unprotect() -> None:
        for end in uses:
            end()

    return unprotect


class Messages(Struct, frozen=True):
    """The receiver of a client's messages: `retry` for retries, `warn` for unsafe settings, `note` for others.

    `ask` returns another token if the service rejects one; without `ask` the rejection is an error.
    """

    trace: Trace
    note: Callable[[str], None]
    retry: Callable[[str], None]
    warn: Callable[[str], None]
    ask: NewToken | None = None


def service_at(
    destination: Destination,
    endpoint: Endpoint,
    messages: Messages,
    limits: Callable[[], StreamLimits],
    *,
    for_people: bool = False,
) -> Service:
    """The client of a service; `limits` says when an unbounded result ends, `for_people` is as in ResultFactory.

    Raises UsageError for invalid certificates.
    """
    network = network_of(destination.settings)
    command = destination.service.token_command if isinstance(destination.service, RemoteService) else ""
    if network.insecure and endpoint.target.scheme == "https":
        messages.warn(f"--insecure: not verifying the certificate of {endpoint.target.name}")

    async def renew() -> str:
        return await asyncio.to_thread(run_token_command, command)

    transport = Transport(
        endpoint.target,
        endpoint.token,
        dial=endpoint.dial,
        network=network,
        trace=messages.trace,
        renew=renew if command else None,
        refused=None if command else messages.ask,
        say=messages.retry,
        warn=messages.warn,
    )
    transport.prefer(ENGINE_TYPES)
    results = ResultFactory(transport, endpoint.dial, limits, for_people)
    return Service(transport, _client(transport, results, destination.settings, messages))


def policy_of(destination: Destination) -> Policy:
    """The policy of the settings. Raises UsageError for a policy that would never apply."""
    settings = destination.settings
    check_patterns(settings["confirm"], f"profile {settings.profile}, confirm")
    name = settings.profile or destination.address
    by = {"flag": "--read-only", "environment": BY_NAME["read_only"].variable}.get(settings.source("read_only"), "")
    return Policy(bool(settings["read_only"]), settings["confirm"], name, bool(settings["yes"]), by)


def _client(transport: Transport, results: ResultFactory, settings: Settings, messages: Messages) -> Client:
    waits = settings["wait"] or None
    # The embedded service has the current interface, whatever `--api` says.
    api = settings["api"] if results.dial is None else "v2"
    if api == "legacy":
        from sqlshell.client.legacy import LegacyClient

        return LegacyClient(transport, waits)
    statements = StatementsClient(transport, results, waits)
    if api == "auto":
        from sqlshell.client.api import DetectingClient
        from sqlshell.client.legacy import LegacyClient

        return DetectingClient(transport, statements, LegacyClient(transport, waits), messages.note)
    return statements
