"""The current connection, and earlier ones whose statements are still running."""

from __future__ import annotations

import asyncio

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit
from sqlshell.runtime.event_loops import start_in_background
from sqlshell.shell.connection import Connection
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.running.background import Background, Job
from sqlshell.shell.running.failures import Failures
from sqlshell.shell.session import Session, SessionState


class ConnectionManager:
    """Switches a session to another connection, and closes connections."""

    def __init__(self, session: Session, front_end: FrontEnd, diagnostics: Diagnostics, failures: Failures) -> None:
        self._session = session
        self._front_end = front_end
        self._diagnostics = diagnostics
        self._failures = failures
        self._closing_tasks: list[asyncio.Task[None]] = []
        self._closing: list[Background] = []

    @property
    def ending_jobs(self) -> list[Job]:
        """The running background statements of services in this process, which end with the shell."""
        here = [self._session.state.background] if self._session.embedded else []
        return [job for background in (*self._closing, *here) for job in background.running_jobs]

    async def wait_for_ending_jobs(self) -> None:
        """Wait until none of `ending_jobs` is running."""
        if self._session.embedded:
            await self._session.state.background.wait_for_all()
        if self._closing_tasks:
            await asyncio.wait(self._closing_tasks)

    async def use(self, connection: Connection) -> None:
        """Use this connection from now on, and leave the previous one.

        Background statements keep running. A remote service is told that their sessions are no longer used; a service
        in this process is closed, and releases its database file, when the last of them has finished.
        """
        session = self._session
        self.warn_of_transaction()
        new = SessionState.on(connection, self._front_end.announce)
        old, session.state = session.state, new
        session.options.prompt_color = connection.prompt_color
        session.secret_filter.names = (*session.secret_filter.names, *connection.secret_names)
        self._front_end.connected(session)
        old.background.leave(old.connection.label)
        running = old.background.running_jobs
        if old.connection.embedded and running:
            for job in running:
                self._note(f"[{job.number}] is still running; it ends with this shell")
            self._closing.append(old.background)
            self._closing_tasks.append(start_in_background(_close_when_finished(old)))
            return
        try:
            for job in await old.background.wait_for_ids():
                fetched = old.connection.fetch_command(job.statement_id)
                self._note(f"[{job.number}] is still running; fetch its result with: {fetched}")
        finally:
            await _release(old)

    async def finish(self) -> list[Job]:
        """The end of scripts. Returns the jobs that keep running at the service and have an ID.

        Waits for background statements of a service in this process, because it stops with the shell.
        """
        if self._failures.exit != Exit.INTERRUPTED:
            await self.wait_for_ending_jobs()
        self.warn_of_ending_jobs()
        self.warn_of_transaction()
        return [] if self._session.embedded else await self._session.state.background.wait_for_ids()

    def warn_of_ending_jobs(self) -> None:
        """Warn that background statements of services in this process end with it."""
        for job in self.ending_jobs:
            self._diagnostics.warn(f"[{job.number}] was canceled, because the embedded service ends with this shell")

    async def aclose(self) -> None:
        """Leave: background statements of a remote service keep running. The caller releases the last connection."""
        for task in self._closing_tasks:
            task.cancel()
        await asyncio.gather(*self._closing_tasks, return_exceptions=True)
        await _close(self._session.state)

    def warn_of_transaction(self) -> None:
        """Warn that an open transaction is left, unless its state is unknown."""
        connection, transaction = self._session.connection, self._session.transaction
        # At the prompt the exit code is that of any earlier failure, also of one on another connection.
        known = self._session.interactive or self._failures.exit in {Exit.DONE, Exit.STATEMENT, Exit.USAGE}
        if not transaction.state or not known:
            return
        if connection.own_session or connection.embedded:
            message = "the open transaction was not committed and is rolled back"
        else:
            message = "the open transaction was not committed; it stays open in the joined session"
        self._diagnostics.warn(message, transaction.begun_at)

    def _note(self, text: str) -> None:
        self._diagnostics.note(text, always=self._session.interactive)


async def _close_when_finished(state: SessionState) -> None:
    try:
        await state.background.wait_for_all()
    finally:
        await _release(state)


async def _release(state: SessionState) -> None:
    await _close(state)
    await asyncio.to_thread(state.connection.release)


async def _close(state: SessionState) -> None:
    """Stop waiting for running statements, and close the connection."""
    connection = state.connection
    await state.background.aclose()
    await state.cleanup.aclose()
    connection.journal.close()
    if not connection.embedded:
        # A service in this process stops with its connection, and with it its sessions.
        own = [connection.own_session] if connection.own_session else []
        await connection.client.end_sessions([*own, *state.background.sessions])
    await connection.service.aclose()
