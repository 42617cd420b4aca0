"""Scripts without a person: `-c`, `-f` and stdin, in the order given."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from types import FrameType

from sqlshell.errors import Exit
from sqlshell.origin import Own
from sqlshell.runtime.event_loops import expect_imports
from sqlshell.runtime.shutdown import Ending, run_to_end
from sqlshell.shell.scripts.reading import read_script
from sqlshell.shell.shell import Shell


def run_batch(
    opened: Callable[[], AbstractAsyncContextManager[Shell]], scripts: Sequence[tuple[str, Own]], ending: Ending
) -> Exit:
    """Run scripts, each ("command", SQL) or ("file", path). A failure ends them all, unless on_error is continue.

    Ctrl-C asks the service to end the running statement; where none runs, as while stdin is waited for, it ends the
    program, as `ending` does.
    """
    running: list[tuple[asyncio.AbstractEventLoop, Shell]] = []

    def interrupted(number: int, frame: FrameType | None) -> None:
        if running and running[0][1].interruption.busy:
            loop, shell = running[0]
            loop.call_soon_threadsafe(interrupt, shell)
            return
        ending(number)

    def interrupt(shell: Shell) -> None:
        if not shell.interruption.interrupt():
            # The statement was done in the meantime.
            ending(signal.SIGINT)

    async def work() -> Exit:
        expect_imports(asyncio.get_running_loop())
        async with opened() as shell:
            running.append((asyncio.get_running_loop(), shell))
            for number, (kind, text) in enumerate(scripts, 1):
                chunks = [text] if kind == "command" else read_script(text)
                name = "" if kind == "command" else "stdin" if text == "-" else text
                if not await shell.run_script(chunks, name) or (shell.failures.stops and shell.exit != Exit.DONE):
                    if shell.exit != Exit.UNREAD and number < len(scripts):
                        shell.diagnostics.warn(f"{_options(scripts[number:])} not run")
                    break
            await shell.finish()
            return shell.exit

    signal.signal(signal.SIGINT, interrupted)
    try:
        return run_to_end(work())
    finally:
        signal.signal(signal.SIGINT, ending)


def _options(scripts: Sequence[tuple[str, str]]) -> str:
    """How many of them there are, by the options that gave them."""
    kinds = [kind for kind, _ in scripts]
    counts = [(kinds.count(kind), option) for kind, option in (("command", "-c"), ("file", "-f"))]
    return " and ".join(f"{count:,} further {option}" for count, option in counts if count)
