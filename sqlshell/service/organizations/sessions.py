"""Sessions: each has a connection of an engine and a context."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho, StatementRequest
from sqlshell.service.catalog import NAMES_OF_ROLES, Caller, missing
from sqlshell.service.engines.engine import CatalogQuery, EngineSession, Relation, Rights, Rows, completed
from sqlshell.service.failure import Failure, InvalidRequest, TooManyRequests
from sqlshell.service.organizations.organizations import Organization, Organizations
from sqlshell.service.organizations.pools import DEFAULT
from sqlshell.service.settings import Settings, limit_note
from sqlshell.service.storage.storage import StorageError

if TYPE_CHECKING:
    from sqlshell.service.cluster.cluster import Cluster

OPENERS = 16
"""Threads that open organizations; each organization has threads of its own for everything else."""

IDLE_SECONDS = 1800.0
"""How long an idle session is kept."""


class Session(Struct, eq=False):
    """One session. Only the statement that holds `turn` may change it, except for `waiting` and `used`, which Sessions
    changes."""

    caller: Caller
    organization: Organization
    connection: EngineSession
    role: str
    store: str = ""
    compute_pool: str = DEFAULT
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    used: float = field(default_factory=time.monotonic)
    waiting: int = 0
    """The submissions that have not finished: it is not closed before."""
    name: str = ""
    created: float = field(default_factory=time.time)
    ended: bool = False
    """Whether it was terminated: its queued statements do not run."""
    lost: bool = False
    """Whether it replaces a session that another process of the service has lost, which its sender does not know yet.
    """
    lost_transaction: bool = False
    """Whether it replaces a session with a transaction, and the sender does not know yet that it is lost."""
    noted_transaction: bool = False
    """Whether the other processes of the service know that it has an open transaction."""
    changes_schemas: bool = False
    """Whether its transaction may have created or dropped a schema."""
    schema_dropped: bool = False
    """Whether its current schema was dropped: it goes to the initial schema before its next statement."""
    timezone: str = ""
    """The time zone that the latest request with one named."""
    database_chosen: bool = False
    """Whether its database was chosen explicitly, rather than being the initial one."""
    context_failures: dict[str, Failure] = field(default_factory=dict)
    """The failures for parts of the latest request's context. A statement that needs such a part fails with it."""
    before: tuple[Session, str, str] | None = None
    """The session, its database and its schema before it adopted the latest request's context, while it is unknown
    whether the request fails."""
    dropped_parts: dict[str, str] = field(default_factory=dict)
    """The names, by kind, of objects that the session dropped while it used them. Its client may still send them."""

    def why_no_database(self) -> str:
        """Return why its connection is not in the initial database, "" if it is there or in another that was chosen."""
        return "" if self.database_chosen else self.organization.why_no_database()

    @property
    def rights(self) -> Rights:
        return NAMES_OF_ROLES[self.role]

    def echo(self) -> ContextEcho:
        """Return the context that statements run in, without the parts of the latest request's context that could not
        be used.

        A client must not continue in a context that it did not request.
        """
        lost = self.context_failures
        elsewhere = self.why_no_database() or "database" in lost
        schema = "" if self.schema_dropped else self.connection.schema
        return ContextEcho(
            organization_id=self.organization.id,
            role_name=self.role,
            database_name=None if elsewhere else self.connection.database,
            schema_name=None if elsewhere or "schema" in lost else schema,
            # Sent even if empty, because clients keep the value of a field that is left out.
            store_name=None if "store" in lost else self.store,
            compute_pool_name=None if "compute_pool" in lost else self.compute_pool,
            transaction=self.connection.transaction or None,
            timezone=self.connection.timezone or None,
        )

    def catalog(self, query: CatalogQuery) -> Rows:
        """Return the engine's objects, as this session sees them. Raises Failure."""
        return self.organization.engine.catalog(query, self.connection)

    def exists(self, relation: Relation) -> bool:
        """Return whether a relation exists, as this session sees it. Raises Failure."""
        return bool(self.catalog(CatalogQuery("relation", *relation)))

    def full_name(self, names: Sequence[str]) -> Relation:
        """Return the full name of a relation, without a call to the engine, which may be busy."""
        organization, connection = self.organization, self.connection
        if not organization.engine.traits.interface_sql:
            return completed(names, connection.database, connection.schema)
        if len(names) == 2 and organization.is_confined:
            known = {item.name for item in organization.catalog.objects(organization.id, "database")}
            return (
                (names[0], organization.engine.traits.initial_schema, names[1])
                if names[0] in known
                else (connection.database, names[0], names[1])
            )
        return connection.resolve(names)

    def differs_from(self, request: StatementRequest) -> bool:
        """Return whether a request names another context than the session's."""
        has = self.echo()
        named = (
            (request.organization, has.organization_id),
            (request.role, has.role_name),
            (request.database, has.database_name),
            (request.schema, has.schema_name),
            (request.store, has.store_name),
            (request.compute_pool, has.compute_pool_name),
            (request.parameters and request.parameters.timezone, self.timezone),
        )
        return self.schema_dropped or any(name and name != old for name, old in named)

    def adopt(self, request: StatementRequest, organizations: Organizations) -> None:
        """Adopt the context of a request; settle() follows.

        If an organization or role cannot be used, nothing changes, and Failure is raised. Other failures go into
        `context_failures`.
        """
        self.context_failures = {}
        self.settle("")
        self.before = replace(self), self.connection.database, self.connection.schema
        try:
            if self.schema_dropped and self.connection.transaction != "failed":
                self.connection.use(self.connection.database, "")
                self.schema_dropped = False
            if request.organization:
                self.use_organization(request.organization, organizations)
            if request.role and request.role != self.role:
                self.use("role", request.role)
            for kind, name in (("store", request.store), ("compute_pool", request.compute_pool)):
                if name and name != getattr(self, kind):
                    try:
                        self.use(kind, name)
                    except Failure as failure:
                        self._lose(kind, name, failure)
            self._place(request.database or "", request.schema or "")
        except Failure:
            self._restore()
            raise
        if request.database and "database" not in self.context_failures:
            self.database_chosen = True
        self.timezone = (request.parameters and request.parameters.timezone) or self.timezone

    def settle(self, state: str) -> None:
        """Forget the context before the latest request, whose first statement has finished with this sqlState. If it
        failed because of the request's context, the session returns to the context before."""
        if self.failed_by_context(state):
            self._restore()
        elif self.before is not None:
            if self.before[0].connection is not self.connection:
                self.before[0].connection.close()
            self.before = None

    def _restore(self) -> None:
        assert self.before is not None
        old, database, schema = self.before
        self.before, self.context_failures = None, {}
        if self.connection is not old.connection:
            self.connection.close()
            self.organization, self.connection = old.organization, old.connection
        elif (database, schema) != (self.connection.database, self.connection.schema):
            # Another session may have dropped them meanwhile.
            with contextlib.suppress(Failure):
                self.connection.use(database, schema)
        self.role, self.store, self.compute_pool = old.role, old.store, old.compute_pool
        self.timezone, self.database_chosen = old.timezone, old.database_chosen

    def _place(self, database: str, schema: str) -> None:
        """Change the database and schema, as far as they exist."""
        self._check_database(database)
        if database in {"", self.connection.database} and schema in {"", self.connection.schema}:
            return
        try:
            self.connection.use(database, schema)
        except Failure as failure:
            # The engine may have been restarted just now without this database.
            self._check_database(database)
            if failure.sql_state == sqlstate.NO_DATABASE:
                self._lose("database", database, failure)
            elif failure.sql_state == sqlstate.NO_SCHEMA:
                self._lose("schema", schema, failure)
                self._place(database, "")
            elif database in self.organization.engine.traits.hidden_databases:
                self._lose("database", database, missing("database", database))
            else:
                raise

    def _lose(self, kind: str, name: str, failure: Failure) -> None:
        if self.dropped_parts.get(kind) != name:
            self.context_failures[kind] = failure

    def _check_database(self, database: str) -> None:
        """Raises Failure if a database could not be opened."""
        if database and (reason := self.organization.broken.get(("database", database))):
            raise Failure("58030", f'cannot open database "{database}": {reason}')

    def failed_by_context(self, state: str) -> bool:
        """Return whether a statement failed with this sqlState because of a missing part of its context.

        A batch ends there, so that its sender can remove the name from the next request.
        """
        return any(failure.sql_state == state for failure in self.context_failures.values())

    def droppable_parts(self) -> dict[str, str]:
        """Return the parts of its context that a session may drop while it uses them."""
        schema = "" if self.schema_dropped else self.connection.schema
        return {"schema": schema, "store": self.store, "compute_pool": self.compute_pool}

    def note_dropped_parts(self, before: Mapping[str, str]) -> None:
        """Note which parts of the context a DROP has changed: the client may continue to name them."""
        after = self.droppable_parts()
        self.dropped_parts |= {part: name for part, name in before.items() if after[part] != name}

    def use(self, kind: str, name: str) -> None:
        """Change the role, store or compute pool. Raises Failure if it does not exist or is not granted."""
        match kind:
            case "role":
                if name not in NAMES_OF_ROLES:
                    raise missing("role", name)
                if not self.caller.has_role(name):
                    raise Failure(sqlstate.PRIVILEGE, f'permission denied: this token does not have role "{name}"')
                if name != self.role and self.connection.transaction:
                    # It began with the rights of the other role.
                    raise Failure("25001", "cannot change the role in a transaction; COMMIT or ROLLBACK first")
                self.role = name
            case "store":
                self.organization.catalog.get(self.organization.id, "store", name)
                self.store = name
            case "compute_pool":
                if name != DEFAULT:
                    self.organization.catalog.get(self.organization.id, "compute_pool", name)
                self.compute_pool = name

    def use_organization(self, given: str, organizations: Organizations) -> None:
        """Change the organization, given by ID or name, with a new connection. Raises Failure."""
        wanted = organizations.catalog.organization(given)
        if wanted == self.organization.id:
            return
        if not self.caller.may_see(wanted):
            # The same error as for a missing organization, so that names are not revealed.
            raise missing("organization", given)
        if self.connection.transaction:
            # Its connection would be closed, and the transaction with it.
            raise Failure("25001", "cannot change the organization in a transaction; COMMIT or ROLLBACK first")
        organization = organizations.get(wanted)
        connection = organization.engine.connect()
        if self.before is None:
            self.connection.close()
        self.organization, self.connection = organization, connection
        self.store, self.compute_pool, self.database_chosen = "", DEFAULT, False


