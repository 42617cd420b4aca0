"""Runs the statements that create, use and drop objects of the service."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import cast

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.bounds import Bounds, limit_note
from sqlshell.service.catalog import NAMES_OF_ROLES, ROLES, duplicate, least_role, missing
from sqlshell.service.dialect import Create, DialectStatement, Drop, DropFunction, Names, StartPool, Use
from sqlshell.service.dialect.names import WRITES, targets
from sqlshell.service.engines.engine import CatalogQuery, DatabaseEngine, Outcome, Relation, RunOptions, check_supported
from sqlshell.service.failure import Failure
from sqlshell.service.objects import functions, resources, stream_definitions
from sqlshell.service.objects.attachments import Attachment
from sqlshell.service.objects.names import NameTaken, check_open, reserved_name
from sqlshell.service.objects.valid_names import check_name
from sqlshell.service.organizations.copies import CopyWaiter
from sqlshell.service.organizations.organizations import Organization, Organizations
from sqlshell.service.organizations.pools import DEFAULT, Size, read_size
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.results.results import Discard
from sqlshell.service.rights import Rights
from sqlshell.service.secrets import registries, secrets
from sqlshell.service.stores import stores
from sqlshell.service.stores.entities import Entities
from sqlshell.sql.identifiers import qualified


class Objects:
    """Runs statements about objects, in a thread. All methods raise Failure."""

    def __init__(self, organizations: Organizations, sessions: Sessions, bounds: Bounds, quota: int) -> None:
        self._organizations = organizations
        self.bounds = bounds
        self.entities = Entities(organizations, bounds, quota)
        self._sessions = sessions

    def use(self, asked: Use, session: Session) -> Outcome:
        names = asked.names
        match asked.kind:
            case "database":
                check_open(session.organization, "database", names[0])
                check_visible(names[0], session.organization)
                session.connection.use(names[0], names[1] if len(names) > 1 else "")
                session.database_chosen = True
            case "schema":
                session.database_chosen = session.database_chosen or len(names) > 1
                session.connection.use(names[0] if len(names) > 1 else "", names[-1])
            case "organization":
                session.use_organization(names[-1], self._organizations)
            case _:
                session.use(asked.kind, names[-1])
        for part in (asked.kind, "schema") if asked.kind == "database" or len(names) > 1 else (asked.kind,):
            session.context_failures.pop(part, None)
        return Outcome(message=f"using {asked.kind.replace('_', ' ')} {names[-1]}")

    def create(self, asked: Create, session: Session, attachments: Sequence[Attachment], record: CopyWaiter) -> Outcome:
        require(session, Rights.OBJECTS, f"CREATE {asked.kind.upper()}")
        organization, name = session.organization, asked.names[-1]
        done = Outcome(message=f"CREATE {asked.kind.upper()}")
        if asked.if_not_exists and organization.catalog.find(organization.id, asked.kind, name) is not None:
            return done
        self._check(asked, organization)
        try:
            match asked.kind:
                case "database":
                    with reserved_name(organization, "database", name):
                        _create_database(organization, name)
                case "stream" | "changelog":
                    stream_definitions.create(asked, session)
                case "store":
                    detail = stores.read_options(asked.options, self._organizations)
                    with reserved_name(organization, "store", name):
                        stores.add(organization, name, detail, record)
                case "entity":
                    store, entity = self.entity(asked.names, asked.store, session)
                    self.entities.create(organization, store, entity, asked.options, takes_over=asked.if_not_exists)
                case "secret":
                    vault = self._organizations.vault
                    _keep(asked, organization, secrets.read_options(asked.options, organization.id, name, vault))
                case "schema_registry":
                    catalog, vault = organization.catalog, self._organizations.vault
                    # Prevents its secret from being dropped meanwhile.
                    with organization.changing:
                        kept = registries.read_options(asked.options, organization.id, name, catalog, vault)
                        _keep(asked, organization, kept)
                case "compute_pool":
                    size = read_size(asked.options)
                    if name == DEFAULT and organization.catalog.find(organization.id, "compute_pool", name) is None:
                        raise duplicate("compute_pool", name)
                    organization.catalog.add(organization.id, "compute_pool", name, pool_detail(size))
                case "function_source" | "descriptor_source":
                    resources.add(
                        organization, asked.kind, name, dict(asked.options), attachments, self.bounds.resources_size
                    )
                case "organization":
                    only_operator(session)
                    self._organizations.add(name)
                case "api_token":
                    return self._create_token(asked, session)
                case "role":
                    raise predefined_roles("create")
                case _:
                    raise unsupported("CREATE", asked.kind)
        except Failure as failure:
            there = failure.sql_state.startswith("42P") or failure.sql_state == sqlstate.DUPLICATE
            if not (asked.if_not_exists and there) or isinstance(failure, NameTaken):
                raise
        return done

    def is_of_engine(self, asked: DialectStatement, session: Session) -> bool:
        """Whether a DROP is about a secret or function of the engine: the service has none of this name."""
        organization = session.organization
        match asked:
            case Drop(kind="secret") if self._organizations.is_embedded:
                return organization.catalog.find(organization.id, "secret", asked.names[-1]) is None
            case DropFunction(types=None):
                return not functions.keys_of(organization, asked.name)
        return False

    def drop(self, asked: Drop, session: Session) -> Outcome:
        require(session, Rights.OBJECTS, f"DROP {asked.kind.upper()}")
        organization, name = session.organization, asked.names[-1]
        catalog = organization.catalog
        try:
            match asked.kind:
                case "database":
                    self._drop_database(session, name)
                case "stream" | "changelog" | "materialized_view" | "relation":
                    _drop_relation(asked, session)
                case "store":
                    catalog.get(organization.id, "store", name)
                    self.check_unused(session, "store", name)
                    stores.drop(organization, name)
                    self._sessions.leave_dropped_object(organization.id, "store", name)
                case "compute_pool":
                    if name == DEFAULT:
                        raise Failure(sqlstate.DEPENDENTS, f"cannot drop compute pool {name!r}: it is predefined")
                    catalog.drop(organization.id, "compute_pool", name)
                    self._sessions.leave_dropped_object(organization.id, "compute_pool", name)
                case "entity":
                    store, entity = self.entity(asked.names, asked.store, session)
                    self.entities.drop(organization, store, entity)
                case "secret":
                    with organization.changing:
                        registries.check_unused(name, organization.id, catalog)
                        catalog.drop(organization.id, "secret", name)
                case "schema_registry":
                    catalog.drop(organization.id, "schema_registry", name)
                case "function_source" | "descriptor_source":
                    with organization.changing:
                        if asked.kind == "function_source":
                            functions.check_unused(name, organization)
                        resources.drop(organization, asked.kind, name)
                case "organization":
                    only_operator(session)
                    wanted = catalog.organization(name)
                    self._organizations.check_not_last()
                    if wanted == organization.id:
                        raise Failure(sqlstate.DEPENDENTS, f"organization {name!r} is in use by this session")
                    self._sessions.close_organization(wanted)
                    self._organizations.drop(wanted)
                case "api_token":
                    if not catalog.drop_token(organization.id, name):
                        raise missing("api_token", name)
                case "role":
                    raise predefined_roles("drop")
                case _:
                    raise unsupported("DROP", asked.kind)
        except Failure as failure:
            if not (asked.if_exists and failure.sql_state.startswith("3D")):
                raise
        return Outcome(message=f"DROP {asked.kind.upper()}".replace("MATERIALIZED_", "MATERIALIZED "))

    def _check(self, asked: Create, organization: Organization) -> None:
        """Raises Failure if a name or value is invalid or too long, or if there are too many objects of this kind."""
        if any(len(name) > self.bounds.name for name in asked.names):
            raise Failure("42622", f"the name is longer than {self.bounds.name} characters {limit_note('name')}")
        for name in asked.names:
            check_name(name)
        self.check_options(asked.options)
        self.check_number(organization, asked.kind)

    def check_options(self, options: Mapping[str, str]) -> None:
        """Raises Failure if an option is too long."""
        bounds = self.bounds
        for name, value in options.items():
            if len(name) > bounds.name or len(value) > bounds.option:
                message = f"the value of {name[:40]!r} is longer than {bounds.option} characters {limit_note('option')}"
                raise Failure(sqlstate.LIMIT, message)

    def check_number(self, organization: Organization, kind: str) -> None:
        """Raises Failure if there are too many objects of this kind."""
        catalog = organization.catalog
        match kind:
            case "api_token":
                number = len(catalog.tokens(organization.id))
            case "organization":
                number = len(catalog.organizations())
            case _:
                number = len(catalog.objects(organization.id, "stream" if kind == "changelog" else kind))
        if number >= self.bounds.objects:
            where = "service" if kind == "organization" else "organization"
            kind = kind.replace("_", " ")
            raise Failure(
                sqlstate.LIMIT,
                f"too many objects of kind {kind}: the {where} already has {number} {limit_note('objects')}",
            )

    @staticmethod
    def entity(names: Names, store: str, session: Session) -> tuple[str, str]:
        """The store and name of an entity that is to be changed. Raises Failure."""
        organization = session.organization
        if len(names) == 1 and not (store or session.store):
            raise Failure(
                sqlstate.NO_STORE, f"no store selected for entity {names[0]!r}; add IN STORE name, or run USE STORE"
            )
        entity = stores.split_name(names, store or session.store, organization.store_names)
        organization.catalog.get(organization.id, "store", entity[0])
        return entity

    def start_pool(self, asked: StartPool, session: Session) -> Outcome:
        verb = "START" if asked.start else "STOP"
        require(session, Rights.OBJECTS, f"{verb} COMPUTE_POOL")
        organization, catalog = session.organization, session.organization.catalog
        with organization.changing:
            pool = catalog.find(organization.id, "compute_pool", asked.name)
            if pool is None and asked.name != DEFAULT:
                raise missing("compute_pool", asked.name)
            if pool is None:
                catalog.add(organization.id, "compute_pool", DEFAULT, pool_detail(Size()) | {"running": asked.start})
            else:
                catalog.change(organization.id, "compute_pool", asked.name, {**pool.detail, "running": asked.start})
        return Outcome(message=f"{verb} COMPUTE_POOL")

    def _drop_database(self, session: Session, name: str) -> None:
        organization = session.organization
        there = any(row[0] == name for row in databases(organization))
        broken = organization.broken.get(("database", name))
        if not there and broken is None:
            raise missing("database", name)
        check_supported(organization.engine, "databases")
        engine = cast(DatabaseEngine, organization.engine)
        if name == engine.first_database:
            message = f"cannot drop database {name!r}: it is the default database"
            raise Failure(sqlstate.DEPENDENTS, message)
        self.check_unused(session, "database", name)
        with organization.changing:
            found = organization.catalog.find(organization.id, "database", name)
            if there:
                engine.detach(name)
            organization.broken.pop(("database", name), None)
            if found is not None:
                organization.catalog.drop(organization.id, "database", name)
                path = organization.folder("databases") / found.detail["file"]
                for file in (path, path.with_name(path.name + ".wal")):
                    file.unlink(missing_ok=True)
        organization.check_streams()

    def check_unused(self, session: Session, kind: str, name: str) -> None:
        """Raises Failure if a session uses a database or store."""
        if session.connection.database == name:
            message = f"{kind} {name!r} is in use by this session; run USE DATABASE with another database first"
            raise Failure(sqlstate.DEPENDENTS, message)
        if user := self._sessions.using(session.organization.id, name):
            message = f"{kind} {name!r} is in use by session {user.name!r}; run TERMINATE SESSION {user.name!r} first"
            raise Failure(sqlstate.DEPENDENTS, message)

    def _create_token(self, asked: Create, session: Session) -> Outcome:
        if unknown := asked.options.keys() - {"role", "roles"}:
            raise Failure(
                sqlstate.SYNTAX, f"unknown option {min(unknown)!r} of an API token; expected 'role' or 'roles'"
            )
        given = asked.options.get("roles", asked.options.get("role", least_role()))
        roles = [item.strip() for item in given.split(",")]
        greatest = max(NAMES_OF_ROLES[role] for role in session.caller.roles)
        for role in roles:
            if role in NAMES_OF_ROLES and NAMES_OF_ROLES[role] > greatest:
                raise Failure(
                    sqlstate.PRIVILEGE,
                    f"cannot create a token with role {role!r}: it has more privileges than your token",
                )
        catalog = session.organization.catalog
        token = catalog.new_token(session.organization.id, roles, asked.names[-1])
        columns = [ColumnInfo(name, "VARCHAR", False) for name in ("name", "token")]
        return Outcome(
            columns,
            message="the token is shown only once",
            secret=token,
            secret_name=asked.names[-1],
        )


def only_operator(session: Session) -> None:
    """Raises Failure if the token belongs to one organization."""
    if session.caller.organization:
        raise Failure(sqlstate.PRIVILEGE, "permission denied: this token is limited to its organization")


def require(session: Session, rights: Rights, what: str) -> None:
    """Raises Failure if the session's role does not have `rights`."""
    if session.rights < rights:
        raise Failure(sqlstate.PRIVILEGE, f"permission denied: role {session.role!r} cannot run {what}")


