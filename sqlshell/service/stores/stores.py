"""Stores: folders outside whose data files are entities, readable as relations of a database of the store's name."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.dialect import READS, WRITES, targets, written
from sqlshell.service.engines.converter.conversion import stamp
from sqlshell.service.engines.duckdb.datafiles import ENDINGS
from sqlshell.service.engines.engine import Connection, Failure
from sqlshell.service.engines.sandbox.beneath import folder_of
from sqlshell.service.objects.catalog import missing
from sqlshell.service.organizations.organizations import NOT_GRANTED, Organization, Organizations
from sqlshell.service.stores.copies import Waiting

MOST = 10_000
"""Entities of a store."""

MOST_FILES = 200_000
"""Files of a store's folder that are looked at."""

DEEPEST = 32
"""Folders inside one another that are looked at."""


WRITABLE = (".json", ".jsonl", ".ndjson")
"""How the names of files end to which records can be added. A name without a dot is one too, where it was made here."""

_WHOLE = r"from|join|using|update|merge\s+into|truncate(?:\s+table)?"
"""Verbs for targets(), behind which a relation is read to its end or changed otherwise than by INSERT."""

_TRUTH = {"true": True, "false": False}


class Place(Struct, frozen=True):
    """A store's folder, and a descriptor of it. `made` are entities whose names tell no form: they were made by CREATE
    ENTITY and hold a JSON record in each line."""

    folder: Path
    root: int
    made: frozenset[str]

    def entities(self) -> dict[str, os.stat_result]:
        """The data files by their names, which are paths inside the folder. Raises Failure."""
        try:
            return _entities(self.root, self.made)
        except OSError as error:
            said = f"the folder {str(self.folder)!r} cannot be read: {error.strerror}"
            raise Failure(sqlstate.STORE_NOT_READY, said) from None


