"""The modes of the terminal: restored however the program ends, and without echo where the shell draws."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator
from typing import Any

from sqlshell.runtime.streams import Streams
from sqlshell.shell.interactive.look.terminal_features import draws

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


class Unechoed:
    """Keeps what is typed off the screen, and Ctrl-C from discarding it, until end(): the next prompt shows it."""

    def __init__(self, streams: Streams) -> None:
        self._descriptor = -1
        self._modes: list[Any] = []
        if os.name != "posix" or not (streams.stdin.isatty() and draws(streams.stdout)):
            return
        import termios

        with contextlib.suppress(OSError, ValueError, termios.error):
            descriptor = streams.stdin.fileno()
            modes = termios.tcgetattr(descriptor)
            # In the background, changing the modes would stop the process.
            if modes[3] & termios.ECHO and os.tcgetpgrp(descriptor) == os.getpgrp():
                quiet = modes[3] & ~termios.ECHO | termios.NOFLSH
                termios.tcsetattr(descriptor, termios.TCSANOW, [*modes[:3], quiet, *modes[4:]])
                self._descriptor, self._modes = descriptor, modes
                # What has been typed so far is on this line.
                streams.stdout.write("\r\x1b[K")
                streams.stdout.flush()

    def end(self) -> None:
        """Turn the echo on again."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            import termios

            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(descriptor, termios.TCSANOW, self._modes)
