"""Runs scripts without a user: `-c`, `-f` and stdin, in the order given."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from types import FrameType

from sqlshell.errors import Exit, Interrupted
from sqlshell.origin import Trusted
from sqlshell.runtime.event_loops import allow_slow_imports
from sqlshell.runtime.shutdown import ExitSignalHandler, handle_signal, run_to_completion
from sqlshell.shell.session import SessionState
from sqlshell.shell.shell import Shell
from sqlshell.text import was_or_were


def run_batch(
    open_shell: Callable[[], AbstractAsyncContextManager[Shell]],
    scripts: Sequence[tuple[str, Trusted]],
    exit_handler: ExitSignalHandler,
    *,
    single_transaction: bool = False,
) -> Exit:
    """Run scripts, each ("command", SQL) or ("file", path). A failure stops all of them, unless on_error is continue.

    With `single_transaction` all run in one transaction, which is rolled back if any statement fails.

    Ctrl-C asks the service to cancel the running statement; if none is running, for example while waiting for stdin, it
    exits the program, as `exit_handler` does.
    """
    running: list[tuple[asyncio.AbstractEventLoop, Shell]] = []

    def interrupted(number: int, frame: FrameType | None) -> None:
        if running and running[0][1].statement_runner.busy:
            loop, shell = running[0]
            loop.call_soon_threadsafe(interrupt, shell)
            return
        exit_handler(number, frame)

    def interrupt(shell: Shell) -> None:
        if not shell.statement_runner.interrupt():
            # What ran has ended in the meantime, as a command in backticks that got the signal too.
            shell.failures.report(Interrupted("interrupted"))
            exit_handler(signal.SIGINT)

    async def work() -> Exit:
        allow_slow_imports(asyncio.get_running_loop())
        async with open_shell() as shell:
            running.append((asyncio.get_running_loop(), shell))
            if single_transaction and not await shell.run_script([Trusted("BEGIN;")], ""):
                return shell.exit
            state = shell.session.state
            for number, (kind, text) in enumerate(scripts, 1):
                chunks = [text] if kind == "command" else shell.read(text)
                name = "" if kind == "command" else "stdin" if text == "-" else text
                if not await shell.run_script(chunks, name) or (shell.failures.stops and shell.exit != Exit.DONE):
                    if shell.exit != Exit.UNREAD and number < len(scripts):
                        shell.diagnostics.warn(_scripts_not_run(scripts[number:]))
                    break
            if single_transaction:
                await _end_transaction(shell, state)
            await shell.finish()
            return shell.exit

    handle_signal(signal.SIGINT, interrupted)
    try:
        return run_to_completion(work())
    finally:
        handle_signal(signal.SIGINT, exit_handler)


async def _end_transaction(shell: Shell, state: SessionState) -> None:
    """Commit or roll back the transaction of all scripts, unless they have ended it; `state` is where it began."""
    if shell.session.state is not state or not state.transaction.state:
        shell.diagnostics.warn(
            "a script ended the transaction of --single-transaction; the statements after that ran outside of it"
        )
    elif shell.exit == Exit.DONE:
        await shell.run_script([Trusted("COMMIT;")], "")
    elif await shell.run_script([Trusted("ROLLBACK;")], "") and not (
        state.transaction.state or not shell.submitter.sends
    ):
        shell.diagnostics.warn("the transaction of all scripts was rolled back")


def _scripts_not_run(scripts: Sequence[tuple[str, str]]) -> str:
    """How many scripts were not run, by their options."""
    kinds = [kind for kind, _ in scripts]
    left = [f"{kinds.count(kind)} later {flag}" for kind, flag in (("command", "-c"), ("file", "-f")) if kind in kinds]
    return f"{' and '.join(left)} {was_or_were(len(kinds))} not run"
