"""Statements that run while the prompt is free: submitted, waited for, announced at their end.

Each has a session of its own at the service, for a session's statements run one after another: temporary objects and
transactions of the shell's session are not seen there.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from msgspec import Struct, field
from msgspec.structs import replace

from sqlshell.client.statements.client import Client, Observer, Submission
from sqlshell.client.statements.polling import new_session_id
from sqlshell.context import SessionContext
from sqlshell.errors import ShellError, UnknownStatement, UsageError, WaitTimeout, Where
from sqlshell.interface import sqlstate
from sqlshell.runtime.background_tasks import start_in_background
from sqlshell.runtime.bugs import bug_of
from sqlshell.shell.records.journal import Entry, Journal
from sqlshell.shell.results.humanize import duration, one_line

IDENTIFIED_SECONDS = 60.0
"""How long the end of a script waits for the service to name a statement that was just sent."""

LONGEST_REASON = 200
"""Characters of an error that the end of a statement in the background shows."""
LOOKED_UP = 20
"""Statements of earlier shells that are asked for at once."""


class Job(Struct):
    """A statement in the background; `number` is the shell's own."""

    number: int
    sql: str
    session_id: str
    statement_id: str = ""
    began: float = field(default_factory=time.monotonic)
    named: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    error: ShellError | None = None

    @property
    def running(self) -> bool:
        return self.task is not None and not self.task.done()


