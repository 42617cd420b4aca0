"""Statements that Ctrl-C or a failure leaves behind: everything that the shell says of them, and what it keeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from msgspec.structs import replace

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import (
    ConnectionFailed,
    Exit,
    OutputError,
    ServiceError,
    ShellError,
    UnknownStatement,
    UsageError,
    WaitTimeout,
    Where,
)
from sqlshell.origin import Trusted
from sqlshell.result import Result
from sqlshell.shell.running import statement_runner
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure, until
from tests.shell.core.test_waiting import Given, after, nothing, rows

AGAIN = "; press Ctrl-C again to stop waiting"
LEFT = "error: stopped waiting; the statement was left running\n"
UNCONFIRMED = "error: stopped waiting; the cancel request is not yet confirmed\n"


class Blocked(Given):
    """Comes to no end at one step; cancel requests do not end it either, and may be refused."""

    def __init__(self, at: str, refuses: ShellError | None = None) -> None:
        super().__init__(rows())
        self.at = at
        self.refuses = refuses

    async def step(self, what: str) -> None:
        await super().step(what)
        if what == self.at:
            await asyncio.Event().wait()


def interrupted(client: ScriptedClient, at: str, *, interactive: bool, again: str | None = None) -> Core:
    """A shell after Ctrl-C at that step of its client, and another one when `again` is on stderr."""
    pressed: list[bool] = []

    async def work() -> Core:
        core = Core(client, interactive=interactive)

        def step(what: str) -> None:
            if what == at and not pressed:
                pressed.append(core.shell.statement_runner.interrupt())

        client.on_step = step
        running = asyncio.ensure_future(core.shell.run_script([Trusted("select * from s;\n")], ""))
        if again is not None:
            await until(lambda: bool(pressed) and again in core.err)
            assert core.shell.statement_runner.interrupt()
        await running
        return core

    core = asyncio.run(work())
    assert pressed == [True]
    assert core.shell.exit == Exit.INTERRUPTED
    assert core.session.running is None
    return core


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_runner, "CANCEL_SECONDS", 0.01)
    monkeypatch.setattr(statement_runner, "OUTCOME_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("refuses", "said", "left", "purpose"),
    [
        (None, "cancellation requested; the statement is still running", UNCONFIRMED, "shows its outcome"),
        (failure("42501", "no"), "the service cannot cancel the statement: no", LEFT, "shows its result"),
        (UsageError("no"), "the service cannot cancel the statement: no", LEFT, "shows its result"),
        (ConnectionFailed("no"), "cannot reach the service to cancel the statement: no", LEFT, "shows its result"),
        (OutputError("no"), "no", LEFT, "shows its result"),
    ],
)
def test_a_cancel_request_without_success(refuses: ShellError | None, said: str, left: str, purpose: str) -> None:
    core = interrupted(Blocked("wait", refuses), "wait", interactive=True, again=f"{said}{AGAIN}")
    canceling = f"canceling{AGAIN}\n"
    assert core.err == f"{canceling}{said}{AGAIN}\n{left}help: \\fetch id1 {purpose}\n"
    assert core.shell.statement_runner.abandoned_at > 0
    # A script stops waiting by itself, and nobody pressed Ctrl-C twice.
    core = interrupted(Blocked("wait", refuses), "wait", interactive=False)
    assert core.err == f"{canceling}{left}help: sqlshell fetch id1 {purpose}\n"
    assert core.shell.statement_runner.abandoned_at == 0
    assert [entry.state for entry in core.journal.find("id1")] == ["running"]


@pytest.mark.parametrize("interactive", [True, False])
def test_a_statement_that_has_no_id_yet_cannot_be_fetched(interactive: bool) -> None:
    core = interrupted(Blocked("submit"), "submit", interactive=interactive, again="")
    assert core.err == (
        f"will cancel as soon as the service responds{AGAIN}\n"
        "error: interrupted before the service responded\n"
        "help: the statement may be running: check LIST QUERIES\n"
    )
    assert core.client.terminated == []
    assert core.journal.recent(9) == []


class SlowRows(ScriptedClient):
    """Their columns come, the rows never."""

    async def step(self, what: str) -> None:
        await super().step(what)
        if what == "rows" and self.events[-1] == "rows shown":
            await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("interactive", "command"), [(True, "\\fetch id1"), (False, "sqlshell fetch id1")], ids=["prompt", "script"]
)
def test_a_statement_whose_rows_are_being_read_has_finished(interactive: bool, command: str) -> None:
    pressed: list[bool] = []

    async def work() -> Core:
        core = Core(SlowRows({"select 1": Answer(rows=(("1",), ("2",)))}), interactive=interactive)

        def step(what: str) -> None:
            if what == "rows" and core.events[-1] == "rows shown" and not pressed:
                pressed.append(core.shell.statement_runner.interrupt())

        core.client.on_step = step
        await core.shell.run_script([Trusted("select 1;\n")], "")
        return core

    core = asyncio.run(work())
    assert pressed == [True]
    assert core.err == f"error: interrupted; the statement had already finished\nhelp: {command} shows its result\n"
    assert core.out == "a\n"
    assert core.client.terminated == []
    entry = core.journal.find("id1")[0]
    assert (entry.sql_state, entry.rows, entry.ended is not None) == ("00000", None, True)


READS, WRITES = "select 1", "delete from t"
LATE = Where("03000", "id1")


@pytest.mark.parametrize(
    ("sql", "error", "where", "said"),
    [
        (READS, ConnectionFailed("gone"), "script", "error: gone\n"),
        (WRITES, ConnectionFailed("gone"), "script", "error: gone\nhelp: sqlshell fetch id1 shows its outcome\n"),
        (WRITES, ServiceError("gone", "ask"), "prompt", "error: gone\nhelp: ask; \\fetch id1 shows its outcome\n"),
        (WRITES, ServiceError("gone"), "embedded", "error: gone\n"),
        (WRITES, UnknownStatement("unknown"), "script", "error: unknown\n"),
        (WRITES, failure("42P01", "no table"), "prompt", "error[42P01]: no table\n"),
        (
            READS,
            WaitTimeout("late", where=LATE),
            "script",
            "error[03000]: late\nhelp: the statement is still running; sqlshell fetch id1 shows its result, "
            "sqlshell -c '\\cancel id1' stops it\n",
        ),
        (
            READS,
            WaitTimeout("late", where=LATE),
            "prompt",
            "error[03000]: late\nhelp: the statement is still running; \\fetch id1 shows its result, "
            "\\cancel id1 stops it\n",
        ),
        (READS, WaitTimeout("late", "be patient", LATE), "script", "error[03000]: late\nhelp: be patient\n"),
        (READS, WaitTimeout("late"), "script", "error: late\n"),
    ],
)
def test_the_remedy_after_a_failure_whose_statement_may_have_run(
    sql: str, error: ShellError, where: str, said: str
) -> None:
    async def work() -> Core:
        core = Core(ScriptedClient({sql: Answer(rows=(), error=error)}), interactive=where == "prompt")
        core.session.state.connection = replace(core.session.connection, embedded=where == "embedded")
        await core.shell.run_script([Trusted(f"{sql};\n")], "")
        return core

    assert asyncio.run(work()).err == said


class Unidentified(ScriptedClient):
    """Fails before the second statement has an ID."""

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        if self.ran:
            raise ConnectionFailed("gone")
        async for result in super().run(submission, context, observer):
            yield result


def test_a_statement_without_an_id_is_not_that_before_it() -> None:
    async def work() -> Core:
        core = Core(Unidentified())
        await core.shell.run_script([Trusted("select 1;\ndelete from t;\n")], "")
        return core

    core = asyncio.run(work())
    assert core.session.state.last_statement_id == ""
    assert core.texts()["LAST_STATEMENT_ID"] == ""
    assert core.err == "error: gone\n"


@pytest.mark.parametrize(
    ("result", "given", "said"),
    [
        (nothing("NOTICE: hello", "01N01"), {}, "NOTICE: hello\n"),
        (nothing("NOTICE: hello", "01N01"), {"interactive": True}, "NOTICE: hello\ndone\n"),
        (rows(2), {"interactive": True, "verbose": True}, "2 rows · 500 ms · statement id1\n"),
        (rows(2), {"interactive": True, "timing": True}, "2 rows · 500 ms\n"),
    ],
)
def test_what_is_below_a_result(
    result: Result, given: dict[str, bool], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert after(Given(result), **given).err == said
