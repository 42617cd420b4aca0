"""LIST, SHOW and DESCRIBE: objects and relations as rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.catalog import missing
from sqlshell.service.dialect import Describe, EngineObjects, List
from sqlshell.service.engines.duckdb.translation.text import placed
from sqlshell.service.engines.engine import ObjectQuery, Outcome, Relation, RunOptions, Sink
from sqlshell.service.failure import Failure
from sqlshell.service.objects import inventory
from sqlshell.service.objects.inventory import Scope
from sqlshell.service.objects.names import check_open
from sqlshell.service.objects.objects import check_visible, missing_relation, unsupported
from sqlshell.service.objects.result_rows import (
    BOOLEAN,
    NUMBER,
    Facts,
    ShownColumn,
    columns,
    keep,
    listed,
    properties,
    table,
    text,
)
from sqlshell.service.organizations.copies import CopyWaiter
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.rights import Rights
from sqlshell.service.stores import stores
from sqlshell.sql.analysis.tokens import tokens


class Kind(Struct, frozen=True):
    """A kind of object: the columns of LIST, the function that finds all, more columns for DESCRIBE and WHERE."""

    shown: tuple[ShownColumn, ...]
    find: Callable[[Scope], list[Facts]]
    more: tuple[ShownColumn, ...] = ()


Rows = tuple[tuple[ShownColumn, ...], tuple[ShownColumn, ...], list[Facts]]
"""Shown columns, further columns for conditions, and the facts that they show."""

_TIMES = ("CreatedAt=created", "UpdatedAt=updated")
_RELATION = columns("Name", "Type", "Owner", "State", "Properties", *_TIMES, "Database", "Schema")
_OF_RELATION = columns("PrimaryKey=primary_key", "Description", "FQN=fqn")

KINDS: Mapping[str, Kind] = {
    "databases": Kind(
        columns("Name", "IsDefault=default", "Owner", *_TIMES, "Type", "State", "Message"), inventory.databases
    ),
    "schemas": Kind(
        columns("Name", "IsDefault=default", "Owner", *_TIMES, "Type", "State", "Database"), inventory.schemas
    ),
    "relations": Kind(_RELATION, inventory.relations, _OF_RELATION),
    "stores": Kind(
        columns("Name", "Type", "State", "Message", "IsDefault=default", "Owner", *_TIMES, "Uri", "Writable"),
        inventory.all_stores,
    ),
    "entities": Kind(
        columns("Name", "IsLeaf=leaf"),
        inventory.entities,
        columns("Store", "Type", "Path", "Size", "ModifiedAt=modified"),
    ),
    "engines": Kind(
        columns("Name", "Version", "State", "Supported", "NotSupported=unsupported"),
        inventory.engines,
    ),
    "compute_pools": Kind(
        columns(
            *("Name", "Size", "IntendedState=intended", "ActualState=actual", "ErrorMessages=errors"),
            *("Timeout=timeout_min", "Owner", *_TIMES, "Concurrency", "Queue", "StatementTimeout=longest"),
            timeout_min=NUMBER,
        ),
        inventory.pools,
    ),
    "functions": Kind(
        columns(
            *("Name", "Signature", "Type", "Language", "SourceName=source_name", "ClassName=class_name"),
            *("EgressAllowURIs=uris", "Properties", "Owner", "State", *_TIMES),
        ),
        inventory.functions,
    ),
    "function_sources": Kind(
        columns("Name", "Language", "State", "Description", "Url", "Owner", *_TIMES, "File", "Size", "Sha256"),
        inventory.sources("function_source"),
    ),
    "descriptor_sources": Kind(
        columns("Name", "Type", "State", "Description", "Url", "Tags", "Owner", *_TIMES, "File", "Size", "Sha256"),
        inventory.sources("descriptor_source"),
    ),
    "schema_registries": Kind(
        columns("Name", "Type", "State", "Url", "Owner", *_TIMES, "Message"), inventory.recorded("schema_registry")
    ),
    "secrets": Kind(
        columns("Name", "Type", "Description", "State", "Owner", *_TIMES, "Message"), inventory.recorded("secret")
    ),
    "roles": Kind(columns("Name", "Rights", "Granted", granted=BOOLEAN), inventory.roles),
    "api_tokens": Kind(columns("Name", "Roles"), inventory.tokens),
    "users": Kind(columns("Name", "Email"), lambda here: []),
    "invitations": Kind(columns("Name", "Email"), lambda here: []),
}
"""The kinds of LIST, except organizations and queries. Clients read some columns by position: keep their order."""

_STORE = columns(
    *("Metadata", "Uri", "Details", "TlsEnabled=tls", "VerifyHostName=verify", "SchemaRegistryName=registry", "Path"),
    tls=BOOLEAN,
    verify=BOOLEAN,
)
"""The columns of DESCRIBE STORE; clients read them by position."""

_ONE_TYPE = {"streams": "stream", "changelogs": "changelog", "tables": "", "materialized_views": "materialized view"}
"""Lists that show the relations of one type."""

_PLURALS = {
    "schema_registry": "schema_registries",
    "entity": "entities",
    "table": "relations",
    "view": "relations",
    "stream": "relations",
    "changelog": "relations",
    "materialized_view": "relations",
}

_ALSO = {
    "database": "database_name",
    "schema": "schema_name",
    "type": "relation_type",
    "default": "is_default",
    "leaf": "is_leaf",
    "created": "created_at",
    "updated": "updated_at",
    "state": "status",
    "intended": "intended_state",
    "actual": "actual_state",
    "primary_key": "primary_key",
}
"""Alternative names of columns in conditions."""


def list_all(
    asked: List,
    session: Session,
    options: RunOptions,
    sink: Sink,
    organizations: Organizations,
    queries: Callable[[], Rows],
    typed: str,
) -> Outcome:
    """Run LIST or SHOW. `queries` returns the latest statements; `typed` is this one as it was sent."""
    if asked.what == "organizations":
        return _organizations(session, sink, organizations)
    if asked.what == "queries":
        shown, more, facts = queries()
    else:
        shown, more, facts = _listed(asked, session)
    if asked.where:
        return filtered(asked.where, typed, shown, more, facts, session, options, sink)
    return keep(shown, facts, sink)


def filtered(
    where: str,
    typed: str,
    shown: Sequence[ShownColumn],
    more: Sequence[ShownColumn],
    facts: Sequence[Facts],
    session: Session,
    options: RunOptions,
    sink: Sink,
) -> Outcome:
    """The facts that satisfy a condition: a SELECT over them with a reader's rights, checked like any other."""
    _check_condition(where)
    known = {column.name.lower() for column in (*shown, *more)}
    also = [
        ShownColumn(_ALSO[column.key], column.key, column.type)
        for column in (*shown, *more)
        if column.key in _ALSO and _ALSO[column.key] not in known
    ]
    rows = session.organization.engine.inline(listed([*shown, *more, *also], facts))
    # Engines quote names differently. Behind a dot, all of them accept any word.
    names = ", ".join(f"listed.{column.name}" for column in shown)
    # The newline ends a comment at the end of the condition.
    before, behind = f"SELECT {names} FROM ({rows}) listed WHERE (\n", "\n)"
    with placed(typed, before, where, behind):
        outcome = session.connection.run(f"{before}{where}{behind}", replace(options, rights=Rights.READ), sink)
    if outcome.columns is None:
        return outcome
    result_columns = [ColumnInfo(column.name, column.type, False) for column in shown]
    return replace(outcome, columns=result_columns if len(result_columns) == len(outcome.columns) else outcome.columns)


