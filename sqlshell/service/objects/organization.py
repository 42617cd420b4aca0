"""Organizations."""

from __future__ import annotations

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import missing
from sqlshell.service.engines.engine import Outcome
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import Create, Describe, Drop, Execution, Kind, Listed, Place, Result, Use
from sqlshell.service.objects.result_rows import columns, table


class Organization(Kind):
    name, plural = "organization", "organizations"
    verbs = ("create", "use", "drop", "describe")
    is_services = True
    listing = columns("name", "id")

    def number(self, execution: Execution) -> int:
        return len(execution.organization.catalog.organizations())

    def create(self, asked: Create, execution: Execution) -> None:
        execution.check_operator()
        execution.services.organizations.add(asked.name)

    def use(self, asked: Use, execution: Execution) -> None:
        execution.session.use_organization(asked.name, execution.services.organizations)

    def drop(self, asked: Drop, execution: Execution) -> Result | None:
        execution.check_operator()
        organizations, wanted = execution.services.organizations, self._id(asked.name, execution)
        organizations.check_not_last()
        if wanted == execution.organization.id:
            raise Failure(sqlstate.DEPENDENTS, f"organization {asked.name!r} is in use by this session")
        execution.services.sessions.close_organization(wanted)
        organizations.drop(wanted)
        return None

    def listed(self, place: Place, execution: Execution) -> Listed:
        catalog, broken = execution.organization.catalog, execution.services.organizations.broken
        known = [item for item in catalog.organizations() if execution.session.caller.may_see(item[0])]
        states = {key: f"broken: {broken[key]}" if key in broken else "ready" for key, _ in known}
        shown = (*self.listing, *(columns("state") if any(key in broken for key, _ in known) else ()))
        return shown, (), [{"name": name, "id": key, "state": states[key]} for key, name in known]

    def describe(self, asked: Describe, execution: Execution) -> Outcome:
        wanted = self._id(asked.name, execution)
        name = execution.organization.catalog.organization_name(wanted)
        return table(execution.sink, ("name", "id"), [(name, wanted)])

    @staticmethod
    def _id(name: str, execution: Execution) -> str:
        wanted = execution.organization.catalog.organization(name)
        if not execution.session.caller.may_see(wanted):
            raise missing("organization", name)
        return wanted
