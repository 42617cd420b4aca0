"""Sail, a Spark Connect server, for tests."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

START_SECONDS = 60.0


def program() -> str:
    """The path of Sail's program, "" if the package pysail is not installed."""
    beside = Path(sys.executable).with_name("sail")
    return str(beside) if beside.exists() else shutil.which("sail") or ""


def installed() -> bool:
    return bool(program() and importlib.util.find_spec("pyspark"))


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def running(port: int = 0) -> Iterator[str]:
    """A server on a port of this machine, by default a free one, with tables in a directory of its own; yields its URL.
    It is killed at the end.
    """
    port = port or free_port()
    with tempfile.TemporaryDirectory(prefix="sail", ignore_cleanup_errors=True) as folder:
        argv = [program(), "spark", "server", "--ip", "127.0.0.1", "--port", str(port)]
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _wait(process, port, Path(folder) / "log")
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(f"Sail does not listen: {log.read_text(errors='replace')[-500:]}")
