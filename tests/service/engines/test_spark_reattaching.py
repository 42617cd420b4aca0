"""Statements that go on while the service is gone, and are finished by another process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.failure import Failure
from tests.service.spark import Session, needs_spark

pytestmark = needs_spark

BEGINS = """
import asyncio, sys
from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.engines.spark.engine import SparkEngine
from sqlshell.service.results.results import Discard

connection = SparkEngine(sys.argv[1]).connect()
operation = connection.operation()

async def begin():
    running = asyncio.ensure_future(connection._execute(sys.argv[2], RunOptions(), Discard()))
    while not (connection._running and connection._running.begun):
        await asyncio.sleep(0.01)
    print(operation, flush=True)
    await running

connection._loop.run(begin())
"""


def begun_elsewhere(url: str, sql: str) -> str:
    """The operation of a statement that a process has begun that was killed then."""
    with subprocess.Popen([sys.executable, "-c", BEGINS, url, sql], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        operation = process.stdout.readline().strip()
        process.kill()
        return operation


def taken_up(session: Session, operation: str) -> Any:
    spool = session.spool()
    return session.shown(
        asyncio.run(session.engine.reattach(operation, RunOptions(), spool, lambda connection: None)), spool
    )


def test_a_statement_is_finished_by_another_process(session: Session, spark_url: str) -> None:
    sql = "select count(*) as n, 'ä' as t from range(0, 50000000, 1, 8) where sin(id * 1.0) < 2"
    outcome = taken_up(session, begun_elsewhere(spark_url, sql))
    assert outcome.rows == [["50000000", "ä"]]
    assert [(item.name, item.type) for item in outcome.columns or ()] == [("n", "BIGINT"), ("t", "VARCHAR")]


def test_an_operation_that_is_gone_is_told(session: Session) -> None:
    operation = "00000000-0000-4000-8000-000000000000/00000000-0000-4000-8000-000000000001"
    with pytest.raises(Failure) as raised:
        taken_up(session, operation)
    assert raised.value.sql_state == "57P02"


def test_the_sessions_of_operations_are_told(session: Session) -> None:
    operations = []
    for _ in range(2):
        operations.append(session.connection.operation())
        session.run("select 1")
    assert len({operation.partition("/")[0] for operation in operations}) == 1
    assert len(set(operations)) == 2
