"""The one path of interactive input, `-c`, `-f` and stdin: text in, statements to the service, results out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from sqlshell.client.statements import Statements, Watch
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import (
    ConnectionFailed,
    Exit,
    Interrupted,
    NotAuthenticated,
    ShellError,
    UsageError,
    Where,
)
from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Result
from sqlshell.shell.commands.command import Command, find
from sqlshell.shell.outlet import Outlet
from sqlshell.shell.port import Quit, Redirect, RunFile, Say, Submit
from sqlshell.shell.scripts import read_script
from sqlshell.shell.session import Running, Session
from sqlshell.sql.scanner import Command as CommandText
from sqlshell.sql.scanner import Item, Scanner, Statement

DEEPEST_INCLUDE = 50
ENDING_SECONDS = 10.0
"""How long a script that was interrupted waits for the service to end its statement."""


class Progress(Protocol):
    """What shows that a statement is being waited for."""

    def show(self) -> None: ...

    def hide(self) -> None: ...


class Silent:
    """Progress of a script: none."""

    def show(self) -> None:
        return None

    def hide(self) -> None:
        return None


class Shell:
    """Runs text. `commands` are the backslash commands by name, `themes` gives the names of the themes."""

    def __init__(
        self,
        statements: Statements,
        session: Session,
        outlet: Outlet,
        diagnostics: Diagnostics,
        commands: Mapping[str, Command],
        themes: Callable[[], Sequence[str]],
        progress: Progress | None = None,
    ) -> None:
        self.session = session
        self.commands = commands
        self.themes = themes
        self.diagnostics = diagnostics
        self.progress: Progress = progress or Silent()
        self.exit = Exit.DONE
        self._statements = statements
        self._outlet = outlet
        self._including: list[str] = []
        self._going = True
        self._task: asyncio.Task[None] | None = None
        self._wanted = False

    @property
    def busy(self) -> bool:
        """Whether there is a statement to interrupt."""
        return self._task is not None and not self._task.done()

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
        """Ctrl-C: first asks the service to end the running statement, then stops waiting. False if nothing runs."""
        if self._task is None or not self.busy:
            return False
        running = self.session.running
        if running is not None and not running.statement_id and not self._wanted:
            # Nothing can be ended before the service has named it, which it does within moments.
            self._wanted = True
            self.progress.hide()
            self.diagnostics.note("cancelling as soon as the service has answered; Ctrl-C again stops waiting")
            return True
        self._task.cancel()
        return True

    async def _item(self, item: Item) -> None:
        if isinstance(item, Statement):
            await self._statement(item.text)
            return
        found = find(self.commands, item.name)
        if item.statement is not None and not found.submits:
            await self._statement(item.statement.text)
        await self._command(found, item)

    async def _command(self, found: Command, item: CommandText) -> None:
        effect = await found.run(self, item.args)
        match effect:
            case Quit():
                self._going = False
            case Say(text):
                self.diagnostics.say(text)
            case Redirect(output):
                self._outlet.redirect(output)
            case RunFile(path):
                await self._include(path)
            case Submit(expanded, output):
                if item.statement is None:
                    raise UsageError(f"\\{item.name} ends a statement, and there is none", "write it behind one")
                await self._statement(item.statement.text, expanded=expanded, output=output)

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

    async def _statement(self, sql: str, *, expanded: bool = False, output: str = "") -> None:
        options = self.session.options
        if options.echo:
            self.diagnostics.say(sql)
        running = self.session.running = Running()
        self._wanted = False
        self.progress.show()
        self._task = asyncio.ensure_future(self._run(sql, running, expanded=expanded, output=output))
        try:
            await self._task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            await self._end(running)
        finally:
            self._task = None
            self.session.elapsed = time.monotonic() - running.began
            self.session.running = None
            self.progress.hide()

    async def _run(self, sql: str, running: Running, *, expanded: bool, output: str) -> None:
        limit = None
        shown = not output and not self._outlet.exporting
        if self.session.embedded and self.session.interactive and shown and self.session.options.rowlimit:
            limit = self.session.options.rowlimit
        results = self._statements.run(sql, self.session.context, row_limit=limit, watch=self._watch(running))
        try:
            async for result in results:
                running.finished = True
                await self._show(result, running, expanded=expanded, output=output)
                running.finished = False
        finally:
            await results.aclose()

    async def _show(self, result: Result, running: Running, *, expanded: bool, output: str) -> None:
        self.progress.hide()
        rows = None
        if result.columns:
            summary = await self._outlet.show(result, expanded=expanded, output=output)
            rows = summary.rows
        seconds = time.monotonic() - running.began
        if result.sql_state == sqlstate.WARNING and result.message:
            self.diagnostics.warn(result.message)
        if self.session.interactive:
            parts = [f"{rows:,} row{'' if rows == 1 else 's'}"] if rows is not None else []
            if rows is not None and not summary.complete:
                parts = [f"{rows:,} rows read, then stopped"]
            if rows is None and result.sql_state != sqlstate.WARNING:
                parts.append(result.message or "done")
            line = parts[0] if parts else "done"
            self.diagnostics.say(f"{line} ({duration(seconds)})" if self.session.options.timing else line)
        else:
            said = result.message if rows is None else f"{rows} rows"
            self.diagnostics.detail(f"statement {result.statement_id}: {said or 'done'} ({duration(seconds)})")

    def _watch(self, running: Running) -> Watch:
        def identified(statement_id: str) -> None:
            running.statement_id = statement_id
            if self._wanted and self._task is not None:
                self._wanted = False
                self._task.cancel()
            self.diagnostics.detail(f"statementID {statement_id}", 2)

        def progressed(share: float | None, message: str) -> None:
            running.share, running.message = share, message

        def say(text: str) -> None:
            self.progress.hide()
            self.diagnostics.note(text)
            self.progress.show()

        return Watch(identified, progressed, self._adopt, say)

    def _adopt(self, echo: ContextEcho | None) -> None:
        self.session.context = self.session.context.adopt(echo)

    async def _end(self, running: Running) -> None:
        """The person wants the statement to end. Raises Interrupted that says what became of it."""
        self.progress.hide()
        if running.finished:
            raise Interrupted(
                "interrupted; the statement itself was done", where=Where(statement_id=running.statement_id)
            )
        if not running.statement_id:
            raise Interrupted("interrupted before the service had answered", "it may have taken the statement")
        self.diagnostics.note("cancelling; press Ctrl-C again to stop waiting")
        waiting = f"it may still be running there as {running.statement_id}"
        self._task = asyncio.ensure_future(self._terminate(running.statement_id))
        try:
            async with asyncio.timeout(None if self.session.interactive else ENDING_SECONDS):
                await self._task
        except (asyncio.CancelledError, TimeoutError):
            raise Interrupted("stopped waiting for the statement", waiting) from None
        except Interrupted:
            raise
        except ShellError as error:
            raise Interrupted(f"the service did not end the statement: {error.message}", waiting) from error

    async def _terminate(self, statement_id: str) -> None:
        state = await self._statements.terminate(statement_id, self.session.context)
        where = Where(sql_state=state, statement_id=statement_id)
        if sqlstate.running(state):
            raise Interrupted("the service took the request, and the statement still runs", where=where)
        if sqlstate.failed(state):
            raise Interrupted("the statement was ended", where=where)
        raise Interrupted("the statement was done before it could be ended", where=where)

    def _tell(self, error: ShellError, name: str, item: Item | None) -> None:
        if self.exit == Exit.DONE:
            self.exit = error.exit
        if isinstance(error, Told):
            return
        if item is not None and name:
            line = item.line if isinstance(item, Statement) or item.statement is None else item.statement.line
            error.where = replace(error.where, file=name, line=line)
        self.diagnostics.error(error)


class Told(ShellError):
    """A script inside another failed, and said so itself."""

    def __init__(self, code: Exit) -> None:
        super().__init__("")
        self.exit = code


def duration(seconds: float) -> str:
    """A time for people: `12 ms`, `1.234 s`, `2 min 03 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
