"""The one path of interactive input, `-c`, `-f` and stdin: text in, statements and commands out, in their order."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit, Interrupted, ShellError, Unread, Unreadable, UsageError
from sqlshell.origin import NOWHERE, Own
from sqlshell.shell.effects import Branch
from sqlshell.shell.environment import Environment
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.port import Port
from sqlshell.shell.results.outlet import Outlet
from sqlshell.shell.running.attachments import Attachments
from sqlshell.shell.running.connecting import Connecting
from sqlshell.shell.running.failures import Failures, Told
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.running.interruption import Interruption
from sqlshell.shell.running.submitting import Asked, Submitter
from sqlshell.shell.scripts.buffer import Buffer
from sqlshell.shell.scripts.flow import NAMES as FLOW
from sqlshell.shell.scripts.flow import Flow
from sqlshell.shell.scripts.position import Position
from sqlshell.shell.scripts.reading import arrival, left_out, next_to, read_script
from sqlshell.shell.scripts.variables import Variables
from sqlshell.shell.session import Session
from sqlshell.sql.script.scanner import BackslashCommand, Item, Statement

if TYPE_CHECKING:
    from sqlshell.shell.actions import Actions
    from sqlshell.shell.commands.command import Command

DEEPEST_INCLUDE = 50


class Shell:
    """Runs text. `commands` gives the backslash commands by name; they do not run where they are not `allowed`."""

    def __init__(
        self,
        session: Session,
        outlet: Outlet,
        front_end: FrontEnd,
        environment: Environment,
        diagnostics: Diagnostics,
        commands: Callable[[], Mapping[str, Command]],
        attachments: Attachments,
        *,
        allowed: bool = True,
    ) -> None:
        self.session = session
        self.diagnostics = diagnostics
        self._allowed = allowed
        self._position = position = Position()
        self._flow = flow = Flow()
        variables = Variables(session)
        self.buffer = buffer = Buffer(variables, flow)
        foreground = Foreground(session, outlet, front_end, diagnostics)
        self.interruption = interruption = Interruption(session, foreground, front_end.progress)
        self.failures = failures = Failures(session, position, buffer, front_end, diagnostics)
        self._submitter = submitter = Submitter(
            session, position, buffer, variables, attachments, foreground, outlet, front_end, diagnostics
        )
        self._connecting = connecting = Connecting(session, front_end, diagnostics, lambda: failures.exit)
        # Made when the first command asks for them, for many a script has none.
        self._commands = functools.cache(commands)
        self.port = Port(
            session,
            variables,
            buffer,
            outlet,
            attachments,
            front_end,
            environment,
            diagnostics,
            interruption.progressed,
            self._commands,
        )

        @functools.cache
        def actions() -> Actions:
            from sqlshell.shell.actions import Actions

            return Actions(
                self,
                session,
                position,
                buffer,
                variables,
                flow,
                attachments,
                submitter,
                foreground,
                connecting,
                interruption,
                failures,
                outlet,
                front_end,
                environment,
                diagnostics,
            )

        self._actions = actions
        self._left = False
        diagnostics.place = position.__str__

    @property
    def exit(self) -> Exit:
        """The code of the first failure."""
        return self.failures.exit

    async def run(self, text: Own, *, send: bool = False) -> bool:
        """Run what is complete in a text that a person typed; False when the shell is to end. Raises no ShellError.

        What is unfinished stays, to go on with the next text, unless it is to be sent without a `;`.
        """
        stop = self.failures.stops and "ON_ERROR_STOP" in self.port.variables
        self.buffer.scanner.unfinished.broken = False
        going = await self.run_script([Own(text + "\n")], "", stop=stop, typed=True, send=send)
        while going and self.buffer.edited:
            text, self.buffer.edited = self.buffer.edited, NOWHERE
            going = await self.run_script([Own(text + "\n")], "", stop=stop, typed=True, send=False)
        if not self.buffer.scanner.pending:
            self.buffer.clear()
        return going

    async def run_own(self, path: Own) -> None:
        """Run a script of the person's own: its commands are allowed, and its failures do not count."""
        allowed, self._allowed = self._allowed, True
        try:
            with self.failures.counted_apart():
                await self.run_script(read_script(path), path, stop=False)
        finally:
            self._allowed = allowed

    async def run_script(
        self, chunks: Iterable[Own], name: str, *, stop: bool | None = None, typed: bool = False, send: bool = True
    ) -> bool:
        """Run a script that arrives in chunks of text; `name` places its errors. False when the shell is to end.

        A \\q ends the script alone, unless a person `typed` it.

        With `stop`, or where on_error says so (None), a failure ends the script; a lost connection and an interruption
        always do. Errors are told, and the first one's code stays in `exit`. The end of the script sends its last
        statement too. A `typed` one goes on where the last one ended, and sends only what it is to `send`.
        """
        depth, before = self._flow.depth, self.buffer.scanner
        if not typed:
            self.buffer.clear()
        with self._position.within(name), self.failures.ending(stop):
            try:
                going = await self._run_chunks(chunks, name, send=send)
                if self._left:
                    return not typed
                if going is None and not typed:
                    self._end_of_conditions(depth)
                return going is not False
            finally:
                await self._submitter.look_back()
                self._left = False
                if not typed:
                    self.buffer.scanner = before
                    with contextlib.suppress(UsageError):
                        self._flow.close(depth)

    async def include(self, path: Own, *, beside: bool = False) -> None:
        """Run a script; `beside` looks for it in the folder of the script that this stands in. Raises Told."""
        if beside:
            path = next_to(self._position.script, path)
        if len(self._position.scripts) > DEEPEST_INCLUDE:
            raise UsageError(
                f"{path}: scripts are nested more than {DEEPEST_INCLUDE} levels deep",
                "check whether the script includes itself",
            )
        chunks = read_script(path)
        # What cannot be opened is an error of the script that asks for it.
        first = next(chunks, NOWHERE)
        with self.failures.counted_apart():
            await self.run_script(itertools.chain([first], chunks), path)
            failed = self.exit
        if failed != Exit.DONE:
            raise Told(failed)

    def leave(self) -> None:
        """End the script that is being run; what a person typed ends the shell."""
        self._left = True

    def forget_unfinished(self) -> None:
        """Ctrl-C at the prompt: what is entered next is a statement of its own, and runs."""
        self.buffer.clear()
        with contextlib.suppress(UsageError):
            self._flow.close(0)
        self.session.skipping = False

    async def finish(self) -> None:
        """The end of scripts: statements that go on in the background are named, and files that were not sent."""
        for job in await self._connecting.finish():
            self.diagnostics.note(
                f"[{job.number}] is still running; fetch its result with: sqlshell fetch {job.statement_id}"
            )
        if self.exit == Exit.DONE:
            try:
                self.port.attachments.unnamed()
            except UsageError as error:
                self.failures.tell(error)

    async def aclose(self) -> None:
        """Leave: what runs in the background goes on at the service."""
        await self._connecting.aclose()

    @property
    def _at_prompt(self) -> bool:
        """Whether a person typed what is being run."""
        return self.session.interactive and not self._position.in_file

    def _end_of_conditions(self, depth: int) -> None:
        try:
            self._flow.close(depth)
        except UsageError as error:
            self.failures.tell(error)

    async def _run_chunks(self, chunks: Iterable[Own], name: str, *, send: bool) -> bool | None:
        """None at the script's end; before it, whether the shell goes on."""
        arriving = iter(chunks)
        at_end = False
        while not at_end:
            # Reading may block: what is due on the loop, such as an interruption, comes first.
            await asyncio.sleep(0)
            try:
                if self.session.state.background.running:
                    chunk = await arrival(arriving)
                else:
                    chunk = next(arriving, None)
            except ShellError as error:
                self.failures.tell(error)
                return True
            at_end = chunk is None
            scanner = self.buffer.scanner
            if chunk is not None:
                scanner.feed(chunk)
            elif (send or self.buffer.ended()) and not (self._at_prompt and scanner.unfinished.broken):
                scanner.close()
            while items := self.buffer.scanner.read():
                for number, item in enumerate(items):
                    self._position.line = item.line
                    try:
                        await self._submitter.look_ahead(items, number, self._flow, stop=self.failures.stopping)
                        await self._survived(item)
                    except ShellError as error:
                        self.failures.tell(error)
                        if isinstance(error, Unread):
                            return False
                        self._break_off(item)
                        if self.failures.ends(error):
                            ran = await self._submitter.look_back()
                            if isinstance(error, Unreadable):
                                # What is left may be data.
                                self.buffer.clear()
                            else:
                                self._leave_out(items[number + 1 + ran :], arriving, name)
                            return self.session.interactive or not isinstance(error, Interrupted)
                    if self._left:
                        return True
        return None

    def _break_off(self, item: Item) -> None:
        """What failed was a command: the statement that it would have sent goes back to a person, or is given up.

        One that it would have left alone is not sent by the end of the script.
        """
        unfinished = self.buffer.scanner.unfinished
        if not isinstance(item, BackslashCommand) or not unfinished.started:
            return
        found = self._commands().get(item.name)
        if self._at_prompt or found is None or not found.sends_with(item.args):
            unfinished.broken = True
        else:
            self.buffer.scanner.take()
            self.diagnostics.warn(f"\\{item.name}: the unfinished statement before it was discarded")

    def _leave_out(self, items: Sequence[Item], arriving: Iterable[str], name: str) -> None:
        waits = name == "stdin"
        if left := left_out(self.buffer.scanner, items, () if waits else arriving, surely=not waits):
            self.diagnostics.warn(left)
        self.buffer.clear()

    async def _survived(self, item: Item) -> None:
        """Do what an item says. Raises ShellError alone: what nobody expected is told as a bug, and ends no shell."""
        try:
            await self._run_item(item)
        except ShellError:
            self._look_for_reader()
            raise
        except Exception as error:
            from sqlshell.runtime.bugs import bug_of

            raise bug_of(error, f"\\{item.name}" if isinstance(item, BackslashCommand) else "") from error
        self._look_for_reader()

    def _look_for_reader(self) -> None:
        """Raises Unread where a script's output is read no more."""
        if self.port.outlet.unread and not self.session.interactive:
            raise Unread("")

    async def _run_item(self, item: Item) -> None:
        self.interruption.check()
        if isinstance(item, Statement):
            if self._flow.active and item.broken and not item.terminated:
                self.diagnostics.warn("the unfinished statement was not run because a command in it failed")
            elif self._flow.active:
                await self._submitter.submit(Asked(item, background=item.background))
            elif self._at_prompt:
                self.diagnostics.say("statement ignored; use \\endif or Ctrl-C to leave the \\if block")
            return
        if not self._allowed:
            typed = item.name if item.name[:1] in {".", "!"} and item.name != "!" else f"\\{item.name}"
            raise UsageError(f"{typed}: backslash commands are disabled (--no-commands)")
        if not self._flow.active and item.name not in FLOW:
            return
        from sqlshell.shell.commands.command import find

        await self._run_command(find(self._commands(), item.name), item)

    async def _run_command(self, found: Command, item: BackslashCommand) -> None:
        if found.name in FLOW:
            self._flow.leaves(found.name, self.buffer.scanner)
        for statement in self.buffer.settle():
            await self._submitter.submit(Asked(statement, final=True))
        args = Own(item.args if self._flow.asks(found.name) else "false")
        depth = self._flow.depth
        try:
            effect = await self.interruption.interruptible(found.run(self.port, args, item.name), item.name)
            if isinstance(effect, Branch):
                await self._actions().perform(effect, item.name)
                effect = None
        except ShellError:
            # Before what follows is passed over: \endif goes back to the statement as it is now.
            self.buffer.scanner.unfinished.broken = self.buffer.scanner.unfinished.started
            if self._flow.depth == depth:
                self._flow.refuse(found.name)
            raise
        finally:
            self._flow.enters(self.buffer.scanner)
            self.session.skipping = not self._flow.active
        if effect is not None:
            await self._actions().perform(effect, item.name)
