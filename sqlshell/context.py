"""The session's context: the six parts that the service echoes, and the two that belong to the client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.interface.models import ContextEcho, Parameters, StatementRequest

BELONGING = {"organization": ("database", "schema", "store", "compute_pool"), "database": ("schema",)}
"""The parts of the context that belong to another part."""


class SessionContext(Struct, frozen=True):
    """The context that a statement runs in; "" means "not set".

    `organization` is a name or a UUID. The context in a response replaces the first six parts, and `timezone` (IANA
    name) if the service reports it; a service cannot change `session_id`. `transaction` is what the service reported of
    the session's transaction ("open", "failed" or ""): it gets it back, and so notices that it has lost the session.
    """

    organization: str = ""
    role: str = ""
    database: str = ""
    schema: str = ""
    store: str = ""
    compute_pool: str = ""
    timezone: str = ""
    session_id: str = ""
    transaction: str = ""

    def in_session(self, session_id: str) -> SessionContext:
        """This context in another session, which has no transaction."""
        return replace(self, session_id=session_id, transaction="")

    def adopt(self, echo: ContextEcho | None) -> SessionContext:
        """The context after a response; parts that are missing or null in it do not change."""
        if echo is None:
            return self
        return replace(
            self,
            organization=_kept(echo.organization_id, self.organization),
            role=_kept(echo.role_name, self.role),
            database=_kept(echo.database_name, self.database),
            schema=_kept(echo.schema_name, self.schema),
            store=_kept(echo.store_name, self.store),
            compute_pool=_kept(echo.compute_pool_name, self.compute_pool),
            timezone=_zone(echo.timezone, self.timezone),
            transaction=echo.transaction or "",
        )

    def request(self, statement: str, row_limit: int | None = None) -> StatementRequest:
        """The request that runs `statement` in this context."""
        return StatementRequest(
            statement=statement,
            organization=self.organization or None,
            role=self.role or None,
            database=self.database or None,
            schema=self.schema or None,
            store=self.store or None,
            compute_pool=self.compute_pool or None,
            parameters=Parameters(
                timezone=self.timezone or None,
                session_id=self.session_id or None,
                transaction=self.transaction or None,
                row_limit=row_limit,
            ),
        )

    def batch(self, statements: Sequence[str], *, stop: bool) -> StatementRequest:
        """The request that runs `statements` in order, the first of them in this context."""
        request = self.request("")
        request.statements, request.on_error = list(statements), "stop" if stop else "continue"
        return request

    def parts(self) -> Iterator[tuple[str, str]]:
        """The eight parts as (name, value), in display order."""
        for name in self.__struct_fields__:
            if name != "transaction":
                yield name, getattr(self, name)


def _kept(echoed: str | None, had: str) -> str:
    return had if echoed is None else echoed


def _zone(echoed: str | None, had: str) -> str:
    """The time zone of an echo; the previous one if the echo names no known time zone."""
    return echoed if echoed and echoed != had and is_timezone(echoed) else had


def is_timezone(name: str) -> bool:
    """Tell whether Python knows a time zone of this name; an engine may know more."""
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
