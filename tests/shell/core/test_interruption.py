"""Ctrl-C while a command works, between two of its waits, and the end of the program meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from sqlshell.errors import Interrupted
from sqlshell.shell.running.foreground import Foreground
from tests.shell.core.scripted import Core


async def forever() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("by_user", [True, False])
def test_only_ctrl_c_interrupts_a_command(by_user: bool) -> None:
    async def work() -> None:
        core = Core()
        foreground = core.shell.foreground
        waiting = asyncio.ensure_future(foreground.interruptible(forever(), "copy"))
        await asyncio.sleep(0)
        assert (foreground.busy, core.session.command_running) == (True, True)
        foreground.show_progress(0.5, "half", "^C ends")
        shown = core.session.running
        assert shown is not None
        assert (shown.share, shown.hint) == (0.5, "^C ends")
        end: Callable[[], bool] = foreground.interrupt if by_user else waiting.cancel
        assert end()
        with pytest.raises(Interrupted if by_user else asyncio.CancelledError):
            await waiting
        assert (foreground.busy, core.session.command_running, core.session.running) == (False, False, None)
        assert not foreground.pending

    asyncio.run(work())


def test_ctrl_c_between_two_waits_of_a_command_stops_the_next_one() -> None:
    async def work(foreground: Foreground) -> None:
        assert not foreground.busy
        with foreground.holding():
            assert foreground.busy
            assert foreground.interrupt(), "the command is to say what it has done"
            assert not foreground.busy, "a second one is not for it"
            with pytest.raises(Interrupted, match=r"\\copy was interrupted"):
                await foreground.interruptible(forever(), "copy")
            await foreground.interruptible(asyncio.sleep(0), "copy")
        assert not foreground.interrupt()
        # Outside of such a command it is for the next statement.
        await foreground.interruptible(asyncio.sleep(0), "copy")
        with pytest.raises(Interrupted, match="interrupted before it was run"):
            foreground.check()
        foreground.check()

    async def begin() -> None:
        await work(Core().shell.foreground)

    asyncio.run(begin())
