"""The terminal: its modes, restored however the program ends; its capabilities, its background, and its clipboard."""

from __future__ import annotations

import atexit
import base64
import contextlib
import os
import re
import select
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from sqlshell.errors import OutputError
from sqlshell.output.text.cells import printable
from sqlshell.runtime.files import expanded, write_all
from sqlshell.runtime.streams import Streams

RESET = b"\x1b[?2004l\x1b[?1000l\x1b[?1006l\x1b[?25h\x1b[?7h\x1b[0m"
"""Bracketed paste and mouse off, cursor and line wrap on, no attributes."""


@contextlib.contextmanager
def restored(streams: Streams) -> Iterator[None]:
    """Restore the terminal after a crash or signal, even if the program exits without leaving the block."""
    if os.name != "posix" or not streams.stdin.isatty():
        yield
        return
    import termios

    descriptor = streams.stdin.fileno()
    saved = termios.tcgetattr(descriptor)

    def give_back() -> None:
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(descriptor, termios.TCSANOW, saved)
        with contextlib.suppress(OSError):
            os.write(streams.stdout.fileno() if streams.stdout.isatty() else descriptor, RESET + b"\r\n")

    atexit.register(give_back)
    try:
        yield
    except BaseException:
        give_back()
        raise
    finally:
        atexit.unregister(give_back)


def without_echo(terminal: TextIO, *, keeps_typed: bool = False) -> list[Any] | None:
    """Turn off the echo of a terminal, and with `keeps_typed` what Ctrl-C discards. Returns the modes before, for
    with_modes(); None if nothing was changed.

    Not in the background, where changing the modes of the terminal would stop the process.
    """
    import termios

    with contextlib.suppress(OSError, ValueError, termios.error):
        descriptor = terminal.fileno()
        modes = termios.tcgetattr(descriptor)
        if modes[3] & termios.ECHO and os.tcgetpgrp(descriptor) == os.getpgrp():
            quiet = modes[3] & ~termios.ECHO | (termios.NOFLSH if keeps_typed else 0)
            termios.tcsetattr(descriptor, termios.TCSANOW, [*modes[:3], quiet, *modes[4:]])
            return modes
    return None


def _type_interrupts(terminal: TextIO, modes: list[Any], *, typed: bool) -> None:
    """Let Ctrl-C be `typed` as any key, or interrupt as in `modes`."""
    import termios

    with contextlib.suppress(OSError, ValueError, termios.error):
        descriptor = terminal.fileno()
        now = termios.tcgetattr(descriptor)
        now[6][termios.VINTR] = bytes([os.fpathconf(descriptor, "PC_VDISABLE")]) if typed else modes[6][termios.VINTR]
        termios.tcsetattr(descriptor, termios.TCSANOW, now)


def with_modes(terminal: TextIO, modes: list[Any] | None) -> None:
    """Return a terminal to the modes that without_echo() returned."""
    if modes is None:
        return
    import termios

    with contextlib.suppress(OSError, ValueError, termios.error):
        if os.tcgetpgrp(terminal.fileno()) == os.getpgrp():
            termios.tcsetattr(terminal.fileno(), termios.TCSANOW, modes)


class Unechoed:
    """Keeps what is typed off the screen until end(): the next prompt shows it.

    If it `keeps_interrupts`, Ctrl-C is for that prompt too, where it clears the line, until allow_interrupt().
    """

    def __init__(self, streams: Streams, *, keeps_interrupts: bool = False) -> None:
        self._terminal = streams.stdin
        self._modes: list[Any] | None = None
        if os.name != "posix" or not (streams.stdin.isatty() and draws(streams.stdout)):
            return
        # A signal during an import ends the program without unwinding it.
        atexit.register(self.end)
        self._modes = without_echo(streams.stdin, keeps_typed=True)
        if self._modes is not None:
            if keeps_interrupts:
                _type_interrupts(streams.stdin, self._modes, typed=True)
            # What has been typed so far is on this line.
            streams.stdout.write("\r\x1b[K")
            streams.stdout.flush()

    def allow_interrupt(self) -> None:
        """Let Ctrl-C end the program from now on, because it waits for a service or a database."""
        if self._modes is not None:
            _type_interrupts(self._terminal, self._modes, typed=False)

    def end(self) -> None:
        """Turn the echo on again."""
        atexit.unregister(self.end)
        modes, self._modes = self._modes, None
        with_modes(self._terminal, modes)


_TERMINALS_WITH_PROGRESS = frozenset({"WezTerm", "ghostty"})
_TERMINALS_WITH_LINKS = frozenset(
    {"WezTerm", "ghostty", "iTerm.app", "vscode", "Hyper", "terminology", "rio", "WarpTerminal"}
)
_TERMS_WITH_LINKS = frozenset({"xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm"})
_VTE_WITH_LINKS = 5000


