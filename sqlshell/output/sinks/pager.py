"""The screen: short results are printed, tall ones go through a pager as rows arrive."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import BinaryIO, TextIO

from sqlshell.errors import OutputError
from sqlshell.origin import Trusted
from sqlshell.output.sinks.command import CommandProcess, lent_terminal
from sqlshell.output.sinks.sink import OutputClosed, Sink, StreamSink
from sqlshell.output.text.cells import cells
from sqlshell.output.writer import Look
from sqlshell.runtime.scratch import scratch

DEFAULT = "less -SRXF"
DEFAULT_FOR_WIDE = "less -SRX"
"""Without F: less counts a chopped line as one line, so it would exit at once, with the lines cut off."""

LESS = "R"
"""The options of less where the user has none: colors, as in git."""

WITH_KEY = "{command} -fL{prompt} /dev/stdin"
"""less runs no editor on a file without a name; its key for the explorer is one. -L: no program prepares this file."""
PROMPT = " '-Ps?e(END) .{rows}?ltlines %lt-%lb, .q quits, B explores'"
"""The prompt of less, with rows, lines and keys in place of the name of the file, unless the user has a prompt (-P)."""

NOT_STARTED = frozenset({126, 127})
"""The exit code of a shell if the command does not exist."""

_SIMPLE = re.compile(r"[\w./+-]+( [\w./+-]+)*")
"""A command that the shell can replace itself with, so that terminating the shell terminates the pager."""

_COLOR_CODES = re.compile(rb"\x1b\[[0-9;]*m")
MOST_PIPE_BYTES = 1 << 20
"""If more bytes than this were written to a pipe, some have been read."""
NEW_PIPE_BYTES = 1 << 14
"""Bytes that every new pipe takes without waiting for its reader."""

KEY = "B"

_SCRIPT = """echo >'{folder}/pressed'
read -r answer <'{folder}/done'
"""


class ScreenSink(Sink):
    """Holds output back until it is taller than the screen, then starts the pager `command`, "" for the default.

    With `sideways`, a line that is wider than the screen starts it too, because its rest is reached by scrolling,
    unless the writer says that it may be wrapped.

    Without `less`, with TERM=dumb, or if the pager cannot be started, the output is printed. While the pager runs, it
    receives Ctrl-C; when it exits, writing raises OutputClosed. Must be used in the main thread, except for write() and
    finish() while `blocking`.
    """

    waited = 0.0

    def __init__(self, stream: BinaryIO, command: str, stdin: TextIO, *, sideways: bool = False) -> None:
        self._screen = StreamSink(stream)
        # On a terminal without cursor control less prints a warning and waits for Enter.
        can_page = os.environ.get("TERM", "dumb") != "dumb" and shutil.which("less")
        self._command = command.strip() or (DEFAULT if can_page else "")
        self._sideways = sideways
        self._stdin = stdin
        self._held_back = b""
        self._unread = b""
        self._next_input = b""
        """The bytes that the next write() or finish() sends to the pager, which may have to wait for it."""
        self._pager: CommandProcess | None = None
        self._terminal_lent = contextlib.ExitStack()
        self._prints = not self._command
        self._browse: Callable[[], Awaitable[None]] | None = None
        self._rows = ""
        self._key: PagerKey | None = None
        self._look: Callable[[], Look] = Look

    @property
    def terminal(self) -> bool:
        """The default pager shows colors, and so does any other that is configured to."""
        return self._screen.terminal and (not self._command or _shows_colors(self._command))

    @property
    def shares_terminal(self) -> bool:
        return self._screen.terminal

    @property
    def blocking(self) -> bool:
        return self._pager is not None

    @property
    def closed(self) -> bool:
        return self._pager is not None and self._pager.ended

    def freeze(self, look: Callable[[], Look]) -> None:
        self._look = look

    def offer(self, browse: Callable[[], Awaitable[None]], rows: str = "") -> None:
        self._browse, self._rows = browse, rows

    def write(self, data: bytes) -> None:
        if self._pager is not None:
            rest, self._next_input = self._next_input, b""
            self._feed(rest + data if rest else data)
        elif self._prints:
            self._screen.write(data)
        else:
            self._held_back += data
            size = shutil.get_terminal_size()
            # Only the first screen decides: thousands of rows may have come with it.
            first = b"\n".join(self._held_back.split(b"\n", size.lines)[: size.lines])
            tall = first.count(b"\n") >= size.lines - 1
            shown = screen_lines(first, size.columns, size.lines)
            wide = is_wider(first, size.columns)
            if tall or shown >= size.lines - 1 or (wide and self._sideways and not self._look().wraps):
                self._start(self._full_command(wide=wide, tall=tall))

    def finish(self) -> None:
        if self._pager is not None and self._next_input:
            self.write(b"")
        if self._pager is not None and self._exit_code() in NOT_STARTED:
            self._print_instead()

    def close(self) -> None:
        try:
            self.finish()
            held, self._held_back = self._held_back, b""
            if held:
                self._screen.write(held)
        except OutputClosed:
            return
        finally:
            self._close_pager()

    def abort(self) -> None:
        """Text that is held back is printed nevertheless: its rows have arrived."""
        if self._pager is not None:
            self._next_input = b""
            self._pager.stop()
        with contextlib.suppress(OutputError):
            self.close()

    def _full_command(self, *, wide: bool, tall: bool) -> str:
        """The pager's command, with what it keeps in view."""
        lines, width = self._look().frozen
        if self._command != DEFAULT:
            return self._command
        if lines and (wide or tall) and has_header(less_version()):
            return f"{DEFAULT_FOR_WIDE} --header={lines},{width if wide else 0}"
        return DEFAULT if tall else DEFAULT_FOR_WIDE

    def _start(self, command: str) -> None:
        held, self._held_back = self._held_back, b""
        self._terminal_lent.enter_context(lent_terminal(self._stdin))
        try:
            environment = {"LESSCHARSET": "utf-8", "LESS": LESS} | dict(os.environ)
            started = f"exec {command}" if _SIMPLE.fullmatch(command) else command
            if (key := self._create_key(command, environment)) is not None:
                own = "P" in environment.get("LESS", "")
                rows = f"{self._rows}, " if self._rows else ""
                started = WITH_KEY.format(command=started, prompt="" if own else PROMPT.format(rows=rows))
                environment |= key.environment
            self._pager = CommandProcess(Trusted(started), environment)
        except OutputError:
            self._terminal_lent.close()
            self._prints = True
            self._screen.write(held)
            return
        self._next_input = held[NEW_PIPE_BYTES:]
        self._feed(held[:NEW_PIPE_BYTES])

    def _feed(self, data: bytes) -> None:
        assert self._pager is not None
        if len(self._unread) < MOST_PIPE_BYTES:
            self._unread += data
        try:
            self._pager.write(data)
        except OutputClosed:
            if self._exit_code() not in NOT_STARTED:
                raise
            self._print_instead()
        else:
            if len(self._unread) >= MOST_PIPE_BYTES:
                self._unread = b""

    def _exit_code(self) -> int:
        """The exit code of the pager."""
        assert self._pager is not None
        return self._pager.finish()

    def _create_key(self, command: str, environment: Mapping[str, str]) -> PagerKey | None:
        """One more key for less; None if the user has configured its keys, or it may not run an editor."""
        own = "LESSKEYIN" in environment or environment.get("LESSSECURE") or (Path.home() / ".lesskey").exists()
        if self._browse is None or own or not command.startswith(DEFAULT_FOR_WIDE):
            return None
        with contextlib.suppress(OSError):
            self._key = PagerKey(self._browse)
        return self._key

    def _print_instead(self) -> None:
        """The pager did not start: its input goes to the screen."""
        self._pager, self._prints = None, True
        unread, self._unread, self._next_input = self._unread + self._next_input, b"", b""
        self._screen.write(unread)

    def _close_pager(self) -> None:
        if self._pager is not None:
            self.waited += self._pager.waited
        self._pager = None
        if self._key is not None:
            self._key.close()
            self._key = None
        self._terminal_lent.close()