class Sessions:
    """The sessions of the service by caller and name."""

    def __init__(self, organizations: Organizations, settings: Settings, cluster: Cluster | None = None) -> None:
        self._organizations = organizations
        self._cluster = cluster
        self._settings = settings
        self._sessions: dict[tuple[str, str], Session] = {}
        self._openers = ThreadPoolExecutor(OPENERS, thread_name_prefix="opening")
        self._numbers: Counter[str] = Counter()
        """The number of open sessions of each token, including those for one submission."""
        self._opened: set[Session] = set()
        """All open sessions: also those without a name, and those that can no longer be found but run statements."""

    def find(self, token_id: str, name: str) -> Session | None:
        """Return the session that a token has under this name."""
        return self._sessions.get((token_id, name))

    async def of_request(self, caller: Caller, request: StatementRequest, times: int) -> Session:
        """Return the session of a request, which waits until release(). One without a name is only for this request,
        and may exceed the limit of a token by the factor `times`. Raises Refusal and Failure.
        """
        name = (request.parameters.session_id if request.parameters else None) or ""
        session = self.find(caller.token_id, name) if name else None
        if session is None:
            self._check_number(caller, name, times)
            self._numbers[caller.token_id] += 1
            try:
                run = asyncio.get_running_loop().run_in_executor
                opened = self._organizations.find_open(caller.organization)
                connect = partial(self.connect, caller)
                session = await (opened.run(connect) if opened is not None else run(self._openers, connect))
            except BaseException:
                self._uncount(caller.token_id)
                raise
            # A session that was lost with another process reports that itself.
            session.lost_transaction = bool(name and request.parameters and request.parameters.transaction)
            session = self._keep(name, session) if name else session
        session.waiting += 1
        return session

    def _check_number(self, caller: Caller, name: str, times: int) -> None:
        """Raises Refusal if there are too many sessions for one more."""
        number, together = self._numbers[caller.token_id], self._numbers.total()
        cause = ""
        if number >= self._settings.sessions * (1 if name else times):
            cause = f"too many sessions: this token has {number} {limit_note('sessions')}"
        elif together >= self._settings.all_sessions:
            cause = f"too many sessions: the service has {together} {limit_note('all_sessions')}"
        if cause:
            # Unnamed sessions end soon; named ones remain, so a retry would fail again.
            refusal = InvalidRequest if name else TooManyRequests
            raise refusal(f"{cause}; run TERMINATE SESSION 'id' to end one")

    def _uncount(self, token_id: str) -> None:
        self._numbers[token_id] -= 1
        if self._numbers[token_id] <= 0:
            del self._numbers[token_id]

    def end(self, session: Session) -> None:
        """Close a session."""
        if session in self._opened:
            self._opened.discard(session)
            self._uncount(session.caller.token_id)
            session.settle("")
            session.connection.close()
            key = session.caller.token_id, session.name
            # A session that was terminated while it ran statements may have a successor with its name.
            if session.name and self._cluster is not None and self._sessions.get(key, session) is session:
                with contextlib.suppress(StorageError):
                    self._cluster.end_session(*key)

    def all(self) -> list[Session]:
        """Return the sessions with a name."""
        return list(self._sessions.values())

    def connect(self, caller: Caller) -> Session:
        """Create a session. In a thread, because it may open a database. Raises Failure."""
        own = caller.organization
        organization = self._organizations.get(own) if own else self._organizations.first_usable()
        session = Session(caller, organization, organization.engine.connect(), caller.roles[0])
        self._opened.add(session)
        return session

    def _keep(self, name: str, session: Session) -> Session:
        """Store `session` under a name; returns it, or the session that another request created meanwhile."""
        session.name = name
        lost = self._cluster.was_lost(session.caller.token_id, name) if self._cluster is not None else None
        session.lost = lost is not None
        session.lost_transaction = session.lost_transaction or bool(lost)
        session.noted_transaction = bool(lost)
        kept = self._sessions.setdefault((session.caller.token_id, name), session)
        if kept is not session:
            # The name still refers to the other session.
            session.name = ""
            self.end(session)
        return kept

    def of_organization(self, organization_id: str) -> list[Session]:
        """Return the sessions of an organization, the oldest first."""
        sessions = [item for item in self._sessions.values() if item.organization.id == organization_id]
        return sorted(sessions, key=lambda item: item.created)

    def of_tokens(self, token_ids: Collection[str]) -> list[Session]:
        """Return the sessions of these tokens."""
        return [item for key, item in list(self._sessions.items()) if key[0] in token_ids]

    def using(self, organization_id: str, database: str) -> Session | None:
        """Return a session whose current database is `database`, or None."""
        named = [item for item in list(self._opened) if item.name and item.organization.id == organization_id]
        return next((item for item in named if item.connection.database == database), None)

    def leave_dropped_object(self, organization_id: str, kind: str, name: str) -> None:
        """Remove a dropped store or compute pool from the contexts of all sessions."""
        for session in list(self._opened):
            if session.organization.id == organization_id and getattr(session, kind) == name:
                setattr(session, kind, DEFAULT if kind == "compute_pool" else "")

    def mark_dropped_schemas(self, by: Session) -> None:
        """Note for each session whether its schema was dropped by a statement of the session `by`, except those in a
        transaction. Others on an external server learn it from there: it has users of its own too.
        """
        organization = by.organization
        among = list(self._opened) if organization.engine.capabilities.databases else [by]
        sessions = [item for item in among if item.organization is organization]
        initial = organization.engine.traits.initial_schema
        placed = [item for item in sessions if item.connection.schema != initial and not item.connection.transaction]
        if not placed:
            return
        hidden = set(organization.store_names)
        known = by.catalog(CatalogQuery("schemas", hidden=hidden))
        there = {(row[1], row[0]) for row in known}
        for item in placed:
            place = item.connection.database, item.connection.schema
            item.schema_dropped = place not in there and place[0] not in hidden

    def owner_of(self, name: str, asking: Session, elsewhere: Collection[str] = ()) -> str:
        """Return the token of the session of this name; the caller's own has precedence over those of other tokens.

        `elsewhere` are the tokens whose sessions of this name other processes of the service have. Raises Failure.
        """
        here = [item.caller.token_id for item in self.of_organization(asking.organization.id) if item.name == name]
        tokens = {*here, *elsewhere}
        if asking.caller.token_id in tokens:
            return asking.caller.token_id
        if len(tokens) != 1:
            message = f"several sessions are named {name!r}" if tokens else f"session {name!r} does not exist"
            raise Failure(sqlstate.NO_SESSION, message)
        return tokens.pop()

    def forget(self, session: Session) -> None:
        """Remove a session; it is closed when its statements have finished."""
        self._sessions.pop((session.caller.token_id, session.name), None)
        if session.waiting <= 0:
            self.end(session)

    def release(self, session: Session) -> None:
        """Note that a submission has finished, whose admission counted it in `waiting`."""
        session.waiting -= 1
        session.used = time.monotonic()
        if session.waiting <= 0 and self.find(session.caller.token_id, session.name) is not session:
            # It can no longer be found.
            self.end(session)

    def expire(self) -> None:
        oldest = time.monotonic() - IDLE_SECONDS
        for key, session in list(self._sessions.items()):
            if session.used < oldest and not session.waiting:
                del self._sessions[key]
                self.end(session)

    def close_organization(self, organization_id: str) -> None:
        """Close the sessions of an organization that is to be dropped. Raises Failure while its statements run."""
        sessions = [item for item in list(self._opened) if item.organization.id == organization_id]
        if any(item.waiting for item in sessions):
            raise Failure(sqlstate.DEPENDENTS, "cannot drop the organization: it has running statements")
        for session in sessions:
            self._sessions.pop((session.caller.token_id, session.name), None)
            self.end(session)

    def close(self) -> None:
        self._openers.shutdown(wait=False, cancel_futures=True)
        for session in list(self._opened):
            self.end(session)
