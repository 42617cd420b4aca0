"""Statements that run at once: what their observers are told, and what becomes of those that nobody reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from sqlshell.client.statements.client import Observer, Submission, Timing, UnreadOutcome
from sqlshell.client.statements.concurrent import ConcurrentBatch
from sqlshell.context import SessionContext
from sqlshell.errors import ShellError
from sqlshell.result import Result
from tests.shell.core.scripted import Answer, ScriptedClient, failure

CONTEXT = SessionContext(session_id="s")


class Gated(ScriptedClient):
    """Tells everything about a statement that waits at its gate, if it has one; a statement that is canceled fails."""

    def __init__(self, answers: dict[str, Answer] | None = None, gates: Sequence[str] = (), early: bool = True) -> None:
        super().__init__(answers)
        self.gates = {sql: asyncio.Event() for sql in gates}
        self.early = early

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        assert observer is not None
        sql = submission.sql
        for told in (self.early, not self.early):
            if told:
                observer.statement_id(f"statement of {sql}")
                observer.query_id(f"query of {sql}")
                observer.progress(0.5, "half")
            elif gate := self.gates.get(sql):
                await gate.wait()
        if f"query of {sql}" in self.terminated:
            raise failure("57014")
        observer.timing(Timing(0.5, 0.25))
        async for result in super().run(submission, context, Observer()):
            yield result

    async def terminate(self, query_id: str, context: SessionContext) -> None:
        await super().terminate(query_id, context)
        self.gates[query_id.removeprefix("query of ")].set()


def begun(client: Gated, sqls: Sequence[str], sessions: int, *, ends: bool = False) -> ConcurrentBatch:
    return ConcurrentBatch(
        client,
        [Submission(sql) for sql in sqls],
        CONTEXT,
        [f"p{number}" for number in range(sessions)],
        ends=lambda error: ends,
        halted=lambda: False,
        sent=lambda number: None,
        identified=lambda number, statement_id, seconds: None,
    )


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize("early", [True, False])
def test_who_reads_a_statement_is_told_about_it(early: bool) -> None:
    told: list[tuple[Any, ...]] = []

    async def work() -> None:
        client = Gated(gates=["a"], early=early)
        batch = begun(client, ["a"], 1)
        observer = Observer(
            lambda statement_id: told.append(("statement", statement_id)),
            lambda query_id: told.append(("query", query_id)),
            lambda share, text: told.append(("progress", share, text)),
            timing=lambda timing: told.append(("timing", timing)),
        )
        await settled()
        reading = asyncio.ensure_future(anext(batch.run(batch._submissions[0], CONTEXT, observer)))
        await settled()
        client.gates["a"].set()
        await (await reading).batches.aclose()
        assert batch.unread == 0
        await batch.aclose(CONTEXT)

    asyncio.run(work())
    # What was told before there was a reader is over, but for the ID, which stays true.
    between = [] if early else [("query", "query of a"), ("progress", 0.5, "half")]
    assert told == [("statement", "statement of a"), *between, ("timing", Timing(0.5, 0.25))]


def test_what_runs_at_the_end_is_canceled_by_its_query_and_each_outcome_is_told() -> None:
    async def work() -> tuple[list[UnreadOutcome], Gated, int]:
        client = Gated({"bad": Answer(rows=(), error=failure("22012"))}, ["runs"])
        batch = begun(client, ["good", "bad", "runs"], 3)
        await settled()
        return await batch.aclose(CONTEXT), client, batch.unread

    outcomes, client, unread = asyncio.run(work())
    assert client.terminated == ["query of runs"]
    assert [(one.sql, one.sql_state) for one in outcomes] == [("good", "00000"), ("bad", "22012"), ("runs", "57014")]
    assert [one.statement_id for one in outcomes] == [f"statement of {sql}" for sql in ("good", "bad", "runs")]
    assert outcomes[1].message == "wrong"
    assert unread == 3
    assert all(rows.closed for rows in client.open)


def test_without_patience_nothing_is_canceled_and_what_runs_is_said_to_run() -> None:
    async def work() -> tuple[list[UnreadOutcome], Gated]:
        client = Gated(gates=["runs"])
        batch = begun(client, ["runs"], 1)
        await settled()
        return await batch.aclose(CONTEXT, patient=False), client

    outcomes, client = asyncio.run(work())
    assert client.terminated == []
    assert [(one.sql, one.statement_id, one.message) for one in outcomes] == [("runs", "statement of runs", "")]


def test_a_cancellation_that_the_service_refuses_ends_the_batch_all_the_same() -> None:
    class Refusing(Gated):
        async def terminate(self, query_id: str, context: SessionContext) -> None:
            self.gates[query_id.removeprefix("query of ")].set()
            raise ShellError("not canceled")

    async def work() -> list[UnreadOutcome]:
        batch = begun(Refusing(gates=["runs"]), ["runs"], 1)
        await settled()
        return await batch.aclose(CONTEXT)

    assert [one.sql_state for one in asyncio.run(work())] == ["00000"]


def test_an_error_that_ends_stops_what_was_not_sent() -> None:
    async def work(ends: bool) -> list[str]:
        client = Gated({"bad": Answer(rows=(), error=failure())})
        batch = begun(client, ["bad", "next"], 1, ends=ends)
        await settled()
        outcomes = await batch.aclose(CONTEXT)
        return [one.sql for one in outcomes]

    assert asyncio.run(work(True)) == ["bad"]
    assert asyncio.run(work(False)) == ["bad", "next"]


def test_a_statement_with_several_results_is_read_to_its_end_and_its_id_is_told_once() -> None:
    class Several(Gated):
        async def run(
            self, submission: Submission, context: SessionContext, observer: Observer | None = None
        ) -> AsyncGenerator[Result, None]:
            assert observer is not None
            for _ in range(3):
                async for result in super().run(submission, context, observer):
                    yield result

    told: list[tuple[int, str]] = []

    async def work() -> int:
        batch = ConcurrentBatch(
            Several(),
            [Submission("a")],
            CONTEXT,
            ["p0"],
            ends=lambda error: True,
            halted=lambda: False,
            sent=lambda number: None,
            identified=lambda number, statement_id, seconds: told.append((number, statement_id)),
        )
        await settled()
        count = 0
        async for result in batch.run(batch._submissions[0], CONTEXT):
            await result.batches.aclose()
            count += 1
        await batch.aclose(CONTEXT)
        return count

    assert asyncio.run(work()) == 3
    assert told == [(0, "statement of a")]


def test_when_a_statement_was_sent_and_answered_is_told_to_who_reads_it() -> None:
    told: list[tuple[float, float | None]] = []

    async def work() -> None:
        client = Gated({"bad": Answer(rows=(), error=failure())})
        batch = begun(client, ["a", "bad"], 1)
        await settled()
        observer = Observer(sent_earlier=lambda sent, answered: told.append((sent, answered)))
        async for result in batch.run(batch._submissions[0], CONTEXT, observer):
            await result.batches.aclose()
        with pytest.raises(ShellError):
            await anext(batch.run(batch._submissions[1], CONTEXT, observer))
        runs = batch._runs
        assert told == [
            (runs[0].sent, None),
            (runs[0].sent, runs[0].answered),
            (runs[1].sent, None),
            (runs[1].sent, None),
        ]
        assert all(run.answered is not None and run.sent <= run.answered for run in runs)
        await batch.aclose(CONTEXT)

    asyncio.run(work())


@pytest.mark.parametrize("patient", [True, False])
def test_nothing_runs_after_the_end(patient: bool) -> None:
    async def work() -> None:
        client = Gated(gates=["runs"])
        batch = begun(client, ["good", "runs"], 2)
        await settled()
        await batch.aclose(CONTEXT, patient=patient)
        assert all(worker.done() for worker in batch._workers)
        assert all(rows.closed for rows in client.open)
        assert batch._tasks == []

    asyncio.run(work())