def draws(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether escape sequences can be written to a stream."""
    return stream.isatty() and environ.get("TERM", "dumb") != "dumb"


def shows_progress(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal shows progress in its tab or task bar (OSC 9;4). Others would show a notification."""
    if _multiplexed(environ):
        return False
    return (
        "WT_SESSION" in environ
        or environ.get("ConEmuANSI") == "ON"
        or environ.get("TERM_PROGRAM") in _TERMINALS_WITH_PROGRESS
        # The feature P of iTerm2, which announces its features since before it had this one.
        or (environ.get("TERM_PROGRAM") == "iTerm.app" and _has_feature(environ.get("TERM_FEATURES", ""), "P"))
    )


def shows_links(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal shows links (OSC 8)."""
    if _multiplexed(environ):
        return False
    vte = environ.get("VTE_VERSION", "")
    return (
        "WT_SESSION" in environ
        or "KONSOLE_VERSION" in environ
        or environ.get("TERM_PROGRAM") in _TERMINALS_WITH_LINKS
        or environ.get("TERM") in _TERMS_WITH_LINKS
        or (vte.isdecimal() and int(vte) >= _VTE_WITH_LINKS)
    )


def progress_report(state: str) -> str:
    """The sequence for a progress of the terminal: `4;1;PERCENT`, `4;3` if it is unknown, `4;0` to remove it."""
    return f"\x1b]9;{state}\x1b\\"


def with_file_link(text: str, file: str) -> str:
    """A text that is safe to print, in which the name of a file is a link to it (OSC 8)."""
    name, address = printable(file), expanded(file).absolute().as_uri()
    return text.replace(name, f"\x1b]8;;{address}\x1b\\{name}\x1b]8;;\x1b\\", 1)


def _multiplexed(environ: Mapping[str, str]) -> bool:
    """Whether a program between us and the terminal would have to pass sequences on."""
    return "TMUX" in environ or "STY" in environ or environ.get("TERM", "").startswith(("screen", "tmux"))


def _has_feature(features: str, code: str) -> bool:
    """Whether a code such as `P` or `Cw` is in iTerm2's list of features: a capital letter, small letters, a number."""
    return code in re.findall(r"[A-Z][a-z]*", features)


QUERY_SECONDS = 0.1
KEPT_SECONDS = 30 * 86_400.0

_ANSWERED = re.compile(rb"\x1b\[\?[0-9;]*c")
_WHOLE_REPLY = re.compile(rb"\x1b\]11;[^\x07\x1b]{0,64}(?:\x07|\x1b\\)")
_REPLY = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")


def background(cache: Path, streams: Streams) -> tuple[str, bytes]:
    """Either "dark" or "light", or "" if the terminal does not respond; the response is cached in the file `cache`.

    The second value is text that the user typed meanwhile.
    """
    name = "-".join(os.environ.get(part, "") for part in ("TERM_PROGRAM", "TERM", "COLORTERM", "COLORFGBG"))
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if time.time() - cache.stat().st_mtime < KEPT_SECONDS:
            known, _, shade = cache.read_text().strip().partition("\t")
            if known == name and shade in {"dark", "light", ""}:
                return shade, b""
    typed = b""
    if not (shade := _from_environment()):
        shade, typed = _query_terminal(streams)
    with contextlib.suppress(OSError):
        cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        cache.write_text(f"{name}\t{shade}\n")
    return shade, typed


def _from_environment() -> str:
    """COLORFGBG of rxvt and others: `foreground;background`, 0 to 6 and 8 are dark."""
    last = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    if not last.isdecimal():
        return ""
    return "dark" if int(last) in {0, 1, 2, 3, 4, 5, 6, 8} else "light"


def _query_terminal(streams: Streams) -> tuple[str, bytes]:
    if (
        os.name != "posix"
        or not (streams.stdin.isatty() and streams.stdout.isatty())
        or os.environ.get("TERM") in {"dumb", None}
    ):
        return "", b""
    import termios
    import tty

    descriptor = streams.stdin.fileno()
    saved = termios.tcgetattr(descriptor)
    reply = b""
    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        # Every terminal responds to the second request: its response means that there will be none to the first.
        os.write(streams.stdout.fileno(), b"\x1b]11;?\x1b\\\x1b[c")
        until = time.monotonic() + QUERY_SECONDS
        while (left := until - time.monotonic()) > 0 and not _ANSWERED.search(reply):
            if select.select([descriptor], [], [], left)[0]:
                reply += os.read(descriptor, 256)
    except (OSError, termios.error):
        return "", reply
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, saved)
    typed = _ANSWERED.sub(b"", _WHOLE_REPLY.sub(b"", reply))
    match = _REPLY.search(reply)
    if match is None:
        return "", typed
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in match.groups())
    return ("light" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5 else "dark"), typed


MOST_BYTES = 1 << 20
"""The largest text that most terminals accept, in bytes."""


def copy_text(data: bytes) -> None:
    """Copy to the clipboard by OSC 52. Raises OutputError if there is no terminal or the data is too large."""
    if len(data) > MOST_BYTES:
        raise OutputError(
            f"too large for the clipboard: {len(data):,} bytes; the limit is {MOST_BYTES:,}", "use \\g FILE instead"
        )
    text = f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"
    if os.environ.get("TMUX"):
        # tmux passes the sequence to the terminal only in this envelope.
        text = "\x1bPtmux;" + text.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    try:
        with Path("/dev/tty").open("wb", buffering=0) as terminal:
            write_all(terminal.write, text.encode())
    except OSError:
        raise OutputError("cannot copy: no terminal", "use \\g FILE instead") from None
