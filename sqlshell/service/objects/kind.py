"""Kinds of objects, and the statements that every kind may have: CREATE, USE, UPDATE, TEST, DROP and DESCRIBE."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import Object, missing
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import Names
from sqlshell.service.engines.engine import Outcome, Relation, Rights, RunOptions, Sink, StreamQuery
from sqlshell.service.failure import Failure
from sqlshell.service.objects.attachments import Attachment
from sqlshell.service.objects.names import NameTaken, check_name
from sqlshell.service.objects.result_rows import Facts, ShownColumn, properties, table
from sqlshell.service.objects.scope import Scope
from sqlshell.service.organizations.organizations import Organization, Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.settings import Settings, limit_note

StartedFeed = tuple[StreamQuery, int]
"""A SELECT on a stream, and the position in the stream at which it starts."""

Result = Outcome | StartedFeed

PARTS = ("database", "schema", "store", "compute_pool")
"""The parts of a session's context."""

OPTIONS = "[ WITH <options:options> ]"
IF_NOT_EXISTS = "[ IF NOT EXISTS =if_not_exists ]"
IF_EXISTS = "[ IF EXISTS =if_exists ]"
CREATE = "CREATE [ OR REPLACE =replace ]"


class Work(enum.Enum):
    """What a statement needs: only what the service keeps, whose rights it checks itself; the engine's objects; or the
    engine, which evaluates something in a slot of the session's pool."""

    SERVICE = "service"
    OBJECTS = "objects"
    ENGINE = "engine"


class Needs(Struct, frozen=True):
    """What a statement needs to run.

    `parts` are the parts of the session's context that resolve its names: with each request, clients send names in the
    context that their first statements have yet to create. `database` says that it uses the session's database, which
    may be the initial one, and `organizations` that it is about organizations, so that it belongs to none.
    """

    work: Work = Work.OBJECTS
    parts: tuple[str, ...] = ()
    database: bool = False
    organizations: bool = False


EVERYTHING = Needs(Work.ENGINE, PARTS, database=True)


class Services(Struct, frozen=True):
    """What statements about objects use of the service."""

    organizations: Organizations
    sessions: Sessions
    settings: Settings


