"""CAN I: checks whether a role has a privilege."""

from __future__ import annotations

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import missing
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import Tokens
from sqlshell.service.engines.engine import Outcome, Rights
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import DialectStatement, Execution, Needs, Work
from sqlshell.service.objects.kinds import KINDS
from sqlshell.service.organizations.sessions import Session

_PREDEFINED = frozenset({"role", "organization"})
_OBJECTS = (
    *(kind.name for kind in KINDS if kind.is_relation or ("create" in kind.verbs and kind.name not in _PREDEFINED)),
    *("function", "index", "sequence", "type", "macro", "application"),
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


_RUN_BY_ENGINE = frozenset(
    {"select", "read", "print", *(privilege for privilege, rights in _NEEDS.items() if rights == Rights.DATA)}
)
"""Privileges for statements that the engine runs, below those of the owner."""


def check_role(session: Session) -> None:
    """Raises Failure if the session's role has not all rights and the engine cannot restrict statements."""
    engine = session.organization.engine
    if session.rights < Rights.OBJECTS and not engine.capabilities.roles:
        message = f"permission denied: the engine {engine.name} cannot restrict statements to role {session.role!r}"
        raise Failure(sqlstate.PRIVILEGE, message)


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


FORM = Form("CAN I ! <privilege:word> [ ON <about:rest> ]", CanI)
_ORGANIZATION = Form("ORGANIZATION <names:names>", lambda names: str(names[-1]))


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
        raise Failure(sqlstate.PRIVILEGE, f"permission denied: role {session.role!r} cannot {shown}")
    elif privilege in _RUN_BY_ENGINE:
        check_role(session)
    return Outcome(message=f"role {session.role!r} can {shown}")
