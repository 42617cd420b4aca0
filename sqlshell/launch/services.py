"""Running services: remote ones, and the embedded one of this process; their clients, and the policy for statements."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct

from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.trace import Trace
from sqlshell.client.http.transport import NewToken, Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.service import Service
from sqlshell.client.statements.client import StreamLimits
from sqlshell.client.statements.polling import StatementsClient
from sqlshell.client.target import Target
from sqlshell.config.settings import BY_NAME
from sqlshell.config.values import Settings
from sqlshell.errors import PasswordMissing, ShellError, UsageError
from sqlshell.interface.models import ENGINE_TYPES
from sqlshell.launch.credentials import run_token_command
from sqlshell.launch.targets import Destination, LocalService, RemoteService
from sqlshell.runtime.files import use_database, use_source
from sqlshell.sql.analysis.policy import Policy, check_patterns

if TYPE_CHECKING:
    from sqlshell.client.http.in_process import OpenApp

EMBEDDED_TARGET = Target("http", "sqlshell.localhost", 80, known_as="the embedded service")

Ask = Callable[[str], str]
"""Asks a person for a secret, without showing it."""


def _nothing(*_: str) -> None:
    return None


def token_renewal(command: str) -> NewToken | None:
    """What gets another token from the configured command; None without one."""

    async def renew() -> str:
        return await asyncio.to_thread(run_token_command, command)

    return renew if command else None


class Endpoint(Struct, frozen=True):
    """A running service: its address, its token, and its application if it runs in this process."""

    target: Target
    settings: Settings
    token: str = ""
    token_command: str = ""
    open_app: OpenApp | None = None
    ready: Callable[[], None] = _nothing
    """Wait until the service responds. Raises ShellError if it cannot be started."""
    release: Callable[[], None] = _nothing
    """Stop the service if it runs in this process, and wait for it. May be called again."""

    def __repr__(self) -> str:
        return f"Endpoint({self.target!r})"

    def service(
        self,
        trace: Trace,
        limits: Callable[[], StreamLimits],
        *,
        warn: Callable[[str], None],
        retry: Callable[[str], None] = _nothing,
        note: Callable[[str], None] = _nothing,
        ask: NewToken | None = None,
        for_people: bool = False,
    ) -> Service:
        """Return the client of the service; `limits` says when an unbounded result ends, and `for_people` is as in
        ResultFactory.

        `warn` receives messages about unsafe settings, `retry` about retries, `note` others. `ask` returns another
        token if the service rejects one; without it the rejection is an error. Raises UsageError for invalid
        certificates.
        """
        network = network_of(self.settings)
        if network.insecure and self.target.scheme == "https":
            warn(f"--insecure: not verifying the certificate of {self.target.name}")

        transport = Transport(
            self.target,
            self.token,
            open_app=self.open_app,
            network=network,
            trace=trace,
            renew=token_renewal(self.token_command),
            refused=None if self.token_command else ask,
            say=retry,
            warn=warn,
        )
        transport.prefer(ENGINE_TYPES)
        waits = self.settings["timeout"] or None
        # The embedded service has the current interface, whatever `--api` says.
        api = self.settings["api"] if self.open_app is None else "v2"
        statements = StatementsClient(transport, ResultFactory(transport, self.open_app, limits, for_people), waits)
        if api == "v2":
            return Service(transport, statements)
        from sqlshell.client.legacy import LegacyClient

        legacy = LegacyClient(transport, waits)
        return Service(transport, legacy) if api == "legacy" else Service(transport, statements, legacy, note)


def network_of(settings: Settings) -> NetworkOptions:
    """Return the options of the network, which have the names of their settings."""
    given = {name: settings[name] for name in NetworkOptions.__struct_fields__ if name != "timeout"}
    sizes = {name: given[name] << 20 for name in ("answer_limit", "download_limit")}
    return NetworkOptions(**given | sizes, timeout=settings["retry_timeout"] or 1e9)


def open_endpoint(destination: Destination, *, read_only: bool = False, ask: Ask | None = None) -> Endpoint:
    """Return the running service of a destination. `ask` is for a token or password that is missing.

    With `read_only` an embedded service opens its file, or its sessions on PostgreSQL, read-only. Raises UsageError.
    """
    service, settings = destination.service, destination.settings
    if isinstance(service, RemoteService):
        token = service.token
        if ask is not None and not (token or service.token_command or settings["offline"]):
            token = ask(f"token for {service.target.name}: ").strip()
        return Endpoint(service.target, settings, token, service.token_command)
    if settings["offline"]:
        raise UsageError("--offline requires a remote service", "example: sqlshell https://host/v2 --offline -c …")
    endpoint = _embedded(service, settings, "", read_only=read_only)
    if service.server is None or ask is None:
        return endpoint
    try:
        endpoint.ready()
    except PasswordMissing:
        endpoint.release()
        return _embedded(service, settings, ask(f"password for {service.server.shown}: "), read_only=read_only)
    except ShellError:
        # Callers that wait for the endpoint report the error.
        pass
    return endpoint


def _embedded(service: LocalService, settings: Settings, password: str, *, read_only: bool) -> Endpoint:
    from sqlshell.launch.embedded import start_embedded, start_on_server

    if service.server is not None:
        embedded = start_on_server(service.server.engine, service.server.url, password, read_only=read_only)
    else:
        embedded = start_embedded(service.database, views=service.views, read_only=read_only)
    uses = protected(service)
    uses.callback(embedded.close)
    return Endpoint(EMBEDDED_TARGET, settings, embedded.token, "", embedded.app, embedded.wait, uses.close)


def unopened_endpoint(destination: Destination) -> Endpoint:
    """Return an endpoint that sends nothing: it opens no file, starts no service and asks for no token."""
    service = destination.service
    target = service.target if isinstance(service, RemoteService) else EMBEDDED_TARGET
    return Endpoint(target, destination.settings, open_app=_refuse)


def _refuse() -> NoReturn:
    raise UsageError("nothing is sent with --dry-run")


def protected(service: RemoteService | LocalService) -> contextlib.ExitStack:
    """Let no output destroy the files of an embedded service, until what is returned is closed."""
    uses = contextlib.ExitStack()
    if isinstance(service, LocalService):
        for path in service.views.values():
            uses.callback(use_source(path))
        if service.database is not None:
            uses.callback(use_database(service.database))
    return uses


def policy_of(destination: Destination) -> Policy:
    """Return the policy of the settings. Raises UsageError for a policy that would never apply."""
    settings = destination.settings
    check_patterns(settings["confirm"], f"profile {settings.profile!r}, confirm")
    name = settings.profile or destination.address
    sources = {"environment": BY_NAME["read_only"].variable, "profile": f"profile {settings.profile!r}"}
    by = sources.get(settings.source("read_only"), "--read-only")
    return Policy(bool(settings["read_only"]), settings["confirm"], name, bool(settings["yes"]), by)
