"""The facts about an organization's objects that LIST, DESCRIBE and the system relations show.

Every object is owned by the role that may create it. The engine does not record when relations and schemas were
created, so that the service does; without a record, they are as old as their database.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Sequence
from urllib.parse import quote

from msgspec import Struct

from sqlshell.service.catalog import NAMES_OF_ROLES, Object, owning_role
from sqlshell.service.dialect import names_of, without_literals
from sqlshell.service.dialect.names import DOTTED, HEAD
from sqlshell.service.engines.engine import CatalogQuery, Rows
from sqlshell.service.failure import Failure
from sqlshell.service.objects.objects import pool_detail
from sqlshell.service.objects.result_rows import Facts
from sqlshell.service.organizations.organizations import Organization
from sqlshell.service.organizations.pools import DEFAULT, Size
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.rights import Rights
from sqlshell.service.secrets import secrets
from sqlshell.service.storage.storage import StorageError
from sqlshell.service.stores import stores
from sqlshell.sql.analysis.secrets import shown_options
from sqlshell.sql.identifiers import qualified

NOTED = "noted"
"""The kind of catalog objects that record the times of relations and schemas; their names are JSON lists."""

MOST_NOTED = 20_000
"""The number of relations and schemas of an organization, the latest, whose creation times are recorded."""

_CHANGES = re.compile(
    r"(?P<verb>create|alter|drop)(?: or replace)?(?: recursive)? (?P<kind>table|view|schema)"
    rf"(?P<unless> if (?:not )?exists)? (?P<name>{DOTTED})",
    re.I,
)


class Scope(Struct, frozen=True):
    """The place from which objects are listed: an organization, the role that asks, and optionally a session."""

    organization: Organization
    session: Session | None = None
    role: str = ""

    def catalog(self, query: CatalogQuery) -> Rows:
        """The engine's objects, as the session sees them if there is one. Raises Failure."""
        return self.session.catalog(query) if self.session else self.organization.engine.catalog(query)

    @property
    def owner(self) -> str:
        return owning_role(self.session.role if self.session else self.role)

    @property
    def database(self) -> str:
        return self.session.connection.database if self.session else ""

    @property
    def schema(self) -> str:
        return self.session.connection.schema if self.session else ""


def note(session: Session, sql: str) -> None:
    """Record when a statement of the engine created, changed or dropped something.

    Errors, such as a full disk, are ignored, because the statement has already been run.
    """
    head = sql[:HEAD].lstrip()
    if head[:1].isalpha() and head.split(None, 1)[0].lower() not in {"create", "alter", "drop"}:
        return
    match = _CHANGES.match(" ".join(without_literals(head).split()))
    if match is None:
        return
    names, verb = names_of(match["name"]), match["verb"].lower()
    if match["kind"].lower() == "schema":
        whole = (session.connection.database, *names)[-2:]
    else:
        whole = session.full_name(names)
    organization, key = session.organization, json.dumps(whole)
    with contextlib.suppress(StorageError):
        if verb == "drop":
            organization.catalog.forget(organization.id, NOTED, key)
        elif verb == "alter":
            organization.catalog.note_change(organization.id, NOTED, key)
        else:
            organization.catalog.note(organization.id, NOTED, key, MOST_NOTED, again=not match["unless"])


def databases(here: Scope) -> list[Facts]:
    organization = here.organization
    known = {item.name: item for item in organization.catalog.objects(organization.id, "database")}
    there = here.catalog(CatalogQuery("databases", hidden=set(organization.store_names)))
    lost = {name: reason for (kind, name), reason in organization.broken.items() if kind == "database"}
    return [
        _owned(here, known.get(name))
        | {
            "name": name,
            "type": "database",
            "default": name == here.database,
            "state": "broken" if name in lost else "ready",
            "message": lost.get(name, ""),
        }
        for name in sorted({row[0] for row in there} | set(lost))
    ]