def predefined_roles(verb: str) -> Failure:
    return Failure(sqlstate.UNSUPPORTED, f"cannot {verb} a role: the roles {', '.join(ROLES)} are predefined")


def unsupported(verb: str, kind: str) -> Failure:
    return Failure(sqlstate.UNSUPPORTED, f"{verb} {kind.upper()} is not supported by this service")


def check_visible(database: str, organization: Organization) -> None:
    if database in organization.engine.traits.hidden_databases or database in organization.store_names:
        raise missing("database", database)


def missing_relation(session: Session, kind: str, relation: Relation) -> Failure:
    """The Failure for a missing relation: the database, its schema, or the relation does not exist."""
    database, schema, name = relation
    listed = session.catalog(CatalogQuery("schemas"))
    there = [row[0].lower() for row in listed if row[1].lower() == database.lower()]
    if not there:
        return missing("database", database)
    return missing(kind, name) if schema.lower() in there else missing("schema", schema)


_MAKES = rf"{WRITES}|create\s+(?:or\s+replace\s+)?(?:stream|changelog|materialized\s+view)(?:\s+if\s+not\s+exists)?"


def with_missing_database(organization: Organization, sql: str, failure: Failure) -> Failure:
    """The engine's failure with the sqlState of a missing database, for which DuckDB reports a missing schema."""
    if failure.sql_state != sqlstate.NO_SCHEMA or not failure.missing:
        return failure
    name = failure.missing[0].lower()
    named = {names[0].lower() for names in targets(sql, _MAKES) if len(names) == 3}
    if len(failure.missing) == 1 and name not in named:
        return failure
    listed = organization.engine.catalog(CatalogQuery("databases"))
    there = {row[0].lower() for row in listed}
    return failure if name in there else Failure(sqlstate.NO_DATABASE, failure.message)


