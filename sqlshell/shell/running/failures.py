"""How failures are reported, which of them end a script, and the exit code."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import (
    AmbiguousScript,
    CannotResume,
    ConnectionFailed,
    Exit,
    Interrupted,
    NotAnswered,
    NotAuthenticated,
    ReaderLeft,
    ShellError,
    StatementError,
)
from sqlshell.interface import sqlstate
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.scripts.buffer import Buffer
from sqlshell.shell.scripts.position import Position, shown_name
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.lexed import Lexed, Redact
from sqlshell.text import elapsed_time

SCRIPT_ENDING_ERRORS = (ConnectionFailed, NotAuthenticated, Interrupted, AmbiguousScript, CannotResume)
"""Errors that always end a script."""


class AlreadyReported(ShellError):
    """An included script failed and has reported its error; `cause` is what ended it, None if it ran to its end."""

    def __init__(self, code: Exit, cause: ShellError | None = None) -> None:
        super().__init__("")
        self.exit = code
        self.cause = cause


def cause_of(error: ShellError) -> ShellError:
    """The error of an included script, or of one that it includes; for all others the error itself."""
    return error if not isinstance(error, AlreadyReported) or error.cause is None else cause_of(error.cause)


class Failures:
    """Handles failures of the running script. `exit` is the exit code of the first reported failure, `count` how many
    were reported.
    """

    def __init__(
        self, session: Session, position: Position, buffer: Buffer, front_end: FrontEnd, diagnostics: Diagnostics
    ) -> None:
        self._session = session
        self._position = position
        self._buffer = buffer
        self._front_end = front_end
        self._diagnostics = diagnostics
        self._stop: bool | None = None
        self._includers: set[tuple[str, int]] = set()
        """The places of the inclusions that the last error went through: one that includes itself is said once."""
        self.exit = Exit.DONE
        self.count = 0

    @property
    def stops(self) -> bool:
        """Whether a failure ends a script, according to on_error."""
        return self._session.options.on_error == "stop"

    @property
    def stopping(self) -> bool:
        """Whether a failure ends what is currently running."""
        return self.stops if self._stop is None else self._stop

    @contextlib.contextmanager
    def stopping_on_failure(self, stop: bool | None) -> Iterator[None]:
        """Inside the block, failures do or do not end the script; None leaves that to on_error."""
        before, self._stop = self._stop, stop
        try:
            yield
        finally:
            self._stop = before

    @contextlib.contextmanager
    def separate_exit_code(self) -> Iterator[None]:
        """Inside the block, `exit` is separate; afterwards it has its previous value."""
        before, self.exit = self.exit, Exit.DONE
        try:
            yield
        finally:
            self.exit = before

    def ends_script(self, error: ShellError) -> bool:
        """Whether an error ends what is currently running.

        This includes errors that change the meaning of the following statements: a session that lost its temporary
        tables and settings; in a script a \\c that failed; at the prompt also a context that no longer exists, because
        pasted text was not told to continue after errors.
        """
        session = self._session
        lost = error.where.sql_state == sqlstate.SESSION_LOST or (
            session.interactive and session.state.lost_context is error
        )
        misplaced = error.misplaces_rest and not session.interactive
        return isinstance(cause_of(error), SCRIPT_ENDING_ERRORS) or self.stopping or lost or misplaced

    def report(self, error: ShellError) -> None:
        """Report a failure of the running script."""
        self.count += 1
        position = self._position
        script, line = shown_name(position.script), position.line
        if self.exit == Exit.DONE:
            self.exit = error.exit
        if isinstance(error, AlreadyReported):
            if script and (script, line) not in self._includers:
                self._includers.add((script, line))
                self._diagnostics.say(f"{script}:{line}: the script included here failed")
            return
        self._includers.clear()
        if not isinstance(error, ReaderLeft):
            known = self._front_end.catalog.all_names
            in_script = bool(script) or not self._session.interactive
            own = isinstance(error, Interrupted) and error.where.sql_state == sqlstate.CANCELED
            if isinstance(error, NotAnswered) and not in_script:
                self._diagnostics.report(error.message, always=True)
                return
            if own and not in_script and self._diagnostics.at_terminal:
                self._diagnostics.canceled(error, elapsed_time(self._session.elapsed or 0.0))
                return
            place = (script, line, position.column) if in_script else ("", 0, 0)
            report(error, place, self._buffer.sent.lexed, self._diagnostics, known, self._session.redact)


def report(
    error: ShellError,
    place: tuple[str, int, int],
    sent: Lexed,
    diagnostics: Diagnostics,
    names: Callable[[], Iterable[str]],
    redact: Redact,
) -> None:
    """Print the failure. `place` is the script, line and column at which the statement begins, `sent` is the text that
    was sent; the column is 0 if it is not the text in the script.

    No part of a text with secrets is shown.
    """
    diagnostics.trace(error)
    script, line, column = place
    # An error about another place than that of the script has it already.
    of_statement = isinstance(error, StatementError) and not error.in_command
    if line and (script or of_statement) and not error.where.file:
        error.where = replace(error.where, file=script or "<command>", line=line)
    if not sent.text or not of_statement:
        diagnostics.error(error)
        return
    from sqlshell.shell.running.excerpt import WIDEST, cause, excerpt, misspelled, suggested

    if (shown := redact(sent)) != sent.text:
        from sqlshell.sql.analysis.secrets import removed_values, without_values

        error.message = without_values(error.message, removed_values(sent, shown))
    widest = min(WIDEST, max(20, shutil.get_terminal_size().columns - 8)) if diagnostics.at_terminal else WIDEST
    extract = excerpt(sent, error, widest) if shown == sent.text else None
    where = error.where
    if extract is not None and column and extract.column:
        extract = extract.in_script(line, column)
        where = replace(where, file=script or "<command>", line=extract.line, column=extract.column)
    near = suggested(error, names()) or misspelled(sent, error, names())
    hint = f"{near}\n{error.hint}".rstrip() if near else error.hint
    diagnostics.error(ShellError(cause(error.message).words, hint, where), extract, error.message)
