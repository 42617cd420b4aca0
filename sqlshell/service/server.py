"""The service for others: on a port of loopback, or on a unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from sqlshell.errors import UsageError
from sqlshell.service.app import make_app
from sqlshell.service.engines.duckdb import DuckdbEngine
from sqlshell.service.statements import Statements

KEEP_ALIVE_SECONDS = 80
"""Idle connections live longer here than with any client, so that a POST never meets a closing one."""


def serve(
    *,
    host: str,
    port: int,
    uds: Path | None,
    data: Path | None,
    token: str,
    partition_rows: int,
    on_ready: Callable[[str], None],
) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. `on_ready` gets the address when requests are answered.

    Raises UsageError when the address or the folder cannot be used.
    """
    os.umask(0o077)
    database = None
    if data is not None:
        try:
            data.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{data} cannot be used: {error.strerror}") from None
        database = data / "local.duckdb"
    listener = _unix(uds) if uds else _tcp(host, port)
    try:
        statements = Statements(DuckdbEngine(database), partition_rows=partition_rows, row_limits=False)
        name = "localhost" if uds else f"[{host}]" if ":" in host else host
        url = f"http://{name}" if uds else f"http://{name}:{listener.getsockname()[1]}"
        return _loop()(_serve(statements, token, listener, lambda: on_ready(url)))
    finally:
        listener.close()
        if uds is not None:
            with contextlib.suppress(OSError):
                uds.unlink()


async def _serve(statements: Statements, token: str, listener: socket.socket, ready: Callable[[], None]) -> int:
    config = uvicorn.Config(
        make_app(statements, token),
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    ready()
    ticking = asyncio.ensure_future(server.main_loop())
    await stop.wait()
    server.should_exit = True
    await ticking
    await statements.close()
    await server.shutdown(sockets=[listener])
    return 0


def _loop() -> Callable[..., int]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    run: Callable[..., int] = uvloop.run
    return run


def _tcp(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{host}:{port} cannot be listened at: {reason}", "--port 0 takes any free port") from None


def _unix(path: Path) -> socket.socket:
    """A unix socket of mode 0600; one that a dead service left behind is replaced."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        if path.is_socket():
            probe = socket.socket(socket.AF_UNIX)
            with probe:
                try:
                    probe.connect(str(path))
                except OSError:
                    path.unlink()
                else:
                    raise UsageError(f"a service listens at {path} already")
        listener.bind(str(path))
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise UsageError(f"{path} cannot be listened at: {error.strerror or error}") from None
    except UsageError:
        listener.close()
        raise
    return listener
