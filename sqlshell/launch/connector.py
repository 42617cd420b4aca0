"""Connects a shell to services, each connection complete before the shell uses it: at the start, and by `\\c`."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.http.trace import Trace
from sqlshell.client.service import Service
from sqlshell.client.statements.client import StreamLimits
from sqlshell.client.statements.polling import new_session_id
from sqlshell.client.target import Target
from sqlshell.config.values import Config, Settings, state_folder
from sqlshell.context import SessionContext
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Interrupted, UsageError
from sqlshell.launch.services import EMBEDDED_TARGET, Ask, Endpoint, network_of, open_endpoint, policy_of
from sqlshell.launch.targets import (
    Destination,
    LocalService,
    RemoteService,
    context_of,
    find_destination,
    names_profile,
    own_session,
    sources_of,
)
from sqlshell.origin import Trusted
from sqlshell.runtime.event_loops import in_background
from sqlshell.runtime.scratch import scratch
from sqlshell.runtime.streams import Streams
from sqlshell.shell.connection import Connection, Offline
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.options import Options
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.records.redaction import SecretFilter
from sqlshell.sql.analysis.lexed import Redact, Sql
from sqlshell.sql.analysis.policy import Policy

TARGET_FLAGS: Final = frozenset(
    {"profile", "organization", "role", "database", "schema", "store", "compute_pool", "session_id"}
)
"""Flags that apply only to the target of the command line."""

_NAME: Final = re.compile(r"[^\W\d][\w$-]*+")
"""A text that may be the name of a database, and is not a URL or a path."""


class Connector(Struct):
    """Makes the connections of one shell, which was started with these `target`, `flags`, `environ` and `settings`.

    What is still open at the end is closed by `closing`.
    """

    target: Trusted
    flags: Mapping[str, Any]
    config: Config
    environ: Mapping[str, str]
    settings: Settings
    options: Options
    secret_filter: SecretFilter
    front_end: FrontEnd
    diagnostics: Diagnostics
    streams: Streams
    closing: contextlib.ExitStack
    interactive: bool = False

    @property
    def queries(self) -> Path | None:
        return self.config.folder / "queries.toml"

    def profiles(self) -> Sequence[str]:
        return sorted(self.config.profiles)

    def themes(self) -> Sequence[str]:
        from sqlshell.shell.interactive.look.themes import names

        return names(self.config.folder / "themes")

    def connection(
        self, destination: Destination, context: SessionContext, endpoint: Endpoint, policy: Policy | None = None
    ) -> Connection:
        """Return the connection to a running service, in its initial context. `policy` replaces the policy of the
        destination.

        Raises UsageError for a policy that would never apply, an invalid pattern, and invalid certificates; then
        nothing is left open.
        """
        settings = destination.settings
        if settings["secret_names"]:
            redactor_of(settings)

        def redact(text: Sql) -> str:
            return self.secret_filter.redact(redactor_of(settings)(text))

        async def examine() -> str:
            from sqlshell.launch.doctor import findings

            return "\n".join(map(str, await findings(destination, self.environ, self.config.path)))

        remote = isinstance(destination.service, RemoteService)
        return Connection(
            label=destination.label,
            target=(destination.profile or destination.address) if remote else "",
            short_name=destination.short_name,
            context=context,
            policy=policy or policy_of(destination),
            redact=redact,
            sources=sources_of(destination),
            secret_names=settings["secret_names"],
            embedded=not remote,
            storage_name=destination.storage_name,
            own_session=own_session(destination, context),
            prompt_color=settings["prompt_color"],
            offline=self._offline(endpoint.target, settings) if settings["offline"] else None,
            examine=examine,
            journal=self._journal(destination, redact),
            url_of_other_database=_url_of_other_database(destination),
            service=self.service(endpoint, redact, asks=self.interactive and remote),
            release=endpoint.release,
        )

    def service(self, endpoint: Endpoint, redact: Redact, *, asks: bool = False) -> Service:
        """Return the client of a service; `asks` for another token if that is rejected. Raises UsageError."""
        diagnostics, front_end, options = self.diagnostics, self.front_end, self.options

        def while_typing() -> bool:
            # At the prompt, background work is not awaited.
            return self.interactive and in_background()

        def limits() -> StreamLimits:
            gaps = self.interactive or options.allow_gaps
            return StreamLimits(options.max_rows or None, options.duration or None, gaps)

        def note(text: str) -> None:
            if while_typing():
                diagnostics.report(text)
            else:
                diagnostics.wait(text)

        def retry(text: str) -> None:
            if diagnostics.verbose or not while_typing():
                note(text)

        async def ask() -> str:
            return await front_end.token(endpoint.target.name)

        trace = Trace(diagnostics.say, lambda: diagnostics.verbose, redact)
        service = endpoint.service(
            trace, limits, warn=diagnostics.warn, retry=retry, note=note, ask=ask if asks else None, for_people=True
        )
        # Tokens of other services, earlier ones too, stay hidden.
        diagnostics.filter(trace.secrets.text)
        self.secret_filter.add_source(trace.secrets.own)
        return service

    def _offline(self, target: Target, settings: Settings) -> Offline:
        """What prints each request as a curl command."""
        from sqlshell.client.http.curl import curl_printer

        return curl_printer(target, network_of(settings), self.streams.stdout, legacy=settings["api"] == "legacy")

    def _journal(self, destination: Destination, redact: Redact) -> Journal:
        """The journal of statements: in a file if the service outlives this process."""
        remote = destination.service.target.name if isinstance(destination.service, RemoteService) else ""
        if not (remote and destination.settings["journal"]):
            return Journal(None, destination.label, "", self.diagnostics.warn, redact)
        path = state_folder(self.environ) / "journal.db"
        return Journal(path, remote, destination.profile, self.diagnostics.warn, redact)

    async def connect(self, target: Trusted, present: Connection, place: Sequence[Trusted] = ()) -> Connection:
        if place or target == "-":
            target = _elsewhere(present, [target, *place])
        elif (
            present.url_of_other_database is not None
            and _NAME.fullmatch(target)
            and not names_profile(target, self.config)
        ):
            target = Trusted(present.url_of_other_database(target))
        destination = self._destination(target)
        policy = policy_of(destination)
        if not names_profile(target, self.config):
            here = present.policy
            policy = replace(
                policy,
                name=destination.address,
                read_only=here.read_only,
                confirm=here.confirm,
                read_only_by=here.read_only_by,
            )
        # Before a database file is opened, and perhaps created.
        redactor_of(destination.settings)
        context = context_of(destination)
        # The prompt asks for the token when the service rejects it: asking here would block its event loop, and Ctrl-C.
        ask = None if self.interactive else asking(self.streams)
        endpoint = open_endpoint(destination, read_only=policy.read_only, ask=ask)
        self.closing.callback(endpoint.release)
        connection: Connection | None = None
        try:
            if isinstance(destination.service, LocalService):
                await asyncio.to_thread(endpoint.ready)
            connection = self.connection(destination, context, endpoint, policy)
            if connection.offline is None:
                await connection.service.version()
        except BaseException:
            if connection is not None:
                connection.journal.close()
                await connection.service.aclose()
            await asyncio.to_thread(endpoint.release)
            raise
        return connection

    def _destination(self, target: Trusted) -> Destination:
        """The destination of `\\c`, with warnings about tokens that are not sent there."""
        flags = {name: value for name, value in self.flags.items() if name not in TARGET_FLAGS}
        warnings: list[str] = []
        destination = find_destination(target, flags, self.environ, self.config, warnings.append, self.target)
        service = destination.service
        if isinstance(service, RemoteService) and not (warnings or service.token or service.token_command):
            warnings.append(
                f"no token is configured for {service.target.name}: a token is sent only to the URL that is "
                f"configured with it"
            )
        for warning in warnings:
            self.diagnostics.warn(warning)
        return destination

    async def local(self, present: Connection) -> tuple[Connection, Path]:
        from sqlshell.launch.embedded import start_embedded

        folder = scratch().folder("local")
        self.closing.callback(shutil.rmtree, folder, ignore_errors=True)
        embedded = start_embedded(folder / "local.duckdb", installs=not present.policy.read_only)
        self.closing.callback(embedded.close)
        endpoint = Endpoint(EMBEDDED_TARGET, self.settings, embedded.token, open_app=embedded.app)
        connection = Connection(
            label="local results",
            context=SessionContext(timezone=present.context.timezone, session_id=new_session_id()),
            redact=present.redact,
            embedded=True,
            journal=Journal(None, "local results", "", self.diagnostics.warn),
            service=self.service(endpoint, present.redact),
            release=embedded.close,
        )
        return connection, folder


def redactor_of(settings: Settings) -> Redact:
    """Return a function that removes the secrets from a statement. Raises UsageError for an invalid pattern."""
    from sqlshell.sql.analysis.secrets import redactor

    try:
        return redactor(settings["secret_names"])
    except re.error as error:
        raise UsageError(f"secret_names: {error.pattern!r} is not a valid regular expression: {error.msg}") from None


def asking(streams: Streams) -> Ask | None:
    """Return what asks for a token or a password at the terminal; None if there is none."""

    def ask(question: str) -> str:
        import getpass

        try:
            return getpass.getpass(question)
        except (EOFError, KeyboardInterrupt):
            raise Interrupted("interrupted; not connected") from None

    return ask if streams.asks else None


def _url_of_other_database(destination: Destination) -> Callable[..., str] | None:
    service = destination.service
    server = service.server if isinstance(service, LocalService) else None
    return server.url_of_other_database if server is not None and server.engine == "postgresql" else None


def _elsewhere(present: Connection, given: Sequence[Trusted]) -> Trusted:
    """The target for a database, user, host and port; "-" keeps the present one. Raises UsageError."""
    if present.url_of_other_database is None:
        raise UsageError(
            "\\c: a user, host and port can be given only when the shell is connected to PostgreSQL",
            "give a URL, such as \\c postgresql://user@host:port/database; put a name with spaces in quotes",
        )
    words = ["" if word == "-" else word for word in given]
    if (port := "".join(words[3:])) and not (port.isascii() and port.isdecimal()):
        raise UsageError(f"\\c: invalid port {port!r}", "expected a number, or - for the current port")
    return Trusted(present.url_of_other_database(*words))