class Execution(Struct, frozen=True):
    """The execution of one statement of the dialect, in a thread. Methods raise Failure.

    `sql` is its text as it was sent, `files` are its attachments. `is_canceled` returns whether it was canceled.
    `run_engine` runs SQL of the engine, `created` adds the row that describes a new relation to an outcome, and
    `queries` lists the latest statements.
    """

    sql: str
    session: Session
    options: RunOptions
    sink: Sink
    is_canceled: Callable[[], bool]
    services: Services
    files: Sequence[Attachment] = ()
    run_engine: Callable[[str], Result] = lambda sql: Outcome()
    created: Callable[[Outcome, str, Relation], Outcome] = lambda outcome, kind, relation: outcome
    queries: Callable[[], list[Facts]] = list

    @property
    def organization(self) -> Organization:
        return self.session.organization

    @property
    def scope(self) -> Scope:
        return Scope(self.organization, self.session)

    def require(self, rights: Rights, what: str) -> None:
        """Raises Failure if the session's role does not have `rights`."""
        require(self.session, rights, what)

    def begin_change(self, rights: Rights, what: str) -> None:
        """Check that a statement may change what the service keeps, which no ROLLBACK undoes. Raises Failure."""
        if self.session.connection.transaction:
            raise Failure("25001", f"{what} cannot run in a transaction; COMMIT or ROLLBACK first")
        self.require(rights, what)

    def find(self, kind: str, name: str) -> Object | None:
        return self.organization.catalog.find(self.organization.id, kind, name)

    def get(self, kind: str, name: str) -> Object:
        return self.organization.catalog.get(self.organization.id, kind, name)

    def add(self, kind: str, name: str, detail: Mapping[str, Any], *, replace: bool = False) -> None:
        """Keep an object. With `replace` it may replace one of this name."""
        catalog, organization = self.organization.catalog, self.organization
        with organization.changing:
            if replace and self.find(kind, name) is not None:
                catalog.change(organization.id, kind, name, detail)
            else:
                catalog.add(organization.id, kind, name, detail)

    def change(self, kind: str, name: str, detail: Mapping[str, Any]) -> None:
        self.organization.catalog.change(self.organization.id, kind, name, detail)

    def forget(self, kind: str, name: str) -> None:
        self.organization.catalog.drop(self.organization.id, kind, name)

    def check_names(self, names: Names) -> None:
        """Raises Failure if a name is invalid or too long."""
        if any(len(name) > self.services.settings.name_length for name in names):
            raise Failure("42622", f"the name is longer than {self.services.settings.name_length} characters")
        for name in names:
            check_name(name)

    def check_options(self, options: Mapping[str, str]) -> None:
        """Raises Failure if an option is too long."""
        settings = self.services.settings
        for name, value in options.items():
            if len(name) > settings.name_length or len(value) > settings.option_length:
                message = f"the value of {name[:40]!r} is longer than {settings.option_length} characters"
                raise Failure(sqlstate.LIMIT, message)

    def check_number(self, kind: Kind) -> None:
        """Raises Failure if there are too many objects of a kind."""
        number = kind.number(self)
        if number >= self.services.settings.objects:
            where = "service" if kind.name == "organization" else "organization"
            shown = kind.name.replace("_", " ")
            raise Failure(
                sqlstate.LIMIT,
                f"too many objects of kind {shown}: the {where} already has {number} {limit_note('objects')}",
            )

    def check_unused(self, kind: str, name: str) -> None:
        """Raises Failure if a session uses a database or store."""
        if self.session.connection.database == name:
            message = f"{kind} {name!r} is in use by this session; run USE DATABASE with another database first"
            raise Failure(sqlstate.DEPENDENTS, message)
        if user := self.services.sessions.using(self.organization.id, name):
            message = f"{kind} {name!r} is in use by session {user.name!r}; run TERMINATE SESSION {user.name!r} first"
            raise Failure(sqlstate.DEPENDENTS, message)

    def check_operator(self) -> None:
        """Raises Failure if the token belongs to one organization."""
        if self.session.caller.organization:
            raise Failure(sqlstate.PRIVILEGE, "permission denied: this token is limited to its organization")


class DialectStatement(Struct, frozen=True):
    """A statement of the dialect, read by a Form."""

    def needs(self) -> Needs:
        return Needs()

    def run(self, execution: Execution) -> Result:
        """Run the statement, in a thread. Raises Failure."""
        raise NotImplementedError


class OfKind(DialectStatement, frozen=True, kw_only=True):
    """A statement about one object of a kind."""

    of: Kind
    names: Names
    verb: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        return self.of.name

    @property
    def name(self) -> str:
        return self.names[-1]

    @property
    def title(self) -> str:
        return f"{self.verb.upper()} {self.of.name.upper()}"

    def needs(self) -> Needs:
        return self.of.needs(self)


class Changing(OfKind, frozen=True, kw_only=True):
    """CREATE, UPDATE or DROP of an object; `store` is the store of an entity, "" for the session's."""

    options: Mapping[str, str] = field(default_factory=dict)
    store: str = ""

    def begin(self, execution: Execution) -> None:
        """Check that the statement may run. Raises Failure."""
        check = execution.require if self.of.is_transactional else execution.begin_change
        check(Rights.OBJECTS, self.title)


class Create(Changing, frozen=True, kw_only=True):
    """CREATE of an object; `columns` is the parenthesized column list of a stream or changelog."""

    verb = "create"
    replace: bool = False
    if_not_exists: bool = False
    columns: str = ""

    def run(self, execution: Execution) -> Result:
        if self.of.is_engines:
            return self.of.create(self, execution) or Outcome(message=self.title)
        self.begin(execution)
        if not (self.if_not_exists and execution.find(self.kind, self.name) is not None):
            execution.check_names(self.names)
            execution.check_options(self.options)
            execution.check_number(self.of)
            try:
                if (result := self.of.create(self, execution)) is not None:
                    return result
            except Failure as failure:
                there = failure.sql_state.startswith("42P") or failure.sql_state == sqlstate.DUPLICATE
                if not (self.if_not_exists and there) or isinstance(failure, NameTaken):
                    raise
        return Outcome(message=self.title)


