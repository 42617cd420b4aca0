"""The one path of interactive input, `-c`, `-f` and stdin: text in, statements to the service, results out."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sqlshell.client.service import Service
from sqlshell.client.statements.client import Submission
from sqlshell.context import SessionContext
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import (
    ConnectionFailed,
    Exit,
    Interrupted,
    NotAuthenticated,
    ShellError,
    Unread,
    Unreadable,
    UsageError,
)
from sqlshell.interface import sqlstate
from sqlshell.origin import NOWHERE, Own
from sqlshell.shell.hooks import Hooks
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.records.result_history import Past
from sqlshell.shell.results.outlet import Outlet
from sqlshell.shell.running.attachments import Attachments, is_stdin
from sqlshell.shell.running.background import Background
from sqlshell.shell.running.failures import Told, tell
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.running.policy import Policy
from sqlshell.shell.running.submitting import Asked, submit
from sqlshell.shell.running.transaction import Transaction
from sqlshell.shell.scripts.buffer import Buffer
from sqlshell.shell.scripts.flow import NAMES as FLOW
from sqlshell.shell.scripts.flow import Flow
from sqlshell.shell.scripts.reading import arrival, left_out, next_to, read_script
from sqlshell.shell.scripts.variables import Variables
from sqlshell.shell.session import Running, Session
from sqlshell.sql.script.scanner import Command as CommandText
from sqlshell.sql.script.scanner import Item, Statement

if TYPE_CHECKING:
    from sqlshell.shell.commands.command import Command
    from sqlshell.shell.local.local import Local
    from sqlshell.shell.records.transcript import Transcript
    from sqlshell.shell.running.read_ahead import Ahead

Offline = Callable[[Submission, SessionContext], None]
"""Tells of a submission in the place of making it."""
Given = TypeVar("Given")

DEEPEST_INCLUDE = 50

ENDS = (ConnectionFailed, NotAuthenticated, Interrupted, Unreadable)
"""Errors that end a script whatever is set."""


class Shell:
    """Runs text. `commands` gives the backslash commands by name, `themes` gives the names of the themes."""

    def __init__(
        self,
        service: Service,
        session: Session,
        outlet: Outlet,
        diagnostics: Diagnostics,
        journal: Journal,
        commands: Callable[[], Mapping[str, Command]],
        themes: Callable[[], Sequence[str]],
        attached: Sequence[Own] = (),
        offline: Offline | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.session = session
        self._known_commands = commands
        self.diagnostics = diagnostics
        self.exit = Exit.DONE
        self.service = service
        self.journal = journal
        self.attachments = Attachments(attached, diagnostics)
        self.background = Background(service.statements, journal, diagnostics)
        self.foreground = Foreground(service.statements, session, outlet, diagnostics, journal)
        self.hooks = Hooks(themes=themes)
        diagnostics.place = self._place
        self.variables = Variables(session)
        self.flow = Flow()
        self.past = Past()
        self.buffer = Buffer(self.variables, self.flow)
        self.line = 0  # of the script, where what is being run begins
        self.outlet = outlet
        self.offer_commands = True
        """Whether backslash commands run; False for scripts that others wrote."""
        self.offline = offline
        self.policy = policy or Policy()
        self.including: list[str] = []
        """The names of the scripts that are being run, "" for what a person typed."""
        self.transcript: Transcript | None = None
        self.local: Local | None = None
        self.ahead: Ahead | None = None
        """What was sent together with the statement that runs."""
        self.own_session = ""
        """The session at the service that this shell made, and ends when it leaves; "" for one that it joined."""
        self.interrupted = False
        """Whether Ctrl-C was pressed where nothing ran yet that it could end: the next statement is not begun."""
        self._stop: bool | None = None
        self._left = False
        self._command_task: asyncio.Task[Any] | None = None

    @functools.cached_property
    def commands(self) -> Mapping[str, Command]:
        """The backslash commands by name: made when the first is asked for, for many a script has none."""
        return self._known_commands()

    @property
    def busy(self) -> bool:
        """Whether there is something to interrupt."""
        return self.foreground.busy or self._command_task is not None

    async def run(self, text: Own, *, send: bool = False) -> bool:
        """Run what is complete in a text that a person typed; False when the shell is to end. Raises no ShellError.

        What is unfinished stays, to go on with the next text, unless it is to be sent without a `;`.
        """
        stop = self.stops and "ON_ERROR_STOP" in self.variables
        self.buffer.scanner.unfinished.broken = False
        going = await self.run_script([Own(text + "\n")], "", stop=stop, typed=True, send=send)
        while going and self.buffer.edited:
            text, self.buffer.edited = self.buffer.edited, NOWHERE
            going = await self.run_script([Own(text + "\n")], "", stop=stop, typed=True, send=False)
        if not self.buffer.scanner.pending:
            self.buffer.clear()
        return going

    async def run_script(
        self, chunks: Iterable[Own], name: str, *, stop: bool | None = None, typed: bool = False, send: bool = True
    ) -> bool:
        """Run a script that arrives in chunks of text; `name` places its errors. False when the shell is to end.

        A \\q ends the script alone, unless a person `typed` it.

        With `stop`, or where on_error says so (None), a failure ends the script; a lost connection and an interruption
        always do. Errors are told, and the first one's code stays in `exit`. The end of the script sends its last
        statement too. A `typed` one goes on where the last one ended, and sends only what it is to `send`.
        """
        depth, before, line, stopping = self.flow.depth, self.buffer.scanner, self.line, self._stop
        if not typed:
            self.buffer.clear()
        self.including.append(name)
        self._stop = stop
        try:
            going = await self._run_script(chunks, name, send=send)
            if self._left:
                return not typed
            if going is None and not typed:
                self._end_of_conditions(depth)
            return going is not False
        finally:
            await self._look_back()
            self.including.pop()
            self.line, self._stop, self._left = line, stopping, False
            if not typed:
                self.buffer.scanner = before
                with contextlib.suppress(UsageError):
                    self.flow.close(depth)

    def _end_of_conditions(self, depth: int) -> None:
        try:
            self.flow.close(depth)
        except UsageError as error:
            self.tell(error)

    async def _run_script(self, chunks: Iterable[Own], name: str, *, send: bool) -> bool | None:
        """None at the script's end; before it, whether the shell goes on."""
        arriving = iter(chunks)
        at_end = False
        while not at_end:
            # Reading may block: what is due on the loop, such as an interruption, comes first.
            await asyncio.sleep(0)
            try:
                if self.background.running:
                    chunk = await arrival(arriving)
                else:
                    chunk = next(arriving, None)
            except ShellError as error:
                self.tell(error)
                return True
            at_end = chunk is None
            if chunk is not None:
                self.buffer.scanner.feed(chunk)
            elif (send or self.buffer.ended()) and not (self.at_prompt and self.buffer.scanner.unfinished.broken):
                self.buffer.scanner.close()
            while items := self.buffer.scanner.read():
                for number, item in enumerate(items):
                    self.line = item.line
                    try:
                        await self._look_ahead(items, number, stop=self.stopping)
                        await self._survived(item)
                    except ShellError as error:
                        self.tell(error)
                        if isinstance(error, Unread):
                            return False
                        self._break_off(item)
                        if self.ends(error):
                            ran = await self._look_back()
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
        if not isinstance(item, CommandText) or not unfinished.started:
            return
        found = self.commands.get(item.name)
        if self.at_prompt or found is None or not found.sends_with(item.args):
            unfinished.broken = True
        else:
            self.buffer.scanner.take()
            self.diagnostics.warn(f"the statement before \\{item.name} was not run")

    def _leave_out(self, items: Sequence[Item], arriving: Iterable[str], name: str) -> None:
        waits = name == "stdin"
        if left := left_out(self.buffer.scanner, items, () if waits else arriving, surely=not waits):
            self.diagnostics.warn(left)
        self.buffer.clear()

    async def _survived(self, item: Item) -> None:
        """Do what an item says. Raises ShellError alone: what nobody expected is told as a bug, and ends no shell."""
        try:
            await self._item(item)
        except ShellError:
            self._look_for_reader()
            raise
        except Exception as error:
            from sqlshell.runtime.bugs import bug_of

            raise bug_of(error, f"\\{item.name}" if isinstance(item, CommandText) else "") from error
        self._look_for_reader()

    def _look_for_reader(self) -> None:
        """Raises Unread where a script's output is read no more."""
        if self.outlet.unread and not self.session.interactive:
            raise Unread("")

    @property
    def stops(self) -> bool:
        """Whether a failure ends a script, as it is set now."""
        return self.session.options.on_error == "stop"

    @property
    def stopping(self) -> bool:
        """Whether a failure ends what is being run now."""
        return self.stops if self._stop is None else self._stop

    def ends(self, error: ShellError) -> bool:
        """Whether an error ends what is being run now.

        So does one behind which the rest would mean something else: a session that lost its temporary tables and
        settings; at the prompt, where a paste is no script that was told to go on, a context that is gone.
        """
        lost = error.where.sql_state == sqlstate.SESSION_LOST or (
            self.session.interactive and self.session.lost is error
        )
        return isinstance(error, ENDS) or self.stopping or lost

    def interrupt(self) -> bool:
        """Ctrl-C: first asks the service to end the statement, then leaves it. False if nothing is left to do."""
        if self._command_task is not None:
            return self._command_task.cancel()
        if self.foreground.busy:
            return self.foreground.interrupt()
        self.interrupted = True
        return False

    def progressed(self, share: float | None, message: str) -> None:
        """Show how far a command has come."""
        if self.session.running is None:
            self.session.running = Running()
            self.foreground.progress.show()
        self.session.running.share, self.session.running.message = share, message

    async def finish(self) -> None:
        """The end of scripts: statements in the background are named by then, and told of.

        The embedded service ends with the shell, so that they are waited for there. Files of the command line that
        no statement named are an error.
        """
        if self.session.embedded and self.exit != Exit.INTERRUPTED:
            await self.background.finished()
        self._tell_of_transaction()
        for job in await self.background.named():
            self.diagnostics.note(f"[{job.number}] still runs there: sqlshell fetch {job.statement_id}")
        if self.exit == Exit.DONE:
            try:
                self.attachments.unnamed()
            except UsageError as error:
                self.tell(error)

    async def attach(self, service: Service, journal: Journal, policy: Policy, name: str) -> None:
        """Go on with another service; `name` is what history and catalogs know it by."""
        self._tell_of_transaction()
        for job in await self.background.named():
            where = (
                "ends with this shell"
                if self.service.transport.inside
                else f"still runs: sqlshell fetch {job.statement_id}"
            )
            self.announce(f"[{job.number}] {where}")
        await self.aclose()
        self.service, self.journal, self.policy = service, journal, policy
        progress = self.foreground.progress
        self.background = Background(service.statements, journal, self.diagnostics)
        self.foreground = Foreground(service.statements, self.session, self.outlet, self.diagnostics, journal)
        self.foreground.progress = progress
        self.past = Past()
        self.session.last_id, self.session.last_job, self.session.transaction = "", 0, Transaction()
        self.hooks.moved(name)

    def _tell_of_transaction(self) -> None:
        """Warn of an open transaction that is left; nothing is said where nobody knows what became of it."""
        transaction = self.session.transaction
        if not transaction.state or self.exit not in {Exit.DONE, Exit.STATEMENT, Exit.USAGE}:
            return
        if self.own_session or self.session.embedded:
            said = "the transaction was not committed: it is rolled back, nothing of it is kept"
        else:
            said = "the transaction was not committed: it stays open in the session that was joined"
        self.diagnostics.warn(said, transaction.begun)

    async def aclose(self) -> None:
        """Leave: what runs in the background goes on at the service."""
        await self.background.aclose()
        if self.local is not None:
            await self.local.aclose()
            self.local = None
        self.journal.close()
        if not self.service.transport.inside:
            # The service inside ends with the shell, and its sessions with it.
            await self.service.statements.end_sessions([*filter(None, [self.own_session]), *self.background.sessions])
        await self.service.aclose()

    async def _item(self, item: Item) -> None:
        if self.interrupted:
            self.interrupted = False
            raise Interrupted("interrupted before it was run")
        if isinstance(item, Statement):
            if self.flow.active and item.broken and not item.terminated:
                self.diagnostics.warn("the unfinished statement was not run, because a command in it failed")
            elif self.flow.active:
                await submit(self, Asked(item, background=item.background))
            elif self.at_prompt:
                self.diagnostics.say("passed over: \\endif or Ctrl-C ends the \\if")
            return
        if not self.offer_commands:
            typed = item.name if item.name[:1] in {".", "!"} else f"\\{item.name}"
            raise UsageError(f"{typed} is not run: commands are off", "start without --no-commands to run it")
        if not self.flow.active and item.name not in FLOW:
            return
        from sqlshell.shell.commands.command import find

        await self._command(find(self.commands, item.name), item)

    async def _look_ahead(self, items: Sequence[Item], number: int, *, stop: bool) -> None:
        """Have the statements from this one on sent together, where that is possible and nobody sees the difference."""
        if self.ahead is not None and self.ahead.done:
            self.ahead = None
            self.journal.flush()
        client, lone = self.service.statements, self.session.interactive or self.offline is not None
        if (
            self.ahead is not None
            or lone
            or not client.supports_batches
            or not self.flow.active
            or self.attachments.waiting
        ):
            return
        from sqlshell.shell.running.read_ahead import plan

        near = self.session.embedded
        self.ahead = await plan(
            items, number, client, self.policy, self.variables, stop=stop, near=near, piped=self.outlet.piped
        )

    async def _look_back(self) -> int:
        """Leave what was sent together: no more of it runs. How many ran behind the last one, which is told."""
        self.diagnostics.settle()
        ahead, self.ahead = self.ahead, None
        if ahead is None or ahead.done:
            return 0
        ran, said = await ahead.aclose(self.session.context, self.journal, patient=self.foreground.patient)
        if said:
            self.diagnostics.warn(said)
        return ran

    async def _command(self, found: Command, item: CommandText) -> None:
        if found.name in FLOW:
            self.flow.leaves(found.name, self.buffer.scanner)
        for statement in self.buffer.settle():
            await submit(self, Asked(statement, final=True))
        args = Own(item.args if self.flow.asks(found.name) else "false")
        depth = self.flow.depth
        try:
            effect = await self.interruptible(found.run(self, args, item.name), item.name)
        except ShellError:
            # Before what follows is passed over: \endif goes back to the statement as it is now.
            self.buffer.scanner.unfinished.broken = self.buffer.scanner.unfinished.started
            if self.flow.depth == depth:
                self.flow.refuse(found.name)
            raise
        finally:
            self.flow.enters(self.buffer.scanner)
            self.session.skipping = not self.flow.active
        if effect is not None:
            from sqlshell.shell.actions import perform

            await perform(self, effect, item.name)

    @property
    def reads_stdin(self) -> bool:
        """Whether stdin is where a script that is being run comes from."""
        return any(name in {"stdin", "-"} or (name and is_stdin(name)) for name in self.including)

    def _place(self) -> str:
        name = self.including[-1] if self.including else ""
        return f"{name}:{self.line}" if name and self.line else ""

    @property
    def at_prompt(self) -> bool:
        """Whether a person typed what is being run."""
        return self.session.interactive and not any(self.including)

    async def interruptible(self, work: Coroutine[Any, Any, Given], name: str) -> Given:
        """Wait for what Ctrl-C may end. Raises Interrupted when it did."""
        self._command_task = task = asyncio.ensure_future(work)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            raise Interrupted(f"\\{name} was interrupted") from None
        finally:
            self._command_task = None
            if self.session.running is not None:
                self.session.running = None
                self.foreground.progress.hide()

    def forget_unfinished(self) -> None:
        """Ctrl-C at the prompt: what is entered next is a statement of its own, and runs."""
        self.buffer.clear()
        with contextlib.suppress(UsageError):
            self.flow.close(0)
        self.session.skipping = False

    def leave(self) -> None:
        """End the script that is being run; what a person typed ends the shell."""
        self._left = True

    async def include(self, path: Own, *, beside: bool = False) -> None:
        """Run a script; `beside` looks for it in the folder of the script that this stands in. Raises Told."""
        if beside:
            path = next_to(self.including[-1], path)
        if len(self.including) > DEEPEST_INCLUDE:
            raise UsageError(
                f"{path}: scripts include each other more than {DEEPEST_INCLUDE} deep", "does it include itself?"
            )
        chunks = read_script(path)
        # What cannot be opened is an error of the script that asks for it.
        first = next(chunks, NOWHERE)
        before, self.exit = self.exit, Exit.DONE
        try:
            await self.run_script(itertools.chain([first], chunks), path)
            failed = self.exit
        finally:
            self.exit = before
        if failed != Exit.DONE:
            raise Told(failed)

    def announce(self, text: str) -> None:
        """Tell of something that a person at a prompt wants to know in any case."""
        if self.session.interactive:
            self.diagnostics.say(text)
        else:
            self.diagnostics.note(text)

    def tell(self, error: ShellError) -> None:
        """Tell of a failure in what is being run; the first one's code stays in `exit`."""
        name = self.including[-1] if self.including else ""
        if self.exit == Exit.DONE:
            self.exit = error.exit
        if isinstance(error, Told):
            if name:
                self.diagnostics.say(f"{name}:{self.line}: the script included here failed")
        elif not isinstance(error, Unread):
            sent, known = self.buffer.last.text, self.hooks.catalog.everything
            tell(error, name, self.line, sent, self.diagnostics, known, self.hooks.redact)