def schemas(here: Scope, database: str = "") -> list[Facts]:
    """The schemas of a database, or of all databases."""
    organization = here.organization
    hidden = set(organization.store_names)
    noted = _noted(here)
    listed = here.catalog(CatalogQuery("schemas", database, hidden=hidden))
    places = {here.database: here.schema}
    return [
        noted(row[1], row[0])
        | {
            "name": row[0],
            "type": "schema",
            "database": row[1],
            "default": row[0] == places.get(row[1], organization.engine.traits.initial_schema),
            "state": "ready",
        }
        for row in listed
    ]


def relations(
    here: Scope, database: str = "", schema: str = "", kinds: Sequence[str] = (), name: str = ""
) -> list[Facts]:
    """The relations of a database and schema, or of all; optionally only of these `kinds` or with this `name`."""
    organization = here.organization
    hidden = set(organization.store_names)
    noted = _noted(here)
    streams = {tuple(json.loads(item.name)): item for item in organization.catalog.objects(organization.id, "stream")}
    rows: list[Facts] = []
    for named, within, kind, place, key, comment in here.catalog(
        CatalogQuery("relations", database, schema, name, set(streams), hidden)
    ):
        stream = streams.get((place, within, named))
        detail = stream.detail if stream else {}
        kind = str(detail.get("kind", kind))
        if kinds and kind not in kinds:
            continue
        rows.append(
            (_owned(here, stream) if stream else noted(place, within, named))
            | {
                "name": named,
                "type": kind,
                "state": "created",
                "database": place,
                "schema": within,
                "fqn": qualified(place, within, named),
                "primary_key": key or ", ".join(detail.get("primary_key", ())),
                "description": detail.get("description") or comment,
                "properties": json.dumps(shown_options(detail.get("options", {}))),
            }
        )
    return rows


def engines(here: Scope) -> list[Facts]:
    """The engine of the organization, with what it can and cannot do."""
    engine = here.organization.engine
    return [
        {
            "name": engine.name,
            "version": engine.version,
            "state": "ready",
            "supported": ", ".join(engine.capabilities.named(present=True)),
            "unsupported": ", ".join(engine.capabilities.named(present=False)),
        }
    ]


def all_stores(here: Scope) -> list[Facts]:
    organization = here.organization
    rows: list[Facts] = []
    for item in organization.catalog.objects(organization.id, "store"):
        state, _, reason = stores.state(organization, item.name).partition(": ")
        default = here.session is not None and here.session.store == item.name
        facts = {"state": state, "message": reason, "default": default, "writable": bool(item.detail.get("writable"))}
        rows.append(_object(here, item) | facts)
    return rows


def entities(here: Scope, store: str = "", folder: Sequence[str] | None = None) -> list[Facts]:
    """The entities of a store, or of all stores: all files by path, or the files and folders inside a folder."""
    rows: dict[tuple[str, str], Facts] = {}
    inside = "".join(f"{part}/" for part in folder or ())
    for place in [store] if store else sorted(here.organization.store_names):
        try:
            files = stores.entities(here.organization, place)
        except Failure:
            if store:
                raise
            # A broken store does not hide the others.
            continue
        for path, state in files.items():
            if not path.startswith(inside):
                continue
            name, deeper, _ = path.removeprefix(inside).partition("/") if folder is not None else (path, "", "")
            facts: Facts = {"name": name, "store": place, "leaf": not deeper, "path": inside + name, "type": "folder"}
            if not deeper:
                facts = {**facts, "type": "file", "size": str(state.st_size), "modified": state.st_mtime}
            rows.setdefault((place, name), facts)
    return list(rows.values())


def pools(here: Scope) -> list[Facts]:
    organization = here.organization
    known = {item.name: item for item in organization.catalog.objects(organization.id, "compute_pool")}
    rows: list[Facts] = []
    for name in sorted({*known, DEFAULT}):
        detail = {**pool_detail(Size()), **(known[name].detail if name in known else {})}
        state = "running" if detail["running"] else "stopped"
        rows.append(
            {key: str(value) for key, value in detail.items()}
            | _owned(here, known.get(name))
            | {
                "name": name,
                "type": "compute_pool",
                "intended": state,
                "actual": state,
                "state": state,
                "longest": f"{detail['timeout']:g}s" if detail["timeout"] else "none",
            }
        )
    return rows


