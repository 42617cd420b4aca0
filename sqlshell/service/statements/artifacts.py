"""The result row that describes what a statement created: type, name, command, summary and path."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from msgspec.structs import replace

from sqlshell.interface.models import MADE, ColumnInfo
from sqlshell.service.dialect.lexer import BLANK
from sqlshell.service.dialect.relations import selecting
from sqlshell.service.engines.engine import Outcome, Relation
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.results.results import Layout
from sqlshell.service.statements.statement import Statement

_MAY_MAKE = re.compile(r"(?:insert|create)\b", re.I)


def with_created_row(session: Session, record: Statement, outcome: Outcome, sql: str = "") -> Outcome:
    """Add the row that describes what was created to the outcome of an engine's statement, if it has one.

    CREATE TABLE … AS SELECT and INSERT INTO … SELECT have one; a query is named by its ID.
    """
    if outcome.columns is not None:
        return outcome
    sql = sql or record.sql
    blank = BLANK.match(sql)
    if not _MAY_MAKE.match(sql, blank.end() if blank else 0):
        return outcome
    write = selecting(record.parsed.tokens_of(sql))
    if write is None:
        return outcome
    relation = session.full_name(write.names)
    if write.kind == "insert":
        return _with_row(record, outcome, ("query", record.statement_id, "INSERT", outcome.message), relation)
    return creation_outcome(record, outcome, write.kind, relation)


def creation_outcome(record: Statement, outcome: Outcome, kind: str, relation: Relation) -> Outcome:
    """The outcome of a CREATE of a relation, with the row that describes it."""
    return _with_row(record, outcome, (kind, relation[2], "CREATE", outcome.message), relation)


def is_creation_row(outcome: Outcome) -> bool:
    """Whether the outcome's row describes what was created; a SELECT with the same columns has no message."""
    return bool(outcome.message) and [item.name for item in outcome.columns or ()] == list(MADE)


def _with_row(record: Statement, outcome: Outcome, values: Sequence[str], relation: Relation) -> Outcome:
    row = json.dumps([*values, json.dumps(relation, ensure_ascii=False)], ensure_ascii=False)
    body = row.encode("utf-8", "surrogatepass")
    layout = Layout(partition_rows=record.spool.layout.partition_rows)
    layout.add(1, len(body))
    record.spool.adopt(layout, body, len(body))
    return replace(outcome, columns=[ColumnInfo(name, "VARCHAR", False) for name in MADE])
