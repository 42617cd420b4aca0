"""Sessions and connections for tests of what needs one but sends nothing."""

from __future__ import annotations

from typing import Any

from sqlshell.client.http.transport import Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.service import Service
from sqlshell.client.statements.client import Client, StreamLimits
from sqlshell.client.statements.polling import StatementsClient
from sqlshell.client.target import Target
from sqlshell.context import SessionContext
from sqlshell.shell.connection import Connection
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.session import Session, SessionState


def ignore(*_: object) -> None:
    return None


def connection(client: Client | None = None, context: SessionContext | None = None, **parts: Any) -> Connection:
    """A connection to `client`, or to a host that does not exist; its journal is in memory."""
    transport = Transport(Target("http", "nowhere.invalid", 80), "")
    statements = client or StatementsClient(transport, ResultFactory(transport, None, StreamLimits), None)
    parts.setdefault("label", "nowhere")
    parts.setdefault("journal", Journal(None, "nowhere", "", ignore))
    return Connection(service=Service(transport, statements), context=context or SessionContext(), **parts)


def session(context: SessionContext | None = None, client: Client | None = None, **parts: Any) -> Session:
    """A session that has just begun in this context."""
    return Session(SessionState.on(connection(client, context), ignore), **parts)
