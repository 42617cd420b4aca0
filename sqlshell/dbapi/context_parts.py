"""The parts of the session's context as attributes of a connection."""

from __future__ import annotations

from typing import Protocol, overload

from sqlshell.context import SessionContext


class HasContext(Protocol):
    """A connection, as its attributes see it."""

    @property
    def context(self) -> SessionContext: ...

    def _change(self, name: str, value: str) -> None: ...


class ContextPart:
    """One part; "" if it is not set. An assigned value applies to the following statements.

    A statement that changes the context, such as USE, changes the attribute too: the service reports its context.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, connection: None, owner: type) -> ContextPart: ...

    @overload
    def __get__(self, connection: HasContext, owner: type) -> str: ...

    def __get__(self, connection: HasContext | None, owner: type) -> str | ContextPart:
        return self if connection is None else str(getattr(connection.context, self._name))

    def __set__(self, connection: HasContext, value: str) -> None:
        connection._change(self._name, value)


class ContextParts:
    """The attributes that connections of both kinds have."""

    __slots__ = ()

    organization = ContextPart()
    role = ContextPart()
    database = ContextPart()
    schema = ContextPart()
    store = ContextPart()
    compute_pool = ContextPart()
    timezone = ContextPart()
