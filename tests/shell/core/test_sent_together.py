"""Batches: an interruption between two statements, and the statements that had run after one that failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from sqlshell.client.statements.client import Observer, StatementBatch, Submission, UnreadOutcome
from sqlshell.context import SessionContext
from sqlshell.errors import Exit
from sqlshell.origin import Trusted
from sqlshell.result import Result
from sqlshell.shell.running import send_ahead
from sqlshell.shell.running.send_ahead import SendAhead
from sqlshell.sql.analysis.policy import Policy
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure
from tests.shell.sessions import connection


class Batched(ScriptedClient):
    """Takes statements together; those in `behind` are said to have run when the batch is left."""

    supports_batches = True

    def __init__(self, answers: dict[str, Answer] | None = None, behind: int = 0) -> None:
        super().__init__(answers)
        self.behind = behind
        self.batches: list[Taken] = []

    def begin_batch(self, submission: Sequence[Submission], *, stop: bool) -> StatementBatch | None:
        self.batches.append(Taken(self, submission, stop))
        return self.batches[-1]


class Taken:
    def __init__(self, client: Batched, submissions: Sequence[Submission], stop: bool) -> None:
        self._client = client
        self.left = list(submissions)
        self.sent = [item.sql for item in submissions]
        self.stop = stop
        self.patient: bool | None = None

    @property
    def unread(self) -> int:
        return len(self.left)

    def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        assert self.left.pop(0) is submission
        return self._client.run(submission, context, observer)

    async def aclose(self, context: SessionContext, *, patient: bool = True) -> list[UnreadOutcome]:
        self.patient = patient
        return [
            UnreadOutcome(item.sql, f"behind{number}", "00000", "done")
            for number, item in enumerate(self.left[: self._client.behind])
        ]


def script(client: Batched, text: str) -> Core:
    async def work() -> Core:
        core = Core(client)
        await core.shell.run_script([Trusted(text)], "x.sql")
        return core

    return asyncio.run(work())


def test_statements_that_change_nothing_between_them_are_sent_together() -> None:
    client = Batched()
    core = script(client, "select 1;\nselect 2;\nselect 3;\n")
    assert [batch.sent for batch in client.batches] == [["select 1", "select 2", "select 3"]]
    assert [batch.stop for batch in client.batches] == [True]
    assert core.out == "a\n1\na\n1\na\n1\n"
    assert core.shell.exit == Exit.DONE
    assert core.err == ""


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("select 1;\n\\echo x\nselect 2;\nselect 3;\n", [["select 2", "select 3"]]),
        ("select 1;\nselect 2;&\nselect 3;\nselect 4;\n", [["select 3", "select 4"]]),
        ("\\set x 1\nselect :x;\nselect 2;\nselect 3;\n", [["select 2", "select 3"]]),
        ("select 1;\nselect '@x';\nselect 3;\nselect 4;\n", [["select 3", "select 4"]]),
        # Two statements that are sent as one text, and one with a semicolon in it.
        ("select 1\\; select 2;\nselect 3;\nselect 4;\n", [["select 3", "select 4"]]),
        ("select ';';\nselect 2;\n", [["select ';'", "select 2"]]),
        # The shell writes the rows itself.
        ("select 1;\nCopy t TO stdout;\nselect 3;\nselect 4;\n", [["select 3", "select 4"]]),
        ("select 1;\n", []),
        ("\\if false\nselect 1;\nselect 2;\n\\endif\n", []),
    ],
)
def test_what_is_sent_alone(text: str, sent: list[list[str]]) -> None:
    client = Batched()
    core = script(client, text)
    assert [batch.sent for batch in client.batches] == sent
    assert core.shell.exit == Exit.DONE, core.err


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        (0, "2 statements were not run"),
        (1, "1 statement sent ahead (line 3) had already run; \\jobs lists the outcomes"),
        (2, "2 statements sent ahead (lines 3 to 4) had already run; \\jobs lists the outcomes"),
    ],
)
def test_what_had_run_behind_a_failure_is_told_and_recorded(behind: int, said: str) -> None:
    client = Batched({"select 2": Answer(rows=(), error=failure())}, behind)
    core = script(client, "select 1;\nselect 2;\nselect 3;\nselect 4;\n")
    assert said in core.err
    assert core.shell.exit == Exit.STATEMENT
    recorded = {entry.id: (entry.sql, entry.sql_state, entry.message) for entry in core.journal.recent(9)}
    assert {name: of for name, of in recorded.items() if name.startswith("behind")} == {
        f"behind{number}": (f"select {number + 3}", "00000", "done") for number in range(behind)
    }
    assert client.batches[0].patient is True
    assert ("1 statement was not run" in core.err) == (behind == 1)


def test_an_interruption_ends_a_script_between_two_statements() -> None:
    client = Batched()

    async def work() -> Core:
        core = Core(client)
        pressed: list[bool] = []

        def step(what: str) -> None:
            if what == "rows" and not pressed and len(client.ran) == 2:
                pressed.append(core.shell.statement_runner.interrupt())

        client.on_step = step
        await core.shell.run_script([Trusted("select 1;\n" * 4)], "")
        assert pressed == [True]
        return core

    core = asyncio.run(work())
    assert len(client.ran) == 2
    assert core.shell.exit == Exit.INTERRUPTED
    assert "2 statements were not run" in core.err
    assert core.out.startswith("a\n1\n")


def test_what_the_policy_refuses_ends_what_is_sent_together() -> None:
    client = Batched()

    async def work() -> Core:
        core = Core(client)
        policy = Policy(read_only=True)
        core.session.state.connection = connection(client, journal=core.journal, policy=policy)
        await core.shell.run_script([Trusted("select 1;\nselect 2;\ndrop table t;\nselect 3;\n")], "")
        return core

    core = asyncio.run(work())
    assert [batch.sent for batch in client.batches] == [["select 1", "select 2"]]
    assert [sql for sql, _ in client.ran] == ["select 1", "select 2"]
    assert core.shell.exit == Exit.USAGE


@pytest.mark.parametrize(("name", "most"), [("MAX_STATEMENTS", 2), ("MAX_CHARACTERS", 2 * len("select 1"))])
def test_the_bounds_of_what_is_sent_together(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(send_ahead, name, most)
    client = Batched()
    core = script(client, "select 1;\nselect 2;\nselect 3;\nselect 4;\nselect 5;\n")
    assert [batch.sent for batch in client.batches] == [["select 1", "select 2"], ["select 3", "select 4"]]
    assert core.out == "a\n1\n" * 5


def test_a_statement_that_is_not_waited_for_any_more_is_not_one_after_it() -> None:
    """After SIGTERM the service cancels the statement that runs; those after it have not run."""
    client = Batched()

    class Left(SendAhead):
        async def _run(self, *given: object) -> None:
            """Leave the statement, whose outcome arrives later."""

    async def work() -> None:
        core = Core(client)
        items = [item for item in split("select 1;\nselect 2;\nselect 3;\n") if isinstance(item, Statement)]
        ahead = Left(core.shell)
        await ahead.start_batch(items, 0, stop=True)
        await ahead.submit(items[0])
        client.behind = 1
        assert await ahead.end_batch() == 0
        assert [entry.sql for entry in core.journal.recent(9)] == ["select 1"], "its outcome is known"
        assert core.err == ""

    asyncio.run(work())
