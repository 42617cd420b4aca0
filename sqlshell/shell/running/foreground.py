"""One statement that is waited for: its progress, its results, its place in the journal, and Ctrl-C.

The first Ctrl-C asks the service to end the statement and goes on waiting for what becomes of it; the second leaves it
running there; what is said is what the service said.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Coroutine

from msgspec.structs import replace

from sqlshell.client.statements.client import Client, Observer, StatementBatch, Submission
from sqlshell.context import SessionContext
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Interrupted, ServiceError, ShellError, StatementError, UsageError, WaitTimeout, Where
from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.output.copy import Consumer
from sqlshell.result import Endless, Result
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.results.artifacts import looks_made, makes, tag_of
from sqlshell.shell.results.humanize import amount, duration
from sqlshell.shell.results.outlet import Outlet
from sqlshell.shell.running.offers import fetching
from sqlshell.shell.session import Running, Session

_COUNTED = re.compile(r"[A-Z ]+ (\d+)")
"""What a service says of rows that were changed: `INSERT 5`."""

ENDING_SECONDS = 10.0
"""How long a script that was interrupted waits for the service to end its statement."""


LISTENS = 16
"""Results at hand that are shown before an interruption is listened for."""


Results = AsyncGenerator[Result, None]


class Foreground:
    """Runs statements of a session one after another, on the connection that it has."""

    def __init__(self, session: Session, outlet: Outlet, front_end: FrontEnd, diagnostics: Diagnostics) -> None:
        self._session = session
        self._outlet = outlet
        self._front_end = front_end
        self._progress = front_end.progress
        self._diagnostics = diagnostics
        self._task: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._saying: asyncio.TimerHandle | None = None
        self._at_hand = False
        self._shows = 0
        self._presses = 0
        self.says_after = 0.0
        """Seconds from an interruption until a person is told that the service is asked to end the statement."""
        self.left_at = 0.0
        """When a statement was last left running (time.monotonic)."""

    @property
    def _client(self) -> Client:
        return self._session.connection.client

    @property
    def _journal(self) -> Journal:
        return self._session.connection.journal

    @property
    def busy(self) -> bool:
        """Whether there is a statement to interrupt."""
        return self._at_hand or (self._task is not None and not self._task.done())

    @property
    def patient(self) -> bool:
        """Whether nobody left the last statement running."""
        return self._presses < 2

    async def run(
        self,
        asked: Submission,
        context: SessionContext,
        show: Consumer | None = None,
        *,
        quiet: bool = False,
        sent: StatementBatch | None = None,
    ) -> None:
        """Submit a statement and hand its results to `show`, or to the outlet; `quiet` says no word of them.

        `sent` has its results where it was sent together with others. Raises what the client and `show` raise, and
        Interrupted.
        """

        def results(watch: Observer) -> Results:
            return (sent or self._client).run(asked, context, watch)

        at_hand = sent is not None and sent.at_hand
        try:
            with self._session.asking(asked.sql):
                await self._wait(results, asked.sql, context, show or self._outlet.show, quiet=quiet, at_hand=at_hand)
        except StatementError as error:
            self._session.transaction.ended(asked.sql, error)
            raise
        self._session.transaction.ended(asked.sql, None)
        if sent is None:
            self._journal.flush()

    async def fetch(self, statement_id: str, context: SessionContext, show: Consumer | None = None) -> None:
        """Show the result of an earlier statement, waiting for it where it still runs. Raises as run()."""

        def results(watch: Observer) -> Results:
            return self._client.fetch(statement_id, context, watch)

        known = [entry.sql for entry in self._journal.find(statement_id)]
        await self._wait(results, "", context, show or self._outlet.show, ran="".join(known[:1]))
        self._journal.flush()

    def interrupt(self) -> bool:
        """Ctrl-C: see above. False if nothing runs, or all has been tried."""
        if self._at_hand:
            self._presses += 1
            return True
        if self._task is None or not self.busy:
            return False
        running = self._session.running
        self._presses += 1
        if running is None or self._presses > 2:
            return False
        self._progress.hide()
        if running.endless is not None and self._presses == 1:
            running.endless.stop()
        elif running.finished or self._presses == 2:
            self._task.cancel()
        elif not self._client.can_cancel:
            self._diagnostics.say("the legacy interface cannot cancel a statement; press Ctrl-C again to stop waiting")
        elif not running.statement_id:
            # Nothing can be ended before the service has named it, which it does within moments.
            self._diagnostics.say("will cancel as soon as the service responds; press Ctrl-C again to stop waiting")
        else:
            self._ask(running)
        return True

    async def _wait(
        self,
        results: Callable[[Observer], Results],
        sql: str,
        context: SessionContext,
        show: Consumer,
        *,
        quiet: bool = False,
        at_hand: bool = False,
        ran: str = "",
    ) -> None:
        running = self._session.running = Running(own=bool(sql), undoes=self._session.transaction.undoes(sql))
        self._session.state.changed.clear()
        if sql:
            self._session.state.last_id, self._session.state.last_job = "", 0
        self._presses = 0
        self._progress.show(running)
        given = results(self._watch(running, sql, context))
        work = self._each(given, running, show, sql or ran, quiet=quiet)
        self._at_hand = at_hand
        if not at_hand:
            self._diagnostics.settle()
        self._session.more = at_hand
        if not at_hand:
            self._task = asyncio.ensure_future(work)
        try:
            await (self._task or self._shown(work))
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            left = self._left(running)
            self._journal.flush()
            raise left from None
        except ShellError as error:
            self._remember(running, error)
            self._journal.flush()
            if self._presses and isinstance(error, StatementError):
                raise Interrupted(error.message, error.hint, error.where) from error
            raise
        finally:
            self._task, self._at_hand = None, False
            if self._asking is not None:
                self._asking.cancel()
                self._asking = None
            if self._saying is not None:
                self._saying.cancel()
                self._saying = None
            seconds = time.monotonic() - running.began - running.waited
            self._session.elapsed = seconds if running.elapsed is None else running.elapsed
            self._session.running = None
            self._progress.hide()

    async def _shown(self, work: Coroutine[None, None, None]) -> None:
        """Show what is at hand, which takes no task of its own; now and then an interruption is listened for."""
        await work
        self._shows += 1
        if self._shows % LISTENS == 0:
            await asyncio.sleep(0)
            if self._presses:
                raise Interrupted("interrupted between two statements")

    async def _each(self, results: Results, running: Running, show: Consumer, sql: str, *, quiet: bool) -> None:
        number = -1
        try:
            async for result in results:
                running.finished = True
                number += 1
                if looks_made(result) and makes(sql, number):
                    result = await tag_of(result)
                if self._presses and result.endless is None:
                    await result.batches.aclose()
                    self._journal.ended(result.statement_id, result.sql_state)
                    raise Interrupted(
                        "the statement finished before it could be cancelled",
                        self._offer(result.statement_id, "shows its result") if result.columns else "",
                        Where(result.sql_state, result.statement_id),
                    )
                await self._show(result, running, show, quiet=quiet)
                running.finished = False
        finally:
            await results.aclose()

    async def _show(self, result: Result, running: Running, show: Consumer, *, quiet: bool) -> None:
        self._progress.hide()
        running.endless = result.endless
        rows, complete, size = None, True, 0
        if self._session.interactive or result.endless is not None or len(result.row_counts or ()) > 1:
            # Its reader may be killed, or busy for hours.
            self._journal.flush()
        if result.columns:
            self._front_end.saw(column.name for column in result.columns)
            summary = await show(result)
            rows, complete, size = summary.rows, summary.complete, summary.size
            running.waited += summary.waited
            self._session.rows = rows
        elif counted := _COUNTED.fullmatch(result.message):
            self._session.rows = int(counted[1])
        seconds = result.elapsed
        if seconds is None:
            seconds = time.monotonic() - running.began - running.waited
        running.elapsed = result.elapsed
        if result.endless is None:
            self._journal.ended(result.statement_id, result.sql_state, result.message, rows if complete else None)
        if sqlstate.warns(result.sql_state) and result.message:
            remedy = "; \\pset rowlimit 0 shows all" if result.sql_state == sqlstate.ROW_LIMIT else ""
            self._diagnostics.warn_here(result.message + remedy)
        if result.secret:
            self._diagnostics.say(f"secret, shown only once: {result.secret}")
        if result.endless is not None:
            await self._after_endless(result.endless, result, seconds, own=running.own)
        elif quiet:
            return
        else:
            self._tell(result, rows, complete, size, seconds, undone=running.undoes)

    def _tell(
        self, result: Result, rows: int | None, complete: bool, size: int, seconds: float, *, undone: bool
    ) -> None:
        """Rows and time: to a person always, of a script with \\timing or -v, which adds bytes and the statementID."""
        said = _said(result, rows, complete, undone=undone)
        if self._diagnostics.verbose:
            said += f", {amount(size)}" if size else ""
            said += f", statement {result.statement_id}" if result.statement_id else ""
            said += f" ({duration(seconds)})"
        elif self._session.options.timing:
            said += f" ({duration(seconds)})"
        elif not self._session.interactive:
            return
        self._diagnostics.say(said)

    async def _after_endless(self, endless: Endless, result: Result, seconds: float, *, own: bool) -> None:
        """Say how many rows came, and what becomes of the query."""
        query = endless.query_id or result.statement_id
        told = f"{endless.rows:,} rows in {duration(seconds)}"
        gaps = f", with {endless.gaps} possible gap{'s' if endless.gaps > 1 else ''}" if endless.gaps else ""
        if endless.ended == "service":
            self._journal.ended(result.statement_id, sqlstate.DONE, "", endless.rows)
            self._diagnostics.note(f"the stream ended: {told}{gaps}")
            return
        if endless.ended in {"max_rows", "seconds"} and own:
            # It was asked for with its end: nobody is left to read it.
            try:
                async with asyncio.timeout(ENDING_SECONDS):
                    await self._client.terminate(query, self._session.context)
                    state, _ = await self._client.state(result.statement_id, self._session.context)
                self._journal.ended(result.statement_id, state)
                self._diagnostics.detail(f"query {query} was terminated: {told}{gaps}")
            except (TimeoutError, ShellError) as error:
                said = error.message if isinstance(error, ShellError) else "no response"
                self._diagnostics.warn_here(f"query {query} may still be running: {said}")
            return
        again = self._offer(result.statement_id, "shows it again")
        goes_on = f"the query is still running: TERMINATE QUERY {query}; stops it{f', {again}' if again else ''}"
        if not self._session.interactive and endless.ended == "stopped":
            raise Interrupted(f"interrupted after {told}{gaps}", goes_on)
        tell = self._diagnostics.say if self._session.interactive else self._diagnostics.note
        tell(f"{told}{gaps}; {goes_on}")

    def _watch(self, running: Running, sql: str, context: SessionContext) -> Observer:
        def identified(statement_id: str) -> None:
            if running.statement_id == statement_id:
                return
            first = not running.statement_id
            running.statement_id = statement_id
            self._session.state.last_id, self._session.state.last_job = statement_id, 0
            if sql:
                self._journal.began(statement_id, sql, context, time.monotonic() - running.began)
            if first and self._presses == 1:
                self._ask(running)

        def query(query_id: str) -> None:
            running.query_id = query_id
            self._journal.query(running.statement_id, query_id)

        def progressed(share: float | None, message: str) -> None:
            running.share, running.message = share, message
            self._journal.flush()

        def say(text: str) -> None:
            self._progress.hide()
            self._diagnostics.note(text)
            self._progress.show(running)

        def adopt(echo: ContextEcho | None) -> None:
            # What was fetched ran in a context of its own.
            if sql:
                self._session.adopt(echo)

        return Observer(identified, query, progressed, adopt, say)

    def _ask(self, running: Running) -> None:
        """Ask the service to end the statement, while it is still waited for."""
        says = "cancelling the statement; press Ctrl-C again to stop waiting"
        if self.says_after:
            self._saying = asyncio.get_running_loop().call_later(self.says_after, self._diagnostics.say, says)
        else:
            self._diagnostics.say(says)
        self._asking = asyncio.ensure_future(self._end(running))

    async def _end(self, running: Running) -> None:
        patience = None if self._session.interactive else ENDING_SECONDS
        try:
            async with asyncio.timeout(patience):
                await self._client.terminate(running.query_id or running.statement_id, self._session.context)
                await asyncio.sleep(ENDING_SECONDS)
                said = "cancellation requested; the statement is still running"
        except TimeoutError:
            said = "the service did not cancel it in time"
        except (StatementError, UsageError) as error:
            said = f"the service cannot cancel it: {error.message}"
        except ServiceError as error:
            said = f"cannot reach the service to cancel it: {error.message}"
        except ShellError as error:
            said = error.message
        if self._session.interactive:
            self._diagnostics.say(f"{said}; press Ctrl-C again to stop waiting")
        elif self._task is not None:
            running.message = said
            self._task.cancel()

    def _left(self, running: Running) -> Interrupted:
        """The error for a statement that is no longer waited for."""
        if not self.patient:
            self.left_at = time.monotonic()
        name = running.statement_id
        if not name:
            return Interrupted("interrupted before the service answered", "the statement may be running")
        where = Where(statement_id=name)
        brings = self._offer(name, "shows its result")
        if running.finished:
            self._journal.ended(name, sqlstate.DONE)
            return Interrupted("interrupted; the statement had already finished", brings, where)
        return Interrupted("stopped waiting; the statement was left running", brings, where)

    def _offer(self, statement_id: str, does: str) -> str:
        return fetching(self._session, statement_id, can_refetch=self._client.can_refetch, does=does)

    def _remember(self, running: Running, error: ShellError) -> None:
        state = error.where.sql_state
        if isinstance(error, WaitTimeout) and not error.hint and error.where.statement_id:
            brings = self._offer(error.where.statement_id, "shows its result")
            error.hint = f"it is still running; {brings}" if brings else ""
        if not running.statement_id or not state:
            return
        self._journal.ended(running.statement_id, state, error.message)
        if not error.where.statement_id:
            error.where = replace(error.where, statement_id=running.statement_id)


def _said(result: Result, rows: int | None, complete: bool, *, undone: bool) -> str:
    label = f"{result.label}: " if result.label else ""
    if rows is None:
        if sqlstate.warns(result.sql_state):
            # Its message is the warning.
            return label + ("ROLLBACK" if undone else "done")
        return label + (result.message or "done")
    if not complete:
        return f"{label}{rows:,} rows read (stopped early)"
    return f"{label}{rows:,} row{'' if rows == 1 else 's'}"
