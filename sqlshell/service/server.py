"""The service of `sqlshell serve`: it listens on a TCP port or on a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit

import uvicorn
import uvloop
from msgspec import Struct
from msgspec.structs import replace
from starlette.types import ASGIApp

from sqlshell.errors import ServiceError, UsageError, reason
from sqlshell.runtime.event_loops import allow_slow_imports
from sqlshell.runtime.shutdown import EXIT_SIGNALS
from sqlshell.runtime.unused_memory import limit_unused_memory
from sqlshell.service.catalog import Catalog
from sqlshell.service.engines.engine import Engine
from sqlshell.service.failure import Failure
from sqlshell.service.http.app import make_app
from sqlshell.service.http.auth import loopback
from sqlshell.service.http.connections import (
    Connection,
    Connections,
    NoteResponses,
    fitting_connections,
    raise_descriptor_limit,
)
from sqlshell.service.settings import Settings
from sqlshell.service.setup import STORAGE, Peers, locked, make_statements, open_storage
from sqlshell.service.statements.service import StatementService
from sqlshell.service.storage.storage import StorageError

SWITCH_SECONDS = 0.001
"""Approximate time in seconds that a thread that parses a text blocks the event loop."""

COLLECTING = (2_000, 10, 10)
"""Thresholds of the garbage collector: short collections, because they hold up the event loop."""

KEEP_ALIVE_SECONDS = 80
"""Idle connections live longer here than in any client, so that a POST never meets a connection that is closing."""

MESSAGE = 16 << 10
"""The maximum size of a client's message on a websocket in bytes; clients send only an auth frame and pongs."""

PING_SECONDS = 20
"""How often readers of unbounded results are pinged, and how long they have to respond, in seconds."""

LONGEST_SOCKET = 107 if sys.platform == "linux" else 103
"""The maximum length of the path of a Unix socket, in bytes."""

HOST_HINT = "set --host to an address of this machine, such as 127.0.0.1"


class Address(Struct, frozen=True):
    """Where a service listens: on a port of `host`, or on a Unix socket. `names` are further allowed Host values.

    `peer_url` is where other processes of the service reach this one, "" for the port of `host`.
    """

    host: str = "127.0.0.1"
    port: int = 0
    uds: Path | None = None
    names: tuple[str, ...] = ()
    peer_url: str = ""


