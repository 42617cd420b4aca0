"""Where in which script the shell is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlshell.shell.running.attachments import is_stdin


class Position:
    """The scripts that are being run, each included by the one before it, and the line in the last of them."""

    def __init__(self) -> None:
        self.scripts: list[str] = []
        """Names, "" for what has none: text that a person typed, and `-c`."""
        self.line = 0

    def __str__(self) -> str:
        """`FILE:LINE`, "" outside of files."""
        return f"{self.script}:{self.line}" if self.script and self.line else ""

    @property
    def script(self) -> str:
        return self.scripts[-1] if self.scripts else ""

    @property
    def in_file(self) -> bool:
        """Whether one of the scripts is a file."""
        return any(self.scripts)

    @property
    def reads_stdin(self) -> bool:
        """Whether one of the scripts is read from stdin."""
        return any(name in {"stdin", "-"} or (name and is_stdin(name)) for name in self.scripts)

    @contextlib.contextmanager
    def within(self, script: str) -> Iterator[None]:
        """While inside, the position is in this script."""
        line = self.line
        self.scripts.append(script)
        try:
            yield
        finally:
            self.scripts.pop()
            self.line = line
