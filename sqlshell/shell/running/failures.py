"""Failures: how they are reported, which of them end a script, and the exit code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import (
    ConnectionFailed,
    Exit,
    Interrupted,
    NotAuthenticated,
    ShellError,
    StatementError,
    Unread,
    Unreadable,
)
from sqlshell.interface import sqlstate
from sqlshell.runtime.bugs import trace
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.scripts.buffer import Buffer
from sqlshell.shell.scripts.position import Position
from sqlshell.shell.session import Session

ENDS = (ConnectionFailed, NotAuthenticated, Interrupted, Unreadable)
"""Errors that end a script whatever is set."""


class Told(ShellError):
    """A script inside another failed, and said so itself."""

    def __init__(self, code: Exit) -> None:
        super().__init__("")
        self.exit = code


class Failures:
    """What failures do to the script that is being run. `exit` is the code of the first one that was reported."""

    def __init__(
        self, session: Session, position: Position, buffer: Buffer, front_end: FrontEnd, diagnostics: Diagnostics
    ) -> None:
        self._session = session
        self._position = position
        self._buffer = buffer
        self._front_end = front_end
        self._diagnostics = diagnostics
        self._stop: bool | None = None
        self.exit = Exit.DONE

    @property
    def stops(self) -> bool:
        """Whether a failure ends a script, as on_error says now."""
        return self._session.options.on_error == "stop"

    @property
    def stopping(self) -> bool:
        """Whether a failure ends what is being run now."""
        return self.stops if self._stop is None else self._stop

    @contextlib.contextmanager
    def ending(self, stop: bool | None) -> Iterator[None]:
        """While inside, failures end the script, or do not; None leaves that to on_error."""
        before, self._stop = self._stop, stop
        try:
            yield
        finally:
            self._stop = before

    @contextlib.contextmanager
    def counted_apart(self) -> Iterator[None]:
        """While inside, `exit` is that of what runs inside; then it is what it was before."""
        before, self.exit = self.exit, Exit.DONE
        try:
            yield
        finally:
            self.exit = before

    def ends(self, error: ShellError) -> bool:
        """Whether an error ends what is being run now.

        So does one that changes the meaning of the rest: a session that lost its temporary tables and settings; at the
        prompt also a context that no longer exists, because pasted text is not a script that was told to go on.
        """
        session = self._session
        lost = error.where.sql_state == sqlstate.SESSION_LOST or (session.interactive and session.state.lost is error)
        return isinstance(error, ENDS) or self.stopping or lost

    def tell(self, error: ShellError) -> None:
        """Report a failure in what is being run."""
        script, line = self._position.script, self._position.line
        if self.exit == Exit.DONE:
            self.exit = error.exit
        if isinstance(error, Told):
            if script:
                self._diagnostics.say(f"{script}:{line}: the script included here failed")
        elif not isinstance(error, Unread):
            known = self._front_end.catalog.everything
            tell(error, script, line, self._buffer.last.text, self._diagnostics, known, self._session.redact)


def tell(
    error: ShellError,
    script: str,
    line: int,
    sent: str,
    diagnostics: Diagnostics,
    names: Callable[[], Iterable[str]],
    redact: Callable[[str], str],
) -> None:
    """Tell it. `script` and `line` are where it happened, `sent` is the text that the service was given.

    Of a text with secrets in it no part is shown.
    """
    trace(error)
    if line and script:
        error.where = replace(error.where, file=script, line=line)
    if not sent or not isinstance(error, StatementError):
        diagnostics.error(error)
        return
    from sqlshell.shell.running.excerpt import excerpt, suggested

    if (shown := redact(sent)) != sent:
        from sqlshell.sql.analysis.secrets import removed_values, without_values

        error.message = without_values(error.message, removed_values(sent, shown))
    near = suggested(error, names())
    error.hint = f"{near}; {error.hint}".rstrip("; ") if near else error.hint
    diagnostics.error(error, excerpt(sent, error) if shown == sent else [])