def serve(
    address: Address,
    data: Path | None,
    token: str,
    settings: Settings,
    on_ready: Callable[[str, str], None],
    engine: Engine | None = None,
    peers: Peers | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. `engine` is None for DuckDB in processes of its own; with
    an engine, several processes can share what `peers` names.

    `on_ready` is called with the service's URL and the description of how the engine processes are protected, once the
    service accepts requests. Raises UsageError if the address or the folder cannot be used, ServiceError if another
    service uses the folder.
    """
    os.umask(0o077)
    limit_unused_memory()
    sys.setswitchinterval(SWITCH_SECONDS)
    settings = replace(settings, connections=fitting_connections(settings.connections, raise_descriptor_limit()))
    with contextlib.closing(open_storage(data, peers)) as storage, locked(data):
        listener = _unix(address.uds) if address.uds else _tcp(address, settings.write_seconds)
        try:
            if peers is not None:
                own = address.peer_url or f"http://{address.host}:{listener.getsockname()[1]}"
                peers = replace(peers, address=own, token=token)
            statements = make_statements(storage, settings, data, engine, peers)
            protections = ""
            try:
                first = statements.organizations.get(statements.organizations.default())
                protections = first.protections
                for (kind, name), reason in first.broken.items():
                    logging.getLogger("sqlshell.service").warning('cannot open %s "%s": %s', kind, name, reason)
            except Failure as failure:
                # Other organizations still work, and this one will once its folder is repaired.
                logging.getLogger("sqlshell.service").warning("%s", failure.message)
            port = 0 if address.uds else listener.getsockname()[1]
            name = f"[{address.host}]" if ":" in address.host else address.host
            url = f"unix://{quote(str(address.uds.resolve()))}" if address.uds else f"http://{name}:{port}"
            app = make_app(statements, token, settings, _hosts(address, port, settings))
            return uvloop.run(_serve(statements, app, listener, settings, lambda: on_ready(url, protections)))
        except Failure as failure:
            raise ServiceError(failure.message) from None
        finally:
            listener.close()
            if address.uds is not None:
                with contextlib.suppress(OSError):
                    address.uds.unlink()


def new_token(data: Path | None, organization: str, roles: Sequence[str], state_url: str = "") -> str:
    """Create a token for an organization ("" is the first one) in a data folder, or in the database that several
    processes share. The service may be running. Raises UsageError, and ServiceError if the database does not respond.
    """
    os.umask(0o077)
    peers, name = (Peers(state_url), "the database of --state-url") if state_url else (None, f"{data}/{STORAGE}")
    if data is not None and not state_url and (not data.exists() or (data.is_dir() and not (data / STORAGE).exists())):
        raise UsageError(
            f"{data} is not a data directory of sqlshell serve", "start the service once: sqlshell serve --data DIR"
        )
    with contextlib.closing(open_storage(data, peers)) as storage:
        try:
            catalog = Catalog(storage)
            wanted = catalog.organization(organization) if organization else catalog.organizations()[0][0]
            return catalog.new_token(wanted, roles)
        except Failure as failure:
            raise UsageError(failure.message) from None
        except StorageError as error:
            raise UsageError(f"cannot write to {name}: {error}") from None


def kept_token(path: Path) -> str:
    """Create a token and write it to a file of mode 0600.

    Returns the token, or "" if the file exists already. Raises UsageError.
    """
    token = secrets.token_urlsafe(32)
    if path.exists():
        return ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".token-") as file:
            file.write(f"{token}\n")
            file.flush()
            # Atomic, and never replaces an existing token.
            os.link(file.name, path)
    except FileExistsError:
        return ""
    except OSError as error:
        raise UsageError(f"cannot write the token file {path}: {reason(error)}") from None
    return token


def _hosts(address: Address, port: int, settings: Settings) -> set[str]:
    """The allowed values of the Host header; empty for a Unix socket, which no browser can reach."""
    if address.uds:
        return set()
    own = f"[{address.host}]" if ":" in address.host else address.host
    known = loopback(port) | set(address.names) | {f"{name}:{port}" for name in (*address.names, own)}
    known |= {urlsplit(address.peer_url).netloc} if address.peer_url else set()
    return known | ({urlsplit(settings.public_url).netloc} if settings.public_url else set())


def _websocket(**given: Any) -> asyncio.Protocol:
    # Importing websockets takes a twentieth of the start, and many services send no unbounded results.
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    return WebSocketsSansIOProtocol(**given)


def _is_of_the_service(record: logging.LogRecord) -> bool:
    """Whether a message of uvicorn is an exception of the application: any client, also one without a token, can cause
    the others.
    """
    return record.exc_info is not None and not isinstance(record.exc_info[1], UnicodeError)


async def _serve(
    statements: StatementService, app: ASGIApp, listener: socket.socket, settings: Settings, ready: Callable[[], None]
) -> int:
    connections = Connections(settings)
    protocol: Any = partial(Connection, connections=connections)
    config = uvicorn.Config(
        NoteResponses(app),
        http=protocol,
        ws=cast(Any, _websocket),
        ws_max_size=MESSAGE,
        # Compression takes memory for each reader, and time of the event loop.
        ws_per_message_deflate=False,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=5,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_of_the_service)
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    allow_slow_imports(asyncio.get_running_loop())
    stop, now = asyncio.Event(), asyncio.Event()

    def asked() -> None:
        (now if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, *EXIT_SIGNALS):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, asked)
    statements.start()
    # What the start made stays: otherwise each full collection of garbage goes through it and holds up the event loop.
    gc.freeze()
    gc.set_threshold(*COLLECTING)
    ready()
    ticking = asyncio.ensure_future(server.main_loop())
    await stop.wait()
    draining = asyncio.ensure_future(statements.drain(settings.grace))
    at_once = asyncio.ensure_future(now.wait())
    await asyncio.wait({draining, at_once}, return_when=asyncio.FIRST_COMPLETED)
    for task in (draining, at_once):
        task.cancel()
    # uvicorn's messages about closed connections are not helpful.
    logging.getLogger("uvicorn.error").disabled = True
    server.should_exit = True
    await ticking
    await statements.close()
    await server.shutdown(sockets=[listener])
    # Otherwise a client that is still sending would be read for some time after its response.
    connections.abort()
    await asyncio.sleep(0)
    # DuckDB's module would report objects that still exist at the exit as leaked.
    gc.unfreeze()
    return 0


def _tcp(address: Address, write_seconds: float) -> socket.socket:
    """Listen on a port. On Linux, the system disconnects clients that take nothing for this time."""
    host, port = address.host, address.port
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=512)
        if sys.platform == "linux":
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(write_seconds * 1000))
        return listener
    except (OSError, UnicodeError) as error:
        code = getattr(error, "errno", None) or -1
        if code < 0:
            # create_server() raises its own error with the codes of getaddrinfo(), which are negative.
            raise UsageError(f"--host: invalid value {host!r}", HOST_HINT) from None
        hint = HOST_HINT if code == errno.EADDRNOTAVAIL else "use --port 0 to choose any free port"
        raise UsageError(f"cannot listen on {host}:{port}: {reason(OSError(code, os.strerror(code)))}", hint) from None


def _unix(path: Path) -> socket.socket:
    """Listen on a Unix socket of mode 0600, which the umask gives it. The socket of a dead service is replaced."""
    if len(os.fsencode(path.absolute())) > LONGEST_SOCKET:
        cause = f"--uds {path} is too long: the path of a socket may have at most {LONGEST_SOCKET} bytes"
        raise UsageError(cause, "use a shorter path")
    listener = socket.socket(socket.AF_UNIX)
    try:
        if path.is_socket():
            with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
                probe.connect(str(path))
                cause = f"another service is already listening on {path}"
                raise UsageError(cause, "stop it first, or use another path")
            path.unlink()
        elif path.exists():
            raise UsageError(f"{path} exists but is not a socket", "remove it, or use another path")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot listen on {path}: {reason(error)}") from None
    except UsageError:
        listener.close()
        raise
    return listener
