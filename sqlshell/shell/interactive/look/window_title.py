"""The title of the terminal's window: the target, and the statement that runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import TextIO

from sqlshell.shell.interactive.look.templates import DEFAULT_TITLE, NO_TITLE, filled
from sqlshell.shell.interactive.look.terminal_features import draws
from sqlshell.shell.session import Session

SAVE, RESTORE = "\x1b[22;2t", "\x1b[23;2t"
_WITHOUT_TITLE = ("linux", "vt", "ansi", "cons")
"""Terminals that have no title, and may show the sequence as text."""


class WindowTitle:
    """Sets the title of `stream`, if it is a terminal; restore() gives back the one that was found."""

    def __init__(self, session: Session, stream: TextIO, environ: Mapping[str, str] = os.environ) -> None:
        self._session = session
        self._stream = stream
        self._titled = draws(stream, environ)
        self._known = not environ.get("TERM", "").startswith(_WITHOUT_TITLE)
        self._shown = ""

    def update(self) -> None:
        """Show what runs now."""
        template = self._session.options.title
        if template == NO_TITLE or not self._titled or not (template or self._known):
            return
        text = filled(template or DEFAULT_TITLE, self._session)
        if text != self._shown:
            self._write(f"{'' if self._shown else SAVE}\x1b]2;{text}\x07")
            self._shown = text

    def restore(self) -> None:
        if self._shown:
            self._shown = ""
            self._write(RESTORE)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
