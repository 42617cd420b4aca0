"""Ctrl-C while a command works, between two of its waits, and the end of the program meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from sqlshell.errors import Interrupted
from sqlshell.shell.running.statement_runner import StatementRunner
from tests.shell.core.scripted import Core


async def forever() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("by_user", [True, False])
def test_only_ctrl_c_interrupts_a_command(by_user: bool) -> None:
    async def work() -> None:
        core = Core()
        statement_runner = core.shell.statement_runner
        waiting = asyncio.ensure_future(statement_runner.interruptible(forever(), "copy"))
        await asyncio.sleep(0)
        assert (statement_runner.busy, core.session.command_running) == (True, True)
        statement_runner.show_progress(0.5, "half", "^C ends")
        shown = core.session.running
        assert shown is not None
        assert (shown.share, shown.hint) == (0.5, "^C ends")
        end: Callable[[], bool] = statement_runner.interrupt if by_user else waiting.cancel
        assert end()
        with pytest.raises(Interrupted if by_user else asyncio.CancelledError):
            await waiting
        assert (statement_runner.busy, core.session.command_running, core.session.running) == (False, False, None)
        assert not statement_runner.pending

    asyncio.run(work())


def test_ctrl_c_between_two_waits_of_a_command_stops_the_next_one() -> None:
    async def work(statement_runner: StatementRunner) -> None:
        assert not statement_runner.busy
        with statement_runner.holding():
            assert statement_runner.busy
            assert statement_runner.interrupt(), "the command is to say what it has done"
            assert not statement_runner.busy, "a second one is not for it"
            with pytest.raises(Interrupted, match=r"\\copy was interrupted"):
                await statement_runner.interruptible(forever(), "copy")
            await statement_runner.interruptible(asyncio.sleep(0), "copy")
        assert not statement_runner.interrupt()
        # Outside of such a command it is for the next statement.
        await statement_runner.interruptible(asyncio.sleep(0), "copy")
        with pytest.raises(Interrupted, match="interrupted before it was run"):
            statement_runner.check()
        statement_runner.check()

    async def begin() -> None:
        await work(Core().shell.statement_runner)

    asyncio.run(begin())
