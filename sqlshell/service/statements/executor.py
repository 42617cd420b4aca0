"""Runs one statement, in a thread."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import cast

from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import MADE, ColumnInfo, StatementRequest
from sqlshell.service.catalog import owning_role
from sqlshell.service.dialect.changes import Change, change_of
from sqlshell.service.dialect.lexer import HEAD, Tokens
from sqlshell.service.engines.engine import (
    SYSTEM_DATABASE,
    ExternalEngine,
    LocalEngine,
    LocalSession,
    Outcome,
    Relation,
    RunOptions,
    Sink,
    StreamQuery,
)
from sqlshell.service.engines.files.disk_space import CountingSink, DiskSpace
from sqlshell.service.failure import Failure
from sqlshell.service.objects import scope
from sqlshell.service.objects.attachments import Attachment
from sqlshell.service.objects.grammar import dialect_of
from sqlshell.service.objects.kind import (
    PARTS,
    DialectStatement,
    Execution,
    StartedFeed,
    Work,
    check_role,
)
from sqlshell.service.objects.names import NOT_FOUND, check_called, check_named, with_missing_database
from sqlshell.service.objects.result_rows import Facts
from sqlshell.service.organizations.organizations import Organization, Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.results.results import PARTITION_BYTES, Layout
from sqlshell.service.settings import UNLIMITED, Settings
from sqlshell.service.statements.control import facts_of, listed
from sqlshell.service.statements.statement import Statement
from sqlshell.service.statements.store import StatementStore
from sqlshell.service.stores import stores

COPY_DATA = "stdin"
"""The attachment with the data of COPY … FROM STDIN."""

DROPS = re.compile(r"\s*+drop\s", re.I)
SCHEMAS = re.compile(r"\s*+(?:create|drop)\s++schema(?!\w)", re.I)
SCHEMA = "schema"
"""Occurs in each statement that creates or drops a schema."""

CHANGES = re.compile(r"\s*+(?:--|/\*|create|drop|alter|execute|call|import)", re.I)
"""How statements begin that may create or drop a schema."""

CHANGING = frozenset({"ALTER", "COMMENT", "CREATE", "DROP"})
MAY_DROP = frozenset({"DROP", "ALTER", "COMMIT", "END", "ROLLBACK", "ABORT"})
"""The first words of statements that change objects, and of those that may drop one."""

UNCHANGED = NOT_FOUND | {"25006", "42000", sqlstate.SYNTAX, "42704"}
"""The engine's sqlStates for a change of a store; in the embedded service, entities are views."""

UNBOUND = NOT_FOUND - {"58030"}
"""The sqlStates of NOT_FOUND that occur before the statement has had any effect."""


