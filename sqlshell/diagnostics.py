"""All output to stderr, and the only place where an error is formatted."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable
from typing import TextIO

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.errors import ShellError
from sqlshell.interface.sqlstate import DONE, meaning
from sqlshell.output.text.cells import printable
from sqlshell.output.text.lines import folded
from sqlshell.output.writer import Role
from sqlshell.runtime.bugs import trace
from sqlshell.runtime.streams import forces_colors, in_locale, shows_unicode

Look = Callable[[str, Role], str]
_FURTHER = re.compile(r"\n(?=(?:DETAIL|HINT|QUERY|CONTEXT): )")
"""The words with which the further parts of an error of PostgreSQL begin."""
_NOTICES = re.compile(r"\n(?=(?:NOTICE|WARNING|INFO|LOG|DEBUG): )")
"""The notices of a statement that failed follow its error."""
_OF_COPY = re.compile(r"COPY .*, line \d+")
"""A context that says which line of the data is wrong."""
KEPT = "\n\t"
"""Control characters that messages may contain."""


class Excerpt(Struct, frozen=True):
    """A line of a statement with the place of an error.

    `line` and `column` count from 1 in the statement or in its script; the column is 0 if it is not known. `text` is
    the line, of which `marked` cells are wrong, after the first `before`.
    """

    line: int
    column: int
    text: str
    before: int
    marked: int

    def in_script(self, line: int, column: int) -> Excerpt:
        """The same in a script in which the statement begins at this line and column."""
        return replace(self, line=line + self.line - 1, column=self.column + (column - 1 if self.line == 1 else 0))

    def lines(self, bar: str, look: Look) -> list[str]:
        """The line after its number and a `bar`, and a line with the marks."""
        number = str(self.line)
        gutters = [look(f" {lead} {bar}", "dim") for lead in (number, " " * len(number))]
        marks = " " * self.before + look("^" * self.marked, "error")
        return [f"{gutters[0]} {look(printable(self.text).rstrip(), 'sql')}".rstrip(), f"{gutters[1]} {marks}"]


class Diagnostics:
    """Prints messages to `stream`. Control characters are escaped, because a text may come from a service.

    `quiet` suppresses notes, `verbose` enables details; errors and warnings are always printed. `verbosity` is what
    errors show: psql's default, terse, verbose or sqlstate. `place` gives the `FILE:LINE` of the statement that a
    script is running, "" outside of files. `settle` is called before each message, so that earlier output to stdout
    appears first. `passing` shows a message only as long as the shell waits; it returns False if it cannot. `linked`
    makes the name of a file in a text a link to it, if the terminal has links.

    On a terminal, texts are wrapped between words; a `verbatim` one, which is to be read or copied as it is, is not.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        quiet: Callable[[], bool] = lambda: False,
        verbosity: Callable[[], str] = lambda: "default",
        verbose: int = 0,
        place: Callable[[], str] = lambda: "",
        settle: Callable[[], None] = lambda: None,
        passing: Callable[[str], bool] = lambda text: False,
        linked: Callable[[str, str], str] = lambda text, file: text,
    ) -> None:
        self._stream = stream
        self._quiet = quiet
        self._verbosity = verbosity
        self.verbose = verbose
        self._place = place
        self._settle = settle
        self._passing = passing
        self.paint: Callable[[str, Role], str] | None = None
        """Colors texts for a terminal; None without colors."""
        self.find_paint: Callable[[], Callable[[str, Role], str] | None] | None = None
        """Finds `paint` when it is first needed."""
        self.above: Callable[[Callable[[], None]], None] = lambda write: write()
        """Calls a function that writes, above the line that is being typed; it may do so later."""
        self._linked = linked
        self._last: tuple[ShellError, Excerpt | None, str] | None = None
        self._filters: list[Callable[[str], str]] = []

    def filter(self, remove: Callable[[str], str]) -> None:
        """Pass each further message through `remove`, which takes secret values, such as tokens, out of it."""
        self._filters.append(remove)

    def error(self, error: ShellError, excerpt: Excerpt | None = None, text: str = "") -> None:
        """Print `FILE:LINE:COLUMN: error[SQLSTATE]: message`, the line of the statement, and `help: hint`.

        `text` is the service's own message. With -v it is printed too, with the statementID. Without -v, the text for
        a pipe has at most three lines, after the notices of a statement that failed: the line of the statement is left
        out if there is a hint or a detail of PostgreSQL, and its context unless it names a line of COPY's data.
        """
        self._last = (error, excerpt, text)
        width = self._width
        # A flag is about this run, and psql's variable may come from a file for all.
        kind = "verbose" if self.verbose else self._verbosity()
        # The marks of an excerpt stay below their place.
        if kind in {"terse", "sqlstate"} and error.where.sql_state:
            lines = self._briefly(error, self._look(), width, code_only=kind == "sqlstate")
        else:
            lines = self._lines(error, excerpt, self.at_terminal or kind == "verbose", self._look(), width)
        if kind == "verbose":
            lines += [folded(line, width) for line in self._background(error, text)]
        self._write("\n".join(lines), own=True, verbatim=True)

    def canceled(self, error: ShellError, after: str) -> None:
        """Report that the user's Ctrl-C has canceled a statement; this is not an error."""
        self._last = (error, None, error.message)
        look = self._look()
        lines = [f"{look('canceled', 'warning')} after {after}"]
        lines += [f"{look('help:', 'help')} {printable(hint)}" for hint in error.hint.split("\n") if hint.strip()]
        if self.verbose:
            lines += self._background(error, error.message)
        self._write("\n".join(lines), own=True)

    def last_error(self) -> str:
        """The last error in full; "" if there was none."""
        if self._last is None:
            return ""
        error, excerpt, text = self._last
        width = self._width
        background = [folded(line, width) for line in self._background(error, text)]
        return "\n".join([*self._lines(error, excerpt, True, _plain, width), *background])

    def _lines(self, error: ShellError, excerpt: Excerpt | None, whole: bool, look: Look, width: int = 0) -> list[str]:
        placed, label = self._head(error)
        message, *notices = _NOTICES.split(error.message.strip().replace("\n\n", "\n"), 1)
        hints = error.hint.strip().split("\n") if error.hint.strip() else []
        detail = ""
        message, *further = _FURTHER.split(message)
        fields = {head: _joined(text) for head, _, text in (part.partition(": ") for part in further)}
        hints += [fields["HINT"]] if fields.get("HINT") else []
        if whole:
            message = "\n".join([message, *(part for part in further if not part.startswith("HINT: "))])
        else:
            message, detail = _joined(message), fields.get("DETAIL", "")
            if _OF_COPY.match(fields.get("CONTEXT", "")):
                detail = "; ".join(filter(None, (detail, fields["CONTEXT"])))
            hints = [_joined("\n".join(hints))] if hints else []
        lines = [folded(f"{placed}{printable(text, keep=KEPT)}", width) for text in notices]
        lines.append(folded(f"{placed}{look(label, 'error')} {printable(message, keep=KEPT)}", width))
        if detail:
            lines.append(folded(f"detail: {printable(detail)}", width))
        if excerpt is not None and (whole or not (hints or detail)):
            lines += excerpt.lines("│" if self.at_terminal and shows_unicode(os.environ) else "|", look)
        for hint in hints:
            before, after = ("usage:", hint[7:]) if hint.startswith("usage: ") else ("help:", hint)
            lines.append(folded(f"{look(before, 'help')} {printable(after, keep=KEPT)}", width))
        return lines

    def _briefly(self, error: ShellError, look: Look, width: int, *, code_only: bool) -> list[str]:
        """The message alone, or its code, after the notices of a statement that failed."""
        placed, label = self._head(error)
        message, *notices = _NOTICES.split(error.message.strip(), 1)
        lines = [f"{placed}{printable(text, keep=KEPT)}" for text in notices]
        words = "" if code_only else f" {printable(_joined(_FURTHER.split(message)[0]))}"
        lines.append(f"{placed}{look(label.removesuffix(':') if code_only else label, 'error')}{words}")
        return [folded(line, width) for line in lines]

    def _head(self, error: ShellError) -> tuple[str, str]:
        """The place of an error before its message, and its label with the code."""
        where = error.where
        place = ":".join(str(part) for part in (where.file, where.line, where.column) if part) if where.file else ""
        # On a terminal the excerpt shows the place of what was given with -c.
        place = "" if place.startswith("<command>") and self.at_terminal else place
        # A statement that ended before it could be canceled has the code of success.
        coded = where.sql_state and where.sql_state != DONE
        label = f"error[{printable(where.sql_state)}]:" if coded else "error:"
        return f"{printable(place)}: " * bool(place), label

    def _background(self, error: ShellError, text: str) -> list[str]:
        """The details of an error other than its message and hint."""
        where = error.where
        words = meaning(where.sql_state)
        told = not words or words in error.message.lower()
        facts = [] if told else [f"{where.sql_state} ({words.replace(' ', '_')})"]
        if where.statement_id and where.statement_id not in error.message + error.hint:
            facts.append(f"statement {where.statement_id}")
        lines = [f"note: {printable(in_locale(' · ').join(facts))}"] if facts else []
        if text.strip() not in {"", error.message.strip()}:
            lines += ["note: the service's message:"]
            lines += [f"  {printable(line, keep=KEPT)}" for line in text.strip().split("\n")]
        return lines

    @property
    def at_terminal(self) -> bool:
        """Whether people read the messages on a screen."""
        with contextlib.suppress(ValueError):
            return self._stream.isatty()
        return False

    @property
    def _width(self) -> int:
        """The width of the terminal in cells; 0 if it is not known, or there is none."""
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(self._stream.fileno()).columns if self._stream.isatty() else 0
        return 0

    def _look(self) -> Look:
        colored = self.at_terminal or forces_colors(os.environ)
        if self.paint is None and self.find_paint is not None and colored:
            self.paint, self.find_paint = self.find_paint(), None
        return self.paint or _plain

    def trace(self, error: ShellError) -> None:
        """Print the traceback of a bug if SQLSHELL_TRACEBACK is set."""
        trace(error, self._stream)

    def warn(self, text: str, place: str = "") -> None:
        """Print `warning: text`, with `place` (`FILE:LINE`) in front if it is given."""
        label = self._look()("warning:", "warning")
        self._write(f"{printable(place)}: " * bool(place) + f"{label} {printable(text, keep=KEPT)}", own=True)

    def log_warning(self, text: str) -> None:
        """Print `TIME warning: text`, for the log of a service; the time is UTC."""
        self._write(f"{_timestamp()} {self._look()('warning:', 'warning')} {printable(text, keep=KEPT)}", own=True)

    def log(self, text: str) -> None:
        """Print `TIME text`, for the log of a service."""
        self._write(f"{_timestamp()} {printable(text, keep=KEPT)}", own=True)

    def warn_here(self, text: str) -> None:
        """Print a warning about the current statement, with its position in the script."""
        self.warn(text, self._place())

    def notice_here(self, text: str) -> None:
        """Print notices about the current statement with its position in the script; a notice contains its severity."""
        place = self._place()
        self._write(f"{printable(place)}: " * bool(place) + printable(text, keep=KEPT), own=True)

    def note(self, text: str, *, always: bool = False) -> None:
        """Print `note: text` at a terminal, and the text alone elsewhere; `quiet` suppresses it unless `always` is
        set.
        """
        if always or not self._quiet():
            label = f"{self._look()('note:', 'help')} " if self.at_terminal else ""
            self._write(label + printable(text, keep=KEPT), own=True)

    def report(self, text: str, *, always: bool = False, file: str = "") -> None:
        """Print what a command has done, which `quiet` suppresses unless `always` is set. `file` is a file in it."""
        if always or not self._quiet():
            self._write(text, file=file)

    def wait(self, text: str) -> None:
        """Show why the wait continues; with -v, or without a progress line, the message stays on the screen."""
        for remove in self._filters:
            text = remove(text)
        if self.verbose or not self._passing(text):
            self.note(text)

    def detail(self, text: str, level: int = 1) -> None:
        if self.verbose >= level:
            self._write(text, verbatim=True)

    def say(self, text: str, *, own: bool = False, verbatim: bool = False) -> None:
        """Print the output of a command; `own` text comes from this program alone, and may contain colors."""
        self._write(text, own=own, verbatim=verbatim)

    def hint(self, text: str) -> None:
        """Print secondary information, dimmed; `quiet` suppresses it."""
        if not self._quiet():
            self.footer(text)

    def footer(self, text: str) -> None:
        """Print a line about the result above it."""
        self._write(self._look()(printable(text), "dim"), own=True)

    def _write(self, text: str, *, own: bool = False, file: str = "", verbatim: bool = False) -> None:
        for remove in self._filters:
            text = remove(text)
        shown = text if own else printable(text, keep="\n\t")
        shown = self._linked(shown, file) if file else shown

        def write() -> None:
            self._settle()
            # If stderr is closed, the message cannot be printed anywhere.
            with contextlib.suppress(OSError, ValueError):
                self._stream.write((shown if verbatim else folded(shown, self._width)) + "\n")
                self._stream.flush()

        self.above(write)


def _timestamp() -> str:
    """The time now, such as 2024-05-06T07:08:09.123Z."""
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03}Z"


def _plain(text: str, role: Role) -> str:
    return text


def _joined(text: str) -> str:
    """The lines of a text as one."""
    joined = ""
    for line in map(str.strip, filter(str.strip, text.split("\n"))):
        joined += ("" if not joined else " " if joined[-1] in "?.!:;,(" else "; ") + line
    return joined
