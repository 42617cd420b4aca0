"""Ctrl-C: stops the current wait, or prevents the next statement from starting."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from sqlshell.errors import Interrupted
from sqlshell.shell.front_end import Progress
from sqlshell.shell.running.foreground import Foreground, was_interrupted
from sqlshell.shell.running.statement import Running
from sqlshell.shell.session import Session

Given = TypeVar("Given")


class Interruption:
    """Interrupts the running command, otherwise the statement in `foreground`."""

    def __init__(self, session: Session, foreground: Foreground, progress: Progress) -> None:
        self._session = session
        self._foreground = foreground
        self._progress = progress
        self._command: asyncio.Task[Any] | None = None
        self._pending = False
        self._holding = False

    @property
    def busy(self) -> bool:
        """Whether there is something to interrupt."""
        return self._foreground.busy or self._command is not None or (self._holding and not self._pending)

    @property
    def abandoned_at(self) -> float:
        """The time when a statement was last left running (time.monotonic)."""
        return self._foreground.abandoned_at

    def interrupt(self) -> bool:
        """For a statement: ask the service to cancel it, then stop waiting. False if there is nothing left to do."""
        if self._command is not None:
            return self._command.cancel() or was_interrupted(self._command)
        if self._foreground.busy:
            return self._foreground.interrupt()
        self.postpone()
        return self._holding

    @property
    def pending(self) -> bool:
        """Whether the next statement is not to be started."""
        return self._pending

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

    def _hide_progress(self) -> None:
        if self._session.running is not None:
            self._session.running = None
            self._progress.hide()

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Inside the block, a Ctrl-C between two waits stops the next wait of the command. It does not end the program,
        so that the command can say what it has done."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False

    def show_progress(self, share: float | None, message: str, hint: str = "^C stops") -> None:
        """Show the progress of the command, and what Ctrl-C does."""
        if self._session.running is None:
            self._session.running = Running(hint=hint)
            self._progress.show(self._session.running)
        self._session.running.share, self._session.running.message = share, message

    @contextlib.contextmanager
    def using_foreground(self, foreground: Foreground) -> Iterator[None]:
        """Inside the block, the statement to interrupt is in another foreground."""
        before, self._foreground = self._foreground, foreground
        try:
            yield
        finally:
            self._foreground = before
