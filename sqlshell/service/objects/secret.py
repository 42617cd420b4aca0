"""Secrets and schema registries, of which the service keeps an encrypted value."""

from __future__ import annotations

from sqlshell.service.engines.engine import Rights
from sqlshell.service.objects.kind import CREATE, IF_NOT_EXISTS, Execution, Kind, OfKind, Result
from sqlshell.service.objects.result_rows import OWNED, TIMES, Facts, columns
from sqlshell.service.objects.scope import Scope
from sqlshell.service.secrets import registries, secrets


class _Sealed(Kind):
    is_services = True

    def facts(self, scope: Scope) -> list[Facts]:
        rows: list[Facts] = []
        for item in scope.kept(self.name):
            state, reason = secrets.status(scope.organization.id, item, scope.organization.vault)
            rows.append(scope.facts(item) | {"state": state, "message": reason, "url": item.detail.get("uris", "")})
        return rows


class Secret(_Sealed):
    name, plural = secrets.KIND, "secrets"
    verbs = ("create", "update", "drop", "describe")
    # DuckDB has CREATE SECRET too: only WITH makes it a statement of the dialect.
    syntax = (("create", f"{CREATE} KIND {IF_NOT_EXISTS} <names:names> WITH ! <options:options>"),)
    listing = columns("Name", "Type", "Description", "State", "Owner", *TIMES, "Message")
    relation = columns("name", "type", "description", "region", "status=state", "status_message=message", *OWNED)

    def run(self, asked: OfKind, execution: Execution) -> Result:
        """Leave the DROP of a secret of an embedded engine to it."""
        embedded = execution.services.organizations.is_embedded
        if asked.verb == "drop" and embedded and execution.find(self.name, asked.name) is None:
            return execution.run_engine(execution.sql)
        return super().run(asked, execution)

    def create(self, asked: OfKind, execution: Execution) -> None:
        vault = execution.services.organizations.vault
        detail = secrets.read_options(asked.options, execution.organization.id, asked.name, vault)
        execution.add(self.name, asked.name, detail, replace=asked.replace)

    def update(self, asked: OfKind, execution: Execution) -> None:
        catalog, vault = execution.organization.catalog, execution.services.organizations.vault
        detail = secrets.change(asked.options, execution.organization.id, asked.name, catalog, vault)
        execution.change(self.name, asked.name, detail)

    def drop(self, asked: OfKind, execution: Execution) -> None:
        with execution.organization.changing:
            registries.check_unused(asked.name, execution.organization.id, execution.organization.catalog)
            execution.forget(self.name, asked.name)


class SchemaRegistry(_Sealed):
    name, plural = registries.KIND, "schema_registries"
    verbs = ("create", "update", "test", "drop", "describe")
    listing = columns("Name", "Type", "State", "Url", "Owner", *TIMES, "Message")
    relation = columns("name", "type", "status=state", "status_message=message", "url", *OWNED)

    def create(self, asked: OfKind, execution: Execution) -> None:
        catalog, vault = execution.organization.catalog, execution.services.organizations.vault
        # Prevents its secret from being dropped meanwhile.
        with execution.organization.changing:
            detail = registries.read_options(asked.options, execution.organization.id, asked.name, catalog, vault)
            execution.add(self.name, asked.name, detail, replace=asked.replace)

    def update(self, asked: OfKind, execution: Execution) -> None:
        catalog, vault = execution.organization.catalog, execution.services.organizations.vault
        detail = registries.change(asked.options, execution.organization.id, asked.name, catalog, vault)
        execution.change(self.name, asked.name, detail)

    def test(self, name: str, execution: Execution) -> str:
        # The test sends the registry's password.
        execution.require(Rights.OBJECTS, "TEST SCHEMA_REGISTRY")
        organizations, organization = execution.services.organizations, execution.organization
        hosts, vault = organizations.registry_hosts, organizations.vault
        return registries.test(name, organization.id, organization.catalog, vault, hosts)
