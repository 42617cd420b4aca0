"""All output to stderr, and the only place where an error is formatted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TextIO

from sqlshell.errors import ShellError
from sqlshell.interface.sqlstate import meaning
from sqlshell.output.text.cells import printable


class Diagnostics:
    """Prints messages to `stream`. Control characters are escaped, because a text may come from a service.

    `quiet` suppresses notes, `verbose` enables details; errors and warnings are always printed.
    """

    def __init__(self, stream: TextIO, *, quiet: Callable[[], bool] = lambda: False, verbose: int = 0) -> None:
        self._stream = stream
        self.quiet = quiet
        self.verbose = verbose
        self.settle: Callable[[], None] = lambda: None
        """Called before each message, so that earlier output to stdout appears first."""
        self.hide: Callable[[str], str] = lambda text: text
        """Removes secret values, such as the token, from a text."""
        self.place: Callable[[], str] = lambda: ""
        """`FILE:LINE` of the statement that a script is running, "" outside of files."""

    def error(self, error: ShellError, excerpt: Sequence[str] = ()) -> None:
        """Print `FILE:LINE: error SQLSTATE (meaning): message`, the lines of `excerpt`, then the hint.

        With -v it adds the statementID."""
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
        """Print `warning: text`, with `place` (`FILE:LINE`) in front if it is given."""
        self._write(f"{place}: warning: {text}" if place else f"warning: {text}")

    def warn_here(self, text: str) -> None:
        """Print a warning about the current statement, with its position in the script."""
        self.warn(text, self.place())

    def note(self, text: str, *, always: bool = False) -> None:
        """Print a notice for people, which `quiet` suppresses unless `always` is set."""
        if always or not self.quiet():
            self._write(text)

    def detail(self, text: str, level: int = 1) -> None:
        if self.verbose >= level:
            self._write(text)

    def say(self, text: str, *, own: bool = False) -> None:
        """Print the output of a command; `own` text comes from this program alone, and may contain colors."""
        self._write(text, own=own)

    def _write(self, text: str, *, own: bool = False) -> None:
        self.settle()
        text = self.hide(text)
        # If stderr is closed, the message cannot be printed anywhere.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write((text if own else printable(text, keep="\n\t")) + "\n")
            self._stream.flush()
