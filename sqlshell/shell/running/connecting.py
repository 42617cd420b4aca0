"""The connection in use, and those that the shell has left while statements of them still run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit
from sqlshell.runtime.background_tasks import start_in_background
from sqlshell.shell.connection import Connection
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.running.background import Job
from sqlshell.shell.session import Session, SessionState


class Connecting:
    """Moves a session to another connection, and closes connections."""

    def __init__(
        self, session: Session, front_end: FrontEnd, diagnostics: Diagnostics, exit_code: Callable[[], Exit]
    ) -> None:
        self._session = session
        self._front_end = front_end
        self._diagnostics = diagnostics
        self._exit_code = exit_code
        self._leaving: list[asyncio.Task[None]] = []

    async def use(self, connection: Connection) -> None:
        """Run statements on this connection from now on, and leave the one before.

        Statements in the background go on: a service elsewhere is only told that nobody returns to their sessions; one
        in this process is closed, and releases its database file, when the last of them has finished.
        """
        session = self._session
        self.warn_of_transaction()
        new = SessionState.on(connection, self._front_end.announce)
        old, session.state = session.state, new
        session.options.color = connection.color
        session.keeping.names = (*session.keeping.names, *connection.secret_names)
        self._front_end.connected(session)
        old.background.left = old.connection.label
        running = old.background.jobs_running
        if old.connection.embedded and running:
            for job in running:
                self._note(f"[{job.number}] is still running; it ends with this shell")
            self._leaving.append(start_in_background(_close_when_finished(old)))
            return
        try:
            for job in await old.background.named():
                self._note(f"[{job.number}] is still running; fetch its result with: sqlshell fetch {job.statement_id}")
        finally:
            await _release(old)

    async def finish(self) -> list[Job]:
        """The end of scripts. The jobs that still run then, each named by its service.

        Statements in the background of a service in this process are waited for, because it ends with the shell.
        """
        session = self._session
        if self._exit_code() != Exit.INTERRUPTED:
            if session.embedded:
                await session.state.background.finished()
            if self._leaving:
                await asyncio.wait(self._leaving)
        self.warn_of_transaction()
        return await session.state.background.named()

    async def aclose(self) -> None:
        """Leave: what runs in the background goes on at a service elsewhere. Whoever opened the last connection
        releases it."""
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        await _close(self._session.state)

    def warn_of_transaction(self) -> None:
        """Warn of an open transaction that is left; not where nobody knows what became of it."""
        connection, transaction = self._session.connection, self._session.transaction
        if not transaction.state or self._exit_code() not in {Exit.DONE, Exit.STATEMENT, Exit.USAGE}:
            return
        if connection.own_session or connection.embedded:
            said = "the open transaction was not committed and is rolled back"
        else:
            said = "the open transaction was not committed; it stays open in the session that was joined"
        self._diagnostics.warn(said, transaction.begun)

    def _note(self, text: str) -> None:
        self._diagnostics.note(text, always=self._session.interactive)


async def _close_when_finished(state: SessionState) -> None:
    try:
        await state.background.finished()
    finally:
        await _release(state)


async def _release(state: SessionState) -> None:
    await _close(state)
    await asyncio.to_thread(state.connection.release)


async def _close(state: SessionState) -> None:
    """Stop waiting for what runs, and close the connection."""
    connection = state.connection
    await state.background.aclose()
    await state.closing.aclose()
    connection.journal.close()
    if not connection.embedded:
        # A service in this process ends with its connection, and its sessions with it.
        await connection.client.end_sessions([*filter(None, [connection.own_session]), *state.background.sessions])
    await connection.service.aclose()
