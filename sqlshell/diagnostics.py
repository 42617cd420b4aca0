"""All of stderr, and the one place where an error becomes a line."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TextIO

from sqlshell.errors import ShellError
from sqlshell.interface.sqlstate import meaning
from sqlshell.output.text.cells import printable


class Diagnostics:
    """Speaks to the person on `stream`. What it is given is made safe to print: it often comes from a service.

    While `quiet` says so notes are kept back, `verbose` lets details through; errors and warnings are always told.
    """

    def __init__(self, stream: TextIO, *, quiet: Callable[[], bool] = lambda: False, verbose: int = 0) -> None:
        self._stream = stream
        self.quiet = quiet
        self.verbose = verbose
        self.settle: Callable[[], None] = lambda: None
        """Called before anything is told: what was written on stdout before it comes first."""
        self.hide: Callable[[str], str] = lambda text: text
        """Takes the values out of a text that nobody else may see, such as the token."""
        self.place: Callable[[], str] = lambda: ""
        """`FILE:LINE` of what a script is at, "" outside of files."""

    def error(self, error: ShellError, excerpt: Sequence[str] = ()) -> None:
        """`FILE:LINE: error SQLSTATE (meaning): message`, the lines of `excerpt`, then the hint.

        With -v the statementID too."""
        where = error.where
        place = f"{where.file}:{where.line}: " if where.file and where.line else f"{where.file}: " if where.file else ""
        words = meaning(where.sql_state)
        state = f" {where.sql_state}" + (f" ({words})" if words else "") if where.sql_state else ""
        lines = [f"{place}error{state}: {error.message.rstrip()}".replace("\n\n", "\n")]
        lines += excerpt
        tail = [error.hint] if error.hint else []
        if self.verbose and where.statement_id and where.statement_id not in error.message + error.hint:
            tail.append(f"statement {where.statement_id}")
        if tail:
            lines.append("  " + "; ".join(tail))
        self._write("\n".join(lines))

    def warn(self, text: str, place: str = "") -> None:
        """`FILE:LINE: warning: text`, where `place` says so."""
        self._write(f"{place}: warning: {text}" if place else f"warning: {text}")

    def warn_here(self, text: str) -> None:
        """A warning about the statement that is run now, with its place in the script."""
        self.warn(text, self.place())

    def note(self, text: str, *, always: bool = False) -> None:
        """Something that a person wants to know and a script does not; `always` is for a person at a prompt."""
        if always or not self.quiet():
            self._write(text)

    def detail(self, text: str, level: int = 1) -> None:
        if self.verbose >= level:
            self._write(text)

    def say(self, text: str, *, own: bool = False) -> None:
        """The answer to what a person asked for; `own` text has nothing from elsewhere in it, and may hold colours."""
        self._write(text, own=own)

    def _write(self, text: str, *, own: bool = False) -> None:
        self.settle()
        text = self.hide(text)
        # A closed stderr leaves nobody to tell.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write((text if own else printable(text, keep="\n\t")) + "\n")
            self._stream.flush()
