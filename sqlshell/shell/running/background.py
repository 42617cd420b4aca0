"""Background statements: submitted, awaited, and announced when they finish.

Each has a separate session at the service, because statements of a session run one after another: temporary objects and
transactions of the shell's session are not visible in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from msgspec import field

from sqlshell.client.statements.client import Client, Observer
from sqlshell.client.statements.polling import new_session_id
from sqlshell.client.statements.protocol import poll_wait
from sqlshell.context import SessionContext
from sqlshell.errors import ShellError, UnknownStatement, UsageError, WaitTimeout, Where
from sqlshell.interface import sqlstate
from sqlshell.runtime.bugs import bug_of
from sqlshell.runtime.event_loops import start_in_background
from sqlshell.shell.records.journal import Journal, JournalEntry
from sqlshell.shell.running.statement import LexedSubmission, Running, outcome_unknown
from sqlshell.text import duration, format_count, one_line

IDENTIFIED_SECONDS = 60.0
"""How long the end of a script waits, in seconds, until the service has assigned an ID to a statement that was just
sent.
"""

LONGEST_REASON = 200
"""Maximum characters of an error in the notice about a background statement."""
MAX_LOOKUPS = 20
"""Maximum simultaneous lookups of statements of earlier shells."""


class Job(Running):
    """A background statement; `number` is assigned by the shell."""

    number: int = 0
    sql_state: str = sqlstate.RUNNING
    identified: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.task is not None and not self.task.done()


class Background:
    """The jobs of one connection. `announce` prints a message, also while a line is being typed."""

    def __init__(self, client: Client, journal: Journal, announce: Callable[[str], None]) -> None:
        self._client = client
        self._journal = journal
        self._announce = announce
        self.jobs: list[Job] = []
        self._former_label = ""

    @property
    def sessions(self) -> list[str]:
        """The sessions of the jobs at the service."""
        return [job.context.session_id for job in self.jobs]

    @property
    def running_count(self) -> int:
        """The number of running jobs."""
        return len(self.running_jobs)

    @property
    def running_jobs(self) -> list[Job]:
        return [job for job in self.jobs if job.running]

    def leave(self, label: str) -> None:
        """The shell connects elsewhere: no command reaches the jobs any more, and messages name the connection."""
        self._former_label = label

    def start(self, submission: LexedSubmission, context: SessionContext, place: tuple[str, int] = ("", 0)) -> Job:
        """Submit a statement that stands in that place, without waiting for it."""
        context = context.in_session(new_session_id())
        job = Job(statement=submission.statement, context=context, place=place, number=len(self.jobs) + 1)
        job.task = start_in_background(self._follow(job, submission))
        self.jobs.append(job)
        return job

    async def wait_for_ids(self, seconds: float = IDENTIFIED_SECONDS) -> list[Job]:
        """Wait until every job has an ID or has failed; returns those that are still running."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for job in self.jobs:
                    await job.identified.wait()
        return self.running_jobs

    async def id_of(self, number: int) -> str:
        """The statementID of a job when it is known. Raises UsageError, or the error of the job."""
        job = next((job for job in self.jobs if job.number == number), None)
        if job is None:
            raise UsageError(f"no background statement [{number}]", "\\jobs lists them")
        await job.identified.wait()
        if not job.statement_id:
            raise job.error or UsageError(
                f"[{number}] has no statement ID", "the request may not have reached the service: check LIST QUERIES"
            )
        return job.statement_id

    async def wait_for_all(self) -> None:
        """Wait until no job is running."""
        for job in self.jobs:
            if job.task is not None:
                await asyncio.wait([job.task])

    async def aclose(self) -> None:
        """Stop waiting; the statements keep running at the service."""
        tasks = [job.task for job in self.jobs if job.task is not None and not job.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def wait(
        self, statement_id: str, context: SessionContext, waiting: Callable[[], None] = lambda: None
    ) -> tuple[str, str]:
        """Wait until a statement has finished; returns its sqlState and message. `waiting` is called while it runs.

        Raises ShellError, WaitTimeout.
        """
        began, limit = time.monotonic(), self._client.wait_limit
        while True:
            state, message = await self._client.state(statement_id, context)
            if not sqlstate.running(state):
                self._journal.record_end(statement_id, state, message)
                return state, message
            waited = time.monotonic() - began
            if limit is not None and waited >= limit:
                hint = f"the statement is still running\n{_goes_on(statement_id)}"
                raise WaitTimeout(f"the statement has not ended after {waited:.1f} s", hint, Where(state, statement_id))
            waiting()
            await asyncio.sleep(poll_wait(waited))

    async def cancel(self, statement_id: str, query_id: str, context: SessionContext) -> tuple[str, str]:
        """Ask the service to cancel a statement; returns its sqlState. Raises ShellError."""
        await self._client.terminate(query_id or statement_id, context)
        state, message = await self._client.state(statement_id, context)
        self._journal.record_end(statement_id, state, message)
        return state, message

    async def refresh(self, entries: list[JournalEntry], context: SessionContext) -> None:
        """Look up statements that were last recorded as running."""
        followed = {job.statement_id for job in self.jobs if job.running}
        outdated = [
            item for item in entries if item.running and self._journal.is_here(item) and item.id not in followed
        ]

        async def look(entry: JournalEntry) -> None:
            try:
                state, message = await self._client.state(entry.id, context)
            except UnknownStatement:
                self._journal.record_state(entry.id, sqlstate.UNDEFINED, "the service no longer has the statement")
                return
            except ShellError:
                return
            if not sqlstate.running(state):
                self._journal.record_state(entry.id, state, message)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.gather(*(look(entry) for entry in outdated[:MAX_LOOKUPS]))

    async def _follow(self, job: Job, submission: LexedSubmission) -> None:
        def identified(statement_id: str) -> None:
            if not job.statement_id:
                self._journal.record_start(statement_id, job.statement, job.context, time.monotonic() - job.began)
                self._journal.flush()
            job.statement_id = job.statement_id or statement_id
            job.identified.set()

        watch = Observer(
            statement_id=identified,
            query_id=lambda query_id: self._journal.record_query(job.statement_id, query_id),
            timing=job.timed,
        )
        results = self._client.run(submission, job.context, watch)
        text = one_line(submission.sql, 40)
        try:
            rows: int | None = None
            async for result in results:
                endless = result.endless is not None
                await result.batches.aclose()
                job.sql_state, job.answered = result.sql_state, time.monotonic()
                if endless:
                    self._announce(
                        f"{self._job_name(job)} is streaming: {text}{self._fetch_hint(job, 'shows the stream')}"
                    )
                    return
                rows = result.row_count if result.columns else None
                job.rows = rows if rows is not None else result.changed_rows
                self._journal.record_end(result.statement_id, result.sql_state, result.message, rows)
            took = duration(time.monotonic() - job.began)
            many = f"{format_count(rows, 'row')}, " if rows is not None else ""
            fetch = self._fetch_hint(job) if rows is not None else ""
            self._announce(f"{self._job_name(job)} finished ({many}{took}): {text}{fetch}")
        except Exception as unexpected:
            error = unexpected if isinstance(unexpected, ShellError) else bug_of(unexpected, self._job_name(job))
            job.error = error
            if job.statement_id and error.where.sql_state:
                self._journal.record_end(job.statement_id, error.where.sql_state, error.message)
            ended = "was canceled" if error.where.sql_state == sqlstate.CANCELED else "failed"
            then = ""
            if isinstance(error, WaitTimeout) and sqlstate.running(error.where.sql_state):
                ended = "is still running"
                then = "" if self._former_label else f"; {_goes_on(job.statement_id)}"
            elif outcome_unknown(error, arrived=bool(job.statement_id)):
                known = (
                    f"; use \\wait {job.statement_id} to ask the service"
                    if job.statement_id and not self._former_label
                    else ""
                )
                ended = f"was lost; its outcome is unknown{known}"
            state = f" ({error.where.sql_state})" if error.where.sql_state else ""
            reason = one_line(error.message, LONGEST_REASON)
            self._announce(f"{self._job_name(job)} {ended}{state}: {text}: {reason}{then}")
        finally:
            job.ended = time.monotonic()
            self._journal.flush()
            job.identified.set()
            await results.aclose()

    def _job_name(self, job: Job) -> str:
        return f"{self._former_label} [{job.number}]".lstrip()

    def _fetch_hint(self, job: Job, purpose: str = "") -> str:
        """The command that fetches its result, if there is one."""
        if self._former_label or not (self._client.can_refetch or purpose):
            return ""
        return f"; \\fetch {job.number} {purpose}".rstrip()


def _goes_on(statement_id: str) -> str:
    return f"\\wait {statement_id} waits longer, \\cancel {statement_id} stops it"


def find_entry(journal: Journal, start: str) -> JournalEntry | None:
    """The journal's statement whose ID has this prefix; None if there is none. Raises UsageError if
    there are several.
    """
    entries = journal.find(start)
    if len({entry.id for entry in entries}) > 1:
        ids = ", ".join(entry.id[:13] for entry in entries[:4])
        raise UsageError(f"several statement IDs begin with {start}: {ids}", "use more characters of the ID")
    return entries[0] if entries else None
