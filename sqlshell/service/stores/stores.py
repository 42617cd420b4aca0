"""Stores: folders whose data files are entities, readable as relations of a database with the store's name."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from sqlshell.errors import reason
from sqlshell.interface import sqlstate
from sqlshell.service.catalog import missing
from sqlshell.service.dialect.lexer import READS, WRITES, targets
from sqlshell.service.engines.engine import CatalogQuery, EngineSession, LocalEngine, check_supported
from sqlshell.service.engines.files.data_files import ENDINGS
from sqlshell.service.engines.sandbox.beneath import folder_of, stamp
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.organizations import NOT_GRANTED, Organization, Organizations
from sqlshell.sql.identifiers import quoted
from sqlshell.text import format_count

if TYPE_CHECKING:
    from sqlshell.service.organizations.copies import IsCanceled

MOST = 10_000
"""The maximum number of entities of a store."""

MOST_FILES = 200_000
"""The maximum number of files of a store's folder that are examined."""

DEEPEST = 32
"""The maximum depth of nested folders that are examined."""


WRITABLE = (".json", ".jsonl", ".ndjson")
"""Extensions of files to which records can be added, besides files without an extension made by CREATE ENTITY."""

_TRUTH = {"true": True, "false": False}
_WHY_CLOSED = {
    errno.ENOENT: "it does not exist",
    errno.ELOOP: "it is now a link",
    errno.ENOTDIR: "it is not a directory",
}


class StoreFolder(Struct, frozen=True):
    """The open folder of a store. `root` is a descriptor of it; `recorded` are the entities without a file extension:
    CREATE ENTITY created them, and each line is a JSON record."""

    organization: Organization
    store: str
    path: Path
    root: int
    recorded: frozenset[str]

    def entities(self) -> dict[str, os.stat_result]:
        """Return the data files by name, which is the path inside the folder. Raises Failure."""
        try:
            states = self._recorded()
            seen = 0
            for place, folders, files, inside in os.fwalk(".", dir_fd=self.root, follow_symlinks=False):
                folders.sort()
                if place.count("/") >= DEEPEST:
                    folders.clear()
                seen += len(files)
                for file in sorted(files):
                    name = f"{place}/{file}".removeprefix("./")
                    if file.lower().endswith(ENDINGS) and (state := _regular(inside, name)):
                        states[name] = state
                if len(states) >= MOST or seen >= MOST_FILES:
                    break
            return dict(list(states.items())[:MOST])
        except OSError as error:
            message = f"cannot read directory {self.path}: {reason(error)}"
            raise Failure(sqlstate.STORE_NOT_READY, message) from None

    def _recorded(self) -> dict[str, os.stat_result]:
        states: dict[str, os.stat_result] = {}
        for name in sorted(self.recorded):
            with contextlib.suppress(OSError), folder_of(self.root, name) as (inside, _):
                if state := _regular(inside, name):
                    states[name] = state
        return states

    def mount(
        self, known: Mapping[str, os.stat_result], names: Collection[str], is_canceled: IsCanceled
    ) -> dict[str, str]:
        """Make these of the `known` entities relations of the store's database; returns the reasons for those that
        failed. Raises Failure."""
        organization = self.organization
        folded = Counter(name.lower() for name in known)
        broken = {name: "its name differs from another only in case" for name in names if folded[name.lower()] > 1}
        names = [name for name in names if name not in broken]
        if organization.copies is not None:
            stamps = {name: stamp(status) for name, status in known.items() if folded[name.lower()] == 1}
            return broken | organization.copies.refresh_copy(self.store, self.root, stamps, names, is_canceled)
        check_supported(organization.engine, "store_entities")
        engine = cast(_ReadsFiles, organization.engine)
        engine.view(self.store, {})
        for name in names:
            try:
                engine.view(self.store, {name: self.path / name})
            except Failure as failure:
                broken[name] = failure.message
        return broken


def _regular(folder: int, name: str) -> os.stat_result | None:
    """The state of the regular file of an entity, in its open folder; None for another one."""
    with contextlib.suppress(OSError, UnicodeEncodeError):
        # A statement cannot contain a name that is not valid Unicode.
        name.encode()
        state = os.stat(name.rpartition("/")[2], dir_fd=folder, follow_symlinks=False)
        # A link may point outside of the allowed folders.
        return state if stat.S_ISREG(state.st_mode) else None
    return None


