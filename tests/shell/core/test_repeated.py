"""\\watch: how often a statement runs, what is shown of each run, and how Ctrl-C ends them."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncGenerator

import pytest

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import Exit
from sqlshell.origin import Trusted
from sqlshell.result import Batch, Column, HeldBatches, Result
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure, until
from tests.shell.core.test_waiting import Given, Stream, rows


class Counting(ScriptedClient):
    """The first run has three rows, each further one a row less; the numbers of the second change."""

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        async for result in super().run(submission, context, observer):
            count = max(0, 4 - len(self.ran))
            batch = Batch(1, rows=[[str(number + (len(self.ran) > 1 and number == 1))] for number in range(count)])
            yield Result(
                [Column("a", "INTEGER")],
                HeldBatches(batch),
                statement_id=result.statement_id,
                row_counts=[count],
                elapsed=0.5,
            )


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda form: f"NOW[{form}]")
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((60, 20)))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "xterm")


def run(
    script: str, client: ScriptedClient | None = None, *, interactive: bool = False, terminal: bool = False
) -> Core:
    async def work() -> Core:
        core = Core(client or Counting(), interactive=interactive)
        if terminal:
            core.screen.isatty = lambda: True  # type: ignore[method-assign]
            core.session.options.format = "table"
        await core.shell.run_script([Trusted(f"{script}\n")], "")
        return core

    return asyncio.run(work())


HEADING = "NOW[%c] (every 0s)\n"


@pytest.mark.parametrize(
    ("command", "counts", "headings"),
    [
        ("\\watch 0 c=2", [3, 2], 2),
        ("\\watch i=0 m=2", [3, 2, 1], 3),
        ("\\watch i=0 m=2 c=2", [3, 2], 2),
        ("\\watch i=0 m=4 c=9", [3], 1),
    ],
)
def test_how_often_a_statement_runs(command: str, counts: list[int], headings: int) -> None:
    core = run(f"select 1 {command}")
    assert [sql for sql, _ in core.client.ran] == ["select 1"] * len(counts)
    shown = [["0", "2", "2"][:count] if number else ["0", "1", "2"] for number, count in enumerate(counts)]
    assert core.out == "".join("".join(f"{value}\n" for value in ["a", *values]) for values in shown)
    assert core.err == HEADING * headings
    assert core.shell.exit == Exit.DONE


def test_the_last_statement_is_repeated_as_it_was_sent() -> None:
    core = run("\\set n 7\nselect :n;\n\\set n 8\n\\watch 0 c=2")
    assert [sql for sql, _ in core.client.ran] == ["select 7"] * 3
    core = run("\\set n 7\nselect ':n' \\watch 0 c=2")
    assert [sql for sql, _ in core.client.ran] == ["select ':n'"] * 2


def test_a_failure_ends_the_repetition() -> None:
    core = run("select 1 \\watch 0 c=3", ScriptedClient({"select 1": Answer(rows=(), error=failure())}))
    assert len(core.client.ran) == 1
    assert core.err == "<command>:1: error[42601]: wrong\n"


def test_results_replace_each_other_on_a_terminal() -> None:
    core = run("select 1 \\watch 0 c=3", interactive=True, terminal=True)
    first, second, third = core.out.removeprefix("\x1b[?7l").split("\x1b[?7h\x1b[?7l")
    assert first.startswith("\r\x1b[JNOW[%c] (every 0s)  Ctrl-C stops\r\n\r\n")
    assert "\x1b[7m" not in first
    height = first.count("\r\n")
    assert second.startswith(f"\x1b[{height}A\r\x1b[JNOW[%c] (every 0s)  Ctrl-C stops\r\n\r\n")
    assert second.count("\x1b[7m") == 1
    assert second.count("\r\n") == height - 1
    assert third.startswith(f"\x1b[{height - 1}A\r\x1b[J")
    assert "\x1b[7m" not in third
    assert third.endswith("\r\n\x1b[?7h")


def test_a_part_of_an_unbounded_result_is_shown() -> None:
    client = Given(rows(2, endless=Stream("service", 2)))
    core = run("select 1 \\watch 0 c=1", client)
    assert core.out == "a\n0\n1\n"
    assert [line.partition(" in ")[0] for line in core.err.splitlines()] == [
        HEADING.strip(),
        "the stream ended: 2 rows",
    ]


@pytest.mark.parametrize("interactive", [True, False])
def test_ctrl_c_between_two_runs(interactive: bool) -> None:
    client = Counting()

    async def work() -> Core:
        core = Core(client, interactive=interactive)
        running = asyncio.ensure_future(core.shell.run_script([Trusted("select 1 \\watch 1000\n")], ""))
        await until(lambda: len(core.events) > 3 and core.session.running is None and core.session.command_running)
        assert core.shell.statement_runner.interrupt()
        await running
        return core

    core = asyncio.run(work())
    assert len(client.ran) == 1
    heading = "NOW[%c] (every 1000s)\n"
    if interactive:
        assert core.err == heading
        assert core.out == "a\n0\n1\n2\n\n", "a line break after the ^C that the terminal wrote"
        assert core.shell.exit == Exit.DONE
    else:
        assert core.err == f"{heading}error: \\watch was interrupted\n"
        assert core.out == "a\n0\n1\n2\n"
        assert core.shell.exit == Exit.INTERRUPTED


@pytest.mark.parametrize("interactive", [True, False])
def test_ctrl_c_during_a_run(interactive: bool) -> None:
    """Who watches at the prompt has seen that it ends; a script has failed."""

    class Slow(ScriptedClient):
        async def step(self, what: str) -> None:
            await super().step(what)
            if what == "wait":
                core_of[0].shell.statement_runner.interrupt()
                await asyncio.sleep(0)
                raise failure("57014", "canceled")

    core_of: list[Core] = []

    async def work() -> Core:
        core = Core(Slow(), interactive=interactive)
        core_of.append(core)
        await core.shell.run_script([Trusted("select 1 \\watch 0\n")], "")
        return core

    core = asyncio.run(work())
    assert len(core.client.ran) == 1
    assert core.out == ("\n" if interactive else "")
    assert core.shell.exit == (Exit.DONE if interactive else Exit.INTERRUPTED)
    assert ("error" in core.err) is not interactive
