"""The screen: short results as they are, tall ones through a pager that is fed as rows arrive."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from typing import BinaryIO

from sqlshell.output.sink import Closed, StreamSink

DEFAULT = "less -SRXF"


class ScreenSink:
    """Holds output back until it is taller than the screen, then starts the pager. Without `less`, plain output.

    While the pager runs Ctrl-C is the pager's own; quitting it is Closed to whoever writes. To be used from the main
    thread, but for write().
    """

    def __init__(self, stream: BinaryIO, command: str) -> None:
        self._plain = StreamSink(stream)
        self._command = command or (DEFAULT if shutil.which("less") else "")
        self._height = shutil.get_terminal_size().lines
        self._held = b""
        self._process: subprocess.Popen[bytes] | None = None
        self._before: object = None
        self._through = not self._command

    @property
    def blocking(self) -> bool:
        return self._process is not None

    def write(self, data: bytes) -> None:
        if self._process is not None:
            self._feed(data)
        elif self._through:
            self._plain.write(data)
        else:
            self._held += data
            if self._held.count(b"\n") >= self._height - 1:
                self._start()

    def close(self) -> None:
        if self._process is None:
            held, self._held = self._held, b""
            if held:
                with contextlib.suppress(Closed):
                    self._plain.write(held)
            return
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()
        self._process = None
        self._restore()

    def abort(self) -> None:
        self.close()

    def _start(self) -> None:
        held, self._held = self._held, b""
        try:
            self._process = subprocess.Popen(self._command, shell=True, stdin=subprocess.PIPE, env=_environment())
        except OSError:
            self._through = True
            self._plain.write(held)
            return
        # Ignored only now: the pager would inherit it.
        self._before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._feed(held)

    def _feed(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise Closed from None

    def _restore(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]
            self._before = None


def _environment() -> dict[str, str]:
    return {"LESSCHARSET": "utf-8"} | dict(os.environ)
