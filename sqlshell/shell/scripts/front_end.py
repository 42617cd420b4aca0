"""The front end of scripts: nobody is there to be asked, or to look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.origin import Own
from sqlshell.output.copy import Consumer
from sqlshell.shell.front_end import Paint, Progress
from sqlshell.shell.running.policy import Ask
from sqlshell.shell.session import Session
from sqlshell.sql.completion.catalog import Catalog


class ScriptFrontEnd:
    """Keeps no history, knows no names, asks nothing."""

    ask: Ask | None = None
    browse: Consumer | None = None
    paint: Paint | None = None

    def __init__(self, diagnostics: Diagnostics, progress: Progress) -> None:
        self._diagnostics = diagnostics
        self.progress = progress
        self.catalog = Catalog()

    async def token(self, target: str) -> str:
        return ""

    def edit(self, text: str, path: Own) -> Own:
        raise UsageError("\\e requires an interactive terminal", "use \\i FILE to run a script")

    def history(self) -> Sequence[tuple[float, str]]:
        return ()

    def forget(self) -> None:
        return None

    def refresh(self) -> None:
        return None

    def saw(self, columns: Iterable[str]) -> None:
        return None

    def previews(self) -> Iterable[str]:
        return ()

    def announce(self, text: str) -> None:
        self._diagnostics.note(text)

    def connected(self, session: Session) -> None:
        return None
