"""Multipart bodies with attachments. Attachments are checked first and then streamed from their files."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field

from sqlshell.errors import ServiceError, UsageError, reason
from sqlshell.origin import Trusted
from sqlshell.runtime.files import expanded

PIECE = 1 << 18


class Attachment(Struct):
    """A file that is sent with a statement. `name` is the base name that the SQL uses for it, `size` is in bytes."""

    path: Path
    name: str
    size: int

    def sha256(self) -> str:
        """The SHA-256 of the file. Raises UsageError."""
        import hashlib

        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise UsageError(f"cannot read {self.path}: {reason(error)}") from None


def attachment(text: Trusted, limit: int = 0) -> Attachment:
    """Check a file before anything is sent. `limit` is its maximum size in bytes, 0 for no limit. Raises UsageError."""
    path = expanded(text)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise UsageError(f"{text} is a directory; only files can be attached")
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{text} is not a regular file")
        if limit and status.st_size > limit:
            message = f"{text} is larger than the upload limit of {limit >> 20:,} MiB"
            raise UsageError(message, "nothing was sent; raise the limit with --upload-limit MIB (0 = no limit)")
        with path.open("rb"):
            pass
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {text}: {reason(error)}", "nothing was sent") from None
    return Attachment(path, checked_name(path.name), status.st_size)


def checked_name(name: str) -> str:
    """The name of an attachment. Raises UsageError for one that the form cannot have."""
    if any(ord(char) < 32 or char in '"\\' for char in name) or not name.isprintable():
        raise UsageError(f"file name {name!r} contains characters that cannot be sent", "rename the file")
    return name


class Upload(Struct):
    """A multipart body: `parts` are (headers, content); the files follow as parts named `field_name`.

    It can be sent more than once. `sent` is called with the number of bytes sent so far.
    """

    parts: Sequence[tuple[str, bytes]]
    files: Sequence[Attachment]
    field_name: str
    sent: Callable[[int], None] | None = None
    boundary: str = field(default_factory=lambda: f"sqlshell-{secrets.token_hex(16)}")
    """Made after the parts, so that none can contain it."""
    head: bytes = b""
    """The encoded parts."""

    def __post_init__(self) -> None:
        opening = f"--{self.boundary}\r\n"
        self.head = b"".join(
            b"".join((opening.encode(), headers.encode(), b"\r\n\r\n", content, b"\r\n"))
            for headers, content in self.parts
        )

    @property
    def content_type(self) -> str:
        return f"multipart/form-data; boundary={self.boundary}"

    @property
    def size(self) -> int:
        """Size of the whole body in bytes."""
        files = sum(len(self._before(file)) + file.size + 2 for file in self.files)
        return len(self.head) + files + len(self._end)

    async def pieces(self, moved: Callable[[int], None] | None = None) -> AsyncIterator[bytes]:
        """The body in pieces, of which `moved` gets the sizes. Raises ServiceError if a file has changed."""
        done = 0
        for piece in self._all():
            yield piece
            done += len(piece)
            if moved is not None:
                moved(len(piece))
            if self.sent is not None:
                self.sent(done)

    def _all(self) -> Iterable[bytes]:
        yield self.head
        for file in self.files:
            yield self._before(file)
            try:
                with file.path.open("rb") as stream:
                    yield from _exactly(stream, file)
            except OSError as error:
                raise ServiceError(
                    f"cannot read {file.path}: {reason(error)}",
                    "the upload was discarded; run the statement again",
                ) from None
            yield b"\r\n"
        yield self._end

    @property
    def _end(self) -> bytes:
        return f"--{self.boundary}--\r\n".encode()

    def _before(self, file: Attachment) -> bytes:
        return (
            f"--{self.boundary}\r\n"
            f'Content-Disposition: form-data; name="{self.field_name}"; filename="{file.name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode()


def _exactly(stream: BinaryIO, file: Attachment) -> Iterable[bytes]:
    left = file.size
    if os.fstat(stream.fileno()).st_size != left:
        raise ServiceError(f"{file.path} changed before it was sent", "run the statement again")
    while left:
        piece = stream.read(min(PIECE, left))
        if not piece:
            raise ServiceError(f"{file.path} was truncated during the upload", "run the statement again")
        left -= len(piece)
        yield piece


def upload_of(
    parts: Sequence[tuple[str, bytes]],
    files: Sequence[Attachment],
    name: str,
    progress: Callable[[float | None, str], None],
) -> Upload:
    """A multipart body that reports its progress. Raises UsageError if two files have the same name."""
    names = [file.name for file in files]
    for file in names:
        if names.count(file) > 1:
            raise UsageError(
                f"two attachments have the same file name: {file!r}",
                "rename one: attachments are identified by file name without directory",
            )
    upload = Upload(parts, files, name)
    if files:
        whole = max(upload.size, 1)
        upload.sent = lambda done: progress(done / whole, f"sending {done >> 20:,} of {whole >> 20:,} MiB")
    return upload
