"""Function sources and descriptor sources: files that were attached to a statement."""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Sequence
from pathlib import Path

from sqlshell.interface import sqlstate
from sqlshell.service.bounds import limit_note
from sqlshell.service.catalog import Object
from sqlshell.service.failure import Failure
from sqlshell.service.objects.attachments import Attachment
from sqlshell.service.organizations.organizations import Organization
from sqlshell.sql.analysis.secrets import shown_options

KINDS = ("function_source", "descriptor_source")
CHUNK = 1 << 20


def attachment_named(attachments: Sequence[Attachment], wanted: str) -> Attachment:
    """The attachment of this name. Raises Failure if there is none."""
    found = next((item for item in attachments if item.name == wanted), None)
    if found is None:
        sent = ", ".join(item.name for item in attachments) or "none"
        raise Failure("22023", f"the request has no attachment {wanted!r} (attachments: {sent})")
    return found


def add(
    organization: Organization,
    kind: str,
    name: str,
    options: dict[str, str],
    attachments: Sequence[Attachment],
    most: int,
) -> None:
    """Store the attachment that `options` name. Raises Failure if all sources would be more than `most` bytes."""
    wanted = Path(options.get("file", "").removeprefix("@").replace("\\", "/")).name
    if not wanted:
        raise Failure(
            sqlstate.SYNTAX, f"CREATE {kind.upper()} requires WITH ('file' = 'NAME') and an attachment of that name"
        )
    attachment = attachment_named(attachments, wanted)
    catalog = organization.catalog
    kept = sum(item.detail["size"] for each in KINDS for item in catalog.objects(organization.id, each))
    if kept + attachment.path.stat().st_size > most:
        message = (
            f"the sources of the organization would exceed {most / (1 << 30):g} GiB {limit_note('resources_size')}"
        )
        raise Failure(sqlstate.LIMIT, message)
    folder = organization.folder("resources")
    digest = hashlib.sha256()
    size = 0
    file = str(uuid.uuid4())
    part = folder / f"{file}.part"
    try:
        # Copied, because two statements of one submission may name the same attachment.
        with attachment.path.open("rb") as source, part.open("wb") as target:
            while chunk := source.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
                target.write(chunk)
        part.rename(folder / file)
        if (shared := organization.shared_file(file)) is not None:
            shared.put(folder / file)
        detail = {"file": wanted, "stored": file, "size": size, "sha256": digest.hexdigest()}
        detail |= {key: value for key, value in shown_options(options).items() if key != "file"}
        try:
            organization.catalog.add(organization.id, kind, name, detail)
        except Failure:
            (folder / file).unlink()
            raise
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise Failure(sqlstate.LIMIT, f"cannot store the file: {error.strerror}") from error


def drop(organization: Organization, kind: str, name: str) -> None:
    source = organization.catalog.get(organization.id, kind, name)
    organization.catalog.drop(organization.id, kind, name)
    file = str(source.detail["stored"])
    with contextlib.suppress(OSError):
        (organization.folder("resources") / file).unlink()
    if (shared := organization.shared_file(file)) is not None:
        shared.remove()


def path_of(organization: Organization, source: Object) -> Path:
    """The file of a source, fetched if another process stored it. Raises OSError."""
    path = organization.folder("resources") / str(source.detail["stored"])
    if not path.exists() and (shared := organization.shared_file(path.name)) is not None:
        shared.get(path, str(source.detail["sha256"]))
    return path
