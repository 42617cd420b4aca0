"""Ctrl-C while a command works, between two of its waits, and the end of the program meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from sqlshell.errors import Interrupted
from sqlshell.shell.running.interruption import Interruption
from tests.shell.core.scripted import Core


async def forever() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("by_user", [True, False])
def test_only_ctrl_c_interrupts_a_command(by_user: bool) -> None:
    async def work() -> None:
        core = Core()
        interruption = core.shell.interruption
        waiting = asyncio.ensure_future(interruption.interruptible(forever(), "copy"))
        await asyncio.sleep(0)
        assert (interruption.busy, core.session.command_running) == (True, True)
        interruption.show_progress(0.5, "half", "^C ends")
        shown = core.session.running
        assert shown is not None
        assert (shown.share, shown.hint) == (0.5, "^C ends")
        end: Callable[[], bool] = interruption.interrupt if by_user else waiting.cancel
        assert end()
        with pytest.raises(Interrupted if by_user else asyncio.CancelledError):
            await waiting
        assert (interruption.busy, core.session.command_running, core.session.running) == (False, False, None)
        assert not interruption.pending

    asyncio.run(work())


def test_ctrl_c_between_two_waits_of_a_command_stops_the_next_one() -> None:
    async def work(interruption: Interruption) -> None:
        assert not interruption.busy
        with interruption.holding():
            assert interruption.busy
            assert interruption.interrupt(), "the command is to say what it has done"
            assert not interruption.busy, "a second one is not for it"
            with pytest.raises(Interrupted, match=r"\\copy was interrupted"):
                await interruption.interruptible(forever(), "copy")
            await interruption.interruptible(asyncio.sleep(0), "copy")
        assert not interruption.interrupt()
        # Outside of such a command it is for the next statement.
        await interruption.interruptible(asyncio.sleep(0), "copy")
        with pytest.raises(Interrupted, match="interrupted before it was run"):
            interruption.check()
        interruption.check()

    async def begin() -> None:
        await work(Core().shell.interruption)

    asyncio.run(begin())
