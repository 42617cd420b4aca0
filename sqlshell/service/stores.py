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
from urllib.parse import unquote, urlsplit

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import missing
from sqlshell.service.copies import Waiting
from sqlshell.service.dialect import READS, WRITES, targets, written
from sqlshell.service.engines.conversion import stamp
from sqlshell.service.engines.datafiles import ENDINGS
from sqlshell.service.engines.engine import Connection, Failure
from sqlshell.service.organizations import Organization, Organizations

MOST = 10_000
"""Entities of a store."""

MOST_FILES = 200_000
"""Files of a store's folder that are looked at."""

DEEPEST = 32
"""Folders inside one another that are looked at."""


def read_options(options: Mapping[str, str], organizations: Organizations) -> dict[str, str]:
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
    if not organizations.grants(folder):
        raise Failure(sqlstate.PRIVILEGE, f"'uri': the service does not grant {uri!r} (see --store-root)")
    return {"type": kind, "uri": str(folder)}


@contextlib.contextmanager
def opened(organization: Organization, store: str) -> Iterator[tuple[Path, int]]:
    """The folder of a store, and a descriptor of it. Raises Failure."""
    if reason := organization.broken.get(("store", store)):
        raise Failure(sqlstate.STORE_NOT_READY, f"store {store!r} cannot be read: {reason}")
    folder = Path(organization.catalog.get(organization.id, "store", store).detail["uri"])
    try:
        root = open_folder(folder)
    except OSError as error:
        why = {errno.ENOENT: "is not there", errno.ELOOP: "is a link now", errno.ENOTDIR: "is not a folder"}
        said = why.get(error.errno or 0, f"cannot be opened: {error.strerror}")
        raise Failure(sqlstate.STORE_NOT_READY, f"the folder of store {store!r} {said}") from None
    try:
        yield folder, root
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
    with opened(organization, store) as (_, root):
        return _entities(root)


def _entities(root: int) -> dict[str, os.stat_result]:
    found: dict[str, os.stat_result] = {}
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
    with opened(organization, store) as (folder, root):
        known = _entities(root)
        for name in names:
            if name not in known:
                raise missing("entity", f"{store}.{name}")
        for name, reason in _bring(organization, store, folder, root, known, names, waiting).items():
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
            with opened(organization, store) as (folder, root):
                known = _entities(root)
                named = [name for name in known if name.lower().replace('"', '""') in text]
                refused = _bring(organization, store, folder, root, known, named, waiting)
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
    folder: Path,
    root: int,
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
        return alike | organization.copies.bring(store, root, stamps, names, waiting)
    broken = alike
    organization.engine.view(store, {})
    for name in names:
        try:
            organization.engine.view(store, {name: folder / name})
        except Failure as failure:
            broken[name] = failure.message
    return broken


def add(organization: Organization, store: str, detail: Mapping[str, str], waiting: Waiting) -> None:
    """Make a store: it is mounted first, so that a failure leaves nothing behind. Raises Failure."""
    try:
        root = open_folder(Path(detail["uri"]))
    except OSError as error:
        raise Failure("22023", f"'uri': {detail['uri']!r} cannot be opened: {error.strerror}") from None
    try:
        _bring(organization, store, Path(detail["uri"]), root, {}, [], waiting)
    finally:
        os.close(root)
    try:
        organization.catalog.add(organization.id, "store", store, detail)
    except BaseException:
        _unmount(organization, store)
        raise
    organization.store_names.add(store)


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
    """Raises Failure for a statement that failed and would have changed a store, as far as its words tell."""
    for names in targets(sql, WRITES):
        store = connection.resolve(names)[0].lower()
        if store in {name.lower() for name in organization.store_names}:
            raise Failure(sqlstate.UNSUPPORTED, f"store {store!r} is read only: its entities are files outside")


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
