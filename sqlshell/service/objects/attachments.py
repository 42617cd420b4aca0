"""Files that were sent with a request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, field


class Attachment(Struct, frozen=True):
    """A file that was sent with a request: its base name, and its temporary path."""

    name: str
    path: Path


class Attachments(Struct):
    """The files of a request. close() removes them and calls `on_close`."""

    files: list[Attachment] = field(default_factory=list)
    on_close: Callable[[], None] | None = None

    def close(self) -> None:
        for item in self.files:
            item.path.unlink(missing_ok=True)
        self.files.clear()
        if self.on_close is not None:
            self.on_close()
