"""Settings become the parts of a shell: the client of its service, the journal, what --offline does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

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
from sqlshell.runtime.streams import Streams
from sqlshell.shell.connection import Offline
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.records.redaction import Keeping
from sqlshell.shell.running.policy import Policy, check_patterns
from sqlshell.shell.session import Options


def _nothing() -> None:
    return None


class Reached(Struct, frozen=True):
    """A service that runs: its address, a token for it, and how to dial it where that is not TCP."""

    target: Target
    token: str = ""
    dial: Dial | None = None
    ready: Callable[[], None] = _nothing
    """Waits until the service answers. Raises ShellError where it cannot be started."""
    release: Callable[[], None] = _nothing
    """Ends the service, where it runs in this process, and waits for that. Harmless a second time."""

    def __repr__(self) -> str:
        return f"Reached({self.target!r})"


class Sharing(Struct, frozen=True):
    """What all connections of one shell share."""

    options: Options
    keeping: Keeping
    front_end: FrontEnd
    diagnostics: Diagnostics
    streams: Streams
    interactive: bool = False


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


def service_of(place: Place, reached: Reached, sharing: Sharing, redact: Callable[[str], str]) -> Service:
    """The client of a service. Raises UsageError for certificates that cannot be used."""
    settings, network, diagnostics = place.settings, network_of(place.settings), sharing.diagnostics
    command = place.where.token_command if isinstance(place.where, Remote) else ""
    if network.insecure and reached.target.scheme == "https":
        diagnostics.warn(f"--insecure: not verifying the certificate of {reached.target.name}")

    async def renew() -> str:
        return await asyncio.to_thread(run_token_command, command)

    async def ask() -> str:
        return await sharing.front_end.token(reached.target.name)

    asks = sharing.interactive and isinstance(place.where, Remote)
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
    sharing.keeping.asks(transport.trace.secrets.own)
    return Service(transport, _client(transport, reached, sharing, settings))


def redactor_of(settings: Settings) -> Callable[[str], str]:
    """Takes the secrets out of a statement. Raises UsageError for a name's pattern that is none."""
    from sqlshell.sql.analysis.secrets import redactor

    try:
        return redactor(settings["secret_names"])
    except re.error as error:
        raise UsageError(f"secret_names: {error.pattern!r} is not a valid regular expression: {error.msg}") from None


def journal_of(
    place: Place, folder: Path, known_as: str, redact: Callable[[str], str], diagnostics: Diagnostics
) -> Journal:
    """Where statements are remembered: in a file for services that outlive this process."""
    if not isinstance(place.where, Remote) or not place.settings["journal"]:
        return Journal(None, known_as, "", diagnostics.warn, redact)
    return Journal(folder / "journal.db", place.where.target.name, place.profile, diagnostics.warn, redact)


def offline_of(place: Place, stdout: TextIO) -> Offline:
    """Prints each request as a curl command."""
    assert isinstance(place.where, Remote)
    target, settings = place.where.target, place.settings
    options = [
        *(["--cacert", settings["ca_file"]] if settings["ca_file"] else []),
        *(["--cert", settings["client_cert"]] if settings["client_cert"] else []),
        *(["--key", settings["client_key"]] if settings["client_key"] else []),
        *(["--insecure"] if settings["insecure"] else []),
    ]

    def tell(asked: Submission, context: SessionContext) -> None:
        from sqlshell.client.http.curl import curl

        text = curl(target, asked, context, legacy=settings["api"] == "legacy", options=options)
        stdout.write(f"{text}\n")
        stdout.flush()

    return tell


def policy_of(place: Place) -> Policy:
    """What may be sent, and what is asked about. Raises UsageError for a policy that would protect nothing."""
    settings = place.settings
    check_patterns(settings["confirm"], f"profile {settings.profile}, confirm")
    name = settings.profile or (place.where.target.host if isinstance(place.where, Remote) else "local")
    by = {"flag": "--read-only", "environment": BY_NAME["read_only"].variable}.get(settings.source("read_only"), "")
    return Policy(bool(settings["read_only"]), settings["confirm"], name, bool(settings["yes"]), by)


def _client(transport: Transport, reached: Reached, sharing: Sharing, settings: Settings) -> Client:
    waits = settings["wait"] or None
    # The service inside speaks the current interface, whatever others do.
    api = settings["api"] if reached.dial is None else "v2"
    if api == "legacy":
        from sqlshell.client.legacy import LegacyClient

        return LegacyClient(transport, waits)

    def limits() -> StreamLimits:
        options = sharing.options
        return StreamLimits(
            options.max_rows or None, options.stream_for or None, sharing.interactive or options.allow_gaps
        )

    statements = StatementsClient(transport, ResultFactory(transport, reached.dial, limits), waits)
    if api == "auto":
        from sqlshell.client.api import DetectingClient
        from sqlshell.client.legacy import LegacyClient

        return DetectingClient(transport, statements, LegacyClient(transport, waits), sharing.diagnostics.note)
    return statements
