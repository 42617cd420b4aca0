"""A service that is reached: one that others run, the embedded one, and the one that only holds results."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sqlshell.client.target import Target
from sqlshell.errors import UsageError
from sqlshell.launch.assembly import Reached, service_of
from sqlshell.launch.destination import Local, Place, Remote
from sqlshell.runtime.scratch import scratch
from sqlshell.shell.shell import Shell

if TYPE_CHECKING:
    from sqlshell.shell.local.local import Local as LocalResults


EMBEDDED = Target("http", "sqlshell.localhost", 80, known_as="the local service")


def kept_name(place: Place) -> str:
    """What names a service in the history and the catalogs of the disk; "" for one that nobody meets again."""
    if isinstance(place.where, Remote):
        return place.where.target.name
    return str(place.where.database.resolve()) if place.where.database is not None else ""


def label(place: Place) -> str:
    if isinstance(place.where, Remote):
        address = place.where.target.name
    elif place.where.database is not None:
        address = str(place.where.database)
    else:
        address = ", ".join(str(path) for path in place.where.views.values()) or "local, transient"
    return f"{place.profile} ({address})" if place.profile else address


@contextlib.contextmanager
def reached_service(place: Place, *, ask: bool = True, read_only: bool = False) -> Iterator[Reached]:
    """The service that the place names, running. A person is asked for a token that is missing, where `ask` says so.

    With `read_only` an embedded service opens its file so that nothing writes into it.
    """
    if isinstance(place.where, Remote):
        where = place.where
        known = where.token or where.token_command or place.settings["offline"] or not ask
        yield Reached(where.target, where.token if known else _asked_token(where.target))
        return
    if place.settings["offline"]:
        raise UsageError("--offline is for a service that has an address", "sqlshell https://host/v2 --offline -c …")
    from sqlshell.launch.embedded import start as start_embedded

    embedded = start_embedded(place.where.database, views=place.where.views, read_only=read_only)
    try:
        if place.where != Local():
            # A transient database opens while the client gets ready; what is wrong with a file is told at once.
            embedded.wait()
        yield Reached(EMBEDDED, embedded.token, embedded.dial)
    finally:
        embedded.close()


def _asked_token(target: Target) -> str:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return ""
    import getpass

    return getpass.getpass(f"token for {target.name}: ").strip()


async def local_results(shell: Shell, place: Place, services: contextlib.ExitStack) -> LocalResults:
    """The database of this shell alone, in which results are tables."""
    from sqlshell.launch.embedded import start as start_embedded
    from sqlshell.shell.local.local import Local as LocalResults

    folder = scratch().folder("local")
    services.callback(shutil.rmtree, folder, ignore_errors=True)
    embedded = start_embedded(folder / "local.duckdb", installs=not shell.policy.read_only)
    services.callback(embedded.close)
    reached = Reached(EMBEDDED, embedded.token, embedded.dial)
    service = service_of(replace(place, where=Local()), reached, shell.session, shell.diagnostics)
    return LocalResults(service, folder, shell.session, shell.outlet, shell.diagnostics)