def _check_condition(where: str) -> None:
    """Raises Failure if the condition has an unmatched closing parenthesis: it is run in parentheses."""
    depth = 0
    for token in tokens(where):
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0:
            raise Failure(sqlstate.SYNTAX, 'syntax error at or near ")" in the condition of WHERE')


def _listed(asked: List, session: Session) -> Rows:
    here, place, names = Scope(session.organization, session), asked.place, asked.names
    if asked.what == "entities":
        store = asked.store or (names[-1] if place == "store" else session.store)
        folder = list(names) if place == "entity" else []
        if folder and not asked.store and folder[0] in session.organization.store_names:
            store = folder.pop(0)
        kind, of_all = KINDS["entities"], columns("Store") if not store else ()
        more = [item for item in kind.more if item not in of_all]
        return (*kind.shown, *of_all), tuple(more), inventory.entities(here, store, folder or None)
    if asked.what in _ONE_TYPE or asked.what in {"relations", "schemas"}:
        database = (names[0] if names and (place == "database" or len(names) > 1) else "") or here.database
        if names and (place == "database" or len(names) > 1):
            check_open(session.organization, "database", database)
            check_database(database, session)
        if asked.what == "schemas":
            return KINDS["schemas"].shown, (), inventory.schemas(here, database)
        schema = names[-1] if place == "schema" else "" if place == "database" else here.schema
        if place == "schema":
            _check_schema(database, schema, here)
        wanted = _ONE_TYPE.get(asked.what, "")
        if wanted and not place:
            database = schema = ""
        return _RELATION, _OF_RELATION, inventory.relations(here, database, schema, [wanted] if wanted else ())
    if asked.what not in KINDS:
        raise unsupported("SHOW" if asked.show else "LIST", asked.what)
    kind = KINDS[asked.what]
    return kind.shown, kind.more, kind.find(here)


