"""The list of all kinds of objects, and what follows from it: the forms of statements, CAN I, and the system relations.

A new kind is a class in this directory, a line here, and a row of `sql/object_kinds.py`, which the shell reads as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn, cast

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import missing
from sqlshell.service.dialect import unsupported
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import Tokens
from sqlshell.service.engines.engine import LocalEngine, Outcome, Rights
from sqlshell.service.failure import Failure
from sqlshell.service.objects import account, database, engine, function, listing, query, relation, secret, store
from sqlshell.service.objects.kind import OPTIONS, DialectStatement, Execution, Kind, Needs, Work, check_role
from sqlshell.service.objects.kind import unsupported as not_supported
from sqlshell.service.objects.result_rows import Facts, listed
from sqlshell.service.objects.scope import Scope
from sqlshell.service.organizations.sessions import Session
from sqlshell.sql.object_kinds import SYSTEM_TABLES

KINDS: tuple[Kind, ...] = (
    database.Database(),
    database.Schema(),
    relation.AnyRelation(),
    relation.Table(),
    relation.View(),
    relation.MaterializedView(),
    relation.Stream(),
    relation.Changelog(),
    store.Store(),
    store.Entity(),
    engine.ComputePool(),
    function.Function(),
    function.FunctionSource(),
    function.DescriptorSource(),
    secret.SchemaRegistry(),
    secret.Secret(),
    account.Role(),
    account.ApiToken(),
    account.User(),
    account.Invitation(),
    account.Organization(),
    engine.Engine(),
    query.Query(),
    query.SessionKind(),
)


def forms(*, server: bool) -> Iterator[Form[DialectStatement]]:
    """The forms in the order in which they are tried; `server`: without those that an engine of its own has itself."""
    yield from unsupported.forms(server=server)
    for kind in KINDS:
        for form in kind.forms():
            if not (server and form.first in kind.left_to_servers):
                yield form
    for verb in ("update", "test", "start", "stop"):
        others = "|".join(kind.title for kind in KINDS if verb not in kind.verbs)
        # An engine would report a syntax error; UPDATE … SET is for it.
        yield Form(f"{verb.upper()} kind:{others} <names:names> {OPTIONS}", _refuse, verb=verb)
    yield from listing.forms([kind for kind in KINDS if kind.plural], server=server)
    yield Form("CAN I ! <privilege:word> [ ON <about:rest> ]", CanI)


def _refuse(kind: str, verb: str, **_: object) -> NoReturn:
    raise not_supported(verb.upper(), kind)


_PREDEFINED = frozenset({"role", "organization"})
_OBJECTS = (
    *(kind.name for kind in KINDS if kind.is_relation or ("create" in kind.verbs and kind.name not in _PREDEFINED)),
    *("index", "sequence", "type", "macro", "application"),
)
_NEEDS = {
    **{f"{verb}_{kind}": Rights.OBJECTS for kind in _OBJECTS for verb in ("create", "drop", "update", "alter")},
    **dict.fromkeys(("create", "drop", "alter", "ownership", "manage", "all"), Rights.OBJECTS),
    # A query of the interface writes to a relation.
    **dict.fromkeys(("create_query", "insert", "update", "delete", "truncate", "write"), Rights.DATA),
    **dict.fromkeys(("select", "usage", "read", "print", "list", "describe"), Rights.READ),
}
"""The rights that a role needs for each privilege of the interface."""

_UNGRANTED_PRIVILEGES = frozenset({"create_role", "create_user", "invite_user", "grant", "revoke", "manage_members"})
"""Privileges that no role has: roles are predefined, and there are tokens instead of users."""

_RUN_BY_SERVICE = frozenset({"usage", "list", "describe"})
"""Privileges below the owner's for statements that no engine runs."""


class CanI(DialectStatement, frozen=True):
    """CAN I: the privilege, in lower case, and the text after ON."""

    privilege: str
    about: str = ""

    def needs(self) -> Needs:
        return Needs(Work.SERVICE)

    def run(self, execution: Execution) -> Outcome:
        """Raises Failure if the role lacks the privilege, the privilege is unknown, or the token may not see the
        organization."""
        name = _ORGANIZATION.read(Tokens(self.about))
        if name and not execution.session.caller.may_see(execution.organization.catalog.organization(name)):
            raise missing("organization", name)
        return _checked(self.privilege, execution.session)


_ORGANIZATION = Form("ORGANIZATION <name:one>", lambda name: name)


def _checked(privilege: str, session: Session) -> Outcome:
    shown = privilege.upper()
    if privilege in {"create_organization", "drop_organization"}:
        if session.caller.organization:
            raise Failure(
                sqlstate.PRIVILEGE, f"permission denied for {shown}: this token is limited to its organization"
            )
    elif privilege in _UNGRANTED_PRIVILEGES:
        raise Failure(
            sqlstate.PRIVILEGE, f"permission denied for {shown}: roles are predefined and assigned to API tokens"
        )
    elif privilege not in _NEEDS:
        raise Failure(sqlstate.UNSUPPORTED, f"unknown privilege {shown}")
    elif session.rights < _NEEDS[privilege]:
        raise Failure(sqlstate.PRIVILEGE, f'permission denied: role "{session.role}" cannot {shown}')
    elif privilege not in _RUN_BY_SERVICE:
        check_role(session)
    return Outcome(message=f'role "{session.role}" can {shown}')


SYSTEM: Mapping[str, Kind] = {kind.plural: kind for kind in KINDS if kind.plural in SYSTEM_TABLES}
"""The kinds with a relation in `deltastream.sys`, by its name."""


def system_columns() -> Mapping[str, Sequence[tuple[str, str]]]:
    """The columns of the system relations: names and interface types."""
    return {name: [(column.name, column.type) for column in kind.relation] for name, kind in SYSTEM.items()}


def publish(session: Session, sql: str, queries: Callable[[], list[Facts]]) -> None:
    """Refresh the system relations that a statement may read. In a thread. Raises Failure.

    `queries` returns the facts about the latest statements. Every role may read the relations, so that they
    do not contain the texts of statements.
    """
    scope, low = Scope(session.organization, role=session.role), sql.lower()
    # A statement that names none of them may read them through a list of relations or dynamic SQL.
    named = {name for name in SYSTEM if name in low} or {name for name, kind in SYSTEM.items() if not kind.costly}
    cast(LocalEngine, session.organization.engine).publish(
        {
            name: listed(SYSTEM[name].relation, queries() if name == "queries" else SYSTEM[name].facts(scope))
            for name in sorted(named)
        }
    )
