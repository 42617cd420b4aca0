"""The one path of interactive input, `-c`, `-f` and stdin: text in, statements to the service, results out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlshell.client.service import Service
from sqlshell.client.watch import Submission
from sqlshell.context import SessionContext
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import (
    ConnectionFailed,
    Exit,
    Interrupted,
    NotAuthenticated,
    ShellError,
    StatementError,
    UsageError,
)
from sqlshell.shell.background import Background
from sqlshell.shell.commands.command import Command, find
from sqlshell.shell.foreground import Foreground
from sqlshell.shell.journal import Journal
from sqlshell.shell.outlet import Outlet
from sqlshell.shell.policy import Ask, Policy
from sqlshell.shell.port import Connect, Edit, Effect, Fetch, Quit, Redirect, Run, RunFile, Say, Show, Submit
from sqlshell.shell.scripts import read_script
from sqlshell.shell.session import Running, Session
from sqlshell.shell.transfers import Attachments
from sqlshell.sql.kinds import reads_only
from sqlshell.sql.scanner import Command as CommandText
from sqlshell.sql.scanner import Item, Scanner, Statement

if TYPE_CHECKING:
    from sqlshell.sql.suggest import Suggestion

Offline = Callable[[Submission, SessionContext], None]
"""Tells of a submission in the place of making it."""

DEEPEST_INCLUDE = 50


class Shell:
    """Runs text. `commands` are the backslash commands by name, `themes` gives the names of the themes."""

    def __init__(
        self,
        service: Service,
        session: Session,
        outlet: Outlet,
        diagnostics: Diagnostics,
        journal: Journal,
        commands: Mapping[str, Command],
        themes: Callable[[], Sequence[str]],
        attached: Sequence[str] = (),
        offline: Offline | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.session = session
        self.commands = commands
        self.themes = themes
        self.diagnostics = diagnostics
        self.exit = Exit.DONE
        self.service = service
        self.journal = journal
        self.attachments = Attachments(attached, diagnostics)
        self.background = Background(service.statements, journal, diagnostics)
        self.foreground = Foreground(service.statements, session, outlet, diagnostics, journal)
        self.doctor: Callable[[], Awaitable[str]] = _healthy
        """Looks at what works and what does not."""
        self.connect: Callable[[str], Awaitable[None]] = _nowhere
        """Go on at another target."""
        self.moved: Callable[[str], None] = lambda name: None
        """Told that the shell has another service, and what history and catalogs know it by."""
        self.refresh: Callable[[], None] = lambda: None
        """Have the names that completion knows loaded anew."""
        self.history: Callable[[], list[tuple[float, str]]] = list
        """What was entered at this prompt and others, with its time, the oldest first."""
        self.forget: Callable[[], None] = lambda: None
        self.previews: Callable[[], Iterable[str]] = themes
        """The themes in their colours."""
        self.names: Callable[[], Iterable[str]] = tuple
        """The names that are known of the service, for those that are not."""
        self.redact: Callable[[str], str] = _as_it_is
        """Takes the secrets out of a statement before it is kept."""
        self.last_text = ""
        """The statement that was run last, as it was written."""
        self.prefill = ""
        """What the next prompt begins with."""
        self._outlet = outlet
        self._offline = offline
        self._policy = policy or Policy()
        self.ask: Ask | None = None
        """Asks the person; None in a script."""
        self._including: list[str] = []
        self._going = True
        self._command_task: asyncio.Task[Effect | None] | None = None

    @property
    def busy(self) -> bool:
        """Whether there is something to interrupt."""
        return self.foreground.busy or self._command_task is not None

    async def run(self, text: str) -> bool:
        """Run everything in `text` as typed by a person; False when the shell is to end. Raises no ShellError."""
        return await self.run_script([text], "", stop=True)

    async def run_script(self, chunks: Iterable[str], name: str, *, stop: bool) -> bool:
        """Run a script that arrives in chunks of text; `name` places its errors. False when the shell is to end.

        With `stop` a failure ends the script; a lost connection and an interruption always do. Errors are told, and
        the first one's code stays in `exit`.
        """
        scanner = Scanner()
        arriving = iter(chunks)
        at_end = False
        while not at_end:
            # Reading may block: what is due on the loop, such as an interruption, comes first.
            await asyncio.sleep(0)
            try:
                if self.background.running:
                    chunk = await asyncio.to_thread(next, arriving, None)
                else:
                    chunk = next(arriving, None)
            except ShellError as error:
                self._tell(error, name, None)
                return self._going
            at_end = chunk is None
            for item in scanner.close() if chunk is None else scanner.feed(chunk):
                try:
                    await self._item(item)
                except ShellError as error:
                    self._tell(error, name, item)
                    lost = isinstance(error, ConnectionFailed | NotAuthenticated | Interrupted)
                    if stop or lost:
                        return self._going and not (isinstance(error, Interrupted) and not self.session.interactive)
                if not self._going:
                    return False
        return True

    def interrupt(self) -> bool:
        """Ctrl-C: first asks the service to end the statement, then leaves it. False if nothing is left to do."""
        if self._command_task is not None:
            return self._command_task.cancel()
        return self.foreground.interrupt()

    def arguments(self, name: str, typed: str) -> list[Suggestion]:
        """What may stand as an argument of a command."""
        from sqlshell.shell.arguments import arguments

        return arguments(self, name, typed)

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
        if self.session.embedded:
            await self.background.finished()
        for job in await self.background.named():
            self.diagnostics.note(f"[{job.number}] still runs there: sqlshell fetch {job.statement_id}")
        if self.exit == Exit.DONE:
            try:
                self.attachments.unnamed()
            except UsageError as error:
                self._tell(error, "", None)

    async def attach(self, service: Service, journal: Journal, policy: Policy, name: str) -> None:
        """Go on with another service; `name` is what history and catalogs know it by."""
        for job in await self.background.named():
            self._announce(f"[{job.number}] still runs there: sqlshell fetch {job.statement_id}")
        await self.aclose()
        self.service, self.journal, self._policy = service, journal, policy
        progress = self.foreground.progress
        self.background = Background(service.statements, journal, self.diagnostics)
        self.foreground = Foreground(service.statements, self.session, self._outlet, self.diagnostics, journal)
        self.foreground.progress = progress
        self.moved(name)

    async def aclose(self) -> None:
        """Leave: what runs in the background goes on at the service."""
        await self.background.aclose()
        self.journal.close()
        await self.service.aclose()

    async def _item(self, item: Item) -> None:
        if isinstance(item, Statement):
            await self._statement(item.text, background=item.background)
            return
        found = find(self.commands, item.name)
        if item.statement is not None and not found.submits:
            await self._statement(item.statement.text)
        await self._command(found, item)

    async def _command(self, found: Command, item: CommandText) -> None:
        self._command_task = asyncio.ensure_future(found.run(self, item.args))
        try:
            effect = await self._command_task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            raise Interrupted(f"\\{item.name} was interrupted") from None
        finally:
            self._command_task = None
            if self.session.running is not None:
                self.session.running = None
                self.foreground.progress.hide()
        match effect:
            case Quit():
                self._going = False
            case Say(text, own):
                self.diagnostics.say(text, own=own)
            case Redirect(output):
                self._outlet.redirect(output)
            case RunFile(path):
                await self._include(path)
            case Show(result):
                await self._outlet.show(result)
            case Run(steps):
                before = self.exit
                for text, script in steps:
                    self.diagnostics.say(text)
                    if script and not await self.run_script([script], "", stop=False):
                        break
                self.exit = before
            case Edit(path):
                from sqlshell.shell.editor import edit_file, edited

                if path:
                    edit_file(path)
                    await self._include(path)
                else:
                    self.prefill = edited(self.last_text)
            case Connect(target):
                await self.connect(target)
                self.diagnostics.say(f"now on {self.session.target}")
            case Fetch(statement_id):
                await self.foreground.fetch(statement_id, self.session.context)
            case Submit(expanded, output, background):
                if item.statement is None:
                    raise UsageError(f"\\{item.name} ends a statement, and there is none", "write it behind one")
                text = item.statement.text
                await self._statement(text, expanded=expanded, output=output, background=background)

    async def _include(self, path: str) -> None:
        if len(self._including) >= DEEPEST_INCLUDE:
            raise UsageError(
                f"{path}: scripts include each other more than {DEEPEST_INCLUDE} deep", "does it include itself?"
            )
        self._including.append(path)
        before, self.exit = self.exit, Exit.DONE
        try:
            await self.run_script(read_script(path), path, stop=self.session.options.on_error == "stop")
            failed = self.exit
        finally:
            self._including.pop()
            self.exit = before
        if failed != Exit.DONE:
            raise Told(failed)

    async def _statement(
        self, sql: str, *, expanded: bool = False, output: str = "", background: bool = False, own: bool = True
    ) -> None:
        """Run one statement. `own` says that the person wrote its text, so that files it names may be sent."""
        options = self.session.options
        if options.echo:
            self.diagnostics.say(sql)
        limit = None
        shown = not output and not self._outlet.exporting
        if self.session.embedded and self.session.interactive and shown and not background:
            limit = options.rowlimit or None
        self.last_text = sql
        await self._policy.check(sql, self.ask)
        sql, files = self.attachments.of(sql, own=own)
        # To the embedded service nothing is sent twice: it cannot be out of reach.
        asked = Submission(sql, files, limit, not self.session.embedded and reads_only(sql))
        if self._offline is not None:
            self._offline(asked, self.session.context)
            self.attachments.sent(files)
            return
        if background:
            job = self.background.start(asked, self.session.context)
            self._announce(f"[{job.number}] runs in the background; \\jobs lists it")
        else:
            await self.foreground.run(asked, self.session.context, expanded=expanded, output=output)
        self.attachments.sent(files)

    def _announce(self, text: str) -> None:
        if self.session.interactive:
            self.diagnostics.say(text)
        else:
            self.diagnostics.note(text)

    def _tell(self, error: ShellError, name: str, item: Item | None) -> None:
        if self.exit == Exit.DONE:
            self.exit = error.exit
        if isinstance(error, Told):
            return
        if item is not None and name:
            line = item.line if isinstance(item, Statement) or item.statement is None else item.statement.line
            error.where = replace(error.where, file=name, line=line)
        text = item.text if isinstance(item, Statement) else item.statement.text if item and item.statement else ""
        if text and isinstance(error, StatementError):
            from sqlshell.shell.excerpt import excerpt, nearest

            near = nearest(error, self.names())
            error.hint = f"{near}; {error.hint}".rstrip("; ") if near else error.hint
            self.diagnostics.error(error, excerpt(text, error))
            return
        self.diagnostics.error(error)


def _as_it_is(sql: str) -> str:
    return sql


async def _healthy() -> str:
    return ""


async def _nowhere(text: str) -> None:
    raise UsageError("this shell has one target", "start another")


class Told(ShellError):
    """A script inside another failed, and said so itself."""

    def __init__(self, code: Exit) -> None:
        super().__init__("")
        self.exit = code
