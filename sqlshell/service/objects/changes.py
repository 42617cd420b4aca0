"""Runs UPDATE, TEST, TRUNCATE, ALTER, INSERT INTO ENTITY, and CREATE and DROP FUNCTION."""

from __future__ import annotations

from collections.abc import Mapping

from sqlshell.interface import sqlstate
from sqlshell.service.bounds import limit_note
from sqlshell.service.catalog import missing
from sqlshell.service.dialect import Alter, CreateFunction, DropFunction, InsertEntity, Test, Truncate, Update
from sqlshell.service.engines.engine import Outcome, RunOptions, Sink
from sqlshell.service.failure import Failure
from sqlshell.service.objects import functions
from sqlshell.service.objects.objects import Objects, pool_detail, relation_kind, require, unsupported
from sqlshell.service.objects.result_rows import table
from sqlshell.service.objects.valid_names import check_name
from sqlshell.service.organizations.copies import CopyWaiter
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.pools import DEFAULT, read_size, size_of
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.results.results import Discard
from sqlshell.service.rights import Rights
from sqlshell.service.secrets import registries, secrets
from sqlshell.service.stores import stores
from sqlshell.service.stores.entities import check_options
from sqlshell.sql.identifiers import literal, qualified

Changing = Update | Test | InsertEntity | Truncate | Alter | CreateFunction | DropFunction