def databases(organization: Organization) -> list[tuple[str, ...]]:
    return organization.engine.catalog(CatalogQuery("databases", hidden=set(organization.store_names)))


def pool_detail(size: Size) -> dict[str, object]:
    return {
        "concurrency": size.concurrency,
        "queue": size.queue,
        "timeout": size.timeout,
        "size": size.name,
        "timeout_min": size.idle,
        "running": True,
    }


def _create_database(organization: Organization, name: str) -> None:
    check_supported(organization.engine, "databases")
    engine = cast(DatabaseEngine, organization.engine)
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
    organization.catalog.add(organization.id, "database", name, {"file": file})


def _keep(asked: Create, organization: Organization, detail: Mapping[str, object]) -> None:
    """Add an object to the catalog; with OR REPLACE, replace an existing one."""
    catalog, name = organization.catalog, asked.names[-1]
    with organization.changing:
        if asked.replace and catalog.find(organization.id, asked.kind, name) is not None:
            catalog.change(organization.id, asked.kind, name, detail)
        else:
            catalog.add(organization.id, asked.kind, name, detail)


def relation_kind(names: Names, session: Session) -> tuple[Relation, str]:
    """An existing relation, and whether it is a table, a view or a stream. Raises Failure."""
    relation = session.connection.resolve(names)
    if relation[0].lower() in {name.lower() for name in session.organization.store_names}:
        message = f"{relation[0]!r} is a store; use UPDATE ENTITY or DROP ENTITY to change its entities"
        raise Failure(sqlstate.UNSUPPORTED, message)
    streams = session.organization.streams.known
    listed = session.catalog(CatalogQuery("relations", relation[0], relation[1], streams=streams))
    kinds = {row[0]: row[2] for row in listed}
    # Names are case-insensitive in the engine.
    named = next((name for name in kinds if name.lower() == relation[2].lower()), "")
    if not named:
        raise missing_relation(session, "relation", relation)
    exact = (*relation[:2], relation[2] if relation[2] in kinds else named)
    return exact, kinds[exact[2]]


def _drop_relation(asked: Drop, session: Session) -> None:
    relation, kind = relation_kind(asked.names, session)
    what = "view" if asked.kind == "materialized_view" else asked.kind
    if what not in {"relation", stream_definitions.kind_of(session.organization, relation) or kind}:
        raise missing(asked.kind, asked.names[-1])
    what = "VIEW" if kind == "view" else "TABLE"
    session.connection.run(f"DROP {what} {qualified(*relation)}", RunOptions(), Discard())
    if kind == "stream":
        session.organization.check_streams()
