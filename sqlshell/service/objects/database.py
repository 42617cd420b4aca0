"""Databases and their schemas."""

from __future__ import annotations

import uuid
from typing import Any, cast

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import missing
from sqlshell.service.engines.engine import LocalEngine, Outcome, check_supported
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import (
    CREATE,
    IF_EXISTS,
    IF_NOT_EXISTS,
    OPTIONS,
    DialectStatement,
    Execution,
    Kind,
    Listed,
    OfKind,
    Place,
    Result,
)
from sqlshell.service.objects.names import check_open, reserved_name
from sqlshell.service.objects.result_rows import OWNED, TIMES, Facts, columns
from sqlshell.service.objects.scope import Scope
from sqlshell.service.organizations.organizations import Organization
from sqlshell.service.organizations.sessions import Session
from sqlshell.sql.identifiers import qualified


class Database(Kind):
    name, plural = "database", "databases"
    verbs = ("create", "use", "drop", "describe")
    syntax = (("use", "USE KIND <names:names>"),)
    left_to_servers = frozenset({"create", "drop"})
    shown = False
    listing = columns("Name", "IsDefault=default", "Owner", *TIMES, "Type", "State", "Message")
    relation = columns("name", "state", *OWNED)

    def create(self, asked: OfKind, execution: Execution) -> None:
        organization, name = execution.organization, asked.name
        with reserved_name(organization, self.name, name):
            engine = _engine(organization)
            if not organization.is_confined:
                engine.attach(name, None)
                return
            file = f"{uuid.uuid4()}.data"
            path = organization.folder("databases") / file
            try:
                engine.attach(name, path)
            except Failure:
                for partial in (path, path.with_name(path.name + ".wal")):
                    partial.unlink(missing_ok=True)
                raise
            execution.add(self.name, name, {"file": file})

    def use(self, asked: OfKind, execution: Execution) -> None:
        session, names = execution.session, asked.names
        check_open(session.organization, self.name, names[0])
        _check_visible(names[0], session.organization)
        session.connection.use(names[0], names[1] if len(names) > 1 else "")
        session.database_chosen = True

    def drop(self, asked: OfKind, execution: Execution) -> None:
        organization, name = execution.organization, asked.name
        there = any(row[0] == name for row in execution.scope.catalog("databases"))
        if not there and ("database", name) not in organization.broken:
            raise missing(self.name, name)
        engine = _engine(organization)
        if name == engine.first_database:
            raise Failure(sqlstate.DEPENDENTS, f'cannot drop database "{name}": it is the default database')
        execution.check_unused(self.name, name)
        with organization.changing:
            found = execution.find(self.name, name)
            if there:
                engine.detach(name)
            organization.broken.pop((self.name, name), None)
            if found is not None:
                execution.forget(self.name, name)
                path = organization.folder("databases") / found.detail["file"]
                for file in (path, path.with_name(path.name + ".wal")):
                    file.unlink(missing_ok=True)
        organization.check_streams()

    def facts(self, scope: Scope) -> list[Facts]:
        known = {item.name: item for item in scope.kept(self.name)}
        lost = {name: reason for (kind, name), reason in scope.organization.broken.items() if kind == self.name}
        return [
            scope.owned(known.get(name))
            | {
                "name": name,
                "type": self.name,
                "default": name == scope.database,
                "state": "broken" if name in lost else "ready",
                "message": lost.get(name, ""),
            }
            for name in sorted({row[0] for row in scope.catalog("databases")} | set(lost))
        ]

    def describe(self, asked: OfKind, execution: Execution) -> Outcome:
        check_open(execution.organization, self.name, asked.name)
        return super().describe(asked, execution)


class Schema(Kind):
    name, plural, written = "schema", "schemas", "names"
    verbs = ("create", "use", "drop", "describe")
    # DuckDB has CREATE and DROP SCHEMA too: only IN DATABASE makes them statements of the dialect.
    syntax = (
        ("create", f"{CREATE} KIND {IF_NOT_EXISTS} <names:one> IN DATABASE ! <database:one> {OPTIONS}"),
        ("drop", f"DROP KIND {IF_EXISTS} <names:one> IN DATABASE ! <database:one> [ CASCADE =cascade ]"),
    )
    left_to_servers = frozenset({"show"})
    is_transactional = True
    listing = columns("Name", "IsDefault=default", "Owner", *TIMES, "Type", "State", "Database")
    relation = columns("database_name=database", "name", *OWNED)

    def made(self, **values: Any) -> DialectStatement:
        if "database" in values:
            values["names"] = (values.pop("database"), values["names"])
        return super().made(**values)

    def parts(self, asked: OfKind) -> tuple[str, ...]:
        return ("database",) if len(asked.names) == 1 else ()

    def run(self, asked: OfKind, execution: Execution) -> Result:
        """Leave CREATE and DROP to the engine, which checks rights and names."""
        if asked.verb not in {"create", "drop"}:
            return super().run(asked, execution)
        check_database(asked.names[0], execution.session)
        head = asked.verb.upper() + " OR REPLACE" * asked.replace + " SCHEMA"
        there = " IF NOT EXISTS" * asked.if_not_exists + " IF EXISTS" * asked.if_exists
        return execution.run_engine(f"{head}{there} {qualified(*asked.names)}{' CASCADE' * asked.cascade}")

    def use(self, asked: OfKind, execution: Execution) -> None:
        session, whole = execution.session, len(asked.names) > 1
        session.database_chosen = session.database_chosen or whole
        session.connection.use(asked.names[0] if whole else "", asked.name)

    def facts(self, scope: Scope) -> list[Facts]:
        return schemas(scope)

    def listed(self, place: Place, execution: Execution) -> Listed:
        return self.listing, (), schemas(execution.scope, listed_database(place, execution))

    def describe(self, asked: OfKind, execution: Execution) -> Outcome:
        database = asked.names[-2] if len(asked.names) > 1 else execution.scope.database
        check_database(database, execution.session)
        found = [item for item in schemas(execution.scope, database) if str(item["name"]).lower() == asked.name.lower()]
        return self.described(asked.name, found, execution)


def _engine(organization: Organization) -> LocalEngine:
    check_supported(organization.engine, "databases")
    return cast(LocalEngine, organization.engine)


def schemas(scope: Scope, database: str = "") -> list[Facts]:
    """The schemas of a database, or of all databases."""
    noted, initial = scope.noted(), scope.organization.engine.traits.initial_schema
    places = {scope.database: scope.schema}
    return [
        noted(place, name)
        | {
            "name": name,
            "type": "schema",
            "database": place,
            "default": name == places.get(place, initial),
            "state": "ready",
        }
        for name, place in scope.catalog("schemas", database)
    ]


def listed_database(place: Place, execution: Execution) -> str:
    """The database in which LIST looks. Raises Failure if it cannot be used."""
    if not place.names or (place.kind != "database" and len(place.names) == 1):
        return execution.scope.database
    check_open(execution.organization, "database", place.names[0])
    check_database(place.names[0], execution.session)
    return place.names[0]


def check_database(database: str, session: Session) -> None:
    """Raises Failure if a database does not exist or is not visible to statements."""
    organization = session.organization
    _check_visible(database, organization)
    there = Scope(organization, session).catalog("databases")
    if database not in {row[0] for row in there} and ("database", database) not in organization.broken:
        raise missing("database", database)


def _check_visible(database: str, organization: Organization) -> None:
    if database in organization.engine.traits.hidden_databases or database in organization.store_names:
        raise missing("database", database)
