"""The position of the shell in scripts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlshell.shell.running.attachments import is_stdin


def shown_name(script: str) -> str:
    """The name of a script in messages."""
    return "<stdin>" if script == "stdin" else script


def source_name(script: str) -> str:
    """The name of a script where there has to be one: text without a name is `<command>`."""
    return shown_name(script) or "<command>"


class Position:
    """The running scripts, each included by the previous one, and the line in the last of them."""

    def __init__(self) -> None:
        self.scripts: list[str] = []
        """Names, "" for text without a name: typed text, and `-c`."""
        self.line = 0
        self.column = 0
        """That of the statement which is being run, from 1; 0 if its text is not the one in the script."""

    def __str__(self) -> str:
        """`FILE:LINE`, "" outside of files."""
        return f"{shown_name(self.script)}:{self.line}" if self.script and self.line else ""

    def at(self, line: int, column: int = 0) -> None:
        """Set the position of the next statement or command."""
        self.line, self.column = line, column

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
        """Inside the block, the position is in this script."""
        line, column = self.line, self.column
        self.scripts.append(script)
        try:
            yield
        finally:
            self.scripts.pop()
            self.at(line, column)
