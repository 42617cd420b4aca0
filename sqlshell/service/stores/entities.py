"""Creates, appends to and removes entities of writable stores, which are files in the store's folder."""

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

from sqlshell.errors import reason
from sqlshell.interface import sqlstate
from sqlshell.service.catalog import missing
from sqlshell.service.engines.files.data_files import ENDINGS
from sqlshell.service.engines.sandbox import beneath
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.organizations import Organization
from sqlshell.service.settings import Settings, limit_note
from sqlshell.service.stores import stores
from sqlshell.text import format_count

RECORD: Final = 1_000_000
"""The maximum size of a record, in bytes."""

DEEPEST: Final = 100
"""The maximum depth of nested objects and lists in a record; the engine reads 128."""

LOCK_SECONDS: Final = 5.0
"""How long to wait for another program that has locked the file."""

_OF_TOPICS: Final = ("topic.", "kafka.", "kinesis.", "key.", "value.")
"""Prefixes of options for other types of stores, which clients send to all stores."""

_AGAIN: Final = 0.01
_HEAD: Final = 4096
_CONTROL: Final = re.compile(r"[\x00-\x1f]")


def create_entity(
    organization: Organization, store: str, name: str, options: Mapping[str, str], *, takes_over: bool
) -> None:
    """Create an empty file.

    With `takes_over`, an existing file without an extension becomes an entity if it contains JSON. Raises Failure.
    """
    check_options(options)
    settings = organization.owner.settings
    _check_name(name, settings)
    with organization.changing, _writable(organization, store) as place:
        known = place.entities()
        if any(entity.lower() == name.lower() for entity in known):
            raise Failure(sqlstate.DUPLICATE, f'entity "{store}.{name}" already exists')
        if len(known) >= stores.MOST:
            raise Failure(sqlstate.LIMIT, f'store "{store}" already has the maximum of {len(known)} entities')
        if name.lower().endswith(stores.WRITABLE):
            _create_file(place, name)
            return
        if len(place.recorded) >= settings.objects:
            number = len(place.recorded)
            message = f'store "{store}" already has the maximum of {number} entities without a file extension'
            raise Failure(sqlstate.LIMIT, f"{message} {limit_note('objects')}")
        # Recorded before its file is created, because a record without a file has no effect.
        _record(place, place.recorded | {name})
        try:
            _create_file(place, name, takes_over=takes_over)
        except Failure:
            _record(place, place.recorded)
            raise


def drop_entity(organization: Organization, store: str, name: str) -> None:
    """Remove the file of an entity. Raises Failure."""
    with organization.changing, _writable(organization, store) as place:
        if name not in place.entities():
            raise missing("entity", f"{store}.{name}")
        # If the file was replaced meanwhile: unlink() removes no folder, and of a link only the link itself.
        with _translating_errors(store, name), beneath.folder_of(place.root, name) as (inside, file):
            os.unlink(file, dir_fd=inside)
        if name in place.recorded:
            _record(place, place.recorded - {name})


def insert_record(organization: Organization, store: str, name: str, text: str) -> None:
    """Append a JSON record to an entity as one line, with one write. Raises Failure."""
    line = checked_record(text)
    quota = organization.owner.settings.quota
    with _writable(organization, store) as place:
        known = place.entities()
        if name not in known:
            raise missing("entity", f"{store}.{name}")
        if name not in place.recorded and not name.lower().endswith(stores.WRITABLE):
            message = f'cannot add records to "{name}": it is not a JSON entity ({", ".join(stores.WRITABLE)})'
            raise Failure(sqlstate.UNSUPPORTED, message)
        if sum(state.st_size for state in known.values()) + len(line) > quota:
            message = f'the files of store "{store}" would exceed {format_count(quota, "byte")}'
            raise Failure(sqlstate.LIMIT, f"{message} (limit set by sqlshell serve --quota)")
        with _translating_errors(store, name), beneath.open_file(place.root, name, os.O_RDWR | os.O_APPEND) as file:
            _append(file, f"{store}.{name}", line)


@contextlib.contextmanager
def _writable(organization: Organization, store: str) -> Iterator[stores.StoreFolder]:
    detail = organization.catalog.get(organization.id, "store", store).detail
    if not detail.get("writable"):
        message = f"store \"{store}\" is read-only; use UPDATE STORE … WITH ('writable' = TRUE) to allow changes"
        raise Failure(sqlstate.UNSUPPORTED, message)
    with stores.open_store(organization, store) as place:
        stores.check_writable_place(str(place.path), organization.owner)
        yield place


def check_options(options: Mapping[str, str]) -> None:
    """Raises Failure for an option other than those of topics, which are ignored."""
    if unknown := [name for name in options if not name.startswith(_OF_TOPICS)]:
        message = f"option {min(unknown)[:40]!r} is not supported: an entity of a file store has no options"
        raise Failure(sqlstate.UNSUPPORTED, message)