class Drop(Changing, frozen=True, kw_only=True):
    verb = "drop"
    if_exists: bool = False
    cascade: bool = False

    def run(self, execution: Execution) -> Result:
        if self.of.is_of_engine(self, execution):
            return execution.run_engine(execution.sql)
        result = None
        if not self.of.is_engines:
            self.begin(execution)
        try:
            result = self.of.drop(self, execution)
        except Failure as failure:
            if self.of.is_engines or not (self.if_exists and failure.sql_state.startswith("3D")):
                raise
        return result or Outcome(message=self.title.replace("MATERIALIZED_", "MATERIALIZED "))


class Update(Changing, frozen=True, kw_only=True):
    verb = "update"

    def run(self, execution: Execution) -> Result:
        self.begin(execution)
        execution.check_options(self.options)
        # Read, change and write back: without the lock, a concurrent change would be lost.
        with execution.organization.changing:
            self.of.update(self, execution)
        return Outcome(message=self.title)


class Test(OfKind, frozen=True, kw_only=True):
    verb = "test"

    def run(self, execution: Execution) -> Result:
        return table(execution.sink, ("Status", "Message"), [("ready", self.of.test(self.name, execution))])


class Use(OfKind, frozen=True, kw_only=True):
    verb = "use"

    def run(self, execution: Execution) -> Result:
        self.of.use(self, execution)
        whole = self.kind == "database" or len(self.names) > 1
        for part in (self.kind, "schema") if whole else (self.kind,):
            execution.session.context_failures.pop(part, None)
        return Outcome(message=f"using {self.kind.replace('_', ' ')} {self.name}")


class Describe(OfKind, frozen=True, kw_only=True):
    """DESCRIBE of an object; `columns` is set by the word COLUMNS."""

    verb = "describe"
    store: str = ""
    columns: bool = False

    def run(self, execution: Execution) -> Result:
        return self.of.describe(self, execution)


VERBS: Mapping[str, type[OfKind]] = {
    statement.verb: statement for statement in (Create, Use, Update, Test, Drop, Describe)
}
Syntax = Sequence[tuple[str, str]]
"""Pairs of a verb and a form."""

SYNTAX: Mapping[str, str] = {
    "create": f"{CREATE} KIND ! {IF_NOT_EXISTS} <names:names> {OPTIONS}",
    "use": "USE KIND <names:names>",
    "update": f"UPDATE KIND <names:names> {OPTIONS}",
    "test": "TEST KIND ! <names:one>",
    "drop": f"DROP KIND {IF_EXISTS} <names:names> [ CASCADE =cascade ] [ RESTRICT ]",
    "describe": "DESCRIBE KIND <names:names> [ COLUMNS =columns ]",
}
"""The forms of these statements, unless a kind has its own."""

Listed = tuple[Sequence[ShownColumn], Sequence[ShownColumn], list[Facts]]
"""Shown columns, further columns for conditions, and the facts that they show."""


class Place(Struct, frozen=True):
    """Where LIST looks: the kind and names of a place, and the name of a store after IN STORE."""

    kind: str = ""
    names: Names = ()
    store: str = ""


