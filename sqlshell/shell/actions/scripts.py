"""Effects that run scripts, edit text, or end the shell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from sqlshell.errors import Interrupted
from sqlshell.origin import EMPTY, Own
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.effects import Restrict, RunSteps
from sqlshell.shell.running.failures import Failures


class ScriptRunner(Protocol):
    """Runs scripts."""

    async def run_script(self, chunks: Iterable[Own], name: str, *, stop: bool | None = None) -> bool: ...

    async def include(self, path: Own, *, beside: bool = False) -> None: ...

    def leave(self) -> None: ...

    def restrict(self, key: str) -> None: ...

    def unrestrict(self, key: str) -> None: ...


class ScriptActions:
    """Each method raises ShellError."""

    def __init__(self, components: ShellComponents, runner: ScriptRunner, failures: Failures) -> None:
        self._components = components
        self._runner = runner
        self._failures = failures

    def quit(self, name: str) -> None:
        components = self._components
        unfinished = components.buffer.scanner.take()
        if unfinished is not None and not (components.session.interactive and not components.position.in_file):
            components.diagnostics.warn(f"the unfinished statement before \\{name} was discarded")
        self._runner.leave()

    def restrict(self, effect: Restrict) -> None:
        if effect.ends:
            self._runner.unrestrict(effect.key)
        else:
            self._runner.restrict(effect.key)

    async def include(self, path: Own, *, beside: bool) -> None:
        await self._runner.include(path, beside=beside)

    async def run_steps(self, effect: RunSteps) -> None:
        with self._failures.separate_exit_code():
            for text, script in effect.steps:
                self._components.diagnostics.say(text)
                answer = await self._ask_about_step() if script else ""
                if answer.startswith("q"):
                    break
                if not script or answer.startswith("s"):
                    continue
                if not await self._runner.run_script([script], "", stop=False):
                    break

    def edit(self, path: Own) -> None:
        buffer = self._components.buffer
        if not path:
            buffer.check_origin()
        written = buffer.scanner.pending
        last = f"{buffer.last.text};" if buffer.last.text else ""
        text = self._components.front_end.edit(written or last, path)
        # Looking at the last statement does not run it again.
        buffer.replace_with(text if path or written or text != last else EMPTY)

    async def _ask_about_step(self) -> str:
        """The user's choice for the next step in lower case; "" runs it, as where nobody can be asked."""
        ask = self._components.front_end.ask
        if ask is None:
            return ""
        try:
            return (await ask("[Enter] run, [s] skip, [q] quit: ")).strip().lower()
        except Interrupted:
            return "q"