class Executor:
    """Runs statements. Every method raises Failure."""

    def __init__(
        self, organizations: Organizations, sessions: Sessions, store: StatementStore, settings: Settings
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._organizations = organizations
        self._settings = settings
        self._options = RunOptions(
            partition_rows=settings.partition_rows,
            partition_bytes=PARTITION_BYTES,
            columns=settings.columns,
            columns_size=settings.columns_size,
        )
        self._room = DiskSpace(UNLIMITED if organizations.is_embedded else settings.quota)
        """The room for results of an engine that is an external server; others count themselves."""

    def run(
        self,
        session: Session,
        asked: DialectStatement | None,
        statement: Statement,
        files: Sequence[Attachment],
        request: StatementRequest,
    ) -> Outcome | StartedFeed:
        """Run a statement in its session, in a thread, and finish its result; `asked` is the parsed statement if it is
        one of the interface's own. Raises OSError if the result cannot be stored.
        """
        result: Outcome | StartedFeed | None = None
        try:
            options = self._options_of(session, request)
            if session.context_failures:
                _check_context(session, asked, statement)
            if (asked is None or asked.needs().database) and (reason := session.why_no_database()):
                # Never fall back to another database than the intended one.
                raise Failure("58030", reason)
            drops = (asked is not None and asked.verb == "drop") or DROPS.match(statement.sql) is not None
            before = session.droppable_parts() if drops else {}
            try:
                if asked is None:
                    check_role(session)
                    data = next((file.path for file in files if file.name == COPY_DATA), None)
                    result = self._run_engine(session, statement, replace(options, data=data), statement.sql)
                else:
                    result = self._run_own(session, asked, statement, files, options)
            except Failure as failure:
                if (explained := with_missing_database(session.organization, statement.sql, failure)) is not failure:
                    raise explained from failure
                raise
            finally:
                self._look_at_schemas(session, asked, statement.sql)
            if drops:
                session.note_dropped_parts(before)
            return result
        finally:
            statement.runs_on(None)
            statement.spool.finish(result.filed if isinstance(result, Outcome) else None)

    async def reattach(self, engine: ExternalEngine, organization: Organization, statement: Statement) -> Outcome:
        """Wait for a statement that the engine runs already, and finish its result. Called from the event loop."""
        options = replace(self._options, timezone=statement.context.timezone or "UTC")
        try:
            with self._counting(statement) as sink:
                outcome = await engine.reattach(statement.operation, options, sink, statement.runs_on)
        finally:
            statement.runs_on(None)
        await organization.run(statement.spool.finish, outcome.filed)
        return outcome

    @contextlib.contextmanager
    def _counting(self, statement: Statement) -> Iterator[Sink]:
        """The sink for the rows of a statement, which are counted here if the engine does not."""
        if self._organizations.server is None:
            yield statement.spool
            return
        with contextlib.closing(CountingSink(statement.spool, self._room)) as sink:
            yield sink

    def _look_at_schemas(self, session: Session, asked: DialectStatement | None, sql: str) -> None:
        """Move sessions out of dropped schemas, after the transaction that may have dropped one."""
        may_change = SCHEMA in sql[:4000].lower() and CHANGES.match(sql) is not None
        changed = may_change or (asked is not None and asked.verb == "application")
        session.changes_schemas = session.changes_schemas or changed
        if session.changes_schemas and not session.connection.transaction:
            # The statement has an end of its own, also if its server is gone; the next one looks again.
            with contextlib.suppress(Failure):
                self._sessions.mark_dropped_schemas(session)
                session.changes_schemas = False

    def _options_of(self, session: Session, request: StatementRequest) -> RunOptions:
        limit = request.parameters.row_limit if request.parameters else None
        if limit and not self._settings.row_limits:
            # But 0, which describes a statement and does not run it, is for all clients.
            limit = None
        organization = session.organization
        return replace(
            self._options,
            timezone=session.timezone or organization.engine.traits.default_timezone,
            row_limit=limit,
            rights=session.rights,
            streams=tuple(organization.streams.known),
        )

    def _run_own(
        self,
        session: Session,
        asked: DialectStatement,
        statement: Statement,
        files: Sequence[Attachment],
        options: RunOptions,
    ) -> Outcome | StartedFeed:
        engine = session.organization.engine
        if asked.needs().work is not Work.SERVICE:
            check_role(session)
        if not engine.capabilities.streams and getattr(asked, "kind", "") in {"stream", "changelog"}:
            raise Failure(sqlstate.UNSUPPORTED, f"the engine {engine.name} does not support streams")
        execution = Execution(
            statement.sql,
            session,
            options,
            statement.spool,
            statement.is_canceled,
            self._sessions,
            files,
            run_engine=lambda sql: self._run_engine(session, statement, options, sql),
            created=partial(_creation_outcome, statement),
            queries=lambda: listed(self._store, session, statement),
            read=dialect_of(self._organizations).read,
        )
        return asked.run(execution)

    def _query_facts(self, organization: Organization) -> list[Facts]:
        """The facts about the latest statements of an organization, without their texts."""
        statements = self._store.latest(organization.id, 1000)
        return [facts_of(statement, statement.context.role_name or owning_role(), "") for statement in statements]

    def _run_engine(
        self, session: Session, statement: Statement, options: RunOptions, sql: str
    ) -> Outcome | StartedFeed:
        organization = session.organization
        low = sql.lower()
        if organization.engine.traits.interface_sql and SYSTEM_DATABASE in low:
            from sqlshell.service.objects import kinds

            kinds.publish(session, sql, lambda: self._query_facts(organization))
        in_store = session.connection.database in organization.store_names
        reads_store = in_store or any(name.lower() in low for name in organization.store_names)
        broken: dict[tuple[str, str], str] = {}
        if reads_store:
            broken = stores.mount_named(organization, sql, statement.is_canceled, session.connection.database)
        named = [item for item in organization.streams.known if item[2].lower() in low]

        seen: set[str] = set()
        while True:
            try:
                feed = _stream_query(session, sql, named, options) if named else None
                changes = reads_store and not organization.is_confined and _changes_objects(sql)
                if changes and feed is None and session.connection.transaction != "failed":
                    # The embedded service's database of a store could be changed, unlike the copy under `serve`.
                    stores.check_read_only(organization, session.connection, sql)
                if feed is not None:
                    outcome: Outcome | StreamQuery = feed
                else:
                    with self._counting(statement) as sink:
                        outcome = session.connection.run(sql, options, sink)
                break
            except Failure as failure:
                # A view may read several entities, which the engine misses one after another.
                again = failure.sql_state in UNBOUND and failure.message not in seen
                if again and self._mounted_behind(session, statement, sql, failure.message):
                    seen.add(failure.message)
                    continue
                if reads_store and failure.sql_state in UNCHANGED:
                    stores.check_read_only(organization, session.connection, sql)
                if reads_store and failure.sql_state in NOT_FOUND:
                    stores.check_entities(organization, session.connection, sql, broken)
                if failure.sql_state in NOT_FOUND:
                    check_named(organization, sql)
                check_called(organization, sql, failure)
                raise
        if isinstance(outcome, StreamQuery):
            return outcome, 0 if outcome.from_earliest else cast(LocalEngine, organization.engine).head(outcome.stream)
        if organization.streams.known and _may_drop(sql):
            organization.check_streams()
        if (change := change_of(sql)) is None:
            return outcome
        scope.note(session, change)
        return _with_created_row(session, statement, outcome, change)

    @staticmethod
    def _mounted_behind(session: Session, statement: Statement, sql: str, message: str) -> bool:
        """Mount the stores that the engine's message names but the statement does not; returns whether there are any.

        Such a store is read by a view, and no statement has named it since the service was started.
        """
        organization = session.organization
        behind = set(stores.named_stores(organization, message)) - set(stores.named_stores(organization, sql))
        if not behind or session.connection.transaction == "failed":
            return False
        stores.mount_named(organization, message, statement.is_canceled, "")
        return True


def _stream_query(session: Session, sql: str, streams: Sequence[Relation], options: RunOptions) -> StreamQuery | None:
    return cast(LocalSession, session.connection).stream_query(sql, streams, options)


def _check_context(session: Session, asked: DialectStatement | None, statement: Statement) -> None:
    """Raises the failure of a part of the request's context that the statement needs."""
    if asked is not None:
        required = asked.needs().parts
    else:
        # The engine's statements need all of it, but clients send the schema that a first statement has yet to create.
        required = ("database",) if SCHEMAS.match(statement.sql) else PARTS
    for part in required:
        # SQL names stores explicitly, and a client without a session cannot leave a dropped store.
        if part in session.context_failures and (part != "store" or asked is not None or session.name):
            raise session.context_failures[part]


def _changes_objects(sql: str) -> bool:
    words = Tokens(sql[:HEAD]).first_words(3)
    return (words[2] if words[:2] == ["EXPLAIN", "ANALYZE"] else words[0]) in CHANGING


def _may_drop(sql: str) -> bool:
    words = Tokens(sql[:HEAD]).first_words(3)
    return words[0] in MAY_DROP or words == ["CREATE", "OR", "REPLACE"]


def _with_created_row(session: Session, statement: Statement, outcome: Outcome, change: Change) -> Outcome:
    """Add the row that describes what was created to the outcome of an engine's statement, if it has one.

    CREATE TABLE … AS SELECT and INSERT INTO … SELECT have one; a query is named by its ID.
    """
    if outcome.columns is not None or not change.selects:
        return outcome
    relation = session.full_name(change.names)
    if change.verb == "insert":
        return _with_row(statement, outcome, ("query", statement.statement_id, "INSERT", outcome.message), relation)
    return _creation_outcome(statement, outcome, change.kind, relation)


def _creation_outcome(statement: Statement, outcome: Outcome, kind: str, relation: Relation) -> Outcome:
    """The outcome of a CREATE of a relation, with the row that describes it."""
    return _with_row(statement, outcome, (kind, relation[2], "CREATE", outcome.message), relation)


def is_creation_row(outcome: Outcome) -> bool:
    """Whether the outcome's row describes what was created; a SELECT with the same columns has no message."""
    return bool(outcome.message) and [item.name for item in outcome.columns or ()] == list(MADE)


def _with_row(statement: Statement, outcome: Outcome, values: Sequence[str], relation: Relation) -> Outcome:
    row = json.dumps([*values, json.dumps(relation, ensure_ascii=False)], ensure_ascii=False)
    body = row.encode("utf-8", "surrogatepass")
    layout = Layout(partition_rows=statement.spool.layout.partition_rows)
    layout.add(1, len(body))
    statement.spool.adopt(layout, body, len(body))
    return replace(outcome, columns=[ColumnInfo(name, "VARCHAR", False) for name in MADE])
