"""What is announced of background statements, word for word, and what their shell waits for when it is left."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from sqlshell.client.statements.client import Observer, Submission, Timing
from sqlshell.context import SessionContext
from sqlshell.errors import ConnectionFailed, Exit, ShellError, UsageError
from sqlshell.result import Batch, HeldBatches, Result
from sqlshell.shell.running.background import Background
from sqlshell.shell.running.statement import submission_of
from sqlshell.sql.analysis.lexed import lexed
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure, until
from tests.shell.core.test_transcripts import answers, recorded
from tests.shell.core.test_transcripts import run as replayed


def announced(sql: str, answer: Answer, *, label: str = "", client: ScriptedClient | None = None) -> str:
    """The only message about a statement; the time that it took is TIME."""
    said: list[str] = []

    async def work() -> None:
        core = Core()
        asked = client or ScriptedClient({sql: answer})
        background = Background(asked, core.journal, said.append)
        background.start(submission_of(lexed(sql)), SessionContext())
        if label:
            background.leave(label)
        await background.wait_for_all()
        assert background.running_count == 0

    asyncio.run(work())
    [text] = said
    return re.sub(r"\d+ ms", "TIME", text)


LONG = "select " + ", ".join(str(number) for number in range(40))


@pytest.mark.parametrize(
    ("sql", "answer", "label", "said"),
    [
        ("select 1", Answer(), "", "[1] finished (1 row, TIME): select 1; \\fetch 1"),
        ("select 1", Answer(), "other", "other [1] finished (1 row, TIME): select 1"),
        ("insert 1", Answer(rows=()), "", "[1] finished (TIME): insert 1"),
        (LONG, Answer(), "", "[1] finished (1 row, TIME): select 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10…; \\fetch 1"),
        ("wrong", Answer(rows=(), error=failure()), "", "[1] failed (42601): wrong: wrong"),
        ("wrong", Answer(rows=(), error=failure()), "other", "other [1] failed (42601): wrong: wrong"),
        ("slow", Answer(rows=(), error=failure("57000", "stop")), "", "[1] was canceled (57000): slow: stop"),
        (
            "insert 1",
            Answer(rows=(), error=ConnectionFailed("gone")),
            "",
            "[1] was lost; its outcome is unknown; use \\wait id1 to ask the service: insert 1: gone",
        ),
        (
            "insert 1",
            Answer(rows=(), error=ConnectionFailed("gone")),
            "other",
            "other [1] was lost; its outcome is unknown: insert 1: gone",
        ),
        (
            "wrong",
            Answer(rows=(), error=failure("42601", "a\nb " + "c" * 300)),
            "",
            f"[1] failed (42601): wrong: a b {'c' * 195}…",
        ),
    ],
)
def test_what_is_announced(sql: str, answer: Answer, label: str, said: str) -> None:
    assert announced(sql, answer, label=label) == said


class Broken(ScriptedClient):
    async def step(self, what: str) -> None:
        await super().step(what)
        if what == "wait":
            raise KeyError("odd")


def test_a_bug_in_the_background_is_announced() -> None:
    said = announced("select 1", Answer(), client=Broken())
    assert said.startswith("[1] was lost; its outcome is unknown; use \\wait id1 to ask the service: select 1: bug in")
    assert "KeyError" in said


class Changed(ScriptedClient):
    """Its statements change rows, and the service tells their times."""

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        observer = observer or Observer()
        observer.statement_id("id1")
        observer.statement_id("id1")
        observer.timing(Timing(1.0, 2.0))
        yield Result([], HeldBatches(Batch(0, rows=[])), statement_id="id1", sql_state="00000", message="INSERT 5")


def test_what_is_known_of_a_statement_that_has_ended() -> None:
    async def work() -> None:
        core = Core()
        background = Background(Changed(), core.journal, lambda text: None)
        job = background.start(submission_of(lexed("insert 1")), SessionContext(session_id="s1"))
        assert (job.number, str(job.statement), job.statement_id, job.sql_state, job.running) == (
            1,
            "insert 1",
            "",
            "03000",
            True,
        )
        assert await background.id_of(1) == "id1"
        await background.wait_for_all()
        assert (job.sql_state, job.rows, job.timing, job.running) == ("00000", 5, Timing(1.0, 2.0), False)
        assert job.answered is not None
        assert background.sessions == [job.context.session_id]
        assert job.context.session_id not in {"", "s1"}
        with pytest.raises(UsageError, match=r"^no background statement \[2\]$"):
            await background.id_of(2)
        assert core.events == ["began id1", "ended id1 00000 None"]

    asyncio.run(work())


class Held(ScriptedClient):
    """Never answers; `stopped` are the statements that are not awaited any more."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = self.stopped = 0

    async def step(self, what: str) -> None:
        await super().step(what)
        if what == "wait":
            self.waiting += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.stopped += 1


def test_statements_that_are_left_are_not_awaited_any_more() -> None:
    async def work() -> None:
        core, client = Core(), Held()
        background = Background(client, core.journal, lambda text: None)
        for _ in range(2):
            background.start(submission_of(lexed("select 1")), SessionContext())
        assert [job.number for job in await background.wait_for_ids()] == [1, 2]
        assert [job.statement_id for job in background.jobs] == ["id1", "id2"]
        await until(lambda: client.waiting == 2)
        await background.aclose()
        assert (client.stopped, background.running_jobs) == (2, [])
        assert client.terminated == []

    asyncio.run(work())


def test_a_replay_prints_to_the_output_of_results(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    long: dict[str, Any] = {"statement": f"{LONG}", "results": []}
    records = recorded(tmp_path / "t.jsonl", {"statement": "select bad"}, {"statement": "x", "redacted": True}, long)
    core = replayed(ScriptedClient(answers()), f"\\o {out}\n{records}\\o\n")
    path = tmp_path / "t.jsonl"
    assert core.out == ""
    assert out.read_text() == (
        f"{path}:1: select bad\n  expected SQLSTATE 00000, found 42703: no column\n"
        f"{path}:2: x\n  not run: its secrets were not recorded\n"
        f"{path}:3: {LONG[:59]}…\n  expected 0 results, found 1\n"
    )
    assert "2 statements run again, 2 differ, 1 of 3 statements could not be replayed" in core.err
    assert core.shell.exit == Exit.STATEMENT


def test_a_load_is_not_replayed(tmp_path: Path) -> None:
    core = replayed(ScriptedClient(), recorded(tmp_path / "t.jsonl", {"statement": "copy t from '@rows'"}))
    assert core.out.endswith("  not run: the rows of a load are not recorded\n")
    assert core.client.ran == []


def test_an_error_without_a_code_is_announced() -> None:
    said = announced("select 1", Answer(rows=(), error=ShellError("odd")))
    assert said == "[1] was lost; its outcome is unknown; use \\wait id1 to ask the service: select 1: odd"
