"""A service that is reached: one that others run, or the embedded one."""

from __future__ import annotations

from sqlshell.client.target import Target
from sqlshell.errors import UsageError
from sqlshell.launch.assembly import Reached
from sqlshell.launch.destination import Place, Remote
from sqlshell.runtime.streams import Streams

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
        address = ", ".join(str(path) for path in place.where.views.values()) or "local, in memory"
    return f"{place.profile} ({address})" if place.profile else address


def reach(place: Place, streams: Streams, *, ask: bool = True, read_only: bool = False) -> Reached:
    """The service that the place names, running. A person is asked for a token that is missing, where `ask` says so.

    With `read_only` an embedded service opens its file so that nothing writes into it.
    """
    if isinstance(place.where, Remote):
        where = place.where
        known = where.token or where.token_command or place.settings["offline"] or not ask
        return Reached(where.target, where.token if known else _asked_token(where.target, streams))
    if place.settings["offline"]:
        raise UsageError("--offline requires a remote service", "example: sqlshell https://host/v2 --offline -c …")
    from sqlshell.launch.embedded import start

    embedded = start(place.where.database, views=place.where.views, read_only=read_only)
    return Reached(EMBEDDED, embedded.token, embedded.dial, embedded.wait, embedded.close)


def _asked_token(target: Target, streams: Streams) -> str:
    if not streams.asks:
        return ""
    import getpass

    return getpass.getpass(f"token for {target.name}: ").strip()
