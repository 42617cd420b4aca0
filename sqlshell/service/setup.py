"""Builds a service from its settings: its folder, storage, store and statements. `http/` and `server` come on top."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from sqlshell.errors import ServiceError, UsageError, reason
from sqlshell.service.catalog import Catalog, digest
from sqlshell.service.engines.engine import Engine, ExternalEngine
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.results.results import Spool
from sqlshell.service.settings import Settings
from sqlshell.service.statements.service import StatementService
from sqlshell.service.statements.store import StatementStore
from sqlshell.service.storage.sqlite import SqliteStorage
from sqlshell.service.storage.storage import Storage, StorageError, Unavailable
from sqlshell.text import how_to_install

if TYPE_CHECKING:
    from sqlshell.service.cluster.cluster import Cluster
    from sqlshell.service.results.shared_files import SharedFiles
    from sqlshell.service.storage.postgresql import PostgresqlStorage

STORAGE = "service.sqlite"

CLUSTER_HINT = how_to_install("'psycopg[binary]' fsspec s3fs")


class Peers(Struct, frozen=True):
    """What several processes of a service share: the URLs of their records and of their results, and the operator's
    token. `address` is the URL of this one for the others.
    """

    state_url: str
    results_url: str = ""
    token: str = ""
    address: str = ""

    def __repr__(self) -> str:
        return "Peers()"


def open_storage(data: Path | None, peers: Peers | None = None) -> Storage:
    """Open the storage of a data folder, which is created if missing, or the one that several processes share. Raises
    UsageError if it cannot be used, and ServiceError if the shared one does not respond.
    """
    if peers is not None:
        return _open_shared_storage(peers)
    if data is None:
        return SqliteStorage()
    make_folder(data)
    _check_whole(data)
    try:
        return SqliteStorage(data / STORAGE)
    except StorageError as error:
        raise UsageError(f"cannot use {data / STORAGE}: {error}") from None


def _open_shared_storage(peers: Peers) -> PostgresqlStorage:
    try:
        from sqlshell.service.storage.libpq import parsed, without
        from sqlshell.service.storage.postgresql import PostgresqlStorage
    except ModuleNotFoundError as error:
        raise UsageError(f"--state-url requires the package {error.name} (extra: cluster)", CLUSTER_HINT) from None
    try:
        return PostgresqlStorage(peers.state_url)
    except StorageError as error:
        reason = str(error.__cause__ or error).partition("\n")[0]
        reason = without(reason, str(parsed(peers.state_url, "").get("password") or ""))
        raise ServiceError(f"cannot use the database of --state-url: {reason}") from None


def make_statements(
    storage: Storage,
    settings: Settings,
    data: Path | None = None,
    engine: Engine | None = None,
    peers: Peers | None = None,
    *,
    embedded: bool = False,
) -> StatementService:
    """Build the statements of a service on `data` (None: in memory), which may be one of several processes (`peers`).

    With an `engine` there is one organization, which has it; otherwise each organization has a process with DuckDB.
    `embedded` says that the service is in the process of its user.

    Raises UsageError if the storage cannot be written, and ServiceError if other processes differ.
    """
    shared = cluster = None
    if peers is not None:
        shared, cluster = _join(cast("PostgresqlStorage", storage), settings, cast(ExternalEngine, engine), peers)
    try:
        organizations = Organizations(
            Catalog(storage), settings, data, engine, embedded=embedded, system=_system_columns, shared=shared
        )

        def place(organization: str, statement_id: str) -> Spool:
            """Make the empty spool of a statement of an organization."""
            there = shared.place(organization, statement_id) if shared is not None else ""
            file = partial(organizations.result_file, organization, statement_id)
            return Spool(file, settings.partition_rows, shared, there)

        if cluster is None:
            store = StatementStore(storage, place)
            organizations.remove_leftovers(store.known)
        else:
            from sqlshell.service.statements.membership import SharedStatementStore

            store = SharedStatementStore(cluster.storage, place, cluster)
            # The directory contains only copies of shared files and incomplete files.
            organizations.remove_leftovers(lambda organization: set())
        return StatementService(organizations, store, settings, cluster)
    except Unavailable as error:
        raise UsageError(f"cannot write to {data or 'the temporary directory'}: {error}") from None


def _system_columns() -> Mapping[str, Sequence[tuple[str, str]]]:
    # An embedded engine makes them for the first statement that reads one.
    from sqlshell.service.objects import kinds

    return kinds.system_columns()


def _join(
    storage: PostgresqlStorage, settings: Settings, engine: ExternalEngine, peers: Peers
) -> tuple[SharedFiles, Cluster]:
    """Join the other processes. Raises UsageError and ServiceError."""
    from sqlshell.service.cluster.cluster import Cluster

    identity = engine.server()
    if engine.name == "postgresql" and identity == storage.server():
        raise UsageError(
            "--engine-url and --state-url refer to the same database",
            "use another database for --state-url: users who run statements could read the service's tables",
        )
    try:
        from sqlshell.service.results.shared_files import SharedFiles
    except ModuleNotFoundError as error:
        raise UsageError(f"--results-url requires the package {error.name} (extra: cluster)", CLUSTER_HINT) from None
    shared = SharedFiles(peers.results_url, settings.quota)
    cluster = Cluster(storage, peers.address, digest(peers.token), identity, storage.alone(shared.identity))
    try:
        _check_alike(cluster, engine.name)
    except ServiceError:
        cluster.leave()
        raise
    return shared, cluster


def _check_alike(cluster: Cluster, engine: str) -> None:
    """Raises ServiceError if other processes use another engine, or another storage of results."""
    kept = cluster.shared_value("engine", engine.encode()).decode()
    if kept != engine:
        message = f"the other processes of --state-url use the engine {kept}, not {engine}"
        raise ServiceError(message, "use the same --engine as the other processes, or another database for --state-url")
    for other, flag, what in (
        (cluster.differing("engine"), "--engine-url", "server or database"),
        (cluster.differing("results"), "--results-url", "storage"),
    ):
        if other:
            raise ServiceError(
                f"{flag} refers to a different {what} from the one used by the process at {other}",
                f"use the same {flag} for all processes; to change it, stop them all first",
            )
    if other := cluster.differing("operator"):
        # Not an error: the file is replaced at one process after another.
        logging.getLogger("sqlshell.service").warning(
            "the token in --token-file differs from that of the process at %s, which rejects it with 401; start all "
            "processes with the same token",
            other,
        )


def _check_whole(data: Path) -> None:
    """Raises UsageError if the folder holds organizations but the file that lists them is missing or empty."""
    file, organizations = data / STORAGE, data / "organizations"
    with contextlib.suppress(OSError):
        if (not file.exists() or not file.stat().st_size) and any(organizations.iterdir()):
            state = "is empty" if file.exists() else "does not exist"
            message = f"{file} {state}, but {organizations} contains databases"
            raise UsageError(message, f"restore {STORAGE} from a backup, or use another directory for a new service")


def make_folder(data: Path) -> None:
    """Create the data folder of a service (mode 0700) if it does not exist. Raises UsageError."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"--data {data} is not a directory") from None
    except OSError as error:
        raise UsageError(f"cannot create --data {data}: {reason(error)}") from None


@contextlib.contextmanager
def locked(data: Path | None) -> Iterator[None]:
    """Lock a data folder for one service. Raises ServiceError if another service has locked it."""
    if data is None:
        yield
        return
    try:
        held = (data / "lock").open("a+")
    except OSError as error:
        raise UsageError(f"cannot write to --data {data}: {reason(error)}") from None
    with held as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read(20).strip()
            message = f"{data} is in use by another service" + (f" (process {holder})" if holder else "")
            raise ServiceError(message, "stop that service first, or use another directory") from None
        # So that other processes can name this one. A full disk is ignored.
        with contextlib.suppress(OSError):
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), str(os.getpid()).encode())
        yield
