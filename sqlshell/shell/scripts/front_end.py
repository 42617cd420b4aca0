"""The front end of scripts, without a user: no questions, history or completion."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.origin import Own
from sqlshell.output.copy import Consumer
from sqlshell.shell.front_end import Paint, Progress
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.policy import Ask
from sqlshell.sql.completion.catalog import Catalog


class ScriptFrontEnd:
    """Keeps no history, knows no names, asks no questions."""

    ask: Ask | None = None
    browse: Consumer | None = None

    def __init__(
        self, diagnostics: Diagnostics, progress: Progress, paint: Callable[[], Paint | None] = lambda: None
    ) -> None:
        self._diagnostics = diagnostics
        self.progress = progress
        self._find_paint = paint
        self.catalog = Catalog()

    @functools.cached_property
    def paint(self) -> Paint | None:
        """The colors of the theme, loaded when a terminal is written to."""
        return self._find_paint()

    async def token(self, target: str) -> str:
        return ""

    def edit(self, text: str, path: Own) -> Own:
        raise UsageError("\\e requires an interactive terminal", "use \\i FILE to run a script")

    def lending_terminal(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def hiding_input(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def history(self) -> Sequence[tuple[float, str]]:
        return ()

    def clear_history(self) -> None:
        return None

    def refresh_catalog(self) -> None:
        return None

    def note_columns(self, columns: Iterable[str]) -> None:
        return None

    def theme_previews(self) -> Iterable[str]:
        return ()

    def announce(self, text: str) -> None:
        self._diagnostics.report(text)

    def connected(self, session: Session) -> None:
        return None