class Background:
    """The jobs on one connection. `announce` tells the person, also while a line is being typed."""

    def __init__(self, client: Client, journal: Journal, announce: Callable[[str], None]) -> None:
        self._client = client
        self._journal = journal
        self._announce = announce
        self.jobs: list[Job] = []
        self.left = ""
        """The label of the connection once the shell is connected elsewhere: no command reaches the jobs then."""

    @property
    def sessions(self) -> list[str]:
        """The sessions at the service that the jobs have."""
        return [job.session_id for job in self.jobs]

    @property
    def running(self) -> int:
        """How many run."""
        return len(self.jobs_running)

    @property
    def jobs_running(self) -> list[Job]:
        return [job for job in self.jobs if job.running]

    def start(self, asked: Submission, context: SessionContext) -> Job:
        """Submit a statement without waiting for it."""
        context = replace(context, session_id=new_session_id())
        job = Job(len(self.jobs) + 1, asked.sql, context.session_id)
        job.task = start_in_background(self._follow(job, asked, context))
        self.jobs.append(job)
        return job

    async def named(self, seconds: float = IDENTIFIED_SECONDS) -> list[Job]:
        """Until the service has named every job, or it failed; those that still run."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for job in self.jobs:
                    await job.named.wait()
        return self.jobs_running

    async def id_of(self, number: int) -> str:
        """The statementID of a job, once the service has named it. Raises UsageError, or the error that ended it."""
        job = next((job for job in self.jobs if job.number == number), None)
        if job is None:
            raise UsageError(f"no such job: [{number}]", "\\jobs lists the jobs")
        await job.named.wait()
        if not job.statement_id:
            raise job.error or UsageError(
                f"[{number}] has no statement ID", "its request may not have reached the service"
            )
        return job.statement_id

    async def finished(self) -> None:
        """Until none runs."""
        for job in self.jobs:
            if job.task is not None:
                await asyncio.wait([job.task])

    async def aclose(self) -> None:
        """Stop waiting; the statements go on at the service."""
        tasks = [job.task for job in self.jobs if job.task is not None and not job.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def wait(self, statement_id: str, context: SessionContext) -> tuple[str, str]:
        """Until a statement has ended: its sqlState, and what the service says. Raises ShellError, WaitTimeout."""
        wait, began, limit = 0.05, time.monotonic(), self._client.wait_limit
        while True:
            state, said = await self._client.state(statement_id, context)
            if not sqlstate.running(state):
                self._journal.ended(statement_id, state, said)
                return state, said
            if limit is not None and time.monotonic() - began >= limit:
                hint = f"it is still running; use \\wait {statement_id} to continue waiting"
                where = Where(state, statement_id)
                raise WaitTimeout(f"the statement is still running after {limit:g} s", hint, where)
            await asyncio.sleep(wait)
            wait = min(wait * 1.3, 2.0)

    async def cancel(self, statement_id: str, query_id: str, context: SessionContext) -> tuple[str, str]:
        """Ask the service to end a statement: the sqlState that it has then. Raises ShellError."""
        await self._client.terminate(query_id or statement_id, context)
        state, said = await self._client.state(statement_id, context)
        self._journal.ended(statement_id, state, said)
        return state, said

    async def refresh(self, entries: list[Entry], context: SessionContext) -> None:
        """Ask how statements stand that were running when the journal last heard of them."""
        followed = {job.statement_id for job in self.jobs if job.running}
        asked = [item for item in entries if item.running and self._journal.here(item) and item.id not in followed]

        async def look(entry: Entry) -> None:
            try:
                state, said = await self._client.state(entry.id, context)
            except UnknownStatement:
                self._journal.ended(entry.id, sqlstate.UNDEFINED, "the service no longer has the statement")
                return
            except ShellError:
                return
            if not sqlstate.running(state):
                self._journal.ended(entry.id, state, said)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.gather(*(look(entry) for entry in asked[:LOOKED_UP]))

    async def _follow(self, job: Job, asked: Submission, context: SessionContext) -> None:
        def identified(statement_id: str) -> None:
            if not job.statement_id:
                self._journal.began(statement_id, job.sql, context, time.monotonic() - job.began)
                self._journal.flush()
            job.statement_id = job.statement_id or statement_id
            job.named.set()

        watch = Observer(
            statement_id=identified, query_id=lambda query_id: self._journal.query(job.statement_id, query_id)
        )
        results = self._client.run(asked, context, watch)
        text = one_line(job.sql, 40)
        try:
            rows: int | None = None
            async for result in results:
                endless = result.endless is not None
                await result.batches.aclose()
                if endless:
                    self._announce(f"{self._named(job)} is streaming: {text}{self._fetch(job, 'shows the stream')}")
                    return
                rows = result.row_count if result.columns else None
                self._journal.ended(result.statement_id, result.sql_state, result.message)
            took = duration(time.monotonic() - job.began)
            many = f"{rows:,} row{'' if rows == 1 else 's'}, " if rows is not None else ""
            fetch = self._fetch(job) if rows is not None else ""
            self._announce(f"{self._named(job)} finished ({many}{took}): {text}{fetch}")
        except Exception as unexpected:
            error = unexpected if isinstance(unexpected, ShellError) else bug_of(unexpected, self._named(job))
            job.error = error
            if job.statement_id and error.where.sql_state:
                self._journal.ended(job.statement_id, error.where.sql_state, error.message)
            ended = "was cancelled" if error.where.sql_state == sqlstate.CANCELLED else "failed"
            state = f" ({error.where.sql_state})" if error.where.sql_state else ""
            self._announce(f"{self._named(job)} {ended}{state}: {text}: {one_line(error.message, LONGEST_REASON)}")
        finally:
            self._journal.flush()
            job.named.set()
            await results.aclose()

    def _named(self, job: Job) -> str:
        return f"{self.left} [{job.number}]".lstrip()

    def _fetch(self, job: Job, does: str = "") -> str:
        """The command that has its result, where there is one."""
        if self.left or not (self._client.can_refetch or does):
            return ""
        return f"; \\fetch {job.statement_id} {does}".rstrip()


def chosen(journal: Journal, start: str) -> Entry | None:
    """The journal's statement whose id begins so; None where it has none. Raises UsageError for several."""
    found = journal.find(start)
    if len({entry.id for entry in found}) > 1:
        ids = ", ".join(entry.id[:13] for entry in found[:4])
        raise UsageError(f"several statement ids begin with {start}: {ids}", "use more characters of the id")
    return found[0] if found else None
