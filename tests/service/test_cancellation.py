"""Interrupts at each statement that a session executes: they cancel the user's statement and leave
no open transaction.
"""

from __future__ import annotations

import functools
import itertools
import threading
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.cancellation import READ_ONLY
from sqlshell.service.engines.duckdb.connection import DuckdbConnection
from sqlshell.service.engines.duckdb.rights.check import Policy
from sqlshell.service.engines.engine import Outcome, Rights, RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard


class Interrupted:
    """A connection of DuckDB whose session is interrupted at one of the statements that it executes.

    Where the interrupt gets through to DuckDB, that statement ends as DuckDB may end it: it took effect or did not, and
    is reported as interrupted, which fails the open transaction.
    """

    def __init__(self, real: duckdb.DuckDBPyConnection, at: int, takes_effect: bool) -> None:
        self.real = real
        self.session: DuckdbConnection | None = None
        self.executed: list[str] = []
        self._at = at
        self._takes_effect = takes_effect
        self._reached = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def interrupt(self) -> None:
        self._reached = True

    def execute(self, statement: Any, *given: Any) -> Any:
        if self.session is None:
            return self.real.execute(statement, *given)
        self.executed.append(str(getattr(statement, "query", statement)))
        if len(self.executed) != self._at:
            return self.real.execute(statement, *given)
        self.session.cancel()
        if not self._reached:
            return self.real.execute(statement, *given)
        if self._takes_effect:
            self.real.execute(statement, *given)
        try:
            self.real.execute("SELECT error('interrupted')")
        except duckdb.Error:
            raise duckdb.InterruptException("INTERRUPT Error: Interrupted!") from None


@functools.cache
def functions() -> list[str]:
    listed = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE internal"
    with duckdb.connect() as connection:
        found = connection.execute(listed).fetchall()
    return [str(row[0]) for row in found]


def session(real: duckdb.DuckDBPyConnection, at: int, takes_effect: bool) -> tuple[DuckdbConnection, Interrupted]:
    root = Interrupted(real, at, takes_effect)
    policy = Policy(functions)
    policy.restrict(Path("nowhere"))
    made = DuckdbConnection(cast(duckdb.DuckDBPyConnection, root), policy)
    root.session = made
    return made, root


def state(made: DuckdbConnection, sql: str, options: RunOptions) -> str:
    return result(made, sql, options).sql_state


def result(made: DuckdbConnection, sql: str, options: RunOptions) -> Outcome | Failure:
    try:
        return made.run(sql, options, Discard())
    except Failure as failure:
        return failure


SCRIPTS = {
    "a SELECT": ("select 41 + 1 as i from range(3)",),
    "a reader's SELECT": ("select count(*) from range(3)",),
    "RETURNING": ("insert into kept values (2) returning i",),
    "DDL": ("create table made as select 1 as i",),
    "a transaction": ("begin", "insert into kept values (2) returning i", "insert into kept values (3)", "commit"),
    "a transaction that is taken back": ("begin", "insert into kept values (2)", "rollback"),
    "a function of the dialect": ("select length(i::varchar) from kept",),
    "USE": ("use memory.other", "use memory.main"),
    "a sequence": ("begin", "select nextval('counter')", "commit"),
    "PIVOT": ("pivot (select 1 as i, 2 as j) on i using sum(j)",),
}


@pytest.mark.parametrize("rights", [Rights.READ, Rights.OBJECTS])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("takes_effect", [False, True])
def test_an_interrupt_leaves_no_transaction_behind(script: tuple[str, ...], rights: Rights, takes_effect: bool) -> None:
    options = RunOptions(rights=rights)
    cancelled = 0
    with duckdb.connect() as instance:
        instance.execute("create schema other; create sequence counter")
        for at in itertools.count(1):
            real = instance.cursor()
            real.execute("create or replace table kept as select 1 as i; drop table if exists made")
            made, root = session(real, at, takes_effect)
            found = [result(made, sql, options) for sql in script]
            if len(root.executed) < at:
                break
            where = f"at {root.executed[at - 1]!r}"
            states = [item.sql_state for item in found]
            cancelled += sqlstate.CANCELED in states
            if rights is Rights.OBJECTS:
                # What follows in a transaction that failed is not taken.
                assert set(states) <= {sqlstate.DONE, sqlstate.WARNING, sqlstate.CANCELED, "25P01", "25P02"}, where
            root.session = None
            if made.transaction == "open":
                assert state(made, "select 1", options) == sqlstate.DONE, where
            if made.transaction:
                assert state(made, "rollback", options) == sqlstate.DONE, where
            assert made.transaction == ""
            assert state(made, "select 1", options) == sqlstate.DONE, where
            # There is no transaction in which one could not begin.
            real.execute("begin")
            real.execute("rollback")
            place = real.execute("select current_database(), current_schema()").fetchone()
            assert place == (made.database, made.schema), where
            assert not real.execute("from duckdb_types() where type_name like '%pivoted%'").fetchall(), where
            if script == SCRIPTS["RETURNING"]:
                inserted = real.execute("select count(*) from kept where i = 2").fetchall()
                assert inserted == [(int(states == [sqlstate.DONE]),)], where
    # What a reader may not run is refused before anything runs.
    assert cancelled or rights is Rights.READ


def test_an_interrupt_that_arrives_in_begin_ends_the_statement_behind_it() -> None:
    with duckdb.connect() as real:
        made, root = session(real, 0, True)
        assert state(made, "select 41 + 1 from range(3)", RunOptions(rights=Rights.READ)) == sqlstate.DONE
        at = root.executed.index(READ_ONLY) + 1
    with duckdb.connect() as real:
        made, root = session(real, at, True)
        assert state(made, "select 41 + 1 from range(3)", RunOptions(rights=Rights.READ)) == sqlstate.CANCELED
        assert root.executed[at - 1 : at + 1] == [READ_ONLY, "ROLLBACK"]
        # It is not meant for what is run next.
        assert state(made, "select 41 + 1 from range(3)", RunOptions(rights=Rights.READ)) == sqlstate.DONE


def test_an_interrupt_when_nothing_runs_ends_nothing() -> None:
    with duckdb.connect() as real:
        made = DuckdbConnection(real)
        made.cancel()
        assert state(made, "select 1 from range(2)", RunOptions()) == sqlstate.DONE


def test_what_is_bound_for_long_can_be_interrupted() -> None:
    with duckdb.connect() as real:
        made = DuckdbConnection(real)
        real.execute("create table t as select 1 as i")
        ended = threading.Event()

        def interrupt() -> None:
            while not ended.wait(0.01):
                made.cancel()

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            # DuckDB evaluates it while it binds the statement.
            endless = "(select count(*) from range(100000000000) r(j) where hash(j) = 1)"
            found = result(made, f"pivot t on i in (select {endless}::int) using count(*)", RunOptions())
        finally:
            ended.set()
            thread.join()
        assert found.sql_state == sqlstate.CANCELED