def read_options(
    options: Mapping[str, str], organizations: Organizations, before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The stored detail of a store from its WITH options; `before` is the detail before an UPDATE.

    Raises Failure, also for a folder that is not allowed.
    """
    kind = options.get("type", "files").lower()
    if kind != "files":
        message = f"stores of type {kind.upper()!r} are not supported; expected 'type' = 'files'"
        raise Failure(sqlstate.UNSUPPORTED, message)
    if unknown := set(options) - {"type", "uri", "uris", "writable", "access_region"}:
        message = f"unknown option {min(unknown)!r} of a file store; expected type, uri or writable"
        raise Failure(sqlstate.INVALID_PARAMETER, message)
    detail: dict[str, Any] = dict(before or {}) | {"type": kind}
    if not before or "uri" in options or "uris" in options:
        detail["uri"] = _folder(options.get("uri", options.get("uris", "")), organizations)
    if "writable" in options:
        writable = _TRUTH.get(options["writable"].lower())
        if writable is None:
            raise Failure("22023", f"'writable': expected TRUE or FALSE, not {options['writable'][:40]!r}")
        detail["writable"] = writable
    if detail.get("writable"):
        check_writable_place(detail["uri"], organizations)
    return detail


def check_writable_place(uri: str, organizations: Organizations) -> None:
    """Raises Failure if writable stores are not allowed in a folder."""
    if not organizations.allows_writing(Path(uri)):
        message = f"'writable': changing files in {uri} is not allowed; allow it with sqlshell serve --store-root DIR"
        raise Failure(sqlstate.PRIVILEGE, message)


def _folder(uri: str, organizations: Organizations) -> str:
    parts = urlsplit(uri)
    text = unquote(parts.path) if parts.scheme == "file" and parts.netloc in {"", "localhost"} else uri
    if not uri:
        raise Failure("22023", "a store requires a directory: 'uri' = '/path'")
    if not text.startswith("/") or "\0" in text:
        raise Failure("22023", f"'uri': {uri} is not an absolute path")
    folder = Path(os.path.realpath(text))
    if not folder.is_dir():
        raise Failure("22023", f"'uri': directory {uri} does not exist")
    if why := organizations.why_no_store(folder):
        raise Failure(sqlstate.PRIVILEGE, f"'uri': directory {uri} is not allowed; {why}")
    if not organizations.is_embedded and str(folder) != os.path.normpath("/" + text.lstrip("/")):
        # A link of /proc, for example, leads elsewhere in another process.
        message = f"'uri': the path {uri!r} contains a link; use the path without links"
        raise Failure(sqlstate.PRIVILEGE, message)
    return str(folder)


@contextlib.contextmanager
def open_store(
    organization: Organization, store: str, detail: Mapping[str, Any] | None = None
) -> Iterator[StoreFolder]:
    """Open a store's folder; `detail` is given for one that is not recorded yet. Raises Failure."""
    if detail is None:
        if why := organization.broken.get(("store", store)):
            raise Failure(sqlstate.STORE_NOT_READY, f'cannot read store "{store}": {why}')
        detail = organization.catalog.get(organization.id, "store", store).detail
    folder = Path(detail["uri"])
    try:
        root = open_folder(folder)
    except OSError as error:
        cause = _WHY_CLOSED.get(error.errno or 0, reason(error))
        raise Failure(sqlstate.STORE_NOT_READY, f'cannot open the directory of store "{store}": {cause}') from None
    try:
        yield StoreFolder(organization, store, folder, root, frozenset(detail.get("entities", ())))
    finally:
        os.close(root)


def open_folder(folder: Path) -> int:
    """Open a folder by an absolute path without following links. Raises OSError."""
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
    """The data files of a store by name, which is the path inside it. Raises Failure."""
    with open_store(organization, store) as folder:
        return folder.entities()


def mount(organization: Organization, store: str, name: str, is_canceled: IsCanceled) -> None:
    """Make an entity readable as a relation. Raises Failure if it does not exist or cannot be read."""
    with open_store(organization, store) as folder:
        known = folder.entities()
        if name not in known:
            raise missing("entity", f"{store}.{name}")
        for reason in folder.mount(known, [name], is_canceled).values():
            raise _unreadable(store, name, reason)


def _unreadable(store: str, entity: str, reason: str) -> Failure:
    return Failure(sqlstate.STORE_NOT_READY, f'cannot read entity "{store}.{entity}": {reason}')


def mount_named(
    organization: Organization, sql: str, is_canceled: IsCanceled, database: str
) -> dict[tuple[str, str], str]:
    """Make the entities readable that a statement may read.

    These are the entities whose names occur in the statement, of the stores whose names occur in it or that are the
    session's `database`. Returns the reasons for those that cannot be read, by store and entity. Raises Failure if the
    statement was canceled.
    """
    text = sql.lower()
    broken: dict[tuple[str, str], str] = {}
    for store in {*named_stores(organization, sql), *({database} & organization.store_names)}:
        try:
            with open_store(organization, store) as folder:
                known = folder.entities()
                named = [name for name in known if name.lower().replace('"', '""') in text]
                broken |= {(store, name): reason for name, reason in folder.mount(known, named, is_canceled).items()}
        except Failure as failure:
            if failure.sql_state == sqlstate.CANCELED:
                raise
            broken[store, ""] = failure.message
    return broken


class _ReadsFiles(Protocol):
    """An engine in this process, which may read any file; others read copies of entities."""

    def view(self, store: str, entities: Mapping[str, Path]) -> None:
        """Create views of files as relations of the database `store`. Raises Failure."""


def named_stores(organization: Organization, sql: str) -> list[str]:
    """The stores whose names occur in a statement."""
    low = sql.lower().replace('""', '"')
    found = {name: re.escape(name.lower()) for name in list(organization.store_names) if name.lower() in low}
    return [name for name, pattern in found.items() if re.search(rf"(?<!\w){pattern}(?!\w)", low)]


def add(organization: Organization, store: str, detail: Mapping[str, Any], is_canceled: IsCanceled) -> None:
    """Create a store. It is mounted first, so that a failure leaves nothing behind. Raises Failure."""
    with open_store(organization, store, detail) as folder:
        folder.mount({}, [], is_canceled)
    try:
        organization.catalog.add(organization.id, "store", store, detail)
    except BaseException:
        _unmount(organization, store)
        raise
    organization.store_names.add(store)


def change(
    organization: Organization,
    store: str,
    options: Mapping[str, str],
    is_canceled: IsCanceled,
) -> None:
    """Change a store's options, and mount it again if its folder changes. Raises Failure."""
    with organization.changing:
        before = organization.catalog.get(organization.id, "store", store).detail
        after = read_options(options, organization.owner, before)
        reason = organization.broken.get(("store", store))
        if reason not in {None, NOT_GRANTED}:
            raise Failure(sqlstate.STORE_NOT_READY, f'cannot change store "{store}": {reason}')
        if reason or after["uri"] != before["uri"]:
            after.pop("entities", None)
            if not reason:
                _unmount(organization, store)
            with open_store(organization, store, after) as folder:
                folder.mount({}, [], is_canceled)
        organization.catalog.change(organization.id, "store", store, after)
        organization.broken.pop(("store", store), None)


def test(organization: Organization, store: str) -> str:
    """Check a store and return a message. Raises Failure if it cannot be read, or is writable but cannot be written."""
    with open_store(organization, store) as folder:
        number = len(folder.entities())
        can = "read"
        if organization.catalog.get(organization.id, "store", store).detail.get("writable"):
            check_writable_place(str(folder.path), organization.owner)
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder.root):
                message = f'store "{store}" is writable, but the service has no permission to write to its directory'
                raise Failure(sqlstate.STORE_NOT_READY, message)
            can = "read and written"
    return f'store "{store}" can be {can}: it has {format_count(number, "entity", "entities")}'


