"""The position of the shell in scripts, and how much of a script has run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field

from sqlshell.runtime.files import expanded, is_stdin
from sqlshell.sql.script.scanner import Statement
from sqlshell.sql.script.splitting import split

MOST_COUNTED = 1 << 16
"""Maximum characters of a script whose statements are counted before they run."""


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
    def place(self) -> tuple[str, int]:
        """The name of the script, and the line."""
        return self.script, self.line

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


class ScriptPlace(Struct):
    """`name` is the file's, "" for text without a name; `size` is the size of the script in bytes, 0 if not known."""

    name: str = ""
    size: int = 0
    began: float = field(default_factory=time.monotonic)
    number: int = 0
    """The statement that runs, from 1."""
    offset: int = 0
    """Where it begins, in characters."""
    text: str = ""
    """The script, if it is short and has arrived completely."""
    counted: int = -1

    @classmethod
    def of(cls, chunks: Iterable[str], name: str) -> ScriptPlace:
        """The beginning of a script that has a name or whose `chunks` are in memory."""
        if isinstance(chunks, list):
            text = "".join(chunks)
            return cls(size=len(text.encode("utf-8", "replace")), text=text[: MOST_COUNTED + 1])
        size = 0
        with contextlib.suppress(OSError):
            if name != "stdin":
                size = expanded(name).stat().st_size
        return cls(Path(name).name, size)

    def arrived(self, chunk: str) -> None:
        """A part of the script has been read."""
        if not self.offset and self.size and len(chunk.encode("utf-8", "replace")) == self.size:
            self.text = chunk

    def at(self, statement: Statement) -> None:
        """A statement is run."""
        self.number, self.offset = self.number + 1, statement.offset

    @property
    def count(self) -> int:
        """The number of statements, 0 if it is not known."""
        if self.counted < 0:
            known = self.text and len(self.text) <= MOST_COUNTED
            self.counted = sum(isinstance(item, Statement) for item in split(self.text)) if known else 0
        # A command or a variable may have made further statements.
        return self.counted if self.counted >= self.number else 0

    @property
    def single(self) -> bool:
        """Whether there is nothing to count."""
        return self.count == 1

    @property
    def share(self) -> float | None:
        """How much of the script has been run, from 0 to 1; None if that is not known."""
        return self.share_with(None)

    def share_with(self, current: float | None) -> float | None:
        """The same if this share of the current statement has been run."""
        if self.count:
            return (max(0, self.number - 1) + min(1.0, max(0.0, current or 0.0))) / self.count
        return min(1.0, self.offset / self.size) if self.size else None

    @property
    def label(self) -> str:
        """`FILE: statement 3 of 12`."""
        of = f" of {self.count:,}" if self.count else ""
        return f"{f'{self.name}: ' if self.name else ''}statement {self.number:,}{of}"
