"""CAN I: checks whether a role has a privilege."""

from __future__ import annotations

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import missing
from sqlshell.service.dialect import CanI, Describe, read
from sqlshell.service.engines.engine import Outcome
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.rights import Rights

_OBJECTS = (
    *("database", "schema", "store", "stream", "changelog", "table", "view", "materialized_view", "relation"),
    *("entity", "compute_pool", "function", "function_source", "descriptor_source", "schema_registry", "secret"),
    *("api_token", "index", "sequence", "type", "macro", "application"),
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


def can(session: Session, asked: CanI) -> Outcome:
    """Raises Failure if the role lacks the privilege, the privilege is unknown, or the token may not see the
    organization."""
    privilege = asked.privilege
    shown = privilege.upper()
    about = read(f"DESCRIBE {asked.about}") if asked.about else None
    if isinstance(about, Describe) and about.kind == "organization":
        organization = session.organization.catalog.organization(about.names[-1])
        if not session.caller.may_see(organization):
            raise missing("organization", about.names[-1])
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
