"""Runs one statement, in a thread."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import Parameters
from sqlshell.service.bounds import UNLIMITED
from sqlshell.service.catalog import owning_role
from sqlshell.service.dialect import (
    Alter,
    Application,
    CanI,
    Create,
    CreateAs,
    CreateFunction,
    Describe,
    DescribeStatement,
    DialectStatement,
    Drop,
    DropFunction,
    EngineObjects,
    InsertEntity,
    List,
    Load,
    Print,
    StartPool,
    Test,
    Truncate,
    Update,
    Use,
    read,
    without_literals,
)
from sqlshell.service.engines.duckdb.results.disk_space import CountingSink, DiskSpace
from sqlshell.service.engines.duckdb.translation.text import placed
from sqlshell.service.engines.engine import (
    AsyncSession,
    Begun,
    LoadingSession,
    Outcome,
    Relation,
    RunOptions,
    Sink,
    StreamEngine,
    StreamingSession,
    StreamQuery,
    check_supported,
)
from sqlshell.service.failure import Failure
from sqlshell.service.objects import functions, inventory, listings, privileges, stream_definitions, system
from sqlshell.service.objects.attachments import Attachment
from sqlshell.service.objects.changes import Changes
from sqlshell.service.objects.names import check_named
from sqlshell.service.objects.objects import Objects, with_missing_database
from sqlshell.service.objects.required_context import required_parts
from sqlshell.service.objects.resources import attachment_named
from sqlshell.service.objects.result_rows import Facts
from sqlshell.service.options import Options as ServiceOptions
from sqlshell.service.organizations.organizations import Organization, Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.results.results import PARTITION_BYTES, Discard
from sqlshell.service.statements import artifacts, describe, queries
from sqlshell.service.statements.statement import State, Statement
from sqlshell.service.statements.store import StatementStore
from sqlshell.service.stores import stores
from sqlshell.sql.analysis.kinds import verb
from sqlshell.sql.identifiers import qualified

COPY_DATA = "stdin"
"""The attachment with the data of COPY … FROM STDIN."""

MAY_DROP = r"\s*(?:drop|alter|commit|end|rollback|abort|create\s+or\s+replace)(?!\w)"
DROPS = re.compile(r"\s*+drop\s", re.I)
SCHEMA = "schema"
"""Occurs in each statement that creates or drops a schema."""

CHANGES = re.compile(r"\s*+(?:--|/\*|create|drop|alter|execute|call|import)", re.I)
"""How statements begin that may create or drop a schema."""

NOT_FOUND = frozenset({sqlstate.NO_RELATION, sqlstate.NO_SCHEMA, sqlstate.NO_DATABASE, sqlstate.PRIVILEGE, "58030"})
"""The engine's sqlStates for a missing relation; if the name looks like a file's, the engine looks for a file."""

CHANGES_OBJECTS = re.compile(r"\s?(?:explain analyze )?(?:alter|comment|create|drop)(?!\w)", re.I)

UNCHANGED = NOT_FOUND | {"25006", "42000", sqlstate.SYNTAX, "42704"}
"""The engine's sqlStates for a change of a store; in the embedded service, entities are views."""

SERVICE_OBJECTS = frozenset(
    [
        "store",
        "compute_pool",
        "function_source",
        "descriptor_source",
        "organization",
        "api_token",
        "schema_registry",
        "secret",
    ]
)
"""The kinds of objects that no engine has."""

ENGINE_OBJECTS = frozenset({"schema", "relation", "materialized_view"})
"""The kinds of objects of the dialect that are the engine's: a transaction includes what creates and drops them."""

UNBOUND = NOT_FOUND - {"58030"}
"""The sqlStates of NOT_FOUND that occur before the statement has had any effect."""


NOT_IN_APPLICATIONS = frozenset(
    [
        *("ABORT", "BEGIN", "COMMIT", "END", "PREPARE", "RELEASE", "ROLLBACK", "SAVEPOINT", "START"),
        *("ATTACH", "DETACH", "DISCARD", "RESET", "SET", "USE"),
    ]
)
"""The first words of statements that begin, divide or end a transaction, or change the session."""

