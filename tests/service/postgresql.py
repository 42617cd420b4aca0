"""A PostgreSQL server for tests, on a socket in a directory of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.required import required


def program(name: str) -> str:
    """The path of a program of PostgreSQL's server, "" if it is not installed; Debian keeps them out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name) or ""


MISSING = (
    ""
    if required("postgresql") or (program("initdb") and all(map(importlib.util.find_spec, ("psycopg", "pyarrow"))))
    else "needs PostgreSQL, psycopg and pyarrow: pip install 'psycopg[binary]' pyarrow"
)
"""Why tests with a server are skipped, "" if they are not."""

needs_postgresql = pytest.mark.requires(MISSING)


@contextlib.contextmanager
def running(*settings: str) -> Iterator[str]:
    """A server with these further settings (name=value); yields the directory of its socket, where the user postgres
    may connect. PostgreSQL refuses to run as root, who runs it as nobody.
    """
    user = "nobody" if os.geteuid() == 0 else None
    # The path of a socket may have about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
            folder.chmod(0o755)
        argv = [program("initdb"), "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        argv += ["--locale", "C", "--no-sync"]
        subprocess.run(argv, user=user, check=True, capture_output=True, cwd=folder)
        options = ["listen_addresses=", "fsync=off", f"unix_socket_directories={folder}", *settings]
        argv = [program("pg_ctl"), "-D", str(folder / "data"), "-l", str(folder / "log"), "-w", "start", "-o"]
        argv.append(" ".join(f"-c {option}" for option in options))
        subprocess.run(argv, user=user, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
        try:
            yield name
        finally:
            argv = [program("pg_ctl"), "-D", str(folder / "data"), "-m", "immediate", "stop"]
            subprocess.run(argv, user=user, check=False, capture_output=True, cwd=folder)


@contextlib.contextmanager
def database(folder: str) -> Iterator[str]:
    """A new database on the server; yields its URL."""
    import psycopg

    url = f"postgresql://postgres@/{{}}?host={folder}"
    with psycopg.connect(url.format("postgres"), autocommit=True) as connection:
        name = f"d{uuid.uuid4().hex[:12]}"
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    try:
        yield url.format(name)
    finally:
        with psycopg.connect(url.format("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())
