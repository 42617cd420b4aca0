"""Entities of writable stores: files beneath the store's folder that are made, added to and removed by their names."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from sqlshell.interface import sqlstate
from sqlshell.service.bounds import Bounds, met
from sqlshell.service.engines.duckdb.datafiles import ENDINGS
from sqlshell.service.engines.engine import Failure
from sqlshell.service.engines.sandbox import beneath
from sqlshell.service.objects.catalog import missing
from sqlshell.service.organizations.organizations import Organization, Organizations
from sqlshell.service.stores import stores

RECORD: Final = 1_000_000
"""Bytes of a record."""

DEEPEST: Final = 100
"""Objects and lists inside one another in a record: the engine reads 128."""

LOCK_SECONDS: Final = 5.0
"""How long another program may hold the lock of a file to which a record is to be added."""

_OF_TOPICS: Final = ("topic.", "kafka.", "kinesis.", "key.", "value.")
"""How options begin that other stores have, and that clients send to each."""

_AGAIN: Final = 0.01
_HEAD: Final = 4096
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_BRACKET: Final = re.compile(r"[\[\]{}]")
_CONTROL: Final = re.compile(r"[\x00-\x1f]")


class Entities:
    """Changes entities of an organization's stores. `most` is the bytes that the files of a store may come to.

    In a thread; raises Failure.
    """

    def __init__(self, organizations: Organizations, bounds: Bounds, most: int) -> None:
        self._organizations = organizations
        self._bounds = bounds
        self._most = most

    def create(
        self, organization: Organization, store: str, name: str, options: Mapping[str, str], *, takes_over: bool = False
    ) -> None:
        """Make an empty file. With `takes_over` one without an ending that is there, and that this store did not make,
        becomes an entity of it where it holds JSON."""
        check_options(options)
        _check_name(name, self._bounds)
        with organization.changing, self._writable(organization, store) as place:
            known = place.entities()
            if any(found.lower() == name.lower() for found in known):
                raise _duplicate(store, name)
            if len(known) >= stores.MOST:
                raise Failure(sqlstate.LIMIT, f"store {store!r} has {len(known)} entities, and may have no more")
            recorded = not name.lower().endswith(stores.WRITABLE)
            if recorded and len(place.made) >= self._bounds.objects:
                said = f"store {store!r} has {len(place.made)} entities without an ending {met('objects')}"
                raise Failure(sqlstate.LIMIT, said)
            if recorded:
                # Before its file: one that is recorded and not there is none.
                _record(organization, store, place.made | {name})
            try:
                with _told(store, name):
                    try:
                        with beneath.opened(place.root, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
                            return
                    except FileExistsError:
                        if not recorded:
                            raise _not_ready(store, name, "a folder or a special file has this name") from None
                        if not takes_over:
                            said = f"file {name!r} is in the folder of store {store!r} already"
                            remedy = "CREATE ENTITY IF NOT EXISTS makes it an entity"
                            raise Failure(sqlstate.DUPLICATE, f"{said}: {remedy}") from None
                    with beneath.opened(place.root, name) as file:
                        _check_lines(file, f"{store}.{name}")
            except Failure:
                if recorded:
                    _record(organization, store, place.made)
                raise

    def drop(self, organization: Organization, store: str, name: str) -> None:
        """Remove the file of an entity."""
        with organization.changing, self._writable(organization, store) as place:
            if name not in place.entities():
                raise missing("entity", f"{store}.{name}")
            # Whatever took the file's place meanwhile: a folder is not removed, and of a link the link alone.
            with _told(store, name), beneath.folder_of(place.root, name) as (inside, file):
                os.unlink(file, dir_fd=inside)
            if name in place.made:
                _record(organization, store, place.made - {name})

    def update(self, organization: Organization, store: str, name: str, options: Mapping[str, str]) -> None:
        """Check what is asked for, and change nothing: options of topics say nothing of a file."""
        if name not in stores.entities(organization, store):
            raise missing("entity", f"{store}.{name}")
        check_options(options)

    def insert(self, organization: Organization, store: str, name: str, text: str) -> None:
        """Add a JSON record to an entity, as one line and by one write."""
        line = checked_record(text)
        with self._writable(organization, store) as place:
            known = place.entities()
            if name not in known:
                raise missing("entity", f"{store}.{name}")
            if name not in place.made and not name.lower().endswith(stores.WRITABLE):
                said = f"records can be added to JSON entities only ({', '.join(stores.WRITABLE)}), not to {name!r}"
                raise Failure(sqlstate.UNSUPPORTED, said)
            _check_name(name, self._bounds)
            if sum(found.st_size for found in known.values()) + len(line) > self._most:
                said = f"the files of store {store!r} would be larger than {self._most} bytes (sqlshell serve --quota)"
                raise Failure(sqlstate.LIMIT, said)
            with _told(store, name), beneath.opened(place.root, name, os.O_RDWR | os.O_APPEND) as file:
                _append(file, f"{store}.{name}", line)

    @contextlib.contextmanager
    def _writable(self, organization: Organization, store: str) -> Iterator[stores.Place]:
        detail = organization.catalog.get(organization.id, "store", store).detail
        if not detail.get("writable"):
            said = f"store {store!r} is read only: UPDATE STORE … WITH ('writable' = TRUE) lets its entities be changed"
            raise Failure(sqlstate.UNSUPPORTED, said)
        with stores.opened(organization, store) as place:
            stores.check_writable_place(str(place.folder), self._organizations)
            yield place


def check_options(options: Mapping[str, str]) -> None:
    """Raises Failure for an option that is not one of a topic: those say nothing of a file."""
    if unknown := [name for name in options if not name.startswith(_OF_TOPICS)]:
        said = f"{min(unknown)[:40]!r} is not supported: an entity of a store of files is a file, and has no options"
        raise Failure(sqlstate.UNSUPPORTED, said)


def checked_record(text: str) -> bytes:
    """A JSON object as a line. Raises Failure for what the engine could not read back."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise _no_record("it is not Unicode text") from None
    if len(raw) > RECORD:
        raise Failure(sqlstate.LIMIT, f"the record has {len(raw)} bytes: {RECORD} is the most")
    try:
        if not isinstance(msgspec.json.decode(raw), dict):
            raise _no_record('it is not an object such as {"key": 1}')
        depth = deepest = 0
        # One after another: other threads wait for a list of all.
        for sign in _BRACKET.finditer(_STRING.sub("", text)):
            depth += 1 if sign[0] in "[{" else -1
            deepest = max(deepest, depth)
        if deepest > DEEPEST:
            raise _no_record(f"more than {DEEPEST} objects and lists are inside one another")
        json.loads(raw, object_pairs_hook=_once, parse_int=str, parse_float=str)
    except RecursionError:
        raise _no_record(f"more than {DEEPEST} objects and lists are inside one another") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise _no_record(str(error)) from None
    # Strings of JSON hold no control characters, so that these stand between tokens alone.
    return _CONTROL.sub(" ", text).strip().encode() + b"\n"


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _no_record(why: str) -> Failure:
    return Failure("22032", f"VALUE is not a JSON record: {why}")


