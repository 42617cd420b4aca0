"""A service put together: its storage, catalog, ledger and statements."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlshell.errors import ServiceError, UsageError
from sqlshell.service.engines.engine import Engine
from sqlshell.service.objects.catalog import Catalog
from sqlshell.service.options import Options
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.results.results import Spool
from sqlshell.service.statements.ledger import Ledger
from sqlshell.service.statements.statements import Statements
from sqlshell.service.storage import Storage

STORAGE = "service.sqlite"


def open_storage(data: Path | None) -> Storage:
    """What a folder remembers; the folder is made. Raises UsageError where it cannot be used."""
    if data is None:
        return Storage()
    make_folder(data)
    _check_whole(data)
    try:
        return Storage(data / STORAGE)
    except sqlite3.Error as error:
        raise UsageError(f"{data / STORAGE} cannot be used: {error}") from None


def _check_whole(data: Path) -> None:
    """Raises UsageError where there are organizations, and the file that knows them is gone or empty."""
    file, organizations = data / STORAGE, data / "organizations"
    with contextlib.suppress(OSError):
        if (not file.exists() or not file.stat().st_size) and any(organizations.iterdir()):
            said = f"{file} is {'empty' if file.exists() else 'not there'}, but there are databases in {organizations}"
            raise UsageError(said, f"put {STORAGE} back from a backup, or take another folder for a new service")


def make_folder(data: Path) -> None:
    """Make the folder of a service, mode 0700, where it is missing. Raises UsageError."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"--data {data} is not a folder") from None
    except OSError as error:
        raise UsageError(f"the folder --data {data} cannot be made: {error.strerror}") from None


@contextlib.contextmanager
def locked(data: Path | None) -> Iterator[None]:
    """Hold a folder for one service. Raises ServiceError where another holds it."""
    if data is None:
        yield
        return
    try:
        held = (data / "lock").open("a+")
    except OSError as error:
        raise UsageError(f"the folder --data {data} cannot be written: {error.strerror}") from None
    with held as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            who = file.read(20).strip()
            said = f"{data} is in use by another service" + (f" (process {who})" if who else "")
            raise ServiceError(said, "stop it first, or give each service a folder of its own") from None
        _note_process(file.fileno())
        yield


def _note_process(file: int) -> None:
    """Write the number of this process into the file that is locked, for others to tell; on a full disk they do not."""
    with contextlib.suppress(OSError):
        os.ftruncate(file, 0)
        os.write(file, str(os.getpid()).encode())


def make_statements(
    storage: Storage, options: Options, data: Path | None = None, engine: Engine | None = None
) -> Statements:
    """The statements of a service on `data` (None: nothing is kept); `engine` makes it the embedded one."""
    organizations = Organizations(Catalog(storage), options, data, engine)

    def place(organization: str, statement_id: str) -> Spool:
        return Spool(lambda: organizations.result_file(organization, statement_id), options.partition_rows)

    ledger = Ledger(storage, place)
    organizations.tidy(ledger.known)
    return Statements(organizations, ledger, options)