StartedFeed = tuple[StreamQuery, int]
"""A SELECT on a stream, and the position in the stream at which it starts."""


class Executor:
    """Runs statements. Every method raises Failure."""

    def __init__(
        self, organizations: Organizations, sessions: Sessions, store: StatementStore, options: ServiceOptions
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._organizations = organizations
        self._options = options
        self._objects = Objects(organizations, sessions, options.bounds, options.quota)
        self._changes = Changes(organizations, self._objects)
        self._room = DiskSpace(UNLIMITED if organizations.is_embedded else options.quota)
        """The room for results of an engine that is an external server; others count themselves."""

    def run(
        self,
        session: Session,
        asked: DialectStatement | None,
        record: Statement,
        files: Sequence[Attachment],
        parameters: Parameters | None,
    ) -> Outcome | StartedFeed:
        """Run a statement in its session; `asked` is the parsed statement if it is one of the interface's own."""
        options = self.options(session, parameters)
        _check_context(session, asked, record)
        if not session.database_chosen and _needs_database(asked):
            # Never fall back to another database than the intended one.
            session.organization.check_initial_database()
        before = session.droppable_parts()
        try:
            if asked is None:
                result = self._run_engine(session, record, options, record.sql)
            else:
                result = self._run_own(session, asked, record, files, options)
        except Failure as failure:
            if (explained := with_missing_database(session.organization, record.sql, failure)) is not failure:
                raise explained from failure
            raise
        finally:
            self._look_at_schemas(session, asked, record.sql)
        if isinstance(asked, Drop) or DROPS.match(record.sql):
            session.note_dropped_parts(before)
        return result

    async def run_on_server(
        self,
        session: Session,
        record: Statement,
        files: Sequence[Attachment],
        parameters: Parameters | None,
        begun: Callable[[Statement], Begun],
    ) -> Outcome:
        """Run a statement on an engine that is an external server. Called from the event loop."""
        connection = cast(AsyncSession, session.connection)
        _check_context(session, None, record)
        privileges.check_role(session)
        options, before = self.options(session, parameters), session.droppable_parts()
        data = next((file.path for file in files if file.name == COPY_DATA), None)
        options = replace(options, data=data) if data is not None else options
        with self.counted(record) as sink:
            outcome = await connection.execute(record.sql, options, sink, begun(record), record.spool.finish)
        if CHANGES.match(record.sql[:4000]):
            await session.organization.workers.run_other(self._after_change, session, record.sql, before)
        return artifacts.with_created_row(session, record, outcome, record.sql)

    @contextlib.contextmanager
    def counted(self, record: Statement) -> Iterator[Sink]:
        """A sink that stores the rows of a server's statement, and counts their bytes until they are stored."""
        counting = CountingSink(record.spool, self._room)
        try:
            yield counting
        finally:
            counting.close()

    def _after_change(self, session: Session, sql: str, before: Mapping[str, str]) -> None:
        """The bookkeeping after a statement that may have created or dropped something; runs in a thread. `before` are
        the session's parts that it may have dropped."""
        inventory.note(session, sql)
        self._look_at_schemas(session, None, sql)
        if DROPS.match(sql):
            session.note_dropped_parts(before)

    def _look_at_schemas(self, session: Session, asked: DialectStatement | None, sql: str) -> None:
        """Move sessions out of dropped schemas, after the transaction that may have dropped one."""
        changed = isinstance(asked, Application) or (SCHEMA in sql[:4000].lower() and CHANGES.match(sql) is not None)
        session.changes_schemas = session.changes_schemas or changed
        if session.changes_schemas and not session.connection.transaction:
            session.changes_schemas = False
            self._sessions.mark_dropped_schemas(session)

    def options(self, session: Session, parameters: Parameters | None) -> RunOptions:
        limit = parameters.row_limit if parameters else None
        if limit and not self._options.row_limits:
            limit = None
        organization = session.organization
        zone = session.timezone or organization.engine.traits.default_timezone
        return RunOptions(
            zone,
            self._options.partition_rows,
            PARTITION_BYTES,
            limit,
            self._options.bounds.columns,
            self._options.bounds.columns_size,
            session.rights,
            tuple(organization.streams.known),
        )

    def options_of(self, record: Statement) -> RunOptions:
        """The options for the result of a statement that the engine runs already."""
        bounds = self._options.bounds
        sizes = self._options.partition_rows, PARTITION_BYTES, None, bounds.columns, bounds.columns_size
        return RunOptions(record.context.timezone or "UTC", *sizes)

    def _run_own(
        self,
        session: Session,
        asked: DialectStatement,
        record: Statement,
        files: Sequence[Attachment],
        options: RunOptions,
    ) -> Outcome | StartedFeed:
        engine = session.organization.engine
        if not _is_about_the_service(asked):
            privileges.check_role(session)
        if not engine.capabilities.streams and getattr(asked, "kind", "") in {"stream", "changelog"}:
            raise Failure(sqlstate.UNSUPPORTED, f"the engine {engine.name} does not support streams")
        if self._objects.is_of_engine(asked, session):
            return self._run_engine(session, record, options, record.sql)
        if session.connection.transaction and (verb := _changing_verb(asked)):
            raise Failure("25001", f"{verb} cannot run in a transaction; COMMIT or ROLLBACK first")
        match asked:
            case Use():
                return self._objects.use(asked, session)
            case Create(kind="stream" | "changelog"):
                with placed(record.sql, "", asked.columns):
                    outcome = self._objects.create(asked, session, files, record)
                return artifacts.creation_outcome(record, outcome, asked.kind, session.connection.resolve(asked.names))
            case CreateAs():
                return self._create_as(session, asked, record, options)
            case DescribeStatement():
                with placed(record.sql, "", asked.sql):
                    return describe.describe(asked.sql, session, options, record.spool, self._organizations)
            case Create(kind="schema") | Drop(kind="schema"):
                listings.check_database(asked.names[0], session)
                return self._run_engine(session, record, options, stream_definitions.schema_sql(asked))
            case Create():
                return self._objects.create(asked, session, files, record)
            case Drop():
                return self._objects.drop(asked, session)
            case StartPool():
                return self._objects.start_pool(asked, session)
            case Update() | Test() | InsertEntity() | Truncate() | Alter() | CreateFunction() | DropFunction():
                return self._changes.run(asked, session, options, record.spool, record)
            case Load():
                return self._load(session, asked, record, files, options)
            case CanI():
                return privileges.can(session, asked)
            case List() if asked.show and not asked.place and self._is_engines(session, asked.what):
                return self._run_engine(session, record, options, record.sql)
            case List():
                return listings.list_all(
                    asked,
                    session,
                    options,
                    record.spool,
                    self._organizations,
                    lambda: (queries.SHOWN, (), queries.listed(self._latest(session, record), session)),
                    record.sql,
                )
            case EngineObjects():
                return listings.of_engine(asked, session, record.spool)
            case Describe():
                return listings.describe(asked, session, options, record.spool, record)
            case Print():
                return self._print(session, asked, record, options)
            case Application():
                return self._application(session, asked, record, options)
        raise Failure(sqlstate.UNSUPPORTED, f"this form of {record.sql.split(maxsplit=1)[0].upper()} is not supported")

    def _create_as(
        self, session: Session, asked: CreateAs, record: Statement, options: RunOptions
    ) -> Outcome | StartedFeed:
        before, part = stream_definitions.engine_sql(asked)
        with placed(record.sql, before, part):
            outcome = self._run_engine(session, record, options, before + part)
        if isinstance(outcome, tuple):
            return outcome
        outcome = replace(outcome, message=f"CREATE {asked.kind.replace('_', ' ').upper()}")
        return artifacts.creation_outcome(record, outcome, asked.kind, session.connection.resolve(asked.names))

    @staticmethod
    def _is_engines(session: Session, shown: str) -> bool:
        """Whether SHOW of this word is for the engine: it shows all schemas, or describes a relation."""
        there = session.exists(session.connection.resolve((shown,)))
        return shown == "schemas" or there

    def _latest(self, session: Session, record: Statement) -> list[Statement]:
        """The latest statements of the session's organization except this one."""
        return [item for item in self._store.latest(session.organization.id, 1001) if item is not record]

    def _query_facts(self, organization: Organization) -> list[Facts]:
        """The facts about the latest statements of an organization, without their texts."""
        records = self._store.latest(organization.id, 1000)
        return [queries.facts(record, record.context.role_name or owning_role(), "") for record in records]

    def _run_engine(self, session: Session, record: Statement, options: RunOptions, sql: str) -> Outcome | StartedFeed:
        organization = session.organization
        low = sql.lower()
        if system.NAME in low:
            system.publish(session, sql, lambda: self._query_facts(organization))
        in_store = session.connection.database in organization.store_names
        reads_store = in_store or any(name.lower() in low for name in organization.store_names)
        broken: dict[tuple[str, str], str] = {}
        if reads_store:
            broken = stores.mount_named(organization, sql, record, session.connection.database)
        named = [item for item in organization.streams.known if item[2].lower() in low]

        def run() -> Outcome | StreamQuery:
            feed = _stream_query(session, sql, named, options) if named else None
            if feed is not None:
                return feed
            writable = reads_store and not organization.is_confined and session.connection.transaction != "failed"
            if writable and CHANGES_OBJECTS.match(without_literals(sql[:4000])):
                # The embedded service's database of a store could be changed, unlike the copy under `serve`.
                stores.check_read_only(organization, session.connection, sql)
            return session.connection.run(sql, options, record.spool)

        try:
            try:
                outcome = run()
            except Failure as failure:
                if failure.sql_state not in UNBOUND or not self._mounted_behind(session, record, sql, failure.message):
                    raise
                outcome = run()
        except Failure as failure:
            if reads_store and failure.sql_state in UNCHANGED:
                stores.check_read_only(organization, session.connection, sql)
            if reads_store and failure.sql_state in NOT_FOUND:
                stores.check_entities(organization, session.connection, sql, broken)
            if failure.sql_state in NOT_FOUND:
                check_named(organization, sql)
            functions.check_called(organization, sql, failure)
            raise
        if isinstance(outcome, StreamQuery):
            return outcome, 0 if outcome.from_earliest else cast(StreamEngine, organization.engine).head(outcome.stream)
        inventory.note(session, sql)
        if organization.streams.known and re.match(MAY_DROP, without_literals(sql[:4000]), re.I):
            organization.check_streams()
        return artifacts.with_created_row(session, record, outcome, sql)

    @staticmethod
    def _mounted_behind(session: Session, record: Statement, sql: str, message: str) -> bool:
        """Mount the stores that the engine's message names but the statement does not; returns whether there are any.

        Such a store is read by a view, and no statement has named it since the service was started.
        """
        organization = session.organization
        behind = set(stores.named_stores(organization, message)) - set(stores.named_stores(organization, sql))
        if not behind or session.connection.transaction == "failed":
            return False
        stores.mount_named(organization, message, record, "")
        return True

    def _print(self, session: Session, asked: Print, record: Statement, options: RunOptions) -> Outcome | StartedFeed:
        organization = session.organization
        relation = session.connection.resolve(asked.names)
        if not asked.store and relation in organization.streams.known:
            feed = _stream_query(session, f"SELECT * FROM {qualified(*relation)}", [relation], options)
            assert feed is not None
            return feed, 0 if asked.from_beginning else cast(StreamEngine, organization.engine).head(relation)
        store, entity = stores.split_name(asked.names, asked.store or session.store, organization.store_names)
        stores.mount(organization, store, [entity], record)
        return session.connection.run(f"SELECT * FROM {qualified(store, 'main', entity)}", options, record.spool)

    def _load(
        self, session: Session, asked: Load, record: Statement, files: Sequence[Attachment], options: RunOptions
    ) -> Outcome:
        organization, attachment = session.organization, attachment_named(files, asked.file)
        check_supported(organization.engine, "attachments")
        connection = cast(LoadingSession, session.connection)
        if not organization.is_confined:
            return connection.load(asked.names, asked.columns, attachment.path, options)
        # The organization's engine sees no file outside of its own folder.
        place = organization.folder("temporary") / str(uuid.uuid4())
        try:
            place.hardlink_to(attachment.path)
            return connection.load(asked.names, asked.columns, place, options)
        except Failure as failure:
            if failure.sql_state in NOT_FOUND:
                check_named(organization, record.sql)
            raise
        finally:
            place.unlink(missing_ok=True)

    def _application(self, session: Session, asked: Application, record: Statement, options: RunOptions) -> Outcome:
        """Run statements as one transaction in the current database, all or nothing."""
        if session.connection.transaction:
            raise Failure("25001", "a transaction is already open; COMMIT or ROLLBACK first")
        for number, sql in enumerate(asked.statements, 1):
            own = read(sql)
            if own is not None:
                message = (
                    f"statement {number}: statements about objects of the service are not allowed in an application"
                )
                raise Failure(sqlstate.UNSUPPORTED, message)
            if (word := verb(sql)) in NOT_IN_APPLICATIONS:
                cause = f"{word} … affects more than the current database"
                raise Failure(sqlstate.UNSUPPORTED, f"{cause}, which is not allowed in an application")
            low = sql.lower()
            if named := [item for item in session.organization.streams.known if item[2].lower() in low]:
                _stream_query(session, sql, named, options)
        connection = session.connection
        # The rows of SELECTs in an application are discarded, so that not all are needed.
        options = replace(options, row_limit=1)
        connection.run("BEGIN", options, Discard())
        try:
            for sql in (*asked.statements, "COMMIT"):
                if record.state is State.ENDING:
                    raise Failure(sqlstate.CANCELED, "the statement was canceled")
                connection.run(sql, options, Discard())
        finally:
            if connection.transaction:
                connection.run("ROLLBACK", options, Discard())
        return Outcome(message=f"APPLICATION {asked.name}: {len(asked.statements)} statements")


def _stream_query(session: Session, sql: str, streams: Sequence[Relation], options: RunOptions) -> StreamQuery | None:
    return cast(StreamingSession, session.connection).stream_query(sql, streams, options)


def _check_context(session: Session, asked: DialectStatement | None, record: Statement) -> None:
    """Raises the failure of a part of the request's context that the statement needs."""
    for part in required_parts(asked, record.sql) if session.context_failures else ():
        # SQL names stores explicitly, and a client without a session cannot leave a dropped store.
        if part in session.context_failures and (part != "store" or asked is not None or session.name):
            raise session.context_failures[part]


def _is_about_the_service(asked: DialectStatement) -> bool:
    """Whether a statement concerns only objects of the service, whose rights the service checks itself."""
    if isinstance(asked, List):
        # The engine evaluates a condition.
        return not asked.where
    if isinstance(asked, Create | Drop | Update | Test):
        return asked.kind in SERVICE_OBJECTS
    return isinstance(asked, Use | Describe | CanI | StartPool)


def _changing_verb(asked: DialectStatement) -> str:
    """The verb and kind of a statement that changes what the service stores itself; "" for other statements.

    No ROLLBACK undoes such a change.
    """
    match asked:
        case Create(kind=kind) | Drop(kind=kind) | Update(kind=kind) if kind not in ENGINE_OBJECTS:
            return f"{type(asked).__name__.upper()} {kind.upper()}"
        case StartPool():
            return f"{'START' if asked.start else 'STOP'} COMPUTE_POOL"
        case InsertEntity():
            return "INSERT INTO ENTITY"
        case CreateFunction():
            return "CREATE FUNCTION"
        case DropFunction():
            return "DROP FUNCTION"
    return ""


def _needs_database(asked: DialectStatement | None) -> bool:
    """Whether a statement uses the session's database."""
    if isinstance(asked, Create | Drop):
        return asked.kind in {"stream", "changelog", "materialized_view", "relation"}
    if isinstance(asked, Use):
        return asked.kind == "schema" and len(asked.names) == 1
    evaluated = isinstance(asked, Print | Application | CreateAs | DescribeStatement | Load)
    return asked is None or evaluated or isinstance(asked, Truncate | Alter)
