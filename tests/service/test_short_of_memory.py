"""A process of an engine that runs out of memory reports it, recovers, or is replaced."""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard
from tests.service.test_processes import Host, failing, result_of, rows
from tests.service.waiting import until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is bounded on Linux alone")

BOMB = "with recursive r(x) as (select repeat('a', 1000) union all select x || x from r) select length(x) from r"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    made.engine.close()


def taken(pid: int) -> int:
    """The bytes of address ranges that count against the bound."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:"))


def test_a_statement_that_had_too_little_memory_leaves_none_behind(host: Host) -> None:
    connection = host.engine.connect()
    connection.run("select 1", RunOptions(), Discard())
    before = taken(host.pid)
    for _ in range(2):
        failure = failing(connection, BOMB)
        assert (failure.sql_state, "--memory" in failure.message) == ("53000", True), failure.message
        assert "Possible solutions" not in failure.message
    until(lambda: taken(host.pid) < before + (128 << 20))


def test_a_process_without_memory_says_so_and_is_replaced(host: Host) -> None:
    connection = host.engine.connect()
    connection.run("create table t as select range as i from range(200_000)", RunOptions(), Discard())
    pid = host.pid
    bound = taken(pid) + (4 << 20)
    resource.prlimit(pid, resource.RLIMIT_DATA, (bound, bound))
    failure = failing(connection, f"select '{'x' * 15_000_000}'")
    assert (failure.sql_state, "--memory" in failure.message) == ("53000", True), failure.message
    found: list[object] = []
    many = [threading.Thread(target=lambda: found.append(_one(host))) for _ in range(20)]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join()
    assert {item for item in found if item not in {"00000", "01000", "53000"}} == set()
    until(lambda: host.pid != pid)
    told = result_of(connection, "select count(*) from t")
    assert "--memory" in told.message
    assert rows(host, connection, "select count(*) from t") == ("00000", b'["200000"]')


@pytest.mark.parametrize(
    "sql",
    [
        "select range, hash(range), repeat('x', 200) || range from range(200_000)",
        "create table u as select hash(range) from range(4_000_000)",
    ],
    ids=["result", "table"],
)
def test_a_full_disk_is_told_without_its_folders(host: Host, sql: str) -> None:
    connection = host.engine.connect()
    connection.run("select 1", RunOptions(), Discard())
    resource.prlimit(host.pid, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    with pytest.raises(Failure) as raised:
        connection.run(sql, RunOptions(), host.spool())
    assert raised.value.sql_state == "53100", raised.value.message
    assert "/" not in raised.value.message


def _one(host: Host) -> str:
    try:
        return host.engine.connect().run("select 1", RunOptions(), Discard()).sql_state
    except Failure as failure:
        return failure.sql_state
