"""Effects that run scripts, edit text, or end the shell."""

from __future__ import annotations

from sqlshell.errors import Interrupted
from sqlshell.origin import EMPTY, Own
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.effects import Restrict, RunSteps
from sqlshell.shell.running.failures import Failures
from sqlshell.shell.running.item_runner import ItemRunner
from sqlshell.shell.scripts.script_runner import ScriptRunner


class ScriptActions:
    """Each method raises ShellError."""

    def __init__(
        self, components: ShellComponents, scripts: ScriptRunner, items: ItemRunner, failures: Failures
    ) -> None:
        self._components = components
        self._scripts = scripts
        self._items = items
        self._failures = failures

    def quit(self, name: str) -> None:
        components = self._components
        unfinished = components.buffer.scanner.take()
        if unfinished is not None and not components.at_prompt:
            components.diagnostics.warn(f"the unfinished statement before \\{name} was discarded")
        self._scripts.leave()

    def restrict(self, effect: Restrict) -> None:
        if effect.ends:
            self._items.unrestrict(effect.key)
        else:
            self._items.restrict(effect.key)

    async def include(self, path: Own, *, relative: bool) -> None:
        await self._scripts.include(path, relative=relative)

    async def run_steps(self, effect: RunSteps) -> None:
        with self._failures.separate_exit_code():
            for text, script in effect.steps:
                self._components.diagnostics.say(text)
                answer = await self._ask_about_step() if script else ""
                if answer.startswith("q"):
                    break
                if not script or answer.startswith("s"):
                    continue
                if not await self._scripts.run([script], "", stop=False):
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
            return (await ask("[Enter] run, [s] skip, [q] quit: ", keys="sqSQ")).strip().lower()
        except Interrupted:
            return "q"
