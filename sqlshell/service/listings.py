"""LIST and DESCRIBE: context objects and relations as rows."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from sqlshell.interface.models import ColumnInfo
from sqlshell.service import stores
from sqlshell.service.catalog import ROLES, missing
from sqlshell.service.dialect import Describe, List
from sqlshell.service.engines.engine import Options, Outcome, Rights, Sink
from sqlshell.service.names import check_open
from sqlshell.service.objects import absent, check_visible, databases, pool_detail, unsupported
from sqlshell.service.organizations import Organization, Organizations
from sqlshell.service.pools import DEFAULT, Size
from sqlshell.service.records import Record
from sqlshell.service.sessions import Session

EMPTY = ("secrets", "schema_registries", "invitations", "users", "changelogs")

LISTED = {
    "stores": ("store", ("name", "type", "uri", "state")),
    "compute_pools": ("compute_pool", ("name", "state", "concurrency", "queue", "timeout")),
    "function_sources": ("function_source", ("name", "file", "size", "sha256", "created")),
    "descriptor_sources": ("descriptor_source", ("name", "file", "size", "sha256", "created")),
}


def list_all(asked: List, session: Session, options: Options, sink: Sink, organizations: Organizations) -> Outcome:
    organization = session.organization
    place, names = asked.place, asked.names
    database = (names[0] if names and (place == "database" or len(names) > 1) else "") or session.connection.database
    schema = names[-1] if place == "schema" else "" if place == "database" else session.connection.schema
    match asked.what:
        case "databases" | "schemas" | "relations" | "tables" | "functions":
            what = "relations" if asked.what == "tables" else asked.what
            if place == "database" and names:
                check_visible(names[0], organization)
            sql = organization.engine.listing(
                what,
                database if what != "databases" else "",
                schema,
                organization.streams.known,
                set(organization.store_names),
            )
            lost = [item for item in organization.broken.items() if item[0][0] == "database"]
            if what == "databases" and lost:
                all_of_them = [(row[0], "ready") for row in databases(organization)]
                all_of_them += [(name, f"broken: {reason}") for (_, name), reason in lost]
                return table(sink, ("name", "state"), sorted(all_of_them))
            return session.connection.run(sql, options, sink, trusted=True)
        case "streams":
            rows = [(item[2], item[1], item[0]) for item in sorted(organization.streams.known)]
            return table(sink, ("name", "schema", "database"), rows)
        case "entities":
            wanted = asked.store or session.store
            places = [wanted] if wanted else sorted(organization.store_names)
            entries = []
            for store in places:
                for name, state in stores.entities(organization, store).items():
                    entries.append((name, str(state.st_size), stamp(state.st_mtime), store))
            return table(sink, ("name", "size", "modified", "store"), entries)
        case "organizations":
            known = [item for item in organization.catalog.organizations() if session.caller.may_see(item[0])]
            if any(key in organizations.broken for key, _ in known):
                states = organizations.broken
                told = [(name, key, f"broken: {states[key]}" if key in states else "ready") for key, name in known]
                return table(sink, ("name", "id", "state"), told)
            return table(sink, ("name", "id"), [(name, key) for key, name in known])
        case "roles":
            rights = {Rights.OBJECTS: "everything", Rights.DATA: "data, no objects", Rights.READ: "reads"}
            listed = [(name, rights[right], str(name in session.caller.roles).lower()) for name, right in ROLES.items()]
            return table(sink, ("name", "rights", "granted"), listed)
        case "api_tokens":
            return table(sink, ("name", "roles"), organization.catalog.tokens(organization.id))
    if asked.what in EMPTY:
        return table(sink, ("name", "type"), [])
    if asked.what in LISTED:
        kind, columns = LISTED[asked.what]
        return table(
            sink, columns, [described(organization, kind, name, columns) for name in names_in(organization, kind)]
        )
    raise unsupported("LIST", asked.what)


def describe(asked: Describe, session: Session, options: Options, record: Record) -> Outcome:
    sink = record.spool
    organization, name = session.organization, asked.names[-1]
    match asked.kind:
        case "relation" | "stream" | "table" | "view":
            relation = session.connection.resolve(asked.names)
            streams = organization.streams.known
            if (asked.kind == "stream" and relation not in streams) or not organization.engine.exists(relation):
                raise absent(organization, "stream" if asked.kind == "stream" else "relation", relation)
            return session.connection.run(organization.engine.columns(relation), options, sink, trusted=True)
        case "entity":
            relation = session.connection.resolve(asked.names)
            if asked.store or relation not in organization.streams.known:
                named = stores.split_name(asked.names, asked.store or session.store, organization.store_names)
                stores.mount(organization, named[0], [named[1]], record)
                relation = (named[0], "main", named[1])
            return session.connection.run(organization.engine.columns(relation), options, sink, trusted=True)
        case "database":
            check_open(organization, "database", name)
            if not any(row[0] == name for row in databases(organization)):
                raise missing("database", name)
            return table(sink, ("name",), [(name,)])
        case "schema":
            database = asked.names[0] if len(asked.names) > 1 else session.connection.database
            check_visible(database, organization)
            listed = organization.engine.read_listing(organization.engine.listing("schemas", database, "", (), ()))
            if not any(row[0].lower() == name.lower() for row in listed):
                raise missing("schema", name)
            return table(sink, ("name", "database"), [(name, database)])
        case "api_token":
            found = [item for item in organization.catalog.tokens(organization.id) if item[0] == name]
            if not found:
                raise missing("api_token", name)
            return table(sink, ("name", "roles"), found)
        case "role":
            if name not in ROLES:
                raise missing("role", name)
            return table(sink, ("name", "granted"), [(name, str(name in session.caller.roles).lower())])
        case "organization":
            wanted = organization.catalog.organization(name)
            if not session.caller.may_see(wanted):
                raise missing("organization", name)
            return table(sink, ("name", "id"), [(organization.catalog.organization_name(wanted), wanted)])
    for kind, columns in LISTED.values():
        if kind == asked.kind:
            if name not in names_in(organization, kind):
                raise missing(kind, name)
            return table(sink, columns, [described(organization, kind, name, columns)])
    if f"{asked.kind}s" in EMPTY or asked.kind == "schema_registry":
        raise missing(asked.kind, name)
    raise unsupported("DESCRIBE", asked.kind)


def names_in(organization: Organization, kind: str) -> list[str]:
    names = [item.name for item in organization.catalog.objects(organization.id, kind)]
    return sorted({*names, DEFAULT}) if kind == "compute_pool" else names


def described(organization: Organization, kind: str, name: str, columns: Sequence[str]) -> tuple[str, ...]:
    found = organization.catalog.find(organization.id, kind, name)
    detail = dict(found.detail) if found else pool_detail(Size())
    state = "running" if detail.get("running", True) else "stopped"
    if kind == "store":
        state = stores.state(organization, name)
    if kind == "compute_pool":
        detail["timeout"] = f"{detail['timeout']:g}s" if detail["timeout"] else "none"
    values = {**detail, "name": name, "state": state, "created": stamp(found.created) if found else ""}
    return tuple(str(values.get(column, "")) for column in columns)


def table(sink: Sink, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Outcome:
    """A result made by the service itself."""
    if rows:
        sink.keep([json.dumps(list(row), ensure_ascii=False) for row in rows])
    return Outcome([ColumnInfo(name, "VARCHAR", False) for name in columns])


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
