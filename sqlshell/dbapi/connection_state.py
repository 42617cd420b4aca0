"""The common parts of both kinds of connections: the state of their session, and the exceptions of PEP 249."""

from __future__ import annotations

from typing import NoReturn

from sqlshell.context import SessionContext
from sqlshell.dbapi import exceptions
from sqlshell.dbapi.context_parts import ContextParts
from sqlshell.dbapi.exceptions import translated
from sqlshell.dbapi.session import Session, checked_autocommit
from sqlshell.output.text.cells import printable


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

    # A misspelled attribute is an error, instead of a value that nothing reads.
    __slots__ = ("__weakref__", "_session")

    def __init__(self, session: Session) -> None:
        self._session = session

    def __repr__(self) -> str:
        session = self._session
        state = "closed" if session.closed else "in a transaction" if session.in_transaction else "open"
        return f"<{type(self).__module__}.{type(self).__qualname__} {printable(session.address)!r}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a connection cannot be copied or pickled: connect again")

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
        checked_autocommit(value)
        self._session.autocommit = value

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, or has failed and has not been rolled back yet."""
        return self._session.in_transaction

    def _change(self, name: str, value: str) -> None:
        with translated():
            self._session.change(name, value)
