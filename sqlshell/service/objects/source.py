"""Function sources and descriptor sources: files that were attached to a statement."""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from pathlib import Path
from urllib.parse import quote

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import Object
from sqlshell.service.failure import Failure
from sqlshell.service.objects.attachments import attachment_named
from sqlshell.service.objects.function import check_source_unused
from sqlshell.service.objects.kind import Create, Drop, Execution, Kind, Result
from sqlshell.service.objects.result_rows import OWNED, TIMES, Facts, columns
from sqlshell.service.objects.scope import Scope
from sqlshell.service.organizations.organizations import Organization
from sqlshell.sql.analysis.secrets import shown_options

KINDS = ("function_source", "descriptor_source")
CHUNK = 1 << 20


class _Source(Kind):
    verbs = ("create", "drop", "describe")
    is_services = True

    def create(self, asked: Create, execution: Execution) -> None:
        organization, options = execution.organization, asked.options
        wanted = Path(options.get("file", "").removeprefix("@").replace("\\", "/")).name
        if not wanted:
            needs = "requires WITH ('file' = 'NAME') and an attachment of that name"
            raise Failure(sqlstate.SYNTAX, f"CREATE {self.title} {needs}")
        path = attachment_named(execution.files, wanted).path
        kept = sum(item.detail["size"] for kind in KINDS for item in execution.scope.kept(kind))
        most = execution.services.settings.resources_size
        if kept + path.stat().st_size > most:
            message = f"the sources of the organization would exceed {most / (1 << 30):g} GiB"
            raise Failure(sqlstate.LIMIT, message)
        file = organization.folder("resources") / str(uuid.uuid4())
        try:
            size, digest = _copy(path, file)
            detail = {"file": wanted, "stored": file.name, "size": size, "sha256": digest}
            detail |= {key: value for key, value in shown_options(options).items() if key != "file"}
            try:
                execution.add(self.name, asked.name, detail)
            except Failure:
                file.unlink()
                raise
            if (shared := organization.shared_file(file.name)) is not None:
                # The catalog is first: it says that the file in the storage is needed.
                try:
                    shared.put(file)
                except OSError:
                    organization.catalog.drop(organization.id, self.name, asked.name)
                    raise
        except OSError as error:
            raise Failure(sqlstate.LIMIT, f"cannot store the file: {error.strerror}") from error

    def drop(self, asked: Drop, execution: Execution) -> Result | None:
        organization = execution.organization
        with organization.changing:
            if self.name == "function_source":
                check_source_unused(asked.name, execution.scope)
            file = str(execution.get(self.name, asked.name).detail["stored"])
            execution.forget(self.name, asked.name)
            with contextlib.suppress(OSError):
                (organization.folder("resources") / file).unlink()
            if (shared := organization.shared_file(file)) is not None:
                shared.remove()
        return None

    def facts(self, scope: Scope) -> list[Facts]:
        return [
            scope.facts(item)
            | {
                "state": "ready",
                "language": "JAVA" if str(item.detail.get("file", "")).lower().endswith(".jar") else "",
                "type": self.name if self.name == "function_source" else "PROTOBUF",
                "url": f"/v2/download/{self.name}/{scope.organization.id}/{quote(item.name, safe='')}",
                "tags": [],
            }
            for item in scope.kept(self.name)
        ]


class FunctionSource(_Source):
    name, plural = "function_source", "function_sources"
    listing = columns("Name", "Language", "State", "Description", "Url", "Owner", *TIMES, "File", "Size", "Sha256")
    relation = columns("name", "file", "language", "description", "status=state", *OWNED)


class DescriptorSource(_Source):
    name, plural = "descriptor_source", "descriptor_sources"
    listing = columns(
        *("Name", "Type", "State", "Description", "Url", "Tags", "Owner", *TIMES, "File", "Size", "Sha256")
    )
    relation = columns("name", "file", "type", "description", "status=state", *OWNED)


def _copy(source: Path, target: Path) -> tuple[int, str]:
    """Copy an attachment, which several statements may name; returns its size and SHA-256. Raises OSError."""
    part, digest, size = target.with_suffix(".part"), hashlib.sha256(), 0
    try:
        with source.open("rb") as given, part.open("wb") as kept:
            while chunk := given.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
                kept.write(chunk)
        part.rename(target)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return size, digest.hexdigest()


def path_of(organization: Organization, source: Object) -> Path:
    """The file of a source, fetched if another process stored it. Raises OSError."""
    path = organization.folder("resources") / str(source.detail["stored"])
    if not path.exists() and (shared := organization.shared_file(path.name)) is not None:
        shared.get(path, str(source.detail["sha256"]))
    return path
