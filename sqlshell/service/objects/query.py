"""Statements about statements and sessions, which `service/statements/` runs, and applications."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import HEAD
from sqlshell.service.engines.engine import LocalSession, Outcome
from sqlshell.service.failure import Failure
from sqlshell.service.objects.describe import DescribeStatement
from sqlshell.service.objects.kind import EVERYTHING, DialectStatement, Execution, Kind, Listed, Needs, Place
from sqlshell.service.objects.result_rows import NUMBER, OWNED, columns
from sqlshell.service.results.results import Discard
from sqlshell.sql.analysis.kinds import verb
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split
from sqlshell.text import format_count

NOT_IN_APPLICATIONS = frozenset(
    [
        *("ABORT", "BEGIN", "COMMIT", "END", "PREPARE", "RELEASE", "ROLLBACK", "SAVEPOINT", "START"),
        *("ATTACH", "DETACH", "DISCARD", "RESET", "SET", "USE"),
    ]
)
"""The first words of statements that begin, divide or end a transaction, or change the session."""

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


class Application(DialectStatement, frozen=True):
    name: str
    statements: tuple[str, ...]

    def needs(self) -> Needs:
        return EVERYTHING

    def run(self, execution: Execution) -> Outcome:
        """Run the statements as one transaction in the current database, all or nothing."""
        connection = execution.session.connection
        if connection.transaction:
            raise Failure("25001", "a transaction is already open; COMMIT or ROLLBACK first")
        for number, sql in enumerate(self.statements, 1):
            _check_part(number, sql, execution)
        # The rows of SELECTs in an application are discarded, so that not all are needed.
        options = replace(execution.options, row_limit=1)
        connection.run("BEGIN", options, Discard())
        try:
            for sql in (*self.statements, "COMMIT"):
                if execution.is_canceled():
                    raise Failure(sqlstate.CANCELED, "the statement was canceled")
                connection.run(sql, options, Discard())
        finally:
            if connection.transaction:
                connection.run("ROLLBACK", options, Discard())
        return Outcome(message=f"APPLICATION {self.name}: {format_count(len(self.statements), 'statement')}")


def _check_part(number: int, sql: str, execution: Execution) -> None:
    """Raises Failure for a statement that an application cannot contain."""
    if execution.read(sql) is not None:
        cause = f"statement {number}: statements about objects of the service"
        raise Failure(sqlstate.UNSUPPORTED, f"{cause} are not allowed in an application")
    if (word := verb(sql)) in NOT_IN_APPLICATIONS:
        cause = f"{word} … affects more than the current database"
        raise Failure(sqlstate.UNSUPPORTED, f"{cause}, which is not allowed in an application")
    low = sql.lower()
    if named := [item for item in execution.organization.streams.known if item[2].lower() in low]:
        cast(LocalSession, execution.session.connection).stream_query(sql, named, execution.options)


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