class Changes:
    """Runs these statements, in a thread. Methods raise Failure."""

    def __init__(self, organizations: Organizations, objects: Objects) -> None:
        self._organizations = organizations
        self._objects = objects

    def run(self, asked: Changing, session: Session, options: RunOptions, sink: Sink, waiting: CopyWaiter) -> Outcome:
        match asked:
            case Update():
                return self._update(asked, session, waiting)
            case Test():
                return self._test(asked, session, sink)
            case InsertEntity():
                return self._insert(asked, session)
            case Truncate():
                return self._truncate(asked, session, options)
            case Alter():
                return self._alter(asked, session, options)
            case CreateFunction():
                return self._create_function(asked, session)
            case DropFunction():
                return self._drop_function(asked, session)

    def _update(self, asked: Update, session: Session, waiting: CopyWaiter) -> Outcome:
        verb = f"UPDATE {asked.kind.upper()}"
        require(session, Rights.OBJECTS, verb)
        self._objects.check_options(asked.options)
        # Read, change and write back: without the lock, a concurrent change would be lost.
        with session.organization.changing:
            self._change(asked, session, waiting)
        return Outcome(message=verb)

    def _change(self, asked: Update, session: Session, waiting: CopyWaiter) -> None:
        organization, name = session.organization, asked.names[-1]
        match asked.kind:
            case "store":
                organization.catalog.get(organization.id, "store", name)
                if {"uri", "uris"} & asked.options.keys():
                    self._objects.check_unused(session, "store", name)
                stores.change(organization, name, asked.options, self._organizations, waiting)
            case "compute_pool":
                _update_pool(name, asked.options, session)
            case "entity":
                store, entity = self._objects.entity(asked.names, asked.store, session)
                self._objects.entities.update(organization, store, entity, asked.options)
            case "secret":
                catalog, vault = organization.catalog, self._organizations.vault
                kept = secrets.change(asked.options, organization.id, name, catalog, vault)
                catalog.change(organization.id, secrets.KIND, name, kept)
            case "schema_registry":
                catalog, vault = organization.catalog, self._organizations.vault
                changed = registries.change(asked.options, organization.id, name, catalog, vault)
                catalog.change(organization.id, registries.KIND, name, changed)
            case _:
                organization.catalog.get(organization.id, asked.kind, name)
                raise unsupported("UPDATE", asked.kind)

    def _test(self, asked: Test, session: Session, sink: Sink) -> Outcome:
        return table(sink, ("Status", "Message"), [("ready", self._tested(asked, session))])

    def _tested(self, asked: Test, session: Session) -> str:
        organization, name = session.organization, asked.name
        if asked.kind == "store":
            return stores.test(organization, name, self._organizations)
        # The test sends the registry's password.
        require(session, Rights.OBJECTS, "TEST SCHEMA_REGISTRY")
        hosts, vault = self._organizations.registry_hosts, self._organizations.vault
        return registries.test(name, organization.id, organization.catalog, vault, hosts)

    def _insert(self, asked: InsertEntity, session: Session) -> Outcome:
        require(session, Rights.DATA, "INSERT INTO ENTITY")
        check_options(asked.options)
        if not asked.store and session.connection.resolve(asked.names) in session.organization.streams.known:
            message = f"{asked.names[-1]!r} is a stream, not an entity of a store; use INSERT INTO without ENTITY"
            raise Failure(sqlstate.UNSUPPORTED, message)
        store, entity = self._objects.entity(asked.names, asked.store, session)
        self._objects.entities.insert(session.organization, store, entity, asked.value)
        return Outcome(message="INSERT 1")

    @staticmethod
    def _truncate(asked: Truncate, session: Session, options: RunOptions) -> Outcome:
        require(session, Rights.DATA, "TRUNCATE RELATION")
        relation, kind = relation_kind(asked.names, session)
        if kind == "stream":
            message = f"cannot truncate stream {relation[2]!r}: a stream is append-only"
            raise Failure(sqlstate.UNSUPPORTED, message)
        if kind == "view":
            raise Failure(sqlstate.UNSUPPORTED, f"cannot truncate {relation[2]!r}: it is a view")
        session.connection.run(f"TRUNCATE {qualified(*relation)}", options, Discard())
        return Outcome(message="TRUNCATE RELATION")

    def _alter(self, asked: Alter, session: Session, options: RunOptions) -> Outcome:
        verb = f"ALTER {asked.kind.upper()}"
        require(session, Rights.OBJECTS, verb)
        self._objects.check_options({"description": asked.description})
        relation, kind = relation_kind(asked.names, session)
        if asked.kind in {"stream", "changelog"} and kind != asked.kind:
            raise missing(asked.kind, asked.names[-1])
        what = "VIEW" if kind == "view" else "TABLE"
        sql = f"COMMENT ON {what} {qualified(*relation)} IS {literal(asked.description)}"
        session.connection.run(sql, options, Discard())
        return Outcome(message=verb)

    def _create_function(self, asked: CreateFunction, session: Session) -> Outcome:
        require(session, Rights.OBJECTS, "CREATE FUNCTION")
        organization = session.organization
        self._objects.check_options(asked.options)
        self._objects.check_number(organization, functions.KIND)
        check_name(asked.name)
        name = functions.key(asked.name, tuple(kind for _, kind in asked.arguments))
        if len(name) > self._objects.bounds.name:
            raise Failure(
                "42622", f"the name is longer than {self._objects.bounds.name} characters {limit_note('name')}"
            )
        try:
            functions.create(organization, asked)
        except Failure as failure:
            if not (asked.if_not_exists and failure.sql_state == sqlstate.DUPLICATE_FUNCTION):
                raise
        return Outcome(message="CREATE FUNCTION")

    @staticmethod
    def _drop_function(asked: DropFunction, session: Session) -> Outcome:
        require(session, Rights.OBJECTS, "DROP FUNCTION")
        try:
            functions.drop(session.organization, asked)
        except Failure as failure:
            if not (asked.if_exists and failure.sql_state == sqlstate.NO_FUNCTION):
                raise
        return Outcome(message="DROP FUNCTION")


def _update_pool(name: str, options: Mapping[str, str], session: Session) -> None:
    organization = session.organization
    catalog = organization.catalog
    with organization.changing:
        pool = catalog.find(organization.id, "compute_pool", name)
        if pool is None and name != DEFAULT:
            raise missing("compute_pool", name)
        if pool is None:
            catalog.add(organization.id, "compute_pool", name, pool_detail(read_size(options)))
            return
        changed = pool_detail(read_size(options, size_of(pool.detail)))
        catalog.change(organization.id, "compute_pool", name, changed | {"running": pool.detail["running"]})
