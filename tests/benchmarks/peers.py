"""The programs that the throughput is compared with: PostgreSQL in a temporary cluster, and the DuckDB CLI."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

DUCKDB = str(Path(sys.executable).with_name("duckdb"))
"""The CLI of the package duckdb-cli."""

SETTINGS = ("fsync=off", "autovacuum=off", "max_wal_size=4GB", "max_connections=300", "listen_addresses=127.0.0.1")


class Cluster(Struct):
    """A running PostgreSQL server; `pid` is that of its first process."""

    port: int
    pid: int

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    def psql(self, *argv: str) -> list[str]:
        return ["psql", "-X", "-q", self.dsn, *argv]


@contextmanager
def postgres() -> Iterator[Cluster]:
    """A server on loopback with an empty database; its files are removed afterwards.

    PostgreSQL refuses to run as root, who runs it as the user postgres or nobody.
    """
    user = _user()
    with TemporaryDirectory(prefix="sqlshell-bench-pg-") as name:
        folder = Path(name)
        if user is not None:
            account = pwd.getpwnam(user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "user": user}
        data = str(folder / "data")
        argv = [_program("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(argv, check=True, **quiet)  # type: ignore[call-overload]
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = [part for setting in SETTINGS for part in ("-c", setting)]
        argv = [_program("postgres"), "-D", data, "-k", str(folder), "-p", str(port), *options]
        process: subprocess.Popen[bytes] = subprocess.Popen(argv, **quiet)  # type: ignore[call-overload]
        try:
            cluster = Cluster(port, process.pid)
            while subprocess.run(cluster.psql("-c", ""), capture_output=True, check=False).returncode:
                if process.poll() is not None:
                    raise SystemExit("PostgreSQL does not start")
                time.sleep(0.1)
            yield cluster
        finally:
            process.terminate()
            process.wait()


def versions() -> str:
    """The peers' versions and the load of the machine."""
    import duckdb
    import psycopg

    told = [
        _first_line("psql", "--version"),
        _first_line(_program("postgres"), "--version"),
        f"duckdb-cli {_first_line(DUCKDB, '--version')}",
        f"DuckDB in Python {duckdb.__version__}",
        f"psycopg {psycopg.__version__} ({psycopg.pq.__impl__})",
        f"Python {sys.version.split()[0]}",
        f"{os.cpu_count()} cores, load {' '.join(f'{load:.1f}' for load in os.getloadavg())}",
    ]
    return "; ".join(told)


def _user() -> str | None:
    """The user to run as; None is this one."""
    if os.geteuid():
        return None
    known = {account.pw_name for account in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def has_postgres() -> bool:
    """Whether the server and psql are installed."""
    return shutil.which("psql") is not None and _found("initdb") is not None


def _found(name: str) -> str | None:
    """Debian keeps the server's programs out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


def _program(name: str) -> str:
    path = _found(name)
    if path is None:
        raise SystemExit(f"{name} is not installed (apt-get install postgresql)")
    return path


def _first_line(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()[0]