def sources(kind: str) -> Callable[[Scope], list[Facts]]:
    """Lists the function sources or descriptor sources."""

    def listed(here: Scope) -> list[Facts]:
        organization = here.organization
        return [
            _object(here, item)
            | {
                "state": "ready",
                "language": "JAVA" if str(item.detail.get("file", "")).lower().endswith(".jar") else "",
                "type": kind if kind == "function_source" else "PROTOBUF",
                "url": f"/v2/download/{kind}/{organization.id}/{quote(item.name, safe='')}",
                "tags": [],
            }
            for item in organization.catalog.objects(organization.id, kind)
        ]

    return listed


def functions(here: Scope) -> list[Facts]:
    """User-defined functions: macros of the engine, and recorded functions in other languages."""
    organization = here.organization
    hidden = set(organization.store_names)
    macros: list[Facts] = [
        _noted(here)(row[3], row[4], row[0])
        | {
            "name": row[0],
            "signature": row[1],
            "type": row[2],
            "language": "SQL",
            "database": row[3],
            "schema": row[4],
            "state": "ready",
            "uris": [],
            "properties": "{}",
        }
        for row in here.catalog(CatalogQuery("functions", hidden=hidden))
    ]
    recorded: list[Facts] = [
        _object(here, item)
        | {
            "name": item.detail["name"],
            "type": "function",
            "state": "ready",
            "source_name": item.detail["source"],
            "class_name": item.detail["class"],
            "uris": [text.strip() for text in str(item.detail["egress"]).split(",") if text.strip()],
        }
        for item in organization.catalog.objects(organization.id, "function")
    ]
    return macros + recorded


def recorded(kind: str) -> Callable[[Scope], list[Facts]]:
    """Lists objects that are entirely in the catalog: schema registries, secrets."""

    def listed(here: Scope) -> list[Facts]:
        organization = here.organization
        rows: list[Facts] = []
        for item in organization.catalog.objects(organization.id, kind):
            state, reason = secrets.status(organization.id, item, organization.vault)
            facts = {"state": state, "message": reason, "url": item.detail.get("uris", "")}
            rows.append(_object(here, item) | facts)
        return rows

    return listed


def roles(here: Scope) -> list[Facts]:
    rights = {Rights.OBJECTS: "all", Rights.DATA: "read and change data", Rights.READ: "read data"}
    granted = here.session.caller.has_role if here.session else lambda name: False
    return [{"name": name, "rights": rights[right], "granted": granted(name)} for name, right in NAMES_OF_ROLES.items()]


def tokens(here: Scope) -> list[Facts]:
    organization = here.organization
    return [{"name": name, "roles": held} for name, held in organization.catalog.tokens(organization.id)]


def _owned(here: Scope, item: Object | None) -> dict[str, object]:
    """The owner and the times of an object; without a record it is as old as the organization."""
    if item is not None:
        return {"owner": here.owner, "created": item.created, "updated": item.updated}
    created = here.organization.catalog.organization_created(here.organization.id)
    return {"owner": here.owner, "created": created, "updated": created}


def _object(here: Scope, item: Object) -> dict[str, object]:
    detail = {
        key: value if isinstance(value, list | dict) else str(value)
        for key, value in item.detail.items()
        if key != "sealed"
    }
    return {**detail, "name": item.name, **_owned(here, item)}


def _noted(here: Scope) -> Callable[..., dict[str, object]]:
    """A function that returns the owner and times of a relation or schema with this full name."""
    organization, catalog = here.organization, here.organization.catalog
    known = {tuple(json.loads(item.name)): item for item in catalog.objects(organization.id, NOTED)}
    places = {item.name: item for item in catalog.objects(organization.id, "database")}
    by_database = {name: _owned(here, item) for name, item in places.items()}
    oldest = _owned(here, None)

    def owner_and_times(*name: str) -> dict[str, object]:
        item = known.get(name)
        return dict(by_database.get(name[0], oldest)) if item is None else _owned(here, item)

    return owner_and_times
