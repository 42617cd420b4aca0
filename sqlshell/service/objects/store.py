"""Stores: the statements about them. `service/stores/` looks after their files."""

from __future__ import annotations

from sqlshell.service.catalog import missing
from sqlshell.service.engines.engine import Outcome
from sqlshell.service.objects.kind import Create, Describe, Drop, Execution, Kind, Result, Update
from sqlshell.service.objects.names import reserved_name
from sqlshell.service.objects.result_rows import BOOLEAN, OWNED, TIMES, Facts, columns, keep, text
from sqlshell.service.objects.scope import Scope
from sqlshell.service.stores import stores

_DESCRIBED = columns(
    *("Metadata", "Uri", "Details", "TlsEnabled=tls", "VerifyHostName=verify", "SchemaRegistryName=registry", "Path"),
    tls=BOOLEAN,
    verify=BOOLEAN,
)
"""The columns of DESCRIBE STORE; clients read them by position."""


class Store(Kind):
    name, plural = "store", "stores"
    verbs = ("create", "use", "update", "test", "drop", "describe")
    is_services = True
    listing = columns("Name", "Type", "State", "Message", "IsDefault=default", "Owner", *TIMES, "Uri", "Writable")
    relation = columns("name", "type", "status=state", "status_message=message", "uri", *OWNED)

    def create(self, asked: Create, execution: Execution) -> None:
        detail = stores.read_options(asked.options, execution.services.organizations)
        with reserved_name(execution.organization, self.name, asked.name):
            stores.add(execution.organization, asked.name, detail, execution.is_canceled)

    def update(self, asked: Update, execution: Execution) -> None:
        execution.get(self.name, asked.name)
        if {"uri", "uris"} & asked.options.keys():
            execution.check_unused(self.name, asked.name)
        organizations = execution.services.organizations
        stores.change(execution.organization, asked.name, asked.options, organizations, execution.is_canceled)

    def test(self, name: str, execution: Execution) -> str:
        return stores.test(execution.organization, name, execution.services.organizations)

    def drop(self, asked: Drop, execution: Execution) -> Result | None:
        execution.get(self.name, asked.name)
        execution.check_unused(self.name, asked.name)
        stores.drop(execution.organization, asked.name)
        execution.services.sessions.leave_dropped_object(execution.organization.id, self.name, asked.name)
        return None

    def facts(self, scope: Scope) -> list[Facts]:
        rows: list[Facts] = []
        for item in scope.kept(self.name):
            state, _, reason = stores.state(scope.organization, item.name).partition(": ")
            default = scope.session is not None and scope.session.store == item.name
            facts = {"state": state, "message": reason, "default": default}
            rows.append(scope.facts(item) | facts | {"writable": bool(item.detail.get("writable"))})
        return rows

    def describe(self, asked: Describe, execution: Execution) -> Outcome:
        """One row, as clients of the interface scan it; a directory has neither TLS nor a schema registry."""
        facts = next((item for item in self.facts(execution.scope) if item["name"] == asked.name), None)
        if facts is None:
            raise missing(self.name, asked.name)
        metadata = {item.name: facts.get(item.key) for item in self.listing if item.key not in {"uri", "writable"}}
        metadata = {key: value if isinstance(value, bool) else text(value) for key, value in metadata.items()}
        row = {
            "metadata": metadata,
            "uri": facts["uri"],
            "details": {"Writable": facts["writable"]},
            "tls": False,
            "verify": False,
            "path": facts["uri"],
        }
        return keep(_DESCRIBED, [row], execution.sink)