class PagerKey:
    """A key of less that opens something else on the terminal, and returns to the same place of less afterwards.

    less runs an editor on a file with its command `visual`, waits for it, and draws its screen again. The editor here
    is a script that writes to one pipe and waits at another: while it waits, the terminal is free. `pressed` runs in
    the event loop of the thread that makes this, one at a time. Raises OSError.
    """

    def __init__(self, pressed: Callable[[], Awaitable[None]]) -> None:
        self._work = pressed
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._folder = scratch().folder("pager")
        self._pipes: list[int] = []
        try:
            for name in ("pressed", "done"):
                os.mkfifo(self._folder / name, 0o600)
                # With both ends open, neither side ever waits for the other to open it, and none sees an end.
                self._pipes.append(os.open(self._folder / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
            quoted = str(self._folder).replace("'", "'\\''")
            (self._folder / "script").write_text(_SCRIPT.format(folder=quoted))
            (self._folder / "keys").write_text(f"#command\n{KEY} visual\nv invalid\n")
        except OSError:
            self.close()
            raise
        self._loop.add_reader(self._pipes[0], self._pressed)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that give less the key. A command that begins with - is not shown."""
        return {
            "LESSKEYIN": str(self._folder / "keys"),
            "LESSEDIT": '-sh "$SQLSHELL_PAGER_KEY"',
            "SQLSHELL_PAGER_KEY": str(self._folder / "script"),
        }

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._pipes:
            self._loop.remove_reader(self._pipes[0])
        for pipe in self._pipes:
            os.close(pipe)
        self._pipes = []
        shutil.rmtree(self._folder, ignore_errors=True)

    def _pressed(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._pipes[0], 64)
        if self._task is None:
            self._task = asyncio.ensure_future(self._answered())

    async def _answered(self) -> None:
        try:
            await self._work()
        finally:
            self._task = None
            if self._pipes:
                os.write(self._pipes[1], b"\n")


def less_version() -> str:
    """The first line of `less --version`; "" if it is not available."""
    try:
        done = subprocess.run(["less", "--version"], check=False, capture_output=True, text=True, timeout=2)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return done.stdout.partition("\n")[0]


def has_header(version: str) -> bool:
    """Whether a version of less can keep lines and columns in view."""
    match = re.match(r"less (\d+)", version)
    return match is not None and int(match[1]) >= 600


def _shows_colors(command: str) -> bool:
    """Whether a pager passes colors on: less with -R, also in its variable, or another one with such options."""
    program, _, options = command.partition(" ")
    if Path(program).name == "less":
        options += f" -{os.environ.get('LESS', LESS).lstrip('-')}"
    return re.search(r"(?:^|\s)-\w*R", options) is not None or "raw-control" in options.lower()


def screen_lines(data: bytes, width: int, enough: int) -> int:
    """The number of lines that a terminal of `width` cells needs for `data`; counting stops at `enough`."""
    lines = 0
    for line in _COLOR_CODES.sub(b"", data).split(b"\n"):
        if lines >= enough:
            break
        lines += max(1, -(-_cells(line) // max(1, width)))
    return lines - (data.endswith(b"\n") and lines < enough)


def is_wider(data: bytes, width: int) -> bool:
    """Whether a line of `data` does not fit into `width` cells."""
    return any(_cells(line) > width for line in _COLOR_CODES.sub(b"", data).split(b"\n"))


def _cells(line: bytes) -> int:
    return len(line) if line.isascii() else cells(line.decode("utf-8", "replace"))
