"""The place in a script that runs: which statement of how many."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, field

from sqlshell.runtime.files import expanded
from sqlshell.sql.script.scanner import Statement
from sqlshell.sql.script.splitting import split

MOST_COUNTED = 1 << 16
"""Maximum characters of a script whose statements are counted before they run."""


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
