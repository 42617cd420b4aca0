"""Organizations, roles, API tokens that have them, and users, of which there are none."""

from __future__ import annotations

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.catalog import NAMES_OF_ROLES, ROLES, least_role, missing
from sqlshell.service.engines.engine import Outcome, Rights
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import Execution, Kind, Listed, OfKind, Place, Result
from sqlshell.service.objects.result_rows import BOOLEAN, Facts, columns, table
from sqlshell.service.objects.scope import Scope

_RIGHTS = {Rights.OBJECTS: "all", Rights.DATA: "read and change data", Rights.READ: "read data"}


class Role(Kind):
    name, plural = "role", "roles"
    verbs = ("create", "use", "drop", "describe")
    left_to_servers = frozenset({"create", "drop", "show"})
    listing = columns("Name", "Rights", "Granted", granted=BOOLEAN)

    def change(self, asked: OfKind, execution: Execution) -> Result | None:
        message = f"cannot {asked.verb} a role: the roles {', '.join(ROLES)} are predefined"
        raise Failure(sqlstate.UNSUPPORTED, message)

    def facts(self, scope: Scope) -> list[Facts]:
        granted = scope.session.caller.has_role if scope.session else lambda name: False
        return [
            {"name": name, "rights": _RIGHTS[right], "granted": granted(name)} for name, right in NAMES_OF_ROLES.items()
        ]


class ApiToken(Kind):
    name, plural = "api_token", "api_tokens"
    verbs = ("create", "drop", "describe")
    is_services = True
    listing = columns("Name", "Roles")

    def number(self, execution: Execution) -> int:
        return len(execution.organization.catalog.tokens(execution.organization.id))

    def create(self, asked: OfKind, execution: Execution) -> Outcome:
        if unknown := asked.options.keys() - {"role", "roles"}:
            raise Failure(
                sqlstate.SYNTAX, f"unknown option {min(unknown)!r} of an API token; expected 'role' or 'roles'"
            )
        if len(asked.options) > 1:
            raise Failure(sqlstate.SYNTAX, "an API token takes 'role' or 'roles', not both")
        given = asked.options.get("roles", asked.options.get("role", least_role()))
        roles = [item.strip() for item in given.split(",")]
        greatest = max(NAMES_OF_ROLES[role] for role in execution.session.caller.roles)
        for role in roles:
            if role in NAMES_OF_ROLES and NAMES_OF_ROLES[role] > greatest:
                message = f'cannot create a token with role "{role}": it has more privileges than your token'
                raise Failure(sqlstate.PRIVILEGE, message)
        token = execution.organization.catalog.new_token(execution.organization.id, roles, asked.name)
        shown = [ColumnInfo(name, "VARCHAR", False) for name in ("name", "token")]
        return Outcome(shown, message="the token is shown only once", secret=token, secret_name=asked.name)

    def drop(self, asked: OfKind, execution: Execution) -> None:
        if not execution.organization.catalog.drop_token(execution.organization.id, asked.name):
            raise missing(self.name, asked.name)

    def facts(self, scope: Scope) -> list[Facts]:
        organization = scope.organization
        return [{"name": name, "roles": held} for name, held in organization.catalog.tokens(organization.id)]


class User(Kind):
    """Clients list users and invitations; the service has API tokens instead."""

    name, plural = "user", "users"
    left_to_servers = frozenset({"show"})
    listing = columns("Name", "Email")

    def facts(self, scope: Scope) -> list[Facts]:
        return []


class Invitation(User):
    name, plural = "invitation", "invitations"
    left_to_servers = frozenset()


class Organization(Kind):
    name, plural = "organization", "organizations"
    verbs = ("create", "use", "drop", "describe")
    is_services = True
    listing = columns("name", "id")

    def number(self, execution: Execution) -> int:
        return len(execution.organization.catalog.organizations())

    def create(self, asked: OfKind, execution: Execution) -> None:
        execution.check_operator()
        execution.organizations.add(asked.name)

    def use(self, asked: OfKind, execution: Execution) -> None:
        execution.session.use_organization(asked.name, execution.organizations)

    def drop(self, asked: OfKind, execution: Execution) -> None:
        execution.check_operator()
        organizations, wanted = execution.organizations, self._id(asked.name, execution)
        organizations.check_not_last()
        if wanted == execution.organization.id:
            cause = f'organization "{asked.name}" is in use by this session'
            raise Failure(sqlstate.DEPENDENTS, f"{cause}; run USE ORGANIZATION with another one first")
        execution.sessions.close_organization(wanted)
        organizations.drop(wanted)

    def listed(self, place: Place, execution: Execution) -> Listed:
        catalog, broken = execution.organization.catalog, execution.organizations.broken
        known = [item for item in catalog.organizations() if execution.session.caller.may_see(item[0])]
        states = {key: f"broken: {broken[key]}" if key in broken else "ready" for key, _ in known}
        shown = (*self.listing, *(columns("state") if any(key in broken for key, _ in known) else ()))
        return shown, (), [{"name": name, "id": key, "state": states[key]} for key, name in known]

    def describe(self, asked: OfKind, execution: Execution) -> Outcome:
        wanted = self._id(asked.name, execution)
        name = execution.organization.catalog.organization_name(wanted)
        return table(execution.sink, ("name", "id"), [(name, wanted)])

    @staticmethod
    def _id(name: str, execution: Execution) -> str:
        wanted = execution.organization.catalog.organization(name)
        if not execution.session.caller.may_see(wanted):
            raise missing("organization", name)
        return wanted
