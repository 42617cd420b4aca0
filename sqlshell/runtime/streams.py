"""The standard streams, handed to whatever reads or writes them."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from msgspec import Struct


class Streams(Struct, frozen=True, eq=False):
    """What a program reads and writes. A stream may be a terminal or not."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO

    @classmethod
    def standard(cls) -> Streams:
        """Those of this process."""
        return cls(sys.stdin, sys.stdout, sys.stderr)

    @property
    def asks(self) -> bool:
        """Whether a person can be asked without disturbing stdout."""
        return self.stdin.isatty() and self.stderr.isatty()

    @property
    def columns(self) -> int:
        """Cells of a line of the terminal."""
        return shutil.get_terminal_size().columns
