"""LIST QUERIES, LIST SESSIONS and DESCRIBE QUERY. A query's ID is its statementID."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Outcome, Sink
from sqlshell.service.objects.result_rows import Facts, stamp, table
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.rights import Rights
from sqlshell.service.statements.statement import Statement

HIDDEN = "<insufficient privilege>"
"""Shown instead of a statement that the caller may not read."""


def listed(records: Sequence[Statement], session: Session) -> list[Facts]:
    """The facts about statements, with the text of those that the session may read."""
    owners = session.organization.catalog.owners(session.organization.id)
    return [
        facts(record, owners.get(record.owner, record.owner), record.head if may_read(session, record) else HIDDEN)
        for record in records
    ]


def facts(record: Statement, owner: str, sql: str) -> Facts:
    """The facts about a statement."""
    return {
        "id": record.statement_id,
        "name": record.statement_id,
        "version": 1,
        "intended": record.status,
        "state": record.status,
        "sql_state": record.sql_state,
        "statement": sql,
        "owner": owner,
        "created": record.created,
        "updated": record.finished or record.created,
    }


def may_read(session: Session, record: Statement) -> bool:
    """Whether a session may read the text of a statement: its own token's, or all for owners."""
    return record.owner == session.caller.token_id or session.rights >= Rights.OBJECTS


def list_sessions(
    sessions: Sequence[Session],
    running: Collection[int],
    owners: Mapping[str, str],
    sink: Sink,
    elsewhere: Sequence[tuple[str, str]] = (),
) -> Outcome:
    """The sessions of an organization; `running` are the id() values of the connections that run a statement.

    `elsewhere` are the token and name of each session of another process of the service, which alone knows the rest.
    """
    rows: list[tuple[str, ...]] = []
    for item in sessions:
        owner = owners.get(item.caller.token_id, item.caller.token_id)
        state = "running" if id(item.connection) in running else "waiting" if item.waiting else "idle"
        transaction = str(bool(item.connection.transaction)).lower()
        idle = 0 if item.waiting else int(time.monotonic() - item.used)
        place = (item.role, item.connection.database, item.connection.schema)
        rows.append((item.name, state, owner, *place, transaction, stamp(item.created), str(idle)))
    for token, name in elsewhere:
        rows.append((name, "elsewhere", owners.get(token, token), "", "", "", "", "", ""))
    columns = ("id", "state", "owner", "role", "database", "schema", "transaction", "created", "idle_seconds")
    return table(sink, columns, rows)


def describe(record: Statement, part: str, sink: Sink) -> Outcome:
    """Describe one statement: its properties, HISTORY or EVENTS (its past states), STATE, or METRICS."""
    match part:
        case "history" | "events":
            rows = [("submitted", "", stamp(record.created))]
            if not record.running:
                rows.append((record.status, record.message, stamp(record.finished)))
            elif record.started:
                rows.append(("running", "", stamp(record.created)))
            return table(sink, ("state", "messages", "time"), rows)
        case "state":
            return table(sink, ("id", "state", "sqlState"), [(record.statement_id, record.status, record.sql_state)])
        case "metrics":
            ended = record.finished or record.created
            took = f"{ended - record.created:.3f}"
            values = (record.statement_id, str(record.spool.layout.rows), str(record.spool.size), took)
            return table(sink, ("id", "rows", "bytes", "seconds"), [values])
    context = record.context
    properties = {
        "id": record.statement_id,
        "state": record.status,
        "error": record.message if sqlstate.failed(record.sql_state) else "",
        "sqlState": record.sql_state,
        "message": record.message,
        "query": record.head,
        "created": stamp(record.created),
        "finished": stamp(record.finished) if record.finished else "",
        "rows": str(record.spool.layout.rows),
        "database": context.database_name or "",
        "schema": context.schema_name or "",
    }
    return table(sink, ("Property", "Value"), list(properties.items()))
