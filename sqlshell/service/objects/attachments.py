"""Files that were sent with a request, and those of them that are kept as sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from sqlshell.service.catalog import Object
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.organizations import Organization

SOURCES: Final = ("function_source", "descriptor_source")
"""The kinds of objects that keep an attachment."""


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


def attachment_named(attachments: Sequence[Attachment], wanted: str) -> Attachment:
    """The attachment of this name. Raises Failure if there is none."""
    found = next((item for item in attachments if item.name == wanted), None)
    if found is None:
        sent = ", ".join(item.name for item in attachments) or "none"
        raise Failure("22023", f"the request has no attachment {wanted!r} (attachments: {sent})")
    return found


def path_of(organization: Organization, source: Object) -> Path:
    """The file of a source, fetched if another process stored it. Raises OSError."""
    path = organization.folder("resources") / str(source.detail["stored"])
    if not path.exists() and (shared := organization.owner.shared) is not None:
        shared.get(shared.place(organization.id, path.name), path, str(source.detail["sha256"]))
    return path
