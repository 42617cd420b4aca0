"""Connections of a shell, each built completely before the shell has it, and what else a shell takes from here."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.statements.polling import new_session_id
from sqlshell.config.values import Config, Settings, state_folder
from sqlshell.context import SessionContext
from sqlshell.launch.assembly import (
    Reached,
    Sharing,
    journal_of,
    offline_of,
    policy_of,
    redactor_of,
    service_of,
)
from sqlshell.launch.destination import (
    Local,
    Place,
    Remote,
    context_of,
    find_place,
    names_profile,
    own_session,
    sources_of,
)
from sqlshell.launch.reach import EMBEDDED, kept_name, label, reach
from sqlshell.origin import Own
from sqlshell.runtime.scratch import scratch
from sqlshell.shell.connection import Connection
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.running.policy import Policy

NOT_CARRIED = frozenset(
    {"profile", "organization", "role", "database", "schema", "store", "compute_pool", "session_id"}
)
"""Flags that belong to the target of the command line alone."""


class Given(Struct, frozen=True):
    """What connections are made from: the command line, the environment variables, the configuration."""

    target: Own
    flags: Mapping[str, Any]
    config: Config
    environ: Mapping[str, str]


def connection_of(
    place: Place, reached: Reached, sharing: Sharing, given: Given, policy: Policy | None = None
) -> Connection:
    """The connection to a place whose service runs. `policy` is one that holds instead of the place's own.

    Raises UsageError for a policy that would protect nothing, an invalid pattern, an unknown time zone, and
    certificates that cannot be used; then nothing is left open.
    """
    settings = place.settings
    if settings["secret_names"]:
        redactor_of(settings)

    def redact(text: str) -> str:
        return sharing.keeping.without(redactor_of(settings)(text))

    async def examine() -> str:
        from sqlshell.launch.doctor import findings

        return "\n".join(map(str, await findings(place, given.environ, given.config.path)))

    context, name = context_of(place), label(place)
    return Connection(
        label=name,
        context=context,
        policy=policy or policy_of(place),
        redact=redact,
        sources=sources_of(place),
        secret_names=settings["secret_names"],
        embedded=isinstance(place.where, Local),
        kept_as=kept_name(place),
        own_session=own_session(place, context),
        color=settings["color"],
        offline=offline_of(place, sharing.streams.stdout) if settings["offline"] else None,
        examine=examine,
        journal=journal_of(place, state_folder(given.environ), name, redact, sharing.diagnostics),
        service=service_of(place, reached, sharing, redact),
        release=reached.release,
    )


class Environment:
    """What one shell takes from the machine. `services` closes at the end what is still open then."""

    def __init__(self, given: Given, settings: Settings, sharing: Sharing, services: contextlib.ExitStack) -> None:
        self._given = given
        self._settings = settings
        self._sharing = sharing
        self._services = services
        self.queries: Path | None = given.config.folder / "queries.toml"

    def profiles(self) -> Sequence[str]:
        return sorted(self._given.config.profiles)

    def themes(self) -> Sequence[str]:
        from sqlshell.shell.interactive.look.themes import names

        return names(self._given.config.folder / "themes")

    async def connect(self, target: Own, present: Connection) -> Connection:
        given, sharing = self._given, self._sharing
        flags = {name: value for name, value in given.flags.items() if name not in NOT_CARRIED}
        said: list[str] = []
        place = find_place(target, flags, given.environ, given.config, said.append, given.target)
        where = place.where
        if isinstance(where, Remote) and not (said or where.token or where.token_command):
            said.append(
                f"no token is configured for {where.target.name}: a token is sent only to the URL that is "
                f"configured with it"
            )
        for warning in said:
            sharing.diagnostics.warn(warning)
        policy = policy_of(place)
        if not names_profile(target, given.config):
            held = present.policy
            policy = replace(policy, read_only=held.read_only, confirm=held.confirm, read_only_by=held.read_only_by)
        # The prompt asks when the service does: a question here would hold up its event loop, and Ctrl-C with it.
        ask = not sharing.interactive
        reached = reach(place, sharing.streams, ask=ask, read_only=policy.read_only)
        self._services.callback(reached.release)
        connection: Connection | None = None
        try:
            if isinstance(where, Local):
                await asyncio.to_thread(reached.ready)
            connection = connection_of(place, reached, sharing, given, policy)
            if connection.offline is None:
                await connection.service.version()
        except BaseException:
            if connection is not None:
                connection.journal.close()
                await connection.service.aclose()
            await asyncio.to_thread(reached.release)
            raise
        return connection

    async def local(self, present: Connection) -> tuple[Connection, Path]:
        from sqlshell.launch.embedded import start

        folder = scratch().folder("local")
        self._services.callback(shutil.rmtree, folder, ignore_errors=True)
        embedded = start(folder / "local.duckdb", installs=not present.policy.read_only)
        self._services.callback(embedded.close)
        reached = Reached(EMBEDDED, embedded.token, embedded.dial, release=embedded.close)
        connection = Connection(
            label="local results",
            context=SessionContext(timezone=present.context.timezone, session_id=new_session_id()),
            redact=present.redact,
            embedded=True,
            journal=Journal(None, "local results", "", self._sharing.diagnostics.warn),
            service=service_of(Place(self._settings, Local()), reached, self._sharing, present.redact),
            release=reached.release,
        )
        return connection, folder
