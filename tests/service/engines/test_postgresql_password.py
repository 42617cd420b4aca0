"""A PostgreSQL server that requires a password: a terminal asks for it, a script says where it can be given."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlshell.errors import UsageError
from tests.conftest import Program
from tests.terminal.terminal import Terminal

SECRET = "geheimes-wort-1"


@pytest.fixture
def guarded(postgresql_server: str) -> Iterator[str]:
    """The URL of a user who needs SECRET."""
    import psycopg

    rules = Path(postgresql_server, "data", "pg_hba.conf")
    before = rules.read_text()
    url = f"postgresql://guarded@/postgres?host={postgresql_server}"
    admin = f"postgresql://postgres@/postgres?host={postgresql_server}"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"create role guarded login password '{SECRET}'".encode())
        rules.write_text(f"local all guarded scram-sha-256\n{before}")
        try:
            connection.execute("select pg_reload_conf()")
            # The server reads the file a moment later.
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    psycopg.connect(url).close()
                    time.sleep(0.01)
            yield url
        finally:
            rules.write_text(before)
            connection.execute("select pg_reload_conf()")
            connection.execute("drop role guarded")


def test_a_script_says_where_the_password_can_be_given(program: Program, guarded: str, tmp_path: Path) -> None:
    done = program(guarded, "-c", "select 1")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: the PostgreSQL server requires a password: connection to server")
    assert "\nhelp: put the password into ~/.pgpass (host:port:database:user:password), or set PGPASSWORD" in done.err
    given = program(guarded, "-c", "select 41 + 1 as a", "--format", "csv", env={"PGPASSWORD": SECRET})
    assert (given.code, given.out) == (0, "a\n42\n")


@pytest.mark.parametrize("argv", [["-c", "select 41 + 1 as a"], []])
def test_a_terminal_asks_for_it_and_shows_it_nowhere(guarded: str, tmp_path: Path, argv: list[str]) -> None:
    terminal = Terminal(tmp_path, "-q", guarded, *argv)
    terminal.wait("password for postgresql://guarded@/postgres:")
    terminal.enter(SECRET)
    if not argv:
        terminal.prompt()
        terminal.enter("select 41 + 1 as a;")
    terminal.wait("42 ")
    terminal.close()
    assert SECRET.encode() not in terminal.written
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert all(SECRET.encode() not in content for content in written)


def test_a_wrong_password_is_an_error(guarded: str, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, guarded, "-c", "select 1", columns=200)
    terminal.wait("password for")
    terminal.enter("wrong-one")
    assert "wrong-one" not in terminal.wait("password authentication failed")
    terminal.close()


def test_no_password_is_an_interruption(guarded: str, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, guarded, "-c", "select 1", columns=200)
    terminal.wait("password for")
    terminal.type("\x03")
    terminal.wait("interrupted; not connected")
    terminal.close()


@pytest.mark.usefixtures("postgresql_server")
def test_an_unknown_option_is_named_unless_it_may_be_part_of_a_password() -> None:
    from sqlshell.service.engines.postgresql.connection import Server

    with pytest.raises(UsageError, match=r'^unknown option "foo" in the URL'):
        Server("postgresql://ann:sesame@db/shop?sslmode=require&foo=bar")
    with pytest.raises(UsageError) as caught:
        Server("postgresql://ann:ses/a?me=1@db/shop")
    assert caught.value.message == "the URL of the PostgreSQL server is malformed"