def _check_name(name: str, bounds: Bounds) -> None:
    parts = name.split("/")
    try:
        longest = max(len(part.encode()) for part in parts)
    except UnicodeEncodeError:
        raise Failure(sqlstate.INVALID_PARAMETER, "the name of an entity must be Unicode text") from None
    if len(name) > bounds.name or longest > 255:
        raise Failure(
            "42622", f"the name of the entity is longer than {min(bounds.name, 255)} characters {met('name')}"
        )
    why = ""
    if any(not part or part.startswith(".") for part in parts):
        why = "no part of it may be empty or begin with a dot"
    elif _CONTROL.search(name) or "\x7f" in name or "\\" in name:
        why = "control characters and backslashes are not allowed"
    elif name.lower().endswith(ENDINGS) and not name.lower().endswith(stores.WRITABLE):
        why = "records can be added to JSON files only"
    elif "." in parts[-1] and not name.lower().endswith(stores.WRITABLE):
        why = "a name with a dot must end in one of " + ", ".join(stores.WRITABLE)
    if why:
        raise Failure(sqlstate.INVALID_PARAMETER, f"{name[:80]!r} cannot be the name of an entity: {why}")


def _record(organization: Organization, store: str, names: frozenset[str]) -> None:
    """Note which entities of a store have names that tell no form. The caller holds `organization.changing`."""
    detail = organization.catalog.get(organization.id, "store", store).detail
    organization.catalog.change(organization.id, "store", store, {**detail, "entities": sorted(names)})


def _duplicate(store: str, name: str) -> Failure:
    return Failure(sqlstate.DUPLICATE, f"entity '{store}.{name}' exists already")


@contextlib.contextmanager
def _told(store: str, name: str) -> Iterator[None]:
    """Errors of the system as failures."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise Failure(sqlstate.DISK_FULL, f"the disk of store {store!r} is full") from None
        if error.errno in {errno.ENOENT, errno.ENOTDIR} and "/" in name:
            folder = name.rpartition("/")[0]
            raise Failure(sqlstate.INVALID_PARAMETER, f"there is no folder {folder!r} in store {store!r}") from None
        why = "a link is not followed" if error.errno == errno.ELOOP else error.strerror
        raise _not_ready(store, name, why or "") from None


def _not_ready(store: str, name: str, why: str) -> Failure:
    return Failure(sqlstate.STORE_NOT_READY, f"entity '{store}.{name}' cannot be changed: {why}")


def _check_lines(file: int, what: str) -> os.stat_result:
    """Raises Failure for a file to which no record can be added."""
    state = os.fstat(file)
    if state.st_nlink != 1:
        raise Failure(
            sqlstate.STORE_NOT_READY, f"entity {what!r} cannot be changed: its file has another name too (a hard link)"
        )
    if state.st_size and not os.pread(file, _HEAD, 0).lstrip().startswith(b"{"):
        said = f"entity {what!r} does not have a JSON object on each line, so none can be added"
        raise Failure(sqlstate.UNSUPPORTED, said)
    return state


def _append(file: int, what: str, line: bytes) -> None:
    with _locked(file, what):
        state = _check_lines(file, what)
        if state.st_size and os.pread(file, 1, state.st_size - 1) != b"\n":
            line = b"\n" + line
        written = os.write(file, line)
        if written != len(line):
            # Half a record would make the whole file unreadable.
            if os.fstat(file).st_size == state.st_size + written:
                os.ftruncate(file, state.st_size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextlib.contextmanager
def _locked(file: int, what: str) -> Iterator[None]:
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                said = f"entity {what!r} cannot be changed: another program holds the lock of its file"
                raise Failure(sqlstate.STORE_NOT_READY, said) from None
            time.sleep(_AGAIN)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
