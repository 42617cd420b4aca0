"""The storage of records: the same on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import Catalog
from sqlshell.service.failure import Failure
from sqlshell.service.storage.sqlite import SqliteStorage
from sqlshell.service.storage.storage import Duplicate, Storage, Unreachable
from tests.service.postgresql import needs_postgresql
from tests.service.waiting import suspend


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs_postgresql)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Storage]:
    """Opens the records of one service."""
    if request.param == "sqlite":
        return lambda: SqliteStorage(tmp_path / "service.sqlite")
    from sqlshell.service.storage.postgresql import PostgresqlStorage

    url = request.getfixturevalue("postgresql_database")
    return lambda: PostgresqlStorage(url)


@pytest.fixture
def storage(opened: Callable[[], Storage]) -> Iterator[Storage]:
    with contextlib.closing(opened()) as made:
        yield made


def test_one_of_several_tokens_of_a_name_is_created(storage: Storage) -> None:
    catalog = Catalog(storage)
    organization = catalog.organizations()[0][0]
    tried = threading.Barrier(6, timeout=60)

    def create(_: int) -> str:
        tried.wait()
        try:
            return catalog.new_token(organization, ["reader"], "t")
        except Failure as failure:
            assert failure.sql_state == sqlstate.DUPLICATE
            return ""

    with ThreadPoolExecutor(6) as threads:
        for _ in range(20):
            assert len(list(filter(None, threads.map(create, range(6))))) == 1
            assert catalog.tokens(organization) == [("t", "reader")]
            assert catalog.drop_token(organization, "t")
    catalog.new_token(organization, ["reader"], "t")
    catalog.new_token("another", ["reader"], "t")


def test_tokens_of_one_name_from_an_earlier_version_get_different_names(opened: Callable[[], Storage]) -> None:
    with contextlib.closing(opened()) as storage:
        storage.write("DROP INDEX tokens_by_name")
        for number, (name, organization) in enumerate([("t", "o"), ("t", "o"), ("t", "o"), ("u", "o"), ("t", "p")]):
            # The last ones are the oldest.
            values = (f"digest{number}", f"{number}23456789", name, organization, "reader", 9.0 - number)
            storage.write("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?)", values)
    with contextlib.closing(opened()) as storage:
        catalog = Catalog(storage)
        assert [name for name, _ in catalog.tokens("o")] == ["t", "t-02345678", "t-12345678", "u"]
        assert [name for name, _ in catalog.tokens("p")] == ["t"]
        with pytest.raises(Failure):
            catalog.new_token("o", ["reader"], "t")


def test_rows_are_written_all_or_none(storage: Storage) -> None:
    sql = "INSERT INTO organizations VALUES (?, ?, ?)"
    with pytest.raises(Duplicate):
        storage.write_all(sql, [("a", "a", 1.0), ("b", "a", 2.0)])
    assert storage.read("SELECT count(*) FROM organizations") == [(0,)]
    storage.write_all(sql, [("a", "a", 1.0), ("b", "b", 2.0)])
    assert storage.read("SELECT id FROM organizations ORDER BY created") == [("a",), ("b",)]


@pytest.mark.parametrize("text", ["100 % of '?'", "ü", "", "\N{PILE OF POO}", "a\nb"])
def test_texts_and_bytes_come_back_as_they_were(storage: Storage, text: str) -> None:
    values = ("i", "o", "w", text, 1.5, 0.0, "03000", "", b"\0\xff", None, b"", 1 << 40)
    columns = "id, organization, owner, sql, created, finished, state, message, context, outcome, body, bytes"
    assert storage.write(f"INSERT INTO statements ({columns}) VALUES ({', '.join('?' * len(values))})", values) == 1
    assert [tuple(storage.read(f"SELECT {columns} FROM statements")[0])] == [values]
    (size,) = storage.read(f"SELECT {storage.size_of('sql')} FROM statements")[0]
    assert size == len(text.encode())


@needs_postgresql
@pytest.mark.slow("a server that does not respond")
def test_a_database_that_stopped_responding_is_asked_by_a_thread_before_an_event_loop(
    postgresql_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlshell.service.storage import postgresql

    monkeypatch.setattr(postgresql, "PAUSE_SECONDS", 0.0)
    with contextlib.closing(postgresql.PostgresqlStorage(postgresql_database)) as storage:
        here = "SELECT pg_backend_pid()"

        async def on_a_loop() -> None:
            backends = [storage.read(here)[0][0], (await asyncio.to_thread(storage.read, here))[0][0]]
            for backend in backends:
                suspend(backend)
            try:
                with pytest.raises(Unreachable):
                    storage.read("SELECT 1")
            finally:
                for backend in backends:
                    os.kill(backend, signal.SIGCONT)
            # The event loop does not wait for the database again before a thread has found that it responds.
            with pytest.raises(Unreachable):
                storage.read("SELECT 1")
            assert await asyncio.to_thread(storage.read, "SELECT 1") == [(1,)]
            assert storage.read("SELECT 1") == [(1,)]

        asyncio.run(on_a_loop())


@needs_postgresql
@pytest.mark.slow("a server that does not respond")
def test_one_connection_that_does_not_respond_holds_up_no_other_call(postgresql_database: str) -> None:
    from sqlshell.service.storage.postgresql import CONNECTIONS, PostgresqlStorage

    with contextlib.closing(PostgresqlStorage(postgresql_database)) as storage:

        async def on_a_loop() -> None:
            (backend,) = (await storage.run_async(lambda: storage.read("SELECT pg_backend_pid()")))[0]
            suspend(backend)
            try:
                held_up = asyncio.ensure_future(storage.run_async(lambda: storage.read("SELECT 1")))
                while storage._of_threads.qsize() == CONNECTIONS:  # noqa: ASYNC110
                    await asyncio.sleep(0)
                for _ in range(20):
                    assert await storage.run_async(lambda: storage.read("SELECT 1")) == [(1,)]
                assert not held_up.done()
                # It is read again on another connection.
                assert await held_up == [(1,)]
                # Others got responses meanwhile, so calls are not refused.
                assert await storage.run_async(lambda: storage.read("SELECT 1")) == [(1,)]
            finally:
                os.kill(backend, signal.SIGCONT)

        asyncio.run(on_a_loop())


@needs_postgresql
def test_rows_that_are_written_together_tell_how_many_each_changed(postgresql_database: str) -> None:
    from sqlshell.service.storage.postgresql import PostgresqlStorage

    with contextlib.closing(PostgresqlStorage(postgresql_database)) as storage:
        storage.write_all("INSERT INTO organizations VALUES (?, ?, ?)", [("a", "a", 1.0), ("b", "b", 2.0)])
        sql = "UPDATE organizations SET created = ? WHERE id = ?"
        assert storage.write_each(sql, [(3.0, "a"), (4.0, "none"), (5.0, "b")]) == [1, 0, 1]
        with pytest.raises(Duplicate):
            storage.write_each("UPDATE organizations SET name = ? WHERE id = ?", [("c", "a"), ("c", "b")])
        assert storage.read("SELECT name, created FROM organizations ORDER BY id") == [("a", 3.0), ("b", 5.0)]