def read_options(
    options: Mapping[str, str], organizations: Organizations, before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a store keeps of its WITH options; `before` is what it has of them already.

    Raises Failure for a place that no store may be.
    """
    kind = options.get("type", "files").lower()
    if kind != "files":
        said = f"a store of type {kind.upper()!r} is not supported: stores here are of files ('type' = 'files')"
        raise Failure(sqlstate.UNSUPPORTED, said)
    if unknown := set(options) - {"type", "uri", "uris", "writable", "access_region"}:
        said = f"{min(unknown)!r} is not an option of a store of files: type, uri, writable"
        raise Failure(sqlstate.INVALID_PARAMETER, said)
    detail: dict[str, Any] = dict(before or {}) | {"type": kind}
    if not before or "uri" in options or "uris" in options:
        detail["uri"] = _folder(options.get("uri", options.get("uris", "")), organizations)
    if "writable" in options:
        writable = _TRUTH.get(options["writable"].lower())
        if writable is None:
            raise Failure("22023", f"'writable': {options['writable'][:40]!r} is neither TRUE nor FALSE")
        detail["writable"] = writable
    if detail.get("writable"):
        check_writable_place(detail["uri"], organizations)
    return detail


def check_writable_place(uri: str, organizations: Organizations) -> None:
    """Raises Failure for a folder in which the service does not grant that files are changed."""
    if not organizations.grants_writing(Path(uri)):
        said = (
            f"the service does not grant that files in {uri!r} are changed: sqlshell serve --store-root names folders"
        )
        raise Failure(sqlstate.PRIVILEGE, f"'writable': {said} in which stores may be writable")


def _folder(uri: str, organizations: Organizations) -> str:
    parts = urlsplit(uri)
    text = unquote(parts.path) if parts.scheme == "file" and parts.netloc in {"", "localhost"} else uri
    if not uri:
        raise Failure("22023", "a store needs its folder: 'uri' = '/path'")
    if not text.startswith("/") or "\0" in text:
        raise Failure("22023", f"'uri': {uri!r} is not the absolute path of a folder")
    folder = Path(os.path.realpath(text))
    if not folder.is_dir():
        raise Failure("22023", f"'uri': there is no folder {uri!r}")
    if not organizations.grants(folder):
        why = "see --store-root" if organizations.has_roots else "it is in the service's own folder, or around it"
        raise Failure(sqlstate.PRIVILEGE, f"'uri': the service does not grant {uri!r} ({why})")
    return str(folder)


@contextlib.contextmanager
def opened(organization: Organization, store: str) -> Iterator[Place]:
    """A store's folder while it is open. Raises Failure."""
    if reason := organization.broken.get(("store", store)):
        raise Failure(sqlstate.STORE_NOT_READY, f"store {store!r} cannot be read: {reason}")
    detail = organization.catalog.get(organization.id, "store", store).detail
    folder = Path(detail["uri"])
    try:
        root = open_folder(folder)
    except OSError as error:
        why = {errno.ENOENT: "is not there", errno.ELOOP: "is a link now", errno.ENOTDIR: "is not a folder"}
        said = why.get(error.errno or 0, f"cannot be opened: {error.strerror}")
        raise Failure(sqlstate.STORE_NOT_READY, f"the folder of store {store!r} {said}") from None
    try:
        yield Place(folder, root, frozenset(detail.get("entities", ())))
    finally:
        os.close(root)


def open_folder(folder: Path) -> int:
    """A descriptor of an absolute path without links. Raises OSError."""
    look = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    *parents, last = folder.parts[1:] or (".",)
    place = os.open("/", look)
    try:
        for part in parents:
            inner = os.open(part, look, dir_fd=place)
            os.close(place)
            place = inner
        return os.open(last, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    finally:
        os.close(place)


def entities(organization: Organization, store: str) -> dict[str, os.stat_result]:
    """The data files of a store by their names, which are paths inside it. Raises Failure."""
    with opened(organization, store) as place:
        return place.entities()


def _entities(root: int, made: Collection[str]) -> dict[str, os.stat_result]:
    found: dict[str, os.stat_result] = {}
    for name in sorted(made):
        with contextlib.suppress(OSError), folder_of(root, name) as (inside, file):
            state = os.stat(file, dir_fd=inside, follow_symlinks=False)
            if stat.S_ISREG(state.st_mode):
                found[name] = state
    seen = 0
    for place, folders, files, inside in os.fwalk(".", dir_fd=root, follow_symlinks=False):
        folders.sort()
        if place.count("/") >= DEEPEST:
            folders.clear()
        for file in sorted(files):
            seen += 1
            if not file.lower().endswith(ENDINGS):
                continue
            with contextlib.suppress(OSError, UnicodeEncodeError):
                # What is no text cannot be written in a statement.
                f"{place}/{file}".encode()
                state = os.stat(file, dir_fd=inside, follow_symlinks=False)
                # A link may lead out of what was granted.
                if stat.S_ISREG(state.st_mode):
                    found[f"{place}/{file}".removeprefix("./")] = state
        if len(found) >= MOST or seen >= MOST_FILES:
            return dict(list(found.items())[:MOST])
    return found


def mount(organization: Organization, store: str, names: Sequence[str], waiting: Waiting | None = None) -> None:
    """Make entities readable as relations. Raises Failure for ones that do not exist or cannot be read."""
    with opened(organization, store) as place:
        known = place.entities()
        for name in names:
            if name not in known:
                raise missing("entity", f"{store}.{name}")
        for name, reason in _bring(organization, store, place, known, names, waiting).items():
            raise unreadable(store, name, reason)


def unreadable(store: str, entity: str, reason: str) -> Failure:
    return Failure(sqlstate.STORE_NOT_READY, f"entity '{store}.{entity}' cannot be read: {reason}")


def mount_named(organization: Organization, sql: str, waiting: Waiting, database: str) -> dict[tuple[str, str], str]:
    """Make readable what a statement may read: every entity whose name it has, of every store whose name it has, or
    that is the session's `database`. Those that cannot be, by store and entity, and why.

    Raises Failure where that was ended.
    """
    text = sql.lower()
    broken: dict[tuple[str, str], str] = {}
    for store in {*named_stores(organization, sql), *({database} & organization.store_names)}:
        try:
            with opened(organization, store) as place:
                known = place.entities()
                named = [name for name in known if name.lower().replace('"', '""') in text]
                refused = _bring(organization, store, place, known, named, waiting)
                broken |= {(store, name): reason for name, reason in refused.items()}
        except Failure as failure:
            if failure.sql_state == sqlstate.CANCELLED:
                raise
            broken[store, ""] = failure.message
    return broken


def named_stores(organization: Organization, sql: str) -> list[str]:
    """The stores whose names a text has."""
    low = sql.lower()
    found = (name for name in list(organization.store_names) if name.lower().replace('"', '""') in low)
    return [name for name in found if re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", low.replace('""', '"'))]


def _bring(
    organization: Organization,
    store: str,
    place: Place,
    known: Mapping[str, os.stat_result],
    names: Collection[str],
    waiting: Waiting | None,
) -> dict[str, str]:
    """Make entities relations of the store's database; why some cannot be."""
    folded = Counter(name.lower() for name in known)
    alike = {
        name: "another file's name differs from its own in case alone" for name in names if folded[name.lower()] > 1
    }
    names = [name for name in names if name not in alike]
    if organization.copies is not None:
        stamps = {name: stamp(found) for name, found in known.items() if folded[name.lower()] == 1}
        return alike | organization.copies.bring(store, place.root, stamps, names, waiting)
    broken = alike
    organization.engine.view(store, {})
    for name in names:
        try:
            organization.engine.view(store, {name: place.folder / name})
        except Failure as failure:
            broken[name] = failure.message
    return broken


def add(organization: Organization, store: str, detail: Mapping[str, Any], waiting: Waiting) -> None:
    """Make a store: it is mounted first, so that a failure leaves nothing behind. Raises Failure."""
    _mount_empty(organization, store, detail, waiting)
    try:
        organization.catalog.add(organization.id, "store", store, detail)
    except BaseException:
        _unmount(organization, store)
        raise
    organization.store_names.add(store)


def change(
    organization: Organization, store: str, options: Mapping[str, str], organizations: Organizations, waiting: Waiting
) -> None:
    """Change a store's options, and mount it anew where its folder is another one. Raises Failure."""
    with organization.changing:
        before = organization.catalog.get(organization.id, "store", store).detail
        after = read_options(options, organizations, before)
        reason = organization.broken.get(("store", store))
        if reason not in {None, NOT_GRANTED}:
            raise Failure(sqlstate.STORE_NOT_READY, f"store {store!r} cannot be changed: {reason}")
        if reason or after["uri"] != before["uri"]:
            after.pop("entities", None)
            if not reason:
                _unmount(organization, store)
            _mount_empty(organization, store, after, waiting)
        organization.catalog.change(organization.id, "store", store, after)
        organization.broken.pop(("store", store), None)


def test(organization: Organization, store: str, organizations: Organizations) -> str:
    """What can be done with a store, in words. Raises Failure where it cannot be read, or not be written as it says."""
    with opened(organization, store) as place:
        number = len(place.entities())
        can = "read"
        if organization.catalog.get(organization.id, "store", store).detail.get("writable"):
            check_writable_place(str(place.folder), organizations)
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=place.root):
                said = f"store {store!r} is writable, but the service may not write into its folder"
                raise Failure(sqlstate.STORE_NOT_READY, said)
            can = "read and written"
    return f"store {store!r} can be {can}: it has {number} {'entity' if number == 1 else 'entities'}"


def _mount_empty(organization: Organization, store: str, detail: Mapping[str, Any], waiting: Waiting) -> None:
    folder = Path(detail["uri"])
    try:
        root = open_folder(folder)
    except OSError as error:
        raise Failure("22023", f"'uri': {detail['uri']!r} cannot be opened: {error.strerror}") from None
    try:
        _bring(organization, store, Place(folder, root, frozenset()), {}, [], waiting)
    finally:
        os.close(root)


def drop(organization: Organization, store: str) -> None:
    """Forget a store and remove its copy. Raises Failure."""
    with organization.changing:
        if organization.broken.pop(("store", store), None) is None:
            _unmount(organization, store)
        organization.catalog.drop(organization.id, "store", store)
        organization.store_names.discard(store)


def _unmount(organization: Organization, store: str) -> None:
    if organization.copies is not None:
        organization.copies.drop(store)
    elif any(
        row[0] == store
        for row in organization.engine.read_listing(organization.engine.listing("databases", "", "", (), ()))
    ):
        organization.engine.detach(store)


def state(organization: Organization, store: str) -> str:
    """Whether a store can be read, in words."""
    try:
        with opened(organization, store):
            return "ready"
    except Failure as failure:
        return f"broken: {failure.message}"


def check_read_only(organization: Organization, connection: Connection, sql: str) -> None:
    """Raises Failure for a statement that would change a store, as far as its words tell."""
    for names in targets(sql, WRITES):
        store = connection.resolve(names)[0].lower()
        if store in {name.lower() for name in organization.store_names}:
            raise Failure(
                sqlstate.UNSUPPORTED,
                f"store {store!r} is read only for SQL: its entities are files outside, and INSERT INTO ENTITY adds "
                "records to those of a writable store",
            )


def check_streams(organization: Organization, connection: Connection, sql: str) -> None:
    """Raises Failure for a statement that names a store and would read a stream to its end, or change one otherwise
    than by INSERT, as far as its words tell: DuckDB shows no plan of what reads files itself."""
    for names in targets(sql, _WHOLE):
        relation = connection.resolve(names)
        if relation in organization.streams.known:
            said = "beside an entity of a store, INSERT INTO is all that can be done with it"
            raise Failure(sqlstate.UNSUPPORTED, f"{'.'.join(relation)} is a stream: {said}")


def check_entities(
    organization: Organization, connection: Connection, sql: str, broken: Mapping[tuple[str, str], str]
) -> None:
    """Raises Failure for an entity that a statement reads from a store and that is not there, or is `broken`."""
    for names in targets(sql, READS):
        store, _, entity = connection.resolve(names)
        wanted = next((name for name in organization.store_names if name.lower() == store.lower()), "")
        if not wanted and len(names) > 1:
            # The store's database is not there where its folder is not.
            wanted = next((name for name in organization.store_names if name.lower() == names[0].lower()), "")
            entity = names[-1]
        if wanted:
            if (wanted, "") in broken:
                raise Failure(sqlstate.STORE_NOT_READY, broken[wanted, ""])
            if (wanted, entity) in broken:
                raise unreadable(wanted, entity, broken[wanted, entity])
            known, dotted = entities(organization, wanted), ".".join(names[1:])
            if entity not in known and dotted in known:
                raise Failure(sqlstate.NO_RELATION, f"the name of an entity is quoted: {written((wanted, dotted))}")
            if entity not in known:
                said = (
                    f"entity '{wanted}.{entity}' does not exist: LIST ENTITIES IN STORE {written((wanted,))} shows all"
                )
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
