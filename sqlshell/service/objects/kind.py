"""Kinds of objects, and the statements that every kind may have: CREATE, USE, UPDATE, TEST, DROP and DESCRIBE."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

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


class Execution(Struct, frozen=True):
    """The execution of one statement of the dialect, in a thread. Methods raise Failure.

    `sql` is its text as it was sent, `files` are its attachments. `is_canceled` returns whether it was canceled.
    `run_engine` runs SQL of the engine, `created` adds the row that describes a new relation to an outcome, `queries`
    lists the latest statements, and `read` parses a statement: None for one of the engine.
    """

    sql: str
    session: Session
    options: RunOptions
    sink: Sink
    is_canceled: Callable[[], bool]
    sessions: Sessions
    files: Sequence[Attachment]
    run_engine: Callable[[str], Result]
    created: Callable[[Outcome, str, Relation], Outcome]
    queries: Callable[[], list[Facts]]
    read: Callable[[str], DialectStatement | None]

    @property
    def organization(self) -> Organization:
        return self.session.organization

    @property
    def organizations(self) -> Organizations:
        return self.organization.owner

    @property
    def settings(self) -> Settings:
        return self.organizations.settings

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
        if any(len(name) > self.settings.name_length for name in names):
            raise Failure("42622", f"the name is longer than {self.settings.name_length} characters")
        for name in names:
            check_name(name)

    def check_options(self, options: Mapping[str, str]) -> None:
        """Raises Failure if an option is too long."""
        settings = self.settings
        for name, value in options.items():
            if len(name) > settings.name_length or len(value) > settings.option_length:
                message = f"the value of {name[:40]!r} is longer than {settings.option_length} characters"
                raise Failure(sqlstate.LIMIT, message)

    def check_number(self, kind: Kind) -> None:
        """Raises Failure if there are too many objects of a kind."""
        number = kind.number(self)
        if number >= self.settings.objects:
            where = "service" if kind.name == "organization" else "organization"
            shown = kind.name.replace("_", " ")
            raise Failure(
                sqlstate.LIMIT,
                f"too many objects of kind {shown}: the {where} already has {number} {limit_note('objects')}",
            )

    def check_unused(self, kind: str, name: str) -> None:
        """Raises Failure if a session uses a database or store."""
        if self.session.connection.database == name:
            message = f'{kind} "{name}" is in use by this session; run USE DATABASE with another database first'
            raise Failure(sqlstate.DEPENDENTS, message)
        if user := self.sessions.using(self.organization.id, name):
            message = f'{kind} "{name}" is in use by session {user.name!r}; run TERMINATE SESSION {user.name!r} first'
            raise Failure(sqlstate.DEPENDENTS, message)

    def check_operator(self) -> None:
        """Raises Failure if the token belongs to one organization."""
        if self.session.caller.organization:
            raise Failure(sqlstate.PRIVILEGE, "permission denied: this token is limited to its organization")


class DialectStatement(Struct, frozen=True, kw_only=True):
    """A statement of the dialect, read by a Form. `verb` is its first word in lower case if somebody asks."""

    verb: str = ""

    @property
    def is_control(self) -> bool:
        """Whether it is about statements or sessions, so that it waits for none of them."""
        return False

    def needs(self) -> Needs:
        return Needs()

    def run(self, execution: Execution) -> Result:
        """Run the statement, in a thread, unless `service/statements/` does so itself. Raises Failure."""
        raise NotImplementedError


class OfKind(DialectStatement, frozen=True, kw_only=True):
    """A statement about one object of a kind.

    `store` is the store of an entity, "" for the session's; `columns` is the column list of a stream or changelog, and
    `only_columns` is set by DESCRIBE … COLUMNS.
    """

    of: Kind
    names: Names
    options: Mapping[str, str] = field(default_factory=dict)
    store: str = ""
    columns: str = ""
    replace: bool = False
    if_not_exists: bool = False
    if_exists: bool = False
    cascade: bool = False
    only_columns: bool = False

    @property
    def kind(self) -> str:
        return self.of.name

    @property
    def name(self) -> str:
        return self.names[-1]

    @property
    def title(self) -> str:
        return f"{self.verb} {self.of.name}".upper().replace("MATERIALIZED_", "MATERIALIZED ")

    def needs(self) -> Needs:
        return self.of.needs(self)

    def run(self, execution: Execution) -> Result:
        return self.of.run(self, execution)

    def is_content_with(self, failure: Failure) -> bool:
        """Whether IF EXISTS or IF NOT EXISTS is about this failure."""
        there = failure.sql_state.startswith("42P") or failure.sql_state == sqlstate.DUPLICATE
        taken = self.if_not_exists and there and not isinstance(failure, NameTaken)
        return taken or (self.if_exists and failure.sql_state.startswith("3D"))


SYNTAX: Mapping[str, str] = {
    "create": f"{CREATE} KIND ! {IF_NOT_EXISTS} <names:NAME> {OPTIONS}",
    "use": "USE KIND <names:NAME>",
    "update": f"UPDATE KIND <names:NAME> {OPTIONS}",
    "test": "TEST KIND ! <names:one>",
    "drop": f"DROP KIND {IF_EXISTS} <names:NAME> [ CASCADE =cascade ] [ RESTRICT ]",
    "describe": "DESCRIBE KIND <names:NAME> [ COLUMNS =only_columns ]",
}
"""The forms of the statements that kinds have, by verb, unless a kind has its own. NAME stands for how names are
written."""

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
    """The statements that it has, of SYNTAX."""
    syntax: Sequence[tuple[str, str]] = ()
    """Pairs of a verb and a form that differs from that of SYNTAX, in which KIND stands for its name."""
    written = "one"
    """How a name is written: "one", or "names" where it may be qualified."""
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

    @property
    def title(self) -> str:
        return self.name.upper()

    def forms(self) -> Iterator[Form[DialectStatement]]:
        """The forms of its statements."""
        for verb in self.verbs:
            for text in [text for own, text in self.syntax if own == verb] or [SYNTAX[verb]]:
                yield Form(
                    text.replace("KIND", self.title).replace(":NAME>", f":{self.written}>"), self.made, verb=verb
                )

    def made(self, **values: Any) -> DialectStatement:
        """The statement with the values that a form has read."""
        if isinstance(values["names"], str):
            values["names"] = (values["names"],)
        return OfKind(of=self, **values)

    def needs(self, asked: OfKind) -> Needs:
        """What a statement needs."""
        alone, parts = self.is_services or asked.verb in {"use", "describe"}, self.parts(asked)
        made = asked.verb in {"create", "drop"} and self.is_relation
        return Needs(
            Work.SERVICE if alone else Work.OBJECTS,
            parts,
            database=made or (asked.verb == "use" and "database" in parts),
            organizations=self.name == "organization",
        )

    def parts(self, asked: OfKind) -> tuple[str, ...]:
        """The parts of the context that a statement needs."""
        return behind(asked.names[:-1]) if self.is_relation else ()

    def number(self, execution: Execution) -> int:
        """How many there are."""
        return len(execution.scope.kept(self.name))

    def run(self, asked: OfKind, execution: Execution) -> Result:
        """Run a statement about an object of this kind."""
        if asked.verb == "describe":
            return self.describe(asked, execution)
        if asked.verb == "test":
            return table(execution.sink, ("Status", "Message"), [("ready", self.test(asked.name, execution))])
        if asked.verb == "use":
            self.use(asked, execution)
            whole = self.name == "database" or len(asked.names) > 1
            for part in (self.name, "schema") if whole else (self.name,):
                execution.session.context_failures.pop(part, None)
            return Outcome(message=f"using {self.name.replace('_', ' ')} {asked.name}")
        (execution.require if self.is_transactional else execution.begin_change)(Rights.OBJECTS, asked.title)
        try:
            result = self.change(asked, execution)
        except Failure as failure:
            if not asked.is_content_with(failure):
                raise
            result = None
        return result or Outcome(message=asked.title)

    def change(self, asked: OfKind, execution: Execution) -> Result | None:
        """Run CREATE, UPDATE or DROP of an object; the result is None if there is nothing to say about it."""
        if asked.verb == "drop":
            self.drop(asked, execution)
            return None
        execution.check_options(asked.options)
        if asked.verb == "update":
            # Read, change and write back: without the lock, a concurrent change would be lost.
            with execution.organization.changing:
                self.update(asked, execution)
            return None
        if asked.if_not_exists and execution.find(self.name, asked.name) is not None:
            return None
        execution.check_names(asked.names)
        execution.check_number(self)
        return self.create(asked, execution)

    def create(self, asked: OfKind, execution: Execution) -> Result | None:
        """Create an object; the result is None if there is nothing to say about it."""
        raise unsupported("CREATE", self.name)

    def drop(self, asked: OfKind, execution: Execution) -> None:
        execution.forget(self.name, asked.name)

    def update(self, asked: OfKind, execution: Execution) -> None:
        """Change the options that a statement names."""
        raise unsupported("UPDATE", self.name)

    def test(self, name: str, execution: Execution) -> str:
        """Check that an object can be used; returns a message."""
        raise unsupported("TEST", self.name)

    def use(self, asked: OfKind, execution: Execution) -> None:
        """Change a part of the session's context."""
        execution.session.use(self.name, asked.name)

    def facts(self, scope: Scope) -> list[Facts]:
        """The facts about all objects, which `listing`, `details` and `relation` show."""
        raise unsupported("LIST", self.name)

    def listed(self, place: Place, execution: Execution) -> Listed:
        """What LIST shows."""
        return self.listing, self.details, self.facts(execution.scope)

    def describe(self, asked: OfKind, execution: Execution) -> Outcome:
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
        raise Failure(sqlstate.PRIVILEGE, f'permission denied: role "{session.role}" cannot run {what}')


def check_role(session: Session) -> None:
    """Raises Failure if the session's role has not all rights and the engine cannot restrict statements."""
    engine = session.organization.engine
    if session.rights < Rights.OBJECTS and not engine.capabilities.roles:
        message = f'permission denied: the engine {engine.name} cannot restrict statements to role "{session.role}"'
        raise Failure(sqlstate.PRIVILEGE, message)


def unsupported(verb: str, kind: str) -> Failure:
    return Failure(sqlstate.UNSUPPORTED, f"{verb} {kind.upper()} is not supported by this service")
