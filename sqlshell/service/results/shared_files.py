"""Result files in a place that all processes of a service reach: a directory or an object store."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import threading
import time
import uuid
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import fsspec
from msgspec import Struct

from sqlshell.errors import ServiceError, UsageError

FOLDER: Final = "results"

IDENTITY: Final = "storage-id"
"""The name of the file with the ID of the storage."""

UNUSED_SECONDS: Final = 60.0
"""How long a copy is kept after its last use, however large all copies are: it may be being read."""


class SharedFiles:
    """`url` is one of fsspec's: file:///directory, s3://bucket/prefix, … Methods raise OSError.

    What this process has stored or fetched stays in its own directory as a copy. If all copies exceed `room` bytes,
    those that have not been used for the longest time are removed, unless they were used in the last `unused` seconds.

    Raises UsageError for a URL that cannot be used, ServiceError if nothing can be written there.
    """

    def __init__(self, url: str, room: int = 1 << 60, unused: float = UNUSED_SECONDS) -> None:
        self._room = room
        self._unused = unused
        self._copies: OrderedDict[Path, tuple[int, float]] = OrderedDict()
        """The size of each copy, and when it was last used; the last one used is the last."""
        self._size = 0
        self._lock = threading.Lock()
        scheme = url.partition("://")[0] if "://" in url else ""
        if not (scheme or url.startswith("/")) or "memory" in scheme.split("::"):
            raise UsageError(
                "--results-url must be the URL of a storage that all processes can access",
                "use s3://bucket/prefix, or file:///directory on a shared file system",
            )
        if scheme in {"file", "local"} and not url.startswith(f"{scheme}:///"):
            raise UsageError("--results-url must contain an absolute path", "example: file:///directory")
        try:
            self._files, root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise UsageError(f"cannot use --results-url {scheme}://…: {_hidden(str(error), url)}") from None
        except Exception as error:
            # Some connect at once, and raise the errors of their own libraries.
            raise ServiceError(f"cannot use --results-url {scheme}://…: {_hidden(str(error), url)}") from None
        self._root = f"{str(root).rstrip('/')}/{FOLDER}"
        self._has_folders = self._files.protocol in {"file", ("file", "local")}
        self._removing = ThreadPoolExecutor(1, thread_name_prefix="removing")
        self._url = url
        probe = f"{self._root}/{uuid.uuid4()}.probe"
        try:
            self._make_folder(self._root)
            self._files.pipe_file(probe, b"")
            self._files.rm_file(probe)
        except Exception as error:
            raise self._unusable(error) from None

    def identity(self) -> str:
        """The ID of this storage: the content of a file in it, which is created if it does not exist. Two processes
        must not create it at the same time. Raises ServiceError.
        """
        try:
            with contextlib.suppress(FileNotFoundError):
                if content := self._files.cat_file(f"{self._root}/{IDENTITY}").decode("ascii", "replace")[:100]:
                    return str(content)
            identity = str(uuid.uuid4())
            self._files.pipe_file(f"{self._root}/{IDENTITY}", identity.encode())
        except Exception as error:
            raise self._unusable(error) from None
        return identity

    def _unusable(self, error: Exception) -> ServiceError:
        return ServiceError(f"cannot write to --results-url: {_hidden(str(error), self._url) or type(error).__name__}")

    def of(self, organization: str, statement_id: str) -> SharedFile:
        """The file of a statement's result."""
        return SharedFile(self, f"{self._root}/{organization or 'none'}/{statement_id}")

    def put(self, file: Path, name: str) -> None:
        try:
            self._put(file, name)
        except OSError as error:
            message = f"cannot write to the storage of --results-url: {error.strerror or type(error).__name__}"
            raise OSError(error.errno or errno.EIO, message) from error
        self.used(file)

    def used(self, file: Path) -> None:
        """Note that a copy is used now, and remove others if there are too many."""
        with self._lock, contextlib.suppress(OSError):
            size = file.stat().st_size
            self._size += size - self._copies.pop(file, (0, 0.0))[0]
            self._copies[file] = size, time.monotonic()
            self._remove_unused(self._room)

    def _remove_unused(self, room: int) -> bool:
        """Remove copies until the rest have at most `room` bytes; returns whether any was removed."""
        latest = time.monotonic() - self._unused
        removed = False
        while self._size > room and len(self._copies) > 1:
            file, (size, used) = next(iter(self._copies.items()))
            if used > latest:
                break
            file.unlink(missing_ok=True)
            del self._copies[file]
            self._size -= size
            removed = True
        return removed

    def _put(self, file: Path, name: str) -> None:
        with _as_os_error():
            self._make_folder(name.rpartition("/")[0])
            # The file must appear whole: stores of objects ensure that, directories need a rename.
            partial = f"{name}.{uuid.uuid4()}.part"
            if not self._has_folders:
                self._files.put_file(str(file), name)
                return
            try:
                self._files.put_file(str(file), partial)
                self._files.mv(partial, name)
            except BaseException:
                # On a full disk it would keep the disk full.
                with contextlib.suppress(OSError):
                    self._files.rm_file(partial)
                raise

    def get(self, name: str, file: Path, digest: str) -> None:
        """Fetch a file if its SHA-256 is `digest`: others may be able to write to the store."""
        try:
            self._get(name, file, digest)
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            with self._lock:
                removed = self._remove_unused(0)
            if not removed:
                raise
            self._get(name, file, digest)
        self.used(file)

    def _get(self, name: str, file: Path, digest: str) -> None:
        partial = file.with_name(f"{file.name}.{uuid.uuid4()}.part")
        try:
            with _as_os_error():
                self._files.get_file(name, str(partial))
            with partial.open("rb") as content:
                if hashlib.file_digest(content, "sha256").hexdigest() != digest:
                    raise OSError(errno.EIO, "the result's file in the shared storage was changed")
            partial.replace(file)
        finally:
            partial.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Remove a file if it exists. Never waits."""
        self._removing.submit(self._remove, name)

    def close(self) -> None:
        self._removing.shutdown()

    def _make_folder(self, name: str) -> None:
        # In a store of objects that would create the bucket, whose name may be misspelled.
        if self._has_folders:
            self._files.makedirs(name, exist_ok=True)

    def _remove(self, name: str) -> None:
        try:
            self._files.rm_file(name)
        except FileNotFoundError:
            return
        except Exception as error:
            logging.getLogger("sqlshell.service").warning("cannot remove a result: %s", error)


class SharedFile(Struct, frozen=True):
    """The shared file of one result."""

    files: SharedFiles
    name: str

    def put(self, file: Path) -> None:
        self.files.put(file, self.name)

    def get(self, file: Path, digest: str) -> None:
        self.files.get(self.name, file, digest)

    def used(self, file: Path) -> None:
        self.files.used(file)

    def remove(self) -> None:
        self.files.remove(self.name)


def _hidden(text: str, url: str) -> str:
    """A message without the password in a URL, as it is written there and decoded."""
    place = url.partition("://")[2].rpartition("@")[0]
    password = place.partition(":")[2]
    for secret in filter(None, (password, unquote(password))):
        text = text.replace(secret, "…")
    return text


@contextlib.contextmanager
def _as_os_error() -> Any:
    """Object stores raise errors of their own libraries."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        logging.getLogger("sqlshell.service").warning("cannot access the storage of --results-url: %s", error)
        raise OSError(
            errno.EIO, "the storage does not respond, or refuses access; see the log for the error"
        ) from error