def of_engine(asked: EngineObjects, session: Session, sink: Sink) -> Outcome:
    """The objects of the engine in its own terms. Raises Failure."""
    organization = session.organization
    streams = organization.catalog.objects(organization.id, "stream")
    query = ObjectQuery(
        asked.kind,
        asked.part,
        asked.names,
        asked.place[-1] if asked.place else "",
        asked.details,
        asked.arguments,
        {cast(Relation, tuple(json.loads(item.name))): str(item.detail.get("kind", "stream")) for item in streams},
        organization.store_names,
    )
    listing = organization.engine.objects(query, session.connection)
    if listing.rows:
        sink.keep([json.dumps(row, ensure_ascii=False) for row in listing.rows])
    return Outcome([ColumnInfo(name, kind, True) for name, kind in listing.columns])


def _organizations(session: Session, sink: Sink, organizations: Organizations) -> Outcome:
    known = [item for item in session.organization.catalog.organizations() if session.caller.may_see(item[0])]
    states = organizations.broken
    if any(key in states for key, _ in known):
        rows = [(name, key, f"broken: {states[key]}" if key in states else "ready") for key, name in known]
        return table(sink, ("name", "id", "state"), rows)
    return table(sink, ("name", "id"), [(name, key) for key, name in known])


def describe(asked: Describe, session: Session, options: RunOptions, sink: Sink, waiting: CopyWaiter) -> Outcome:
    """The properties of an object, or the columns of a relation or entity."""
    organization, name = session.organization, asked.names[-1]
    here = Scope(organization, session)
    match asked.kind:
        case "relation" | "stream" | "changelog" | "table" | "view" | "materialized_view":
            return _describe_relation(asked, session, options, sink)
        case "entity":
            return _describe_entity(asked, session, options, sink, waiting)
        case "organization":
            wanted = organization.catalog.organization(name)
            if not session.caller.may_see(wanted):
                raise missing("organization", name)
            return table(sink, ("name", "id"), [(organization.catalog.organization_name(wanted), wanted)])
        case "database":
            check_open(organization, "database", name)
        case "store":
            return _describe_store(here, name, sink)
        case "schema":
            database = asked.names[-2] if len(asked.names) > 1 else here.database
            check_database(database, session)
            found = [item for item in inventory.schemas(here, database) if str(item["name"]).lower() == name.lower()]
            return _described("schema", name, KINDS["schemas"], found, sink)
    kind = KINDS.get(_PLURALS.get(asked.kind, f"{asked.kind}s"))
    if kind is None:
        raise unsupported("DESCRIBE", asked.kind)
    return _described(asked.kind, name, kind, [item for item in kind.find(here) if item["name"] == name], sink)


