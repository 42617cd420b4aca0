"""Builds connections of a shell, each completely before the shell uses it, and provides what else a shell needs."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.statements.polling import new_session_id
from sqlshell.config.values import Config, Settings, state_folder
from sqlshell.context import SessionContext
from sqlshell.errors import UsageError
from sqlshell.launch.assembly import SharedParts, curl_client_of, journal_of, redactor_of, service_of
from sqlshell.launch.clients import EMBEDDED_TARGET, Endpoint, policy_of
from sqlshell.launch.destination import (
    Destination,
    LocalService,
    RemoteService,
    context_of,
    find_destination,
    names_profile,
    own_session,
    sources_of,
)
from sqlshell.launch.endpoint import open_endpoint, storage_name
from sqlshell.origin import Own
from sqlshell.runtime.scratch import scratch
from sqlshell.shell.connection import Connection
from sqlshell.shell.records.journal import Journal
from sqlshell.sql.analysis.lexed import Sql
from sqlshell.sql.analysis.policy import Policy

TARGET_FLAGS = frozenset(
    {"profile", "organization", "role", "database", "schema", "store", "compute_pool", "session_id"}
)
"""Flags that apply only to the target of the command line."""

_NAME = re.compile(r"[^\W\d][\w$-]*+")
"""A text that may be the name of a database, and is not a URL or a path."""


class ConnectionInputs(Struct, frozen=True):
    """The inputs of a connection: the command line, the environment variables, the configuration."""

    target: Own
    flags: Mapping[str, Any]
    config: Config
    environ: Mapping[str, str]


def build_connection(
    destination: Destination,
    endpoint: Endpoint,
    shared: SharedParts,
    inputs: ConnectionInputs,
    policy: Policy | None = None,
) -> Connection:
    """The connection to a running service. `policy` replaces the policy of the destination.

    Raises UsageError for a policy that would never apply, an invalid pattern, an unknown time zone, and invalid
    certificates; then nothing is left open.
    """
    settings = destination.settings
    if settings["secret_names"]:
        redactor_of(settings)

    def redact(text: Sql) -> str:
        return shared.secret_filter.redact(redactor_of(settings)(text))

    async def examine() -> str:
        from sqlshell.launch.doctor import findings

        return "\n".join(map(str, await findings(destination, inputs.environ, inputs.config.path)))

    context, name = context_of(destination), destination.label
    return Connection(
        label=name,
        short_name=destination.short_name,
        context=context,
        policy=policy or policy_of(destination),
        redact=redact,
        sources=sources_of(destination),
        secret_names=settings["secret_names"],
        embedded=isinstance(destination.service, LocalService),
        storage_name=storage_name(destination),
        own_session=own_session(destination, context),
        prompt_color=settings["prompt_color"],
        offline=curl_client_of(destination, shared.streams.stdout) if settings["offline"] else None,
        examine=examine,
        journal=journal_of(destination, state_folder(inputs.environ), name, redact, shared.diagnostics),
        url_of_other_database=_url_of_other_database(destination),
        service=service_of(destination, endpoint, shared, redact),
        release=endpoint.release,
    )


def _url_of_other_database(destination: Destination) -> Callable[..., str] | None:
    service = destination.service
    server = service.server if isinstance(service, LocalService) else None
    return server.url_of_other_database if server is not None and server.engine == "postgresql" else None


def _elsewhere(present: Connection, given: Sequence[Own]) -> Own:
    """The target for a database, user, host and port; "-" keeps the present one. Raises UsageError."""
    if present.url_of_other_database is None:
        raise UsageError(
            "\\c: a user, host and port can be given only when the shell is connected to PostgreSQL",
            "give a URL, such as \\c postgresql://user@host:port/database, and a name with blanks in quotes",
        )
    words = ["" if word == "-" else word for word in given]
    if (port := "".join(words[3:])) and not (port.isascii() and port.isdecimal()):
        raise UsageError(f"\\c: invalid port {port!r}", "expected a number, or - for the current port")
    return Own(present.url_of_other_database(*words))


class Environment:
    """The shell's access to the machine. `services` closes everything that is still open at the end."""

    def __init__(
        self, inputs: ConnectionInputs, settings: Settings, shared: SharedParts, services: contextlib.ExitStack
    ) -> None:
        self._inputs = inputs
        self._settings = settings
        self._shared = shared
        self._services = services
        self.queries: Path | None = inputs.config.folder / "queries.toml"

    def profiles(self) -> Sequence[str]:
        return sorted(self._inputs.config.profiles)

    def themes(self) -> Sequence[str]:
        from sqlshell.shell.interactive.look.themes import names

        return names(self._inputs.config.folder / "themes")

    async def connect(self, target: Own, present: Connection, place: Sequence[Own] = ()) -> Connection:
        inputs, shared = self._inputs, self._shared
        flags = {name: value for name, value in inputs.flags.items() if name not in TARGET_FLAGS}
        warnings: list[str] = []
        if place or target == "-":
            target = _elsewhere(present, [target, *place])
        elif (
            present.url_of_other_database is not None
            and _NAME.fullmatch(target)
            and not names_profile(target, inputs.config)
        ):
            target = Own(present.url_of_other_database(target))
        destination = find_destination(target, flags, inputs.environ, inputs.config, warnings.append, inputs.target)
        service = destination.service
        if isinstance(service, RemoteService) and not (warnings or service.token or service.token_command):
            warnings.append(
                f"no token is configured for {service.target.name}: a token is sent only to the URL that is "
                f"configured with it"
            )
        for warning in warnings:
            shared.diagnostics.warn(warning)
        policy = policy_of(destination)
        if not names_profile(target, inputs.config):
            present_policy = present.policy
            policy = replace(
                policy,
                name=destination.address,
                read_only=present_policy.read_only,
                confirm=present_policy.confirm,
                read_only_by=present_policy.read_only_by,
            )
        # Before a database file is opened, and perhaps created.
        redactor_of(destination.settings)
        context_of(destination)
        # The prompt asks for the token when the service rejects it: asking here would block its event loop, and Ctrl-C.
        ask = not shared.interactive
        endpoint = open_endpoint(destination, shared.streams, ask=ask, read_only=policy.read_only)
        self._services.callback(endpoint.release)
        connection: Connection | None = None
        try:
            if isinstance(service, LocalService):
                await asyncio.to_thread(endpoint.ready)
            connection = build_connection(destination, endpoint, shared, inputs, policy)
            if connection.offline is None:
                await connection.service.version()
        except BaseException:
            if connection is not None:
                connection.journal.close()
                await connection.service.aclose()
            await asyncio.to_thread(endpoint.release)
            raise
        return connection

    async def local(self, present: Connection) -> tuple[Connection, Path]:
        from sqlshell.launch.embedded import start_embedded

        folder = scratch().folder("local")
        self._services.callback(shutil.rmtree, folder, ignore_errors=True)
        embedded = start_embedded(folder / "local.duckdb", installs=not present.policy.read_only)
        self._services.callback(embedded.close)
        endpoint = Endpoint(EMBEDDED_TARGET, embedded.token, embedded.dial, release=embedded.close)
        connection = Connection(
            label="local results",
            context=SessionContext(timezone=present.context.timezone, session_id=new_session_id()),
            redact=present.redact,
            embedded=True,
            journal=Journal(None, "local results", "", self._shared.diagnostics.warn),
            service=service_of(Destination(self._settings, LocalService()), endpoint, self._shared, present.redact),
            release=endpoint.release,
        )
        return connection, folder
