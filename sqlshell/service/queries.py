"""LIST QUERIES and DESCRIBE QUERY: statements as rows. A query's id is its statementID."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlshell.service.engines.engine import Outcome, Sink
from sqlshell.service.listings import stamp, table
from sqlshell.service.records import Record

TEXT = 1000
"""Characters of a statement that are shown."""


def list_all(records: Sequence[Record], owners: Mapping[str, str], sink: Sink) -> Outcome:
    """The latest statements of an organization, the newest first. `owners` are the names of tokens by their ids."""
    columns = ("id", "state", "sqlState", "statement", "created", "finished", "owner")
    return table(sink, columns, [(*_row(record), owners.get(record.owner, record.owner)) for record in records])


def describe(record: Record, part: str, sink: Sink) -> Outcome:
    """One statement: as it is, its HISTORY or EVENTS (what it went through), its STATE, or its METRICS."""
    match part:
        case "history" | "events":
            rows = [("submitted", "", stamp(record.created))]
            if not record.running:
                rows.append((record.status, record.message, stamp(record.finished)))
            elif record.started:
                rows.append(("running", "", stamp(record.created)))
            return table(sink, ("state", "messages", "time"), rows)
        case "state":
            return table(sink, ("id", "state", "sqlState"), [(record.statement_id, record.status, record.state)])
        case "metrics":
            ended = record.finished or record.created
            took = f"{ended - record.created:.3f}"
            values = (record.statement_id, str(record.spool.layout.rows), str(record.spool.size), took)
            return table(sink, ("id", "rows", "bytes", "seconds"), [values])
    columns = ("id", "state", "sqlState", "statement", "created", "finished", "message", "rows", "database", "schema")
    context = record.context
    rest = (record.message, str(record.spool.layout.rows), context.database_name or "", context.schema_name or "")
    return table(sink, columns, [(*_row(record), *rest)])


def _row(record: Record) -> tuple[str, ...]:
    finished = stamp(record.finished) if record.finished else ""
    return record.statement_id, record.status, record.state, record.sql[:TEXT], stamp(record.created), finished
