"""What the shell reports and stores of a result: secrets, warnings, streams, interruptions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import Exit, ShellError
from sqlshell.interface import sqlstate
from sqlshell.origin import Trusted
from sqlshell.result import Batch, Column, HeldBatches, Result
from tests.shell.core.scripted import Core, ScriptedClient, failure


class Stream:
    """How far a result without end was read, and why it was left."""

    def __init__(self, ended: str = "", rows: int = 3, gaps: int = 0, query_id: str = "") -> None:
        self.end_reason, self.rows, self.gaps, self.query_id = ended, rows, gaps, query_id
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True
        self.end_reason = "stopped"


class Given(ScriptedClient):
    """Answers each statement with these results."""

    def __init__(self, *results: Result) -> None:
        super().__init__()
        self.results = results
        self.refuses: ShellError | None = None

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        observer = observer or Observer()
        self.ran.append((submission.sql, context))
        await self.step("submit")
        observer.statement_id("id1")
        observer.query_id("q1")
        await self.step("wait")
        for result in self.results:
            await self.step("result")
            yield result

    async def terminate(self, query_id: str, context: SessionContext) -> None:
        if self.refuses is not None:
            raise self.refuses
        await super().terminate(query_id, context)


def rows(count: int = 3, **parts: object) -> Result:
    batch = Batch(1, rows=[[str(number)] for number in range(count)])
    return Result([Column("a")], HeldBatches(batch), statement_id="id1", elapsed=0.5, **parts)  # type: ignore[arg-type]


def nothing(message: str, state: str = "00000") -> Result:
    return Result([], HeldBatches(Batch(0, rows=[])), statement_id="id1", sql_state=state, message=message, elapsed=0.5)


def after(client: ScriptedClient, *, interactive: bool = False, verbose: bool = False, timing: bool = False) -> Core:
    async def work() -> Core:
        core = Core(client, interactive=interactive)
        core.shell.diagnostics.verbose = verbose
        core.session.options.timing = timing
        # An interruption ends the script.
        await core.shell.run_script([Trusted("select * from s;\n")], "")
        return core

    return asyncio.run(work())


def test_a_secret_is_shown_and_kept_nowhere() -> None:
    core = after(Given(rows(1, secret="hunter2")))
    assert core.err == "secret, shown only once: hunter2\n"
    assert "hunter2" not in core.out
    assert "hunter2" not in repr(core.journal.recent(9))
    assert "hunter2" not in repr(core.texts())


def test_a_warning_names_the_remedy_of_the_row_limit() -> None:
    assert "only 3 rows were returned; \\pset rowlimit 0 shows all\n" in (
        after(Given(rows(sql_state="01R01", message="only 3 rows were returned"))).err
    )
    assert "careful\n" in after(Given(nothing("careful", "01000"))).err
    assert after(Given(rows(sql_state="01000"))).err == ""


@pytest.mark.parametrize(("tag", "count"), [("INSERT 5", "5"), ("CREATE TABLE", "0"), ("INSERT 5 rows", "0")])
def test_the_number_of_changed_rows_is_a_variable(tag: str, count: str) -> None:
    assert after(Given(nothing(tag))).texts()["ROW_COUNT"] == count


@pytest.mark.parametrize(
    ("result", "given", "said"),
    [
        (rows(1), {"interactive": True}, "1 row\n"),
        (rows(2), {"timing": True}, "2 rows (500 ms)\n"),
        (rows(0), {"verbose": True}, "0 rows, statement id1 (500 ms)\n"),
        (rows(0, label="SELECT at x"), {"interactive": True}, "SELECT at x: 0 rows\n"),
        (
            rows(2, sql_state="01R01", row_counts=[2]),
            {"interactive": True},
            "2 rows (stopped at the row limit)\n",
        ),
        (
            rows(2, sql_state="01R01", row_counts=[2], message="stopped after 2 rows"),
            {"interactive": True},
            "stopped after 2 rows; \\pset rowlimit 0 shows all\n2 rows\n",
        ),
        (nothing("INSERT 5"), {"interactive": True}, "INSERT 5\n"),
        (nothing(""), {"interactive": True}, "done\n"),
        (rows(2), {}, ""),
    ],
)
def test_the_summary_of_a_result(result: Result, given: dict[str, bool], said: str) -> None:
    assert after(Given(result), **given).err.endswith(said)
    assert bool(said) == bool(after(Given(result), **given).err)


def test_a_stream_that_the_service_ends() -> None:
    core = after(Given(rows(endless=Stream("service", 3, 1))))
    assert core.err.startswith("the stream ended: 3 rows in ")
    assert core.err.endswith(", with 1 possible gap\n")
    assert core.journal.find("id1")[0].sql_state == "00000"
    assert core.journal.find("id1")[0].rows == 3
    assert core.shell.exit == Exit.DONE


@pytest.mark.parametrize("reason", ["max_rows", "seconds"])
def test_a_stream_that_was_asked_for_with_its_end_is_terminated(reason: str) -> None:
    client = Given(rows(endless=Stream(reason, 3, query_id="q7")))
    core = after(client, verbose=True)
    assert client.terminated == ["q7"]
    assert "query q7 was terminated: 3 rows in " in core.err
    assert core.journal.find("id1")[0].sql_state == "00000"
    client = Given(rows(endless=Stream(reason, 3)))
    client.refuses = failure("42501", "it is not yours")
    core = after(client)
    assert "query id1 may still be running: it is not yours\n" in core.err
    assert core.journal.find("id1")[0].sql_state == "03000"
    assert core.shell.exit == Exit.DONE


def test_a_stream_that_is_left_goes_on() -> None:
    goes_on = "the query is still running: TERMINATE QUERY 'q7'; stops it, "
    core = after(Given(rows(endless=Stream("stopped", 3, 2, query_id="q7"))))
    assert "interrupted after 3 rows in " in core.err
    assert ", with 2 possible gaps\n" in core.err
    assert goes_on in core.err
    assert core.shell.exit == Exit.INTERRUPTED
    core = after(Given(rows(endless=Stream("stopped", 3, query_id="q7"))), interactive=True)
    assert f"; {goes_on}\\fetch id1 shows it again\n" in core.err
    assert core.shell.exit == Exit.DONE
    client = Given(rows(endless=Stream("stopped", 3, query_id="q7")))
    client.can_refetch = False
    assert after(client, interactive=True).err.endswith("TERMINATE QUERY 'q7'; stops it\n")


def pressing(client: ScriptedClient, at: str, times: int = 1, *, interactive: bool = True) -> tuple[Core, list[bool]]:
    """Ctrl-C so often when the client is at that step."""
    pressed: list[bool] = []

    async def work() -> Core:
        core = Core(client, interactive=interactive)

        def step(what: str) -> None:
            if what == at and not pressed:
                pressed.extend(core.shell.statement_runner.interrupt() for _ in range(times))

        client.on_step = step
        await core.run("select * from s;\n")
        return core

    return asyncio.run(work()), pressed


def test_ctrl_c_before_the_service_has_named_the_statement() -> None:
    client = Given(rows())
    core, pressed = pressing(client, "submit")
    assert "will cancel as soon as the service responds; press Ctrl-C again to stop waiting\n" in core.err
    assert "canceling; press Ctrl-C again to stop waiting\n" in core.err
    assert (client.terminated, pressed) == (["q1"], [True]) or client.terminated == ["id1"]
    assert "error: the statement finished before it could be canceled" in core.err
    assert core.out == ""
    assert core.shell.exit == Exit.INTERRUPTED


def test_ctrl_c_that_the_interface_does_not_know() -> None:
    client = Given(rows())
    client.can_cancel = False
    core, _ = pressing(client, "wait")
    assert "the legacy interface cannot cancel a statement; press Ctrl-C again to stop waiting\n" in core.err
    assert client.terminated == []


class Deaf(Given):
    """Accepts a cancel request, and runs on; or is canceled by it."""

    def __init__(self, *, canceled: bool) -> None:
        super().__init__(rows())
        self.canceled = canceled
        self.asked = asyncio.Event()

    async def step(self, what: str) -> None:
        await super().step(what)
        if what == "wait":
            await (self.asked.wait() if self.canceled else asyncio.Event().wait())
            raise failure(sqlstate.CANCELED, "canceled")

    async def terminate(self, query_id: str, context: SessionContext) -> None:
        await super().terminate(query_id, context)
        self.asked.set()


def test_two_ctrl_c_report_that_the_statement_was_canceled() -> None:
    core, pressed = pressing(Deaf(canceled=True), "wait", 2)
    assert pressed == [True, True]
    assert "canceled" in core.err
    assert "stopped waiting" not in core.err
    assert core.session.connection.journal.find("id1")[0].state == "canceled"


@pytest.mark.parametrize("times", [2, 3, 4])
def test_a_cancel_request_without_an_outcome_is_not_confirmed(times: int) -> None:
    core, pressed = pressing(Deaf(canceled=False), "wait", times)
    assert pressed == [True, True, True, False][:times]
    assert "stopped waiting; the cancel request is not yet confirmed" in core.err
    assert not core.session.connection.journal.find("id1")[0].ended


def test_a_statement_that_cannot_be_canceled_is_left_running() -> None:
    client = Deaf(canceled=False)
    client.can_cancel = False
    core, _ = pressing(client, "wait", 2)
    assert "stopped waiting; the statement was left running" in core.err


def test_ctrl_c_with_nothing_to_interrupt_keeps_the_next_statement_from_running() -> None:
    client = Given(rows())

    async def work() -> Core:
        core = Core(client, interactive=True)
        assert not core.shell.statement_runner.interrupt()
        await core.run("select 1;\n")
        assert core.shell.exit == Exit.INTERRUPTED
        await core.run("select 2;\n")
        return core

    core = asyncio.run(work())
    assert "interrupted before it was run" in core.err
    assert [sql for sql, _ in client.ran] == ["select 2"]


def test_ctrl_c_stops_the_reading_of_a_stream() -> None:
    stream = Stream("")

    class Slow(HeldBatches):
        async def __anext__(self) -> Batch:
            await client.step("rows")
            return await super().__anext__()

    batches = Slow(Batch(1, rows=[["1"]]))
    client = Given(Result([Column("a")], batches, statement_id="id1", endless=stream, elapsed=0.5))
    core, pressed = pressing(client, "rows")
    assert (stream.stopped, pressed, client.terminated) == (True, [True], [])
    assert core.out == "a\n1\n"
    assert "the query is still running" in core.err
