"""Statements about statements, sessions and applications, which `service/statements/` runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlshell.interface import sqlstate
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import HEAD
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import EVERYTHING, DialectStatement, Execution, Kind, Listed, Needs, Place
from sqlshell.service.objects.result_rows import NUMBER, OWNED, columns
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split

_END = re.compile(r"(?<!\w)END\s+APPLICATION\Z", re.I)


class AboutQuery(DialectStatement, frozen=True):
    """DESCRIBE, TERMINATE and RESTART of a query; `part` is what DESCRIBE shows of it."""

    statement_id: str
    part: str = ""

    @property
    def is_control(self) -> bool:
        return self.verb != "restart"


class TerminateSession(DialectStatement, frozen=True):
    name: str
    when_idle: bool = False

    @property
    def is_control(self) -> bool:
        return True


class DescribeStatement(DialectStatement, frozen=True):
    """DESCRIBE of a CREATE or INSERT: shows what it would create, without running it."""

    sql: str

    def needs(self) -> Needs:
        return EVERYTHING


class Application(DialectStatement, frozen=True):
    name: str
    statements: tuple[str, ...]

    def needs(self) -> Needs:
        return EVERYTHING


class Query(Kind):
    name, plural = "query", "queries"
    listing = columns(
        *("ID=id", "Name", "Version", "IntendedState=intended", "ActualState=state", "Query=statement", "Owner"),
        *("CreatedAt=created", "UpdatedAt=updated", "SqlState=sql_state"),
        version=NUMBER,
    )
    relation = columns(
        *("id", "name", "version", "intended_state=intended", "current_state=state", "state", "sql_state", *OWNED),
        version=NUMBER,
    )

    def forms(self) -> Iterator[Form[DialectStatement]]:
        yield Form("TERMINATE QUERY ! <statement_id:id>", AboutQuery, verb="terminate")
        yield Form("TERMINATE SESSION ! <name:id> [ WHEN IDLE =when_idle ]", TerminateSession)
        part = "part:METRICS|EVENTS|STATE|HISTORY"
        yield Form(f"DESCRIBE QUERY {part} <statement_id:id>", AboutQuery, verb="describe")
        yield Form("DESCRIBE QUERY <statement_id:id>", AboutQuery, verb="describe")
        yield Form("DESCRIBE <sql:making>", DescribeStatement)
        yield Form("BEGIN APPLICATION <name:one> <body:rest>", _application, verb="application")
        yield Form("RESTART QUERY ! <statement_id:id>", AboutQuery, verb="restart")

    def listed(self, place: Place, execution: Execution) -> Listed:
        return self.listing, (), execution.queries()


class SessionKind(Kind):
    """Sessions. `service/statements/` lists them, without a condition and before statements that wait for a thread."""

    name, plural = "session", "sessions"

    def listed(self, place: Place, execution: Execution) -> Listed:
        cause = "SHOW SESSIONS, and conditions on LIST SESSIONS, are not supported"
        raise Failure(sqlstate.UNSUPPORTED, f"{cause}; run LIST SESSIONS")


def _application(name: str, body: str, verb: str) -> Application | None:
    """The application with these statements; None if END APPLICATION does not follow them."""
    end = _END.search(body, max(0, len(body) - HEAD))
    if end is None:
        return None
    items = split(body[: end.start()])
    return Application(name, tuple(item.text for item in items if isinstance(item, Statement)), verb=verb)
