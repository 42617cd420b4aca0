"""The common parts of both kinds of connections: the state of their session, and the exceptions of PEP 249."""

from __future__ import annotations

from sqlshell.context import SessionContext
from sqlshell.dbapi import exceptions
from sqlshell.dbapi.context_parts import ContextParts
from sqlshell.dbapi.exceptions import translated
from sqlshell.dbapi.session import Session


class ConnectionState(ContextParts):
    """The attributes of a connection. The exceptions are attributes too, as an optional part of PEP 249 asks."""

    Warning = exceptions.Warning
    Error = exceptions.Error
    InterfaceError = exceptions.InterfaceError
    DatabaseError = exceptions.DatabaseError
    DataError = exceptions.DataError
    OperationalError = exceptions.OperationalError
    IntegrityError = exceptions.IntegrityError
    InternalError = exceptions.InternalError
    ProgrammingError = exceptions.ProgrammingError
    NotSupportedError = exceptions.NotSupportedError

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def closed(self) -> bool:
        return self._session.closed

    @property
    def context(self) -> SessionContext:
        """The context in which the next statement runs."""
        return self._session.context

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own. Setting it in a transaction raises ProgrammingError."""
        return self._session.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self._session.autocommit = value

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, or has failed and has not been rolled back yet."""
        return self._session.in_transaction

    def _change(self, name: str, value: str) -> None:
        with translated():
            self._session.change(name, value)