def _described(kind: str, name: str, shown: Kind, found: Sequence[Facts], sink: Sink) -> Outcome:
    if not found:
        raise missing(kind, name)
    return properties((*shown.shown, *shown.more), found[0], sink)


def _describe_store(here: Scope, name: str, sink: Sink) -> Outcome:
    """One row, as clients of the interface scan it; a directory has neither TLS nor a schema registry."""
    facts = next((item for item in inventory.all_stores(here) if item["name"] == name), None)
    if facts is None:
        raise missing("store", name)
    shown = KINDS["stores"].shown
    metadata = {item.name: facts.get(item.key) for item in shown if item.key not in {"uri", "writable"}}
    metadata = {key: value if isinstance(value, bool) else text(value) for key, value in metadata.items()}
    row = {
        "metadata": metadata,
        "uri": facts["uri"],
        "details": {"Writable": facts["writable"]},
        "tls": False,
        "verify": False,
        "path": facts["uri"],
    }
    return keep(_STORE, [row], sink)


def _describe_relation(asked: Describe, session: Session, options: RunOptions, sink: Sink) -> Outcome:
    organization = session.organization
    relation = session.connection.resolve(asked.names)
    is_stream = asked.kind == "stream"
    streams = {tuple(part.lower() for part in known) for known in organization.streams.known}
    is_one = tuple(part.lower() for part in relation) in streams
    if (is_stream and not is_one) or not session.exists(relation):
        raise missing_relation(session, "stream" if is_stream else "relation", relation)
    if asked.columns or asked.kind in {"table", "view"}:
        return _columns(session.connection.columns(relation, options), sink)
    facts = inventory.relations(Scope(organization, session), relation[0], relation[1], name=relation[2])
    return _described("relation", relation[2], KINDS["relations"], facts, sink)


def _describe_entity(
    asked: Describe, session: Session, options: RunOptions, sink: Sink, waiting: CopyWaiter
) -> Outcome:
    organization, names, here = session.organization, asked.names, Scope(session.organization)
    if not asked.store and len(names) <= 3 and session.connection.resolve(names) in organization.streams.known:
        return _describe_relation(asked, session, options, sink)
    store = asked.store or session.store
    if not asked.store and names[0] in organization.store_names and len(names) > 1:
        store, names = names[0], names[1:]
    dotted = ".".join(names)
    # The parts of the name may be folders, or the two sides of the dot in a file name.
    found = [item for item in inventory.entities(here, store) if str(item["name"]).replace("/", ".") == dotted]
    if not found:
        found = [item for item in inventory.entities(here, store, names[:-1]) if item["name"] == names[-1]]
    if len(found) > 1:
        message = f"entity {dotted!r} exists in several stores; add IN STORE name"
        raise Failure(sqlstate.INVALID_PARAMETER, message)
    if not found:
        raise missing("entity", f"{store}.{dotted}" if store else dotted)
    if not asked.columns:
        return _described("entity", dotted, KINDS["entities"], found, sink)
    store, entity = str(found[0]["store"]), str(found[0]["path"])
    stores.mount(organization, store, [entity], waiting)
    return _columns(session.connection.columns((store, "main", entity), options), sink)


def _columns(described: Sequence[ColumnInfo], sink: Sink) -> Outcome:
    """A row for each column: name, type and nullability."""
    sink.keep(
        [json.dumps([item.name, item.type, str(item.nullable).lower()], ensure_ascii=False) for item in described]
    )
    header = (("name", "VARCHAR"), ("type", "VARCHAR"), ("nullable", "BOOLEAN"))
    return Outcome([ColumnInfo(name, kind, False) for name, kind in header])


def check_database(database: str, session: Session) -> None:
    """Raises Failure if a database does not exist or is not visible to statements."""
    check_visible(database, session.organization)
    if not any(item["name"] == database for item in inventory.databases(Scope(session.organization, session))):
        raise missing("database", database)


def _check_schema(database: str, schema: str, here: Scope) -> None:
    if not any(str(item["name"]).lower() == schema.lower() for item in inventory.schemas(here, database)):
        raise missing("schema", schema)
