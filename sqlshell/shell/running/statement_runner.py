"""What the user waits for: a statement, with its progress, its results and its journal entry, or a command; and Ctrl-C.

Ctrl-C stops the command, or prevents the next statement from starting. For a statement, the first Ctrl-C asks the
service to cancel it and keeps waiting for its outcome; the second leaves it running. The messages report only what the
service has confirmed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, TypeVar

from msgspec.structs import replace

from sqlshell.client.results.creation_rows import creates_object, is_creation_result, tag_of
from sqlshell.client.statements.client import Client, Observer, StatementBatch, terminate_query
from sqlshell.context import SessionContext
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import (
    Interrupted,
    ServiceError,
    ShellError,
    StatementError,
    UnknownStatement,
    UsageError,
    WaitTimeout,
    Where,
)
from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.output.copy import ResultHandler
from sqlshell.output.writer import Look, Summary
from sqlshell.result import Result, StreamingResult
from sqlshell.runtime.streams import shows_unicode
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.results.result_output import ResultOutput
from sqlshell.shell.running.statement import LexedSubmission, Running
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.kinds import is_repeatable
from sqlshell.text import byte_size, duration, format_count, short_id

CANCEL_SECONDS = 10.0
"""How long an interrupted script waits for the service to cancel its statement, in seconds."""

LOOK_SECONDS = 0.02
"""How often the embedded service is asked whether a statement has been canceled, in seconds."""

OUTCOME_SECONDS = 1.0
"""How long after a cancel request the second Ctrl-C still waits for its outcome, in seconds."""

Results = AsyncGenerator[Result, None]
Given = TypeVar("Given")


class StatementRunner:
    """Runs statements of a session one after another on its current connection, and waits for commands."""

    def __init__(
        self, session: Session, result_output: ResultOutput, front_end: FrontEnd, diagnostics: Diagnostics
    ) -> None:
        self._session = session
        self._result_output = result_output
        self._front_end = front_end
        self._progress = front_end.progress
        self._diagnostics = diagnostics
        self._task: asyncio.Task[None] | None = None
        self._cancel_task: asyncio.Task[None] | None = None
        self._cancel_requested_at: float | None = None
        """When the service was asked to cancel (time.monotonic); None once it has refused."""
        self._leave_timer: asyncio.TimerHandle | None = None
        self._notice_timer: asyncio.TimerHandle | None = None
        self._interrupts = 0
        self._cancel_notice_delay = 0.0
        self.abandoned_at = 0.0
        """The time when a statement was last left running (time.monotonic)."""
        self._command: asyncio.Task[Any] | None = None
        self._pending = False
        self._holding = False

    @property
    def _client(self) -> Client:
        return self._session.connection.client

    @property
    def _journal(self) -> Journal:
        return self._session.connection.journal

    @property
    def busy(self) -> bool:
        """Whether there is something to interrupt."""
        return self._runs_statement or self._command is not None or (self._holding and not self._pending)

    @property
    def _runs_statement(self) -> bool:
        """Whether there is a statement to interrupt."""
        return self._task is not None and (not self._task.done() or _was_interrupted(self._task))

    @property
    def pending(self) -> bool:
        """Whether the next statement is not to be started."""
        return self._pending

    @property
    def patient(self) -> bool:
        """False if the last statement was left running."""
        return self._interrupts < 2

    async def run(
        self,
        submission: LexedSubmission,
        context: SessionContext,
        show: ResultHandler | None = None,
        *,
        quiet: bool = False,
        batch: StatementBatch | None = None,
    ) -> None:
        """Submit a statement and pass its results to `show`, or show them; `quiet` prints no summary.

        `batch` has its results if it was sent together with others. Raises the errors of the client and of `show`, and
        Interrupted.
        """
        statement = submission.statement
        running = Running(
            statement=statement, context=context, rolls_back=self._session.transaction.rolls_back(statement)
        )
        self._session.state.last_statement_id, self._session.state.last_job = "", 0
        results = (batch or self._client).run(submission, context, self._begin(running))
        try:
            with self._session.protecting_context(statement):
                await self._wait(results, running, show, quiet=quiet)
        except StatementError as error:
            self._session.transaction.statement_ended(statement, error)
            raise
        self._session.transaction.statement_ended(statement, None)
        if batch is None:
            self._journal.flush()

    @contextlib.contextmanager
    def delaying_cancel_notice(self, seconds: float) -> Iterator[None]:
        """While inside, a cancel request is reported only if the statement keeps running for `seconds`."""
        before, self._cancel_notice_delay = self._cancel_notice_delay, seconds
        try:
            yield
        finally:
            self._cancel_notice_delay = before

    async def fetch(self, statement_id: str, context: SessionContext, show: ResultHandler | None = None) -> None:
        """Show the result of an earlier statement; wait for it if it is still running.

        Raises the same errors as run().
        """
        known = [entry.sql for entry in self._journal.find(statement_id)]
        running = Running(statement="".join(known[:1]), context=context, submitted_here=False)
        await self._wait(self._client.fetch(statement_id, context, self._begin(running)), running, show)
        self._journal.flush()

    def interrupt(self) -> bool:
        """Ctrl-C, as the module describes. False if there is nothing left to do."""
        if self._command is not None:
            return self._command.cancel() or _was_interrupted(self._command)
        if self._task is not None and self._runs_statement:
            return self._interrupt_statement(self._task)
        self.postpone()
        return self._holding

    def postpone(self) -> None:
        """Interrupt the next statement before it starts."""
        self._pending = True

    def take_pending(self) -> bool:
        """Whether Ctrl-C is pending; it is not any more."""
        pending, self._pending = self._pending, False
        return pending

    def check(self) -> None:
        """Raise Interrupted, once, if Ctrl-C was pressed earlier."""
        if self.take_pending():
            raise Interrupted("interrupted before it was run")

    async def interruptible(self, work: Coroutine[Any, Any, Given], name: str) -> Given:
        """Wait for the work of a command. Raises Interrupted if Ctrl-C stopped it."""
        if self._holding and self.take_pending():
            work.close()
            raise Interrupted(f"\\{name} was interrupted")
        before, task = self._command, asyncio.ensure_future(work)
        self._command, self._session.command_running = task, True
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            raise Interrupted(f"\\{name} was interrupted") from None
        finally:
            self._command, self._session.command_running = before, before is not None
            self._hide_progress()

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """Inside the block, Ctrl-C does not stop the running command, but what the block runs."""
        before, self._command = self._command, None
        self._session.command_running = False
        self._hide_progress()
        try:
            yield
        finally:
            self._command, self._session.command_running = before, before is not None

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Inside the block, a Ctrl-C between two waits stops the next wait of the command. It does not end the program,
        so that the command can say what it has done."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False

    @contextlib.contextmanager
    def on(self, session: Session) -> Iterator[None]:
        """Inside the block, statements are those of another session."""
        before, self._session = self._session, session
        try:
            yield
        finally:
            self._session = before

    def show_progress(self, share: float | None, message: str, hint: str = "^C stops") -> None:
        """Show the progress of the command, and what Ctrl-C does."""
        if self._session.running is None:
            self._session.running = Running(hint=hint)
            self._progress.show(self._session.running)
        self._session.running.share, self._session.running.message = share, message

    def _hide_progress(self) -> None:
        if self._session.running is not None:
            self._session.running = None
            self._progress.hide()

    def _interrupt_statement(self, task: asyncio.Task[None]) -> bool:
        """False after the third Ctrl-C."""
        if task.done():
            return True
        running = self._session.running
        self._interrupts += 1
        if self._leave_timer is not None and self._interrupts == 3:
            task.cancel()
            return True
        if running is None or self._interrupts > 2:
            return False
        if running.endless is not None and self._interrupts == 1:
            running.endless.stop()
        elif running.finished or (self._interrupts == 2 and self._cancel_requested_at is None):
            task.cancel()
        elif self._interrupts == 2:
            self._leave_soon(task)
        elif not self._client.can_cancel:
            self._say_in_wait(running, "the legacy interface cannot cancel a statement")
        elif not running.statement_id:
            # Nothing can be canceled before the service has assigned an ID, which takes moments.
            self._say_in_wait(running, "will cancel as soon as the service responds")
        else:
            self._request_cancel(running)
        return True

    def _leave_soon(self, task: asyncio.Task[None]) -> None:
        """Stop waiting, but not before a cancel request has had time to take effect."""
        since = time.monotonic() - (self._cancel_requested_at or 0.0)
        self._leave_timer = asyncio.get_running_loop().call_later(max(0.0, OUTCOME_SECONDS - since), task.cancel)

    async def _wait(
        self, results: Results, running: Running, show: ResultHandler | None, *, quiet: bool = False
    ) -> None:
        self._progress.show(running)
        work = self._show_all(results, running, show or self._result_output.show, quiet=quiet)
        self._task = asyncio.ensure_future(work)
        try:
            await self._task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            abandoned = self._abandoned(running)
            self._journal.flush()
            raise abandoned from None
        except ShellError as error:
            # One that is fetched was left running on purpose.
            if isinstance(error, WaitTimeout) and self._session.embedded and running.submitted_here:
                await self._cancel_late(running, error)
            self._record_failure(running, error)
            self._journal.flush()
            if self._interrupts and isinstance(error, StatementError):
                raise Interrupted(error.message, error.hint, error.where) from error
            raise
        finally:
            self._end(running)

    async def _cancel_late(self, running: Running, error: WaitTimeout) -> None:
        """Cancel a statement of the embedded service that took longer than --timeout, and wait for its end."""
        client, context, limit = self._client, self._session.context, f"{self._client.wait_limit or 0:g} s (--timeout)"
        state = error.where.sql_state
        if not sqlstate.running(state):
            return
        with contextlib.suppress(TimeoutError, ShellError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await client.terminate(running.query_id or running.statement_id, context)
                while sqlstate.running(state):
                    await asyncio.sleep(LOOK_SECONDS)
                    state, _ = await client.state(running.statement_id, context)
        error.where = replace(error.where, sql_state=state)
        if state == sqlstate.CANCELED:
            error.message = f"canceled after {limit}"
        elif sqlstate.running(state):
            error.message = f"not canceled yet after {limit}"
        elif not sqlstate.failed(state):
            error.message = f"the statement finished, but not within {limit}"

    def _end(self, running: Running) -> None:
        """The statement is not awaited any more."""
        self._task = None
        if self._cancel_task is not None:
            self._cancel_task.cancel()
        for timer in (self._notice_timer, self._leave_timer):
            if timer is not None:
                timer.cancel()
        running.ended = time.monotonic()
        seconds = running.ended - running.began - running.waited
        self._session.elapsed = seconds if running.elapsed is None else running.elapsed
        self._session.ended, self._session.running = running, None
        self._progress.hide()

    async def _show_all(self, results: Results, running: Running, show: ResultHandler, *, quiet: bool) -> None:
        number = -1
        try:
            async for result in results:
                running.finished = True
                running.sql_state = result.sql_state
                if running.answered is None:
                    running.answered = time.monotonic()
                number += 1
                if is_creation_result(result) and creates_object(running.statement, number):
                    result = await tag_of(result)
                if self._interrupts and result.endless is None:
                    await result.batches.aclose()
                    self._journal.record_end(result.statement_id, result.sql_state)
                    raise Interrupted(
                        "the statement finished before it could be canceled",
                        self._fetch_hint(result.statement_id, "shows its result") if result.columns else "",
                        Where(result.sql_state, result.statement_id),
                    )
                await self._show(result, running, show, quiet=quiet)
                running.finished = False
        finally:
            await results.aclose()

    async def _show(self, result: Result, running: Running, show: ResultHandler, *, quiet: bool) -> None:
        self._progress.hide()
        running.endless = result.endless
        rows, complete, size, waited_before = None, True, 0, running.waited
        shown: Summary | None = None
        if self._session.interactive or result.endless is not None or len(result.row_counts or ()) > 1:
            # The reader of the output may be killed, or busy for hours.
            self._journal.flush()
        if result.columns:
            self._front_end.note_columns(column.name for column in result.columns)
            shown = await show(result)
            rows, complete, size = shown.rows, shown.complete, shown.size
            running.waited += shown.waited
            running.size += size
            self._session.rows = rows
        elif result.changed_rows is not None:
            self._session.rows = result.changed_rows
        seconds = result.elapsed
        if seconds is None:
            seconds = time.monotonic() - running.began - running.waited
        running.elapsed = result.elapsed
        if result.endless is None:
            read = rows if complete else None
            waited = running.waited - waited_before
            self._journal.record_end(result.statement_id, result.sql_state, result.message, read, waited=waited)
        if result.sql_state == sqlstate.NOTICES:
            self._diagnostics.notice_here(result.message)
        elif sqlstate.warns(result.sql_state) and result.message:
            remedy = "; \\pset rowlimit 0 shows all" if result.limited else ""
            self._diagnostics.warn_here(result.message + remedy)
        if result.secret:
            self._diagnostics.say(f"secret, shown only once: {result.secret}")
        if result.endless is not None:
            await self._report_stream(result.endless, result, seconds, running)
        elif quiet:
            return
        else:
            summary_line = _summary(result, rows, complete, rolled_back=running.rolls_back)
            self._report_summary(result, summary_line, size, seconds, shown)

    def _report_summary(self, result: Result, summary: str, size: int, seconds: float, shown: Summary | None) -> None:
        """Report rows and time: always to a person, for a script with \\timing or -v, which adds bytes and the
        statementID.
        """
        if self._session.interactive:
            self._report_footer(result, summary, size, seconds, shown)
        elif self._diagnostics.verbose:
            summary += f", {byte_size(size)}" if size else ""
            summary += f", statement {result.statement_id}" if result.statement_id else ""
            summary += f" ({duration(seconds)})"
            self._diagnostics.say(summary)
        elif self._session.options.timing:
            self._diagnostics.say(f"{summary} ({duration(seconds)})")

    def _report_footer(self, result: Result, summary: str, size: int, seconds: float, shown: Summary | None) -> None:
        """The line below a result at the prompt."""
        look = shown.look if shown is not None else Look()
        parts = [] if look.plan else [summary]
        if look.turned and len(result.columns) > 1:
            parts.append(format_count(len(result.columns), "column"))
        if look.left_out:
            count = len(result.columns)
            parts.append(f"{count - look.left_out:,} of {count:,} columns")
        if look.shortened:
            parts.append(f"{format_count(look.shortened, 'value')} cut")
        if look.left_out or look.shortened:
            parts[-1] += " (F5 shows all)"
        if self._diagnostics.verbose or self._session.options.timing:
            parts.append(duration(seconds))
        if self._diagnostics.verbose:
            parts += [byte_size(size)] if size else []
            parts += [f"statement {result.statement_id}"] if result.statement_id else []
        if parts:
            self._diagnostics.footer((" · " if shows_unicode(os.environ) else ", ").join(parts))

    async def _report_stream(self, endless: StreamingResult, result: Result, seconds: float, running: Running) -> None:
        """Report the number of rows, and the state of the query."""
        query = endless.query_id or result.statement_id
        summary = f"{format_count(endless.rows, 'row')} in {duration(seconds)}"
        gaps = f", with {format_count(endless.gaps, 'possible gap')}" if endless.gaps else ""
        if endless.end_reason == "service":
            self._journal.record_end(result.statement_id, sqlstate.DONE, "", endless.rows)
            self._diagnostics.report(f"the stream ended: {summary}{gaps}")
            return
        unread = self._result_output.reader_left and not self._session.interactive
        if (endless.end_reason in {"max_rows", "seconds"} or unread) and running.submitted_here:
            # Nobody reads the query any more.
            try:
                async with asyncio.timeout(CANCEL_SECONDS):
                    await self._client.terminate(query, self._session.context)
                    state, _ = await self._client.state(result.statement_id, self._session.context)
                self._journal.record_end(result.statement_id, state)
                self._diagnostics.detail(f"query {query} was terminated: {summary}{gaps}")
            except (TimeoutError, ShellError) as error:
                message = error.message if isinstance(error, ShellError) else "no response"
                self._diagnostics.warn_here(f"query {query} may still be running: {message}")
            return
        fetch_hint = self._fetch_hint(result.statement_id, "shows it again")
        still_running = (
            f"the query is still running: {terminate_query(query)}; stops it{f', {fetch_hint}' if fetch_hint else ''}"
        )
        if not self._session.interactive and endless.end_reason == "stopped":
            raise Interrupted(f"interrupted after {summary}{gaps}", still_running)
        self._diagnostics.note(f"{summary}{gaps}; {still_running}", always=self._session.interactive)

    def _begin(self, running: Running) -> Observer:
        """Make this the statement that runs; returns what follows it."""
        running.hint = "^C cancels" if self._client.can_cancel else "^C stops waiting"
        self._session.running = running
        self._session.state.changed_parts.clear()
        self._interrupts, self._cancel_requested_at, self._leave_timer = 0, None, None
        # A fetched statement ran in its own context.
        adopt = self._session.adopt if running.submitted_here else _ignore
        say = self._diagnostics.wait
        return Observer(self._identified, self._named, self._progressed, adopt, say, running.timed)

    def _identified(self, statement_id: str) -> None:
        running = self._session.running
        if running is None or running.statement_id == statement_id:
            return
        first = not running.statement_id
        running.statement_id = statement_id
        self._session.state.last_statement_id, self._session.state.last_job = statement_id, 0
        if self._session.on_identified is not None:
            self._session.on_identified(statement_id)
        if running.submitted_here:
            ago = time.monotonic() - running.began
            self._journal.record_start(statement_id, running.statement, running.context, ago)
        if first and self._interrupts == 1:
            self._request_cancel(running)

    def _named(self, query_id: str) -> None:
        if (running := self._session.running) is not None:
            running.query_id = query_id
            self._journal.record_query(running.statement_id, query_id)

    def _progressed(self, share: float | None, message: str) -> None:
        if (running := self._session.running) is not None:
            running.progressed(share, message)
            self._journal.flush()

    def _request_cancel(self, running: Running) -> None:
        """Ask the service to cancel the statement while it is awaited."""
        notice = "canceling"
        if self._cancel_notice_delay:
            self._notice_timer = asyncio.get_running_loop().call_later(
                self._cancel_notice_delay, self._say_in_wait, running, notice
            )
        else:
            self._say_in_wait(running, notice)
        self._cancel_requested_at = time.monotonic()
        self._cancel_task = asyncio.ensure_future(self._cancel(running))

    def _say_in_wait(self, running: Running, text: str) -> None:
        """Say what Ctrl-C has done: in the line of the wait if there is one, because it is over soon."""
        running.hint = "^C again stops waiting"
        if not self._progress.notice(text):
            self._diagnostics.say(f"{text}; press Ctrl-C again to stop waiting")

    async def _cancel(self, running: Running) -> None:
        patience = None if self._session.interactive else CANCEL_SECONDS
        try:
            async with asyncio.timeout(patience):
                await self._client.terminate(running.query_id or running.statement_id, self._session.context)
                await asyncio.sleep(CANCEL_SECONDS)
                message = "cancellation requested; the statement is still running"
        except TimeoutError:
            message = "the service did not cancel the statement in time"
        except (StatementError, UsageError) as error:
            self._cancel_requested_at = None
            message = f"the service cannot cancel the statement: {error.message}"
        except ServiceError as error:
            self._cancel_requested_at = None
            message = f"cannot reach the service to cancel the statement: {error.message}"
        except ShellError as error:
            self._cancel_requested_at = None
            message = error.message
        if self._session.interactive:
            self._diagnostics.say(f"{message}; press Ctrl-C again to stop waiting")
        elif self._task is not None:
            running.message = message
            self._task.cancel()

    def _abandoned(self, running: Running) -> Interrupted:
        """The error for a statement that is no longer awaited."""
        if not self.patient:
            self.abandoned_at = time.monotonic()
        name = running.statement_id
        if not name:
            return Interrupted(
                "interrupted before the service responded", "the statement may be running: check LIST QUERIES"
            )
        where = Where(statement_id=name)
        fetch_hint = self._fetch_hint(name, "shows its result")
        if running.finished:
            self._journal.record_end(name, sqlstate.DONE)
            return Interrupted("interrupted; the statement had already finished", fetch_hint, where)
        if self._cancel_requested_at is not None:
            fetch_hint = self._fetch_hint(name, "shows its outcome")
            return Interrupted("stopped waiting; the cancel request is not yet confirmed", fetch_hint, where)
        return Interrupted("stopped waiting; the statement was left running", fetch_hint, where)

    def _fetch_hint(self, statement_id: str, purpose: str) -> str:
        """The command that fetches a result later, with its `purpose`; "" if no command can.

        The embedded service stops when its shell or script ends.
        """
        ends = self._session.embedded and not self._session.interactive
        if ends or not (self._client.can_refetch and statement_id):
            return ""
        if self._session.interactive:
            # An ID is known by its beginning at a prompt, whose journal has the statement.
            return f"\\fetch {short_id(statement_id)} {purpose}"
        return f"{self._session.connection.fetch_command(statement_id)} {purpose}"

    def _cancel_hint(self, statement_id: str) -> str:
        """The command that cancels a statement later."""
        if self._session.interactive:
            return f"\\cancel {short_id(statement_id)} stops it"
        return f"{self._session.connection.cancel_command(statement_id)} stops it"

    def _record_failure(self, running: Running, error: ShellError) -> None:
        state = error.where.sql_state
        if isinstance(error, WaitTimeout) and not error.hint and error.where.statement_id:
            fetch_hint = self._fetch_hint(error.where.statement_id, "shows its result")
            if fetch_hint and (not state or sqlstate.running(state)):
                runs = "is" if sqlstate.running(state) else "may be"
                error.hint = (
                    f"the statement {runs} still running\n{fetch_hint}, {self._cancel_hint(error.where.statement_id)}"
                )
        if self._in_doubt(running, error) and (
            fetch_hint := self._fetch_hint(running.statement_id, "shows its outcome")
        ):
            error.hint = f"{error.hint}\n{fetch_hint}".lstrip()
        if not running.statement_id or not state:
            return
        self._journal.record_end(running.statement_id, state, error.message)
        if not error.where.statement_id:
            error.where = replace(error.where, statement_id=running.statement_id)

    @staticmethod
    def _in_doubt(running: Running, error: ShellError) -> bool:
        """Whether a statement that writes may have run, and the service may know more later."""
        if running.finished or not running.statement_id or not running.submitted_here:
            return False
        lost = isinstance(error, ServiceError) and not isinstance(error, UnknownStatement)
        return lost and not is_repeatable(running.statement)


def _was_interrupted(task: asyncio.Task[Any]) -> bool:
    """Whether what a task waited for has ended by Ctrl-C itself, as a command that got the signal too."""
    return task.done() and not task.cancelled() and isinstance(task.exception(), Interrupted)


def _ignore(echo: ContextEcho | None) -> None:
    return None


def _summary(result: Result, rows: int | None, complete: bool, *, rolled_back: bool) -> str:
    label = f"{result.label}: " if result.label else ""
    if rows is None:
        if sqlstate.warns(result.sql_state):
            # The result's message is the warning.
            return label + ("ROLLBACK" if rolled_back else "done")
        return label + (result.message or "done")
    text = label + format_count(rows, "row")
    if result.limited and (complete or rows == result.row_count):
        # The result's message, if it has one, is a warning above.
        return text if result.message else f"{text} (stopped at the row limit)"
    if complete or rows == result.row_count:
        return text
    if result.row_count is not None:
        # All of them exist, and all were changed by a statement that writes.
        text = f"{label}{rows:,} of {format_count(result.row_count, 'row')}"
    return f"{text} read (stopped early)"
