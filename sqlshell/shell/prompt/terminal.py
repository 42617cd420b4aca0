"""Gives the terminal back as it was, however the program ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

RESET = b"\x1b[?2004l\x1b[?1000l\x1b[?1006l\x1b[?25h\x1b[?7h\x1b[0m"
"""Bracketed paste and mouse off, cursor and line wrap on, no attributes."""


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """While inside, SIGTERM, SIGHUP and a crash give the terminal back; the signals end the program with 128 + n."""
    if os.name != "posix" or not sys.stdin.isatty():
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    saved = termios.tcgetattr(descriptor)

    def give_back() -> None:
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(descriptor, termios.TCSANOW, saved)
        with contextlib.suppress(OSError):
            os.write(sys.stdout.fileno() if sys.stdout.isatty() else descriptor, RESET + b"\r\n")

    def leave(number: int, frame: FrameType | None) -> None:
        give_back()
        os._exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except BaseException:
        give_back()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
