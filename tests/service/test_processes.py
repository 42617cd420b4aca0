"""The process of an organization's engine: its rights, how it exits, and how it is replaced."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlshell.interface import sqlstate
from sqlshell.runtime.unused_memory import MORE, Growth, return_unused_memory
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.engine import (
    FOLDERS,
    RENDERING,
    RESULTS,
    SPOOL,
    CatalogQuery,
    Limits,
    Outcome,
    RunOptions,
)
from sqlshell.service.engines.process import remote
from sqlshell.service.engines.process.child import Session
from sqlshell.service.engines.process.frames import EngineConfig, Report, frame, read_report, receive
from sqlshell.service.engines.process.process import ALLOCATORS
from sqlshell.service.engines.process.remote import MOST_IDLE, RemoteConnection, RemoteEngine
from sqlshell.service.failure import Failure, ResultLost
from sqlshell.service.results.results import Discard, Spool
from tests.service.waiting import suspend, until

LONG = "select i from range(100000000000) t(i) where hash(i) = 1"


def make_folders(folder: Path) -> None:
    for name in (*FOLDERS, "temporary", RESULTS, RENDERING):
        (folder / name).mkdir()


class Host:
    """An engine in a process, the folder that it has, and what it is to open."""

    def __init__(self, folder: Path) -> None:
        make_folders(folder)
        self.folder = folder
        self.config = EngineConfig(folder, {"local": folder / "databases" / "one.data"}, Limits(2, "200MB"))
        self.renewed = self.opened = 0
        self.engine = RemoteEngine(self._open, self._count)

    @property
    def pid(self) -> int:
        child = self.engine.process()._child
        assert child is not None
        return child.pid

    def spool(self, name: str = "result") -> Spool:
        return Spool(lambda: self.folder / "results" / name, 1000)

    def _open(self) -> EngineConfig:
        self.opened += 1
        return self.config

    def _count(self) -> None:
        self.renewed += 1


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    made.engine.close()


def rows(host: Host, connection: RemoteConnection, sql: str) -> tuple[str, bytes]:
    """The sqlState of a statement that has rows, and these."""
    spool = host.spool()
    outcome = connection.run(sql, RunOptions(), spool)
    return outcome.sql_state, spool.partition(0)


def failing(connection: RemoteConnection, sql: str) -> Failure:
    with pytest.raises(Failure) as raised:
        connection.run(sql, RunOptions(), Discard())
    return raised.value


def result_of(connection: RemoteConnection, sql: str) -> Outcome | Failure:
    try:
        return connection.run(sql, RunOptions(), Discard())
    except Failure as failure:
        return failure


def begun(host: Host, connection: RemoteConnection) -> tuple[threading.Thread, list[Exception]]:
    """A long statement that is running in a thread, and where its failure will be."""
    found: list[Exception] = []

    def run() -> None:
        try:
            connection.run(LONG, RunOptions(), host.spool("long"))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    # Its result is large: it begins by opening a file.
    until(lambda: any((host.folder / SPOOL).iterdir()))
    return thread, found


def test_rows_are_kept_where_the_service_finds_them(host: Host) -> None:
    connection = host.engine.connect()
    assert rows(host, connection, "select 'a' as x") == ("00000", b'["a"]')
    text = host.spool("text")
    connection.run("select i, i * 2 from range(20000) t(i)", RunOptions(partition_rows=1000), text)
    assert (text.layout.form, text.layout.rows) == ("text", 20_000)
    assert text.partition(1).startswith(b'["1000","2000"]')
    filed = host.spool("filed")
    connection.run("select i from range(60000) t(i)", RunOptions(partition_rows=1000), filed)
    path = filed.path
    assert filed.layout.form == "engine" and path is not None
    assert [part[:7] for part in host.engine.read(path, 59_000, [500, 500])] == [b'["59000', b'["59500']
    failed = host.spool("failed")
    with pytest.raises(Failure):
        connection.run("select error('x' || i) from range(10) t(i)", RunOptions(), failed)
    assert sorted(file.name for file in (host.folder / "results").iterdir()) == ["filed", "text"]


def test_results_are_rendered_by_another_process_than_the_engines(host: Host) -> None:
    connection, spool = host.engine.connect(), host.spool("filed")
    connection.run("create table t as select 1 as i", RunOptions(), Discard())
    connection.run("select i from range(60000) t(i)", RunOptions(partition_rows=1000), spool)
    assert spool.path is not None
    assert sum(spool.layout.counts) == 60_000 and len(spool.layout.counts) == 60
    assert list((host.folder / SPOOL).iterdir()) == []
    first = host.engine.renderer()
    assert first is not host.engine.process()
    assert host.engine.read(spool.path, 5, [1]) == [b'["5"]']
    # It is replaced, and stopped when there are no readers.
    first.kill("a test")
    assert host.engine.read(spool.path, 6, [1]) == [b'["6"]']
    second = host.engine.renderer()
    assert second is not first
    for _ in range(MOST_IDLE + 1):
        host.engine.trim_memory()
    second.wait()
    assert not second.alive
    assert host.engine.read(spool.path, 7, [1]) == [b'["7"]']
    # The engine's process, and its session, have noticed nothing.
    assert rows(host, connection, "select i from t") == ("00000", b'["1"]')


def test_a_result_that_cannot_be_kept_after_its_statement_says_so(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing_partitions(*given: object) -> None:
        raise Failure("53000", "too little memory")

    connection = host.engine.connect()
    connection.run("create table t (i int)", RunOptions(), Discard())
    monkeypatch.setattr(host.engine, "partitions", failing_partitions)
    with pytest.raises(ResultLost):
        connection.run("insert into t from range(60000) returning i", RunOptions(), host.spool("lost"))
    with pytest.raises(Failure, match="too little memory"):
        connection.run("from range(60000)", RunOptions(), host.spool("lost"))
    assert list((host.folder / RESULTS).iterdir()) == list((host.folder / SPOOL).iterdir()) == []
    assert rows(host, connection, "select count(*) from t") == ("00000", b'["60000"]')


def test_a_link_that_an_engine_leaves_is_not_taken_for_a_result(host: Host, tmp_path: Path) -> None:
    link, target = host.folder / SPOOL / "link", host.folder / RESULTS / "result"
    link.symlink_to(tmp_path)
    with pytest.raises(OSError, match="not a regular file"):
        remote._move(link, target)
    assert not target.exists() and tmp_path.exists()


def test_the_service_takes_no_descriptor_from_an_engine(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, (tmp_path / "file").open("w") as file:
        before = os.dup(file.fileno())
        os.close(before)
        socket.send_fds(theirs, [frame(Report(1, 0.5))], [file.fileno()])
        assert read_report(receive(ours)) == Report(1, 0.5)
        after = os.dup(file.fileno())
        os.close(after)
    assert before == after


def test_a_link_in_the_place_of_a_result_is_not_followed(host: Host, tmp_path: Path) -> None:
    spool = host.spool("text")
    host.engine.connect().run("select i, repeat('x', 100) from range(400) t(i)", RunOptions(), spool)
    assert spool.path is not None
    (tmp_path / "other").write_bytes(b"x" * 1_000_000)
    spool.path.unlink()
    spool.path.symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"):
        spool.partition(0)


def test_a_session_is_told_once_that_it_began_anew(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    connection, fresh, elsewhere = (host.engine.connect() for _ in range(3))
    elsewhere.run("create schema s", RunOptions(), Discard())
    elsewhere.use("", "s")
    connection.run("create table t as select 1 as i", RunOptions(), Discard())
    os.kill(host.pid, signal.SIGKILL)
    outcome = connection.run("select i from t", RunOptions(), host.spool())
    assert outcome.sql_state == sqlstate.WARNING
    assert "was restarted" in outcome.message and "SIGKILL" in outcome.message
    assert "the engine's process was killed by SIGKILL" in caplog.text
    assert rows(host, connection, "select i from t") == ("00000", b'["1"]')
    assert rows(host, fresh, "select i from t") == ("00000", b'["1"]')
    assert elsewhere.run("create table u (i int)", RunOptions(), Discard()).sql_state == sqlstate.WARNING
    assert rows(host, fresh, "select count(*) from s.u") == ("00000", b'["0"]')
    assert (host.renewed, elsewhere.schema) == (1, "s")


def test_nothing_runs_in_a_session_that_lost_what_it_had(host: Host) -> None:
    host.engine.connect().run("create table kept as select 1 as i", RunOptions(), Discard())
    leaving = (
        "create temp table pay as select 1 as i",
        "create temp view pay as select 1 as i",
        "create temp macro least_pay() as 1",
        "create temp type pay as enum ('a')",
        "create temp sequence pay",
        "create temp table temp.main.pay (i int)",
        "set variable lim = 1",
        "set timezone = 'Europe/Berlin'",
        "reset timezone",
        "set search_path = 'main,main'",
        "select setseed(.5)",
        "explain analyze select setseed(i) from range(1) t(i)",
    )
    connections = [host.engine.connect() for _ in leaving]
    for connection, sql in zip(connections, leaving, strict=True):
        connection.run(sql, RunOptions(), Discard())
        connection.run("select 1", RunOptions(), Discard())
    os.kill(host.pid, signal.SIGKILL)
    for connection in connections:
        lost = failing(connection, "delete from kept")
        assert lost.sql_state == sqlstate.SESSION_LOST
        assert "was restarted" in lost.message and "SIGKILL" in lost.message and "was not run" in lost.message
        assert rows(host, connection, "select i from kept") == ("00000", b'["1"]')


def test_a_session_that_left_nothing_goes_on(host: Host) -> None:
    connection = host.engine.connect()
    ran = (
        "create schema if not exists s",
        "create or replace table s.t as select 'temp' as i",
        "create or replace view s.v as from s.t",
        "insert into s.t values ('set variable x = 1')",
        "update s.t set i = 'x'",
        "begin",
        "commit",
        "pivot s.t on i using count(*)",
        "use s",
        "alter table s.t add column k int",
        "explain analyze from s.v",
        "drop schema s cascade",
        "use main",
    )
    for sql in ran:
        connection.run(sql, RunOptions(), Discard())
    os.kill(host.pid, signal.SIGKILL)
    assert rows(host, connection, "select 1") == ("01000", b'["1"]')


def test_what_ran_fails_and_the_next_one_works(host: Host) -> None:
    connection = host.engine.connect()
    thread, found = begun(host, connection)
    os.kill(host.pid, signal.SIGKILL)
    thread.join()
    assert isinstance(found[0], Failure) and found[0].sql_state == "XX000"
    assert "was killed by SIGKILL" in found[0].message
    assert rows(host, connection, "select 1") == ("01000", b'["1"]')
    assert rows(host, connection, "select 1") == ("00000", b'["1"]')


def test_a_lost_transaction_takes_nothing_but_its_end(host: Host) -> None:
    connection = host.engine.connect()
    for sql in ("create table t (i int)", "begin", "insert into t values (1)"):
        connection.run(sql, RunOptions(), Discard())
    os.kill(host.pid, signal.SIGKILL)
    lost = failing(connection, "insert into t values (2)")
    assert lost.sql_state == "40000" and "transaction was lost" in lost.message
    assert connection.transaction == "failed"
    assert failing(connection, "insert into t values (3)").sql_state == "25P02"
    ended = connection.run("commit", RunOptions(), Discard())
    assert ended.sql_state == sqlstate.WARNING and "none of its changes were committed" in ended.message
    assert rows(host, connection, "select count(*) from t") == ("00000", b'["0"]')


@pytest.mark.slow("several processes")
def test_what_only_reads_is_asked_again(host: Host) -> None:
    connection, spool = host.engine.connect(), host.spool()
    connection.run("create table t as from range(100000)", RunOptions(), Discard())
    connection.run("from t", RunOptions(partition_rows=1000), spool)
    assert spool.path is not None
    asked: list[Callable[[], bool]] = [
        lambda: host.engine.head(("local", "main", "t")) == 100_000,
        lambda: len(host.engine.read(spool.path or Path(), 0, [1000])[0]) > 5000,
        lambda: bool(host.engine.catalog(CatalogQuery("relation", "local", "main", "t"))),
        lambda: connection.resolve(["main", "t"]) == ("local", "main", "t"),
    ]
    for ask in asked:
        os.kill(host.pid, signal.SIGKILL)
        assert ask()


def test_an_instance_that_failed_for_good_is_replaced(host: Host) -> None:
    connection, beside = host.engine.connect(), host.engine.connect()
    connection.run("create table t as select 1 as i", RunOptions(), Discard())
    before = host.pid
    connection.run("create table large as select hash(i) as h from range(100000) t(i)", RunOptions(), Discard())
    thread, found = begun(host, beside)
    # As on a full disk: the database cannot grow.
    resource.prlimit(before, resource.RLIMIT_FSIZE, (4096, 4096))
    with pytest.raises(Failure) as raised:
        host.engine.read_listing("CHECKPOINT local")
    assert raised.value.message == "the engine failed and was restarted: disk full: file too large"
    thread.join()
    assert isinstance(found[0], Failure) and "the engine failed" in found[0].message
    assert rows(host, connection, "select i from t") == ("01000", b'["1"]')
    assert host.pid != before


def test_what_ignores_an_interrupt_ends_with_its_process(host: Host) -> None:
    connection = host.engine.connect()
    assert not connection.cancel(force=True)
    thread, found = begun(host, connection)
    suspend(host.pid)
    connection.cancel()
    assert connection.progress() is None
    assert connection.cancel(force=True)
    thread.join()
    assert isinstance(found[0], Failure) and "did not respond to an interrupt" in found[0].message
    assert rows(host, connection, "select 1") == ("01000", b'["1"]')


def test_an_interrupt_ends_the_statement_that_it_means(host: Host) -> None:
    connection = host.engine.connect()
    thread, found = begun(host, connection)
    while thread.is_alive():
        connection.cancel()
        thread.join(0.01)
    assert isinstance(found[0], Failure) and found[0].sql_state == sqlstate.CANCELED
    connection.cancel()
    assert rows(host, connection, "select 1") == ("00000", b'["1"]')


def test_a_statement_that_was_ended_before_it_began_does_not_run() -> None:
    engine = DuckdbEngine()
    session = Session(engine.connect)
    with session.running(5) as connection:
        connection.run("create table t (i int)", RunOptions(), Discard())
    session.interrupt(5)
    with session.running(6):
        session.interrupt(7)
    with pytest.raises(Failure, match="before it started"), session.running(7):
        raise AssertionError
    # Neither a late interrupt nor one of another statement stops the next one.
    session.interrupt(7)
    with session.running(8) as connection:
        assert connection.run("insert into t values (1)", RunOptions(), Discard()).message == "INSERT 1"
    engine.close()


def test_databases_that_cannot_be_opened_are_not_tried_all_the_time(host: Host) -> None:
    good, host.config = host.config, EngineConfig(host.folder, host.config.databases, Limits(2, "no size"))
    connection = host.engine.connect()
    connection.run("select 1", RunOptions(), Discard())
    os.kill(host.pid, signal.SIGKILL)
    assert failing(connection, "select 1").sql_state == "XX000"
    tried = host.opened
    for _ in range(20):
        assert "it will be restarted in" in failing(connection, "select 1").message
    assert host.opened == tried
    host.config = good
    host.engine._not_before = 0
    assert rows(host, connection, "select 1") == ("01000", b'["1"]')


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc")
def test_it_has_no_descriptor_and_no_variable_of_its_parent(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLSHELL_TOKEN", "secret")
    host.engine.connect().run("create table t (i int)", RunOptions(), Discard())
    with (host.folder / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        os.kill(host.pid, signal.SIGKILL)
        host.engine.connect().run("select 1", RunOptions(), Discard())
        place = Path("/proc", str(host.pid))
        try:
            environment = place.joinpath("environ").read_text().split("\0")
            descriptors = [str(entry.readlink()) for entry in place.joinpath("fd").iterdir()]
        except PermissionError:
            pytest.skip("only root may look at a process that gave up being looked at")
        ours = {str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()}
    names = {item.partition("=")[0] for item in environment if item}
    assert names <= {"LC_ALL", "TMPDIR", *ALLOCATORS}
    assert ours.intersection(descriptors) <= {"/dev/null"}
    assert str(host.folder / "secret") not in descriptors
    assert sum(item.startswith("socket:") for item in descriptors) <= 3
    assert str(host.folder / "databases" / "one.data") in descriptors


def test_an_orderly_end_writes_the_databases_out(host: Host) -> None:
    connection = host.engine.connect()
    connection.run("create table t as from range(100)", RunOptions(), Discard())
    log = host.folder / "databases" / "one.data.wal"
    assert log.exists()
    thread, _ = begun(host, host.engine.connect())
    host.engine.close()
    thread.join()
    assert not log.exists()


def test_garbage_is_found_when_memory_is_returned() -> None:
    # Otherwise the allocator may have enough for what follows.
    return_unused_memory()
    growth = Growth()
    cycle: list[Any] = [b"x" * (2 * MORE)]
    cycle.append(cycle)
    assert growth.large or sys.platform != "linux"
    del cycle
    return_unused_memory()
    assert not growth.large


def test_nothing_that_the_event_loop_calls_waits_for_a_process_that_stands_still(host: Host) -> None:
    connection = host.engine.connect()
    connection.run("select 1", RunOptions(), Discard())
    suspend(host.pid)
    found: list[Outcome | Failure] = []
    thread = threading.Thread(target=lambda: found.append(result_of(connection, "select 2")))
    thread.start()
    until(lambda: host.engine.process().busy)
    # Far more than a socket holds.
    for _ in range(2000):
        connection.cancel()
        connection.progress()
        host.engine.trim_memory()
        host.engine.connect().close()
        assert (connection.database, connection.transaction) == ("local", "")
    os.kill(host.pid, signal.SIGCONT)
    thread.join()
    assert isinstance(found[0], Outcome | Failure)
    until(host.engine.process()._unsent.empty)
    assert rows(host, connection, "select 1") == ("00000", b'["1"]')
