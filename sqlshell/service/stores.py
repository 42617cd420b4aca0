"""Stores: folders outside whose data files are entities, readable as relations of a database of the store's name."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import missing
from sqlshell.service.dialect import READS, WRITES, targets, written
from sqlshell.service.engines.engine import Connection, Failure
from sqlshell.service.organizations import Organization, Organizations

ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".csv.gz", ".tsv.gz", ".json.gz", ".jsonl.gz",
           ".ndjson.gz", ".csv.zst", ".json.zst", ".jsonl.zst")  # fmt: skip
MOST = 10_000
"""Entities of a store."""


def read_options(options: Mapping[str, str], organizations: Organizations, roots: Sequence[Path]) -> dict[str, str]:
    """What a store keeps of its WITH options. Raises Failure for a place that no store may be."""
    kind, uri = options.get("type", "files").lower(), options.get("uri", "")
    if kind != "files":
        raise Failure(
            sqlstate.UNSUPPORTED, f"a store of type {kind!r} is not something that this service has; 'files' is"
        )
    if unknown := set(options) - {"type", "uri"}:
        raise Failure(sqlstate.SYNTAX, f"{sorted(unknown)[0]!r} is not an option of a store: type, uri")
    parts = urlsplit(uri)
    text = unquote(parts.path) if parts.scheme == "file" and parts.netloc in {"", "localhost"} else uri
    if not text.startswith("/"):
        raise Failure("22023", f"'uri': {uri!r} is not the absolute path of a folder")
    folder = Path(os.path.realpath(text))
    if not folder.is_dir():
        raise Failure("22023", f"'uri': there is no folder {uri!r}")
    if organizations.inside(folder) or (roots and not any(root == folder or root in folder.parents for root in roots)):
        raise Failure(sqlstate.PRIVILEGE, f"'uri': the service does not grant {uri!r} (see --store-root)")
    return {"type": kind, "uri": str(folder)}


def entities(organization: Organization, store: str) -> dict[str, Path]:
    """The data files of a store by their names, which are paths inside it. Raises Failure."""
    folder = Path(organization.catalog.get(organization.id, "store", store).detail["uri"])
    if not folder.is_dir():
        raise Failure(sqlstate.STORE_NOT_READY, f"the folder of store {store!r} is not there")
    found: dict[str, Path] = {}
    for place, folders, files in os.walk(folder):
        folders.sort()
        for file in sorted(files):
            path = Path(place, file)
            # A link may lead out of what was granted.
            if (
                file.lower().endswith(ENDINGS)
                and Path(os.path.realpath(path)).is_relative_to(folder)
                and path.is_file()
            ):
                found[str(path.relative_to(folder))] = path
                if len(found) == MOST:
                    return found
    return found


def mount(organization: Organization, store: str, names: Sequence[str]) -> None:
    """Make entities readable as relations. Raises Failure for ones that do not exist."""
    known = entities(organization, store)
    for name in names:
        if name not in known:
            raise missing("entity", f"{store}.{name}")
    organization.engine.mount(store, {name: known[name] for name in names}, organization.folder("copies"))


def mount_named(organization: Organization, sql: str) -> None:
    """Make readable what a statement may read: every entity whose name it has, of every store whose name it has."""
    text = sql.lower()
    for store in list(organization.store_names):
        if store.lower() in text:
            try:
                known = entities(organization, store)
            except Failure:
                continue
            named = {name: path for name, path in known.items() if name.lower().replace('"', '""') in text}
            organization.engine.mount(store, named, organization.folder("copies"))


def check_read_only(organization: Organization, connection: Connection, sql: str) -> None:
    """Raises Failure for a statement that would change a store, whose entities are files outside."""
    for names in targets(sql, WRITES):
        store = connection.resolve(names)[0].lower()
        if store in {name.lower() for name in organization.store_names}:
            raise Failure(sqlstate.UNSUPPORTED, f"store {store!r} is read only: its entities are files outside")


def check_entities(organization: Organization, connection: Connection, sql: str) -> None:
    """Raises Failure for an entity that a statement reads from a store and that is not there."""
    for names in targets(sql, READS):
        store, _, entity = connection.resolve(names)
        if store in organization.store_names:
            known, dotted = entities(organization, store), ".".join(names[1:])
            if entity not in known and dotted in known:
                raise Failure(sqlstate.NO_RELATION, f"the name of an entity is quoted: {written((store, dotted))}")
            if entity not in known:
                said = f"entity '{store}.{entity}' does not exist: LIST ENTITIES IN STORE {written((store,))} shows all"
                raise Failure(sqlstate.NO_RELATION, said)


def split_name(names: Sequence[str], store: str, stores: Collection[str]) -> tuple[str, str]:
    """Store and entity of a dotted name: `store.entity`, or `entity` in the present store, "" for none.

    A file's name is often written unquoted, so that its dot looks like one between names. Raises Failure for what is
    in none of `stores`.
    """
    if store and len(names) <= 2:
        return store, ".".join(names)
    if len(names) < 2 or names[0] not in stores:
        said = f"there is no stream or entity {'.'.join(names)!r}"
        hint = "" if len(names) > 1 else ": an entity of a store is named STORE.ENTITY, or ENTITY IN STORE name"
        raise Failure(sqlstate.NO_RELATION, said + hint)
    return names[0], ".".join(names[1:])
