"""Creates the parts of a shell from settings: the client of its service, the journal, the behavior of --offline."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TextIO

from msgspec import Struct

from sqlshell.client.http.trace import Trace
from sqlshell.client.service import Service
from sqlshell.client.statements.client import StreamLimits, Submission
from sqlshell.config.values import Settings
from sqlshell.context import SessionContext
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.launch.clients import Endpoint, Messages, service_at
from sqlshell.launch.destination import Destination, RemoteService
from sqlshell.runtime.background_tasks import in_background
from sqlshell.runtime.streams import Streams
from sqlshell.shell.connection import Offline
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.records.redaction import SecretFilter
from sqlshell.shell.session import Options
from sqlshell.sql.analysis.lexed import Redact


class SharedParts(Struct, frozen=True):
    """The parts that all connections of one shell share."""

    options: Options
    secret_filter: SecretFilter
    front_end: FrontEnd
    diagnostics: Diagnostics
    streams: Streams
    interactive: bool = False


def service_of(destination: Destination, endpoint: Endpoint, shared: SharedParts, redact: Redact) -> Service:
    """The client of a service. Raises UsageError for invalid certificates."""
    diagnostics = shared.diagnostics

    async def ask() -> str:
        return await shared.front_end.token(endpoint.target.name)

    def limits() -> StreamLimits:
        options = shared.options
        return StreamLimits(
            options.max_rows or None, options.stream_for or None, shared.interactive or options.allow_gaps
        )

    def announced(text: str) -> None:
        if not (shared.interactive and in_background()):
            diagnostics.wait(text)
        else:
            diagnostics.report(text)

    def retried(text: str) -> None:
        # At the prompt, background work is not awaited.
        if diagnostics.verbose or not (shared.interactive and in_background()):
            announced(text)

    asks = shared.interactive and isinstance(destination.service, RemoteService)
    trace = Trace(diagnostics.say, lambda: diagnostics.verbose, redact)
    messages = Messages(trace, announced, retried, diagnostics.warn, ask if asks else None)
    service = service_at(destination, endpoint, messages, limits, for_people=True)
    # Tokens of other services, earlier ones too, stay hidden.
    diagnostics.filter(trace.secrets.text)
    shared.secret_filter.add_source(trace.secrets.own)
    return service


def redactor_of(settings: Settings) -> Redact:
    """A function that removes the secrets from a statement. Raises UsageError for an invalid pattern."""
    from sqlshell.sql.analysis.secrets import redactor

    try:
        return redactor(settings["secret_names"])
    except re.error as error:
        raise UsageError(f"secret_names: {error.pattern!r} is not a valid regular expression: {error.msg}") from None


def journal_of(
    destination: Destination, folder: Path, known_as: str, redact: Redact, diagnostics: Diagnostics
) -> Journal:
    """The journal of statements: in a file if the service outlives this process."""
    if not isinstance(destination.service, RemoteService) or not destination.settings["journal"]:
        return Journal(None, known_as, "", diagnostics.warn, redact)
    return Journal(
        folder / "journal.db", destination.service.target.name, destination.profile, diagnostics.warn, redact
    )


def curl_client_of(destination: Destination, stdout: TextIO) -> Offline:
    """Print each request as a curl command."""
    assert isinstance(destination.service, RemoteService)
    target, settings = destination.service.target, destination.settings
    options = [
        *(["--cacert", settings["ca_file"]] if settings["ca_file"] else []),
        *(["--cert", settings["client_cert"]] if settings["client_cert"] else []),
        *(["--key", settings["client_key"]] if settings["client_key"] else []),
        *(["--insecure"] if settings["insecure"] else []),
    ]

    def print_curl(submission: Submission, context: SessionContext) -> None:
        from sqlshell.client.http.curl import curl

        text = curl(target, submission, context, legacy=settings["api"] == "legacy", options=options)
        stdout.write(f"{text}\n")
        stdout.flush()

    return print_curl
