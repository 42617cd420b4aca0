"""Settings become the parts of a shell: the client of its service, the journal, what --offline does."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from sqlshell.client.http.network import Dial
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.trace import Trace
from sqlshell.client.http.transport import Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.service import Service
from sqlshell.client.statements.client import Client, StreamLimits, Submission
from sqlshell.client.statements.polling import StatementsClient
from sqlshell.client.target import Target
from sqlshell.config.settings import BY_NAME
from sqlshell.config.values import Settings
from sqlshell.context import SessionContext
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.launch.credentials import run_token_command
from sqlshell.launch.destination import Place, Remote
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.running.policy import Policy, check_patterns
from sqlshell.shell.session import Session


class Reached(Struct, frozen=True):
    """A service that runs: its address, a token for it, and how to dial it where that is not TCP."""

    target: Target
    token: str = ""
    dial: Dial | None = None

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


def service_of(place: Place, reached: Reached, session: Session, diagnostics: Diagnostics) -> Service:
    """The client of a service. Raises UsageError for certificates that cannot be used."""
    settings, network = place.settings, network_of(place.settings)
    command = place.where.token_command if isinstance(place.where, Remote) else ""
    if network.insecure and reached.target.scheme == "https":
        diagnostics.warn(f"--insecure: the certificate of {reached.target.name} is not checked")

    async def renew() -> str:
        return await asyncio.to_thread(run_token_command, command)

    async def ask() -> str:
        return await session.ask_token(reached.target.name) if session.ask_token is not None else ""

    def redact(sql: str) -> str:
        return session.keeping.without(redactor_of(settings)(sql))

    asks = session.interactive and isinstance(place.where, Remote)
    transport = Transport(
        reached.target,
        reached.token,
        dial=reached.dial,
        network=network,
        trace=Trace(diagnostics.say, lambda: diagnostics.verbose, redact),
        renew=renew if command else None,
        refused=ask if asks and not command else None,
        say=diagnostics.note,
        warn=diagnostics.warn,
    )
    hidden_before = diagnostics.hide
    # The tokens of services that were left, and of others beside this one, stay hidden.
    diagnostics.hide = lambda text: transport.trace.secrets.text(hidden_before(text))
    session.keeping.asks(transport.trace.secrets.own)
    return Service(transport, _client(transport, reached, session, settings, diagnostics))


def redactor_of(settings: Settings) -> Callable[[str], str]:
    """Takes the secrets out of a statement. Raises UsageError for a name's pattern that is none."""
    from sqlshell.sql.analysis.secrets import redactor

    try:
        return redactor(settings["secret_names"])
    except re.error as error:
        raise UsageError(f"secret_names: {error.pattern!r} is not a pattern: {error.msg}") from None


def journal_of(place: Place, folder: Path, session: Session, known_as: str, diagnostics: Diagnostics) -> Journal:
    """Where statements are remembered: in a file for services that outlive this process."""
    if place.settings["secret_names"]:
        redactor_of(place.settings)

    def redact(sql: str) -> str:
        return session.keeping.without(redactor_of(place.settings)(sql))

    if not isinstance(place.where, Remote) or not place.settings["journal"]:
        return Journal(None, known_as, "", diagnostics.warn, redact)
    return Journal(folder / "journal.db", place.where.target.name, place.profile, diagnostics.warn, redact)


def offline_of(place: Place, settings: Settings) -> Callable[[Submission, SessionContext], None]:
    """Prints each request as a curl command."""
    assert isinstance(place.where, Remote)
    target = place.where.target
    options = [
        *(["--cacert", settings["ca_file"]] if settings["ca_file"] else []),
        *(["--cert", settings["client_cert"]] if settings["client_cert"] else []),
        *(["--key", settings["client_key"]] if settings["client_key"] else []),
        *(["--insecure"] if settings["insecure"] else []),
    ]

    def tell(asked: Submission, context: SessionContext) -> None:
        from sqlshell.client.http.curl import curl

        text = curl(target, asked, context, legacy=settings["api"] == "legacy", options=options)
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    return tell


def policy_of(place: Place) -> Policy:
    """What may be sent, and what is asked about. Raises UsageError for a policy that would protect nothing."""
    settings = place.settings
    check_patterns(settings["confirm"], f"profile {settings.profile}, confirm")
    name = settings.profile or (place.where.target.host if isinstance(place.where, Remote) else "local")
    by = {"flag": "--read-only", "environment": BY_NAME["read_only"].variable}.get(settings.source("read_only"), "")
    return Policy(bool(settings["read_only"]), settings["confirm"], name, bool(settings["yes"]), by)


def _client(
    transport: Transport, reached: Reached, session: Session, settings: Settings, diagnostics: Diagnostics
) -> Client:
    waits = settings["wait"] or None
    # The service inside speaks the current interface, whatever others do.
    api = settings["api"] if reached.dial is None else "v2"
    if api == "legacy":
        from sqlshell.client.legacy import LegacyClient

        return LegacyClient(transport, waits)

    def limits() -> StreamLimits:
        options = session.options
        return StreamLimits(
            options.max_rows or None, options.stream_for or None, session.interactive or options.allow_gaps
        )

    statements = StatementsClient(transport, ResultFactory(transport, reached.dial, limits), waits)
    if api == "auto":
        from sqlshell.client.api import DetectingClient
        from sqlshell.client.legacy import LegacyClient

        return DetectingClient(transport, statements, LegacyClient(transport, waits), diagnostics.note)
    return statements
