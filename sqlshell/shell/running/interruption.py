"""Ctrl-C: it ends what is being waited for, or keeps the next statement from starting."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from sqlshell.errors import Interrupted
from sqlshell.shell.front_end import Progress
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.session import Running, Session

Given = TypeVar("Given")


class Interruption:
    """Interrupts the command that runs, else the statement in `foreground`."""

    def __init__(self, session: Session, foreground: Foreground, progress: Progress) -> None:
        self._session = session
        self._foreground = foreground
        self._progress = progress
        self._command: asyncio.Task[Any] | None = None
        self.pending = False
        """Whether Ctrl-C was pressed while nothing could be interrupted: the next statement is not started."""

    @property
    def busy(self) -> bool:
        """Whether there is something to interrupt."""
        return self._foreground.busy or self._command is not None

    @property
    def left_at(self) -> float:
        """When a statement was last left running (time.monotonic)."""
        return self._foreground.left_at

    def interrupt(self) -> bool:
        """A statement: ask the service to cancel it, then stop waiting. False if nothing is left to do."""
        if self._command is not None:
            return self._command.cancel()
        if self._foreground.busy:
            return self._foreground.interrupt()
        self.pending = True
        return False

    def check(self) -> None:
        """Raises Interrupted, once, where Ctrl-C was pressed before this."""
        if self.pending:
            self.pending = False
            raise Interrupted("interrupted before it was run")

    async def interruptible(self, work: Coroutine[Any, Any, Given], name: str) -> Given:
        """Wait for the work of a command. Raises Interrupted when Ctrl-C ended it."""
        self._command = task = asyncio.ensure_future(work)
        self._session.commanded = True
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            raise Interrupted(f"\\{name} was interrupted") from None
        finally:
            self._command = None
            self._session.commanded = False
            if self._session.running is not None:
                self._session.running = None
                self._progress.hide()

    def progressed(self, share: float | None, message: str) -> None:
        """Show how far the command has come."""
        if self._session.running is None:
            self._session.running = Running()
            self._progress.show(self._session.running)
        self._session.running.share, self._session.running.message = share, message

    @contextlib.contextmanager
    def instead(self, foreground: Foreground) -> Iterator[None]:
        """While inside, the statement to interrupt is in another foreground."""
        before, self._foreground = self._foreground, foreground
        try:
            yield
        finally:
            self._foreground = before