class Kind:
    """A kind of object: its grammar, what its statements do, its facts, and its relation in `deltastream.sys`.

    Methods raise Failure. `objects/kinds.py` lists all kinds.
    """

    name = ""
    plural = ""
    """The word after LIST, "" for objects that are not listed."""
    verbs: Sequence[str] = ()
    """The statements that it has, of VERBS."""
    syntax: Syntax = ()
    """The forms that differ from those of SYNTAX, in which KIND stands for its name."""
    listing: Sequence[ShownColumn] = ()
    """The columns of LIST and, one a row, of DESCRIBE. Clients read some by position: keep their order."""
    details: Sequence[ShownColumn] = ()
    """Further columns of DESCRIBE and for conditions."""
    relation: Sequence[ShownColumn] = ()
    """The columns of its relation, whose name is `plural`."""
    costly = False
    """Whether its relation is refreshed only for statements that name it."""
    shown = True
    """Whether SHOW is like LIST; DuckDB has a SHOW of its own for some."""
    left_to_servers: frozenset[str] = frozenset()
    """The verbs, and "show", of statements that an engine with such objects of its own has itself."""
    is_services = False
    """Whether no engine has such objects."""
    is_transactional = False
    """Whether a transaction includes what creates and drops them."""
    is_relation = False
    is_engines = False
    """Whether the engine itself creates and drops them, and checks rights and names."""

    @property
    def title(self) -> str:
        return self.name.upper()

    def forms(self) -> Iterator[tuple[str, Form[DialectStatement]]]:
        """The forms of its statements, each with a verb."""
        for verb in self.verbs:
            for text in [text for own, text in self.syntax if own == verb] or [SYNTAX[verb]]:
                yield verb, Form(text.replace("KIND", self.title), partial(self.made, verb))

    def made(self, verb: str, **values: Any) -> DialectStatement:
        """The statement with the values that a form has read."""
        if isinstance(values["names"], str):
            values["names"] = (values["names"],)
        return VERBS[verb](of=self, **values)

    def needs(self, statement: OfKind) -> Needs:
        """What a statement needs."""
        alone, parts = self.is_services or isinstance(statement, Use | Describe), self.parts(statement)
        made = isinstance(statement, Create | Drop) and self.is_relation
        return Needs(
            Work.SERVICE if alone else Work.OBJECTS,
            parts,
            database=made or (isinstance(statement, Use) and "database" in parts),
            organizations=self.name == "organization",
        )

    def parts(self, statement: OfKind) -> tuple[str, ...]:
        """The parts of the context that a statement needs."""
        return behind(statement.names[:-1]) if self.is_relation else ()

    def number(self, execution: Execution) -> int:
        """How many there are."""
        return len(execution.organization.catalog.objects(execution.organization.id, self.name))

    def is_of_engine(self, asked: Drop, execution: Execution) -> bool:
        """Whether a DROP is about an object of the engine: the service has none of this name."""
        return False

    def create(self, asked: Create, execution: Execution) -> Result | None:
        """Create an object; the result is None if there is nothing to say about it."""
        raise unsupported("CREATE", self.name)

    def drop(self, asked: Drop, execution: Execution) -> Result | None:
        """Drop an object; the result is None if there is nothing to say about it."""
        execution.forget(self.name, asked.name)
        return None

    def update(self, asked: Update, execution: Execution) -> None:
        """Change the options that a statement names."""
        raise unsupported("UPDATE", self.name)

    def test(self, name: str, execution: Execution) -> str:
        """Check that an object can be used; returns a message."""
        raise unsupported("TEST", self.name)

    def use(self, asked: Use, execution: Execution) -> None:
        """Change a part of the session's context."""
        execution.session.use(self.name, asked.name)

    def facts(self, scope: Scope) -> list[Facts]:
        """The facts about all objects, which `listing`, `details` and `relation` show."""
        raise unsupported("LIST", self.name)

    def listed(self, place: Place, execution: Execution) -> Listed:
        """What LIST shows."""
        return self.listing, self.details, self.facts(execution.scope)

    def describe(self, asked: Describe, execution: Execution) -> Outcome:
        """The properties of one object."""
        found = [item for item in self.facts(execution.scope) if item["name"] == asked.name]
        return self.described(asked.name, found, execution)

    def described(self, name: str, found: Sequence[Facts], execution: Execution) -> Outcome:
        """The properties of the first of these objects."""
        if not found:
            raise missing(self.name, name)
        return properties((*self.listing, *self.details), found[0], execution.sink)


def behind(before: Names) -> tuple[str, ...]:
    """The parts of the context that resolve a relation with these names before its own."""
    return ("database", "schema")[: max(0, 2 - len(before))]


def require(session: Session, rights: Rights, what: str) -> None:
    """Raises Failure if the session's role does not have `rights`."""
    if session.rights < rights:
        raise Failure(sqlstate.PRIVILEGE, f"permission denied: role {session.role!r} cannot run {what}")


def unsupported(verb: str, kind: str) -> Failure:
    return Failure(sqlstate.UNSUPPORTED, f"{verb} {kind.upper()} is not supported by this service")