def drop(organization: Organization, store: str) -> None:
    """Drop a store and remove its copy. Raises Failure."""
    with organization.changing:
        if organization.broken.pop(("store", store), None) is None:
            _unmount(organization, store)
        organization.catalog.drop(organization.id, "store", store)
        organization.store_names.discard(store)


def _unmount(organization: Organization, store: str) -> None:
    if organization.copies is not None:
        organization.copies.drop(store)
    elif any(row[0] == store for row in organization.engine.catalog(CatalogQuery("databases"))):
        cast(LocalEngine, organization.engine).detach(store)


def check_read_only(organization: Organization, connection: EngineSession, sql: str) -> None:
    """Raises Failure if a statement would change a store, judging by its text."""
    for names in targets(sql, WRITES):
        store = connection.resolve(names)[0].lower()
        if store in {name.lower() for name in organization.store_names}:
            raise Failure(
                sqlstate.UNSUPPORTED,
                f'cannot change store "{store}" with this statement; '
                "use INSERT INTO ENTITY to add records to a writable store",
            )


def check_entities(
    organization: Organization, connection: EngineSession, sql: str, broken: Mapping[tuple[str, str], str]
) -> None:
    """Raises Failure if a statement reads an entity that does not exist or is `broken`."""
    for names in targets(sql, READS):
        store, _, entity = connection.resolve(names)
        wanted = next((name for name in organization.store_names if name.lower() == store.lower()), "")
        if not wanted and len(names) > 1:
            # Without its folder, the store has no database.
            wanted = next((name for name in organization.store_names if name.lower() == names[0].lower()), "")
            entity = names[-1]
        if wanted:
            if (wanted, "") in broken:
                raise Failure(sqlstate.STORE_NOT_READY, broken[wanted, ""])
            if (wanted, entity) in broken:
                raise _unreadable(wanted, entity, broken[wanted, entity])
            known, joined = entities(organization, wanted), ".".join(names[1:])
            if entity not in known and joined in known:
                raise Failure(
                    sqlstate.NO_RELATION, f"the name of the entity must be quoted: {quoted(wanted)}.{quoted(joined)}"
                )
            if entity not in known:
                message = f'entity "{wanted}.{entity}" does not exist; run LIST ENTITIES IN STORE {quoted(wanted)}'
                raise Failure(sqlstate.NO_RELATION, message)


def split_name(names: Sequence[str], store: str, stores: Collection[str]) -> tuple[str, str]:
    """The store and entity of a dotted name: `store.entity`, or `entity` in the current store ("" for none).

    A file name may be unquoted, so that its dot looks like a separator. Raises Failure if the name is in none of
    `stores`.
    """
    if store and len(names) <= 2:
        return store, ".".join(names)
    if len(names) < 2 or names[0] not in stores:
        message = f'stream or entity "{".".join(names)}" does not exist'
        hint = "" if len(names) > 1 else "; name an entity of a store as STORE.ENTITY or ENTITY IN STORE name"
        raise Failure(sqlstate.NO_RELATION, message + hint)
    return names[0], ".".join(names[1:])
