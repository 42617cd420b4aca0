"""The standard streams, passed to the code that reads or writes them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TextIO

from msgspec import Struct

_ASCII = str.maketrans({"│": "|", "…": "...", "█": "#", "▆": "#", "▏": "|", "×": "x", "·": "-"})


class Streams(Struct, frozen=True, eq=False):
    """The streams that a program reads and writes. Each may be a terminal or not."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO

    @classmethod
    def standard(cls) -> Streams:
        """The streams of this process."""
        return cls(sys.stdin, sys.stdout, sys.stderr)

    @property
    def asks(self) -> bool:
        """Whether a question can be asked without disturbing stdout."""
        return self.stdin.isatty() and self.stderr.isatty()

    @property
    def columns(self) -> int:
        """The width of the terminal in cells."""
        return shutil.get_terminal_size().columns


def shows_unicode(environ: Mapping[str, str]) -> bool:
    """Whether the terminal shows box-drawing characters: according to the locale, if one is set."""
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or "UTF-8"
    return "utf8" in locale.lower().replace("-", "")


def choose_colors(when: str) -> None:
    """Apply the choice of auto, always or never to this process, its libraries, and the commands that it runs."""
    os.environ.pop("SQLSHELL_COLOR", None)
    if when == "never":
        os.environ["NO_COLOR"] = "1"
    elif when == "always":
        os.environ.pop("NO_COLOR", None)
        os.environ["SQLSHELL_COLOR"] = when


def forces_colors(environ: Mapping[str, str]) -> bool:
    """Whether colors are wanted in pipes and files too."""
    return environ.get("SQLSHELL_COLOR") == "always"


def in_locale(text: str) -> str:
    """A text of the program itself, in ASCII if the terminal does not show more."""
    return text if text.isascii() or shows_unicode(os.environ) else text.translate(_ASCII)
