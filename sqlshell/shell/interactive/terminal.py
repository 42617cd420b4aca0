"""Restores the terminal, however the program ends."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator

from sqlshell.runtime.streams import Streams

RESET = b"\x1b[?2004l\x1b[?1000l\x1b[?1006l\x1b[?25h\x1b[?7h\x1b[0m"
"""Bracketed paste and mouse off, cursor and line wrap on, no attributes."""


@contextlib.contextmanager
def restored(streams: Streams) -> Iterator[None]:
    """Restore the terminal after a crash or signal, also if the program exits without leaving the block."""
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