def checked_record(text: str) -> bytes:
    """A JSON object as a line. Raises Failure for JSON that the engine could not read."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise _no_record("the text is not valid Unicode") from None
    if len(raw) > RECORD:
        raise Failure(sqlstate.LIMIT, f"the record has {len(raw)} bytes; the maximum is {RECORD}")
    try:
        record = msgspec.json.decode(raw)
        if not isinstance(record, dict):
            raise _no_record('expected an object such as {"key": 1}')
        _check_depth(record, DEEPEST)
        json.loads(raw, object_pairs_hook=_once, parse_int=str, parse_float=str)
    except RecursionError:
        raise _no_record(f"objects and lists are nested more than {DEEPEST} levels deep") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise _no_record(str(error)) from None
    # JSON strings contain no control characters, so that these occur only between tokens.
    return _CONTROL.sub(" ", text).strip().encode() + b"\n"


def _check_depth(value: object, levels: int) -> None:
    """Raises RecursionError for objects and lists that are nested more than `levels` deep."""
    if isinstance(value, dict | list):
        if not levels:
            raise RecursionError
        for item in value.values() if isinstance(value, dict) else value:
            _check_depth(item, levels - 1)


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object contains a duplicate key")
    return members


def _no_record(why: str) -> Failure:
    return Failure("22032", f"VALUE is not a valid JSON record: {why}")


def _check_name(name: str, settings: Settings) -> None:
    parts = name.split("/")
    try:
        longest = max(len(part.encode()) for part in parts)
    except UnicodeEncodeError:
        raise Failure(sqlstate.INVALID_PARAMETER, "the name of the entity is not valid Unicode") from None
    if len(name) > settings.name_length or longest > 255:
        why = "has a part that is longer than 255 bytes"
        if len(name) > settings.name_length:
            why = f"is longer than {settings.name_length} characters"
        raise Failure("42622", f"the name of the entity {why}")
    why = ""
    if any(not part or part.startswith(".") for part in parts):
        why = "no part may be empty or begin with a dot"
    elif _CONTROL.search(name) or "\x7f" in name or "\\" in name:
        why = "control characters and backslashes are not allowed"
    elif name.lower().endswith(ENDINGS) and not name.lower().endswith(stores.WRITABLE):
        why = "only JSON files can be created"
    elif "." in parts[-1] and not name.lower().endswith(stores.WRITABLE):
        why = "a name with a dot must end with one of " + ", ".join(stores.WRITABLE)
    if why:
        raise Failure(sqlstate.INVALID_PARAMETER, f'"{name[:80]}" is not a valid entity name: {why}')


def _record(place: stores.StoreFolder, names: frozenset[str]) -> None:
    """Record the entities of a store without a file extension. The caller holds `organization.changing`."""
    catalog, organization = place.organization.catalog, place.organization.id
    detail = catalog.get(organization, "store", place.store).detail
    catalog.change(organization, "store", place.store, {**detail, "entities": sorted(names)})


def _create_file(place: stores.StoreFolder, name: str, *, takes_over: bool | None = None) -> None:
    """Create an empty file. `takes_over` is None for a file with an extension."""
    store = place.store
    with _translating_errors(store, name):
        try:
            with beneath.open_file(place.root, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
                return
        except FileExistsError:
            if takes_over is None:
                raise _not_ready(store, name, "a directory or special file of this name exists") from None
            if not takes_over:
                cause = f'file {name} already exists in the directory of store "{store}"'
                remedy = "use CREATE ENTITY IF NOT EXISTS to make it an entity"
                raise Failure(sqlstate.DUPLICATE, f"{cause}; {remedy}") from None
        with beneath.open_file(place.root, name) as file:
            _check_lines(file, f"{store}.{name}")


@contextlib.contextmanager
def _translating_errors(store: str, name: str) -> Iterator[None]:
    """Turn OSError into Failure."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise Failure(sqlstate.DISK_FULL, f'the disk of store "{store}" is full') from None
        if error.errno in {errno.ENOENT, errno.ENOTDIR} and "/" in name:
            folder = name.rpartition("/")[0]
            raise Failure(sqlstate.INVALID_PARAMETER, f'directory {folder} does not exist in store "{store}"') from None
        why = "it is a symbolic link" if error.errno == errno.ELOOP else reason(error)
        raise _not_ready(store, name, why or "") from None


def _not_ready(store: str, name: str, why: str) -> Failure:
    return Failure(sqlstate.STORE_NOT_READY, f'cannot change entity "{store}.{name}": {why}')


def _check_lines(file: int, what: str) -> os.stat_result:
    """Raises Failure if no record can be appended to a file."""
    state = os.fstat(file)
    if state.st_nlink != 1:
        raise Failure(sqlstate.STORE_NOT_READY, f'cannot change entity "{what}": its file has more than one hard link')
    if state.st_size and not os.pread(file, _HEAD, 0).lstrip().startswith(b"{"):
        message = f'cannot add a record to entity "{what}": its file does not contain one JSON object per line'
        raise Failure(sqlstate.UNSUPPORTED, message)
    return state


def _append(file: int, what: str, line: bytes) -> None:
    with _locked(file, what):
        state = _check_lines(file, what)
        if state.st_size and os.pread(file, 1, state.st_size - 1) != b"\n":
            line = b"\n" + line
        written = os.write(file, line)
        if written != len(line):
            # Remove the incomplete record, which would make the whole file unreadable.
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
                message = f'cannot change entity "{what}": its file is locked by another program'
                raise Failure(sqlstate.STORE_NOT_READY, message) from None
            time.sleep(_AGAIN)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
