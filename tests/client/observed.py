"""An observer of statements that remembers what it is told."""

from __future__ import annotations

from typing import Any

from sqlshell.client.statements.client import Observer


class Observed:
    """All that an observer was told, in order."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.observer = Observer(
            statement_id=self.all.append,
            progress=lambda share, text: self.all.append((share, text)),
            context=lambda echo: self.all.append(echo and echo.database_name),
            timing=self.all.append,
        )
