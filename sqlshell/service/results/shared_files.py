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
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar
from urllib.parse import unquote

import fsspec

from sqlshell.errors import ServiceError, UsageError, reason

T = TypeVar("T")

FOLDER: Final = "results"

IDENTITY: Final = "storage-id"
"""The name of the file with the ID of the storage."""

OWNER: Final = "service-id"
"""The name of the file with the ID of the service whose results these are: only its processes remove leftovers."""

UNUSED_SECONDS: Final = 60.0
"""How long a copy is kept after its last use, however large all copies are: it may be being read."""

SILENT_SECONDS: Final = 20.0
"""How long a call of the storage may make no progress before it fails."""

PAUSE_SECONDS: Final = 30.0
"""While such a call still waits, how often another one tries whether the storage responds again; the others fail at
once."""

MOST_SILENT: Final = 8
"""The maximum number of calls that wait for a storage without a response."""

LISTED_AT_ONCE: Final = 500
"""The number of files that a sweep looks at together."""

CHUNK: Final = 1 << 20

_log = logging.getLogger("sqlshell.service")


class SharedFiles:
    """`url` is one of fsspec's: file:///directory, s3://bucket/prefix, … Methods raise OSError.

    What this process has stored or fetched stays in its own directory as a copy. If all copies exceed `room` bytes,
    those that have not been used for the longest time are removed, unless they were used in the last `unused` seconds.

    A storage that makes no progress for `silent` seconds has TimeoutError, which is an OSError too.

    Raises UsageError for a URL that cannot be used, ServiceError if nothing can be written there.
    """

    def __init__(
        self, url: str, room: int = 1 << 60, unused: float = UNUSED_SECONDS, silent: float = SILENT_SECONDS
    ) -> None:
        self._room = room
        self._unused = unused
        self._silent_seconds = silent
        self._silent: set[threading.Thread] = set()
        """The calls that have made no progress for too long, and have not returned."""
        self._retry = 0.0
        """When another call may be made meanwhile, as a time of time.monotonic()."""
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
            return self._noted(IDENTITY, str(uuid.uuid4()))
        except Exception as error:
            raise self._unusable(error) from None

    def _noted(self, name: str, text: str) -> str:
        """The text in a file of the storage, which is created with `text` if it does not exist."""
        with contextlib.suppress(FileNotFoundError):
            if content := self._files.cat_file(f"{self._root}/{name}").decode("ascii", "replace")[:100]:
                return str(content)
        self._files.pipe_file(f"{self._root}/{name}", text.encode())
        return text

    def sweep(self, service: str, needed: Callable[[Collection[str]], Mapping[str, bool]]) -> int:
        """Remove the files that killed processes left behind; returns their number.

        `needed` returns, of the names of some files, those that are needed, and whether they may be incomplete yet.
        Nothing is removed if the storage has the results of another `service`, given by its ID. Raises OSError.
        """
        if self._call(lambda progress: self._noted(OWNER, service)) != service:
            message = "the results of another service are in the same storage: files of killed processes stay there"
            raise OSError(errno.EEXIST, message)
        found = self._call(self._listed)
        removed = 0
        for start in range(0, len(found), LISTED_AT_ONCE):
            # A file is there before its record has its end, so that a file whose record does not need it is left over.
            some = found[start : start + LISTED_AT_ONCE]
            known = needed([_statement_of(name) for name in some])
            for name in some:
                incomplete = known.get(_statement_of(name))
                if incomplete is None or (name.endswith(".part") and not incomplete):
                    self._call(partial(self._remove, name))
                    removed += 1
        return removed

    def _listed(self, progress: _Progress) -> list[str]:
        """The names of all files of results, complete or not."""
        self._files.invalidate_cache()
        found = []
        for name in self._files.find(self._root):
            progress.relative_update()
            if str(name).removeprefix(self._root).count("/") == 2:
                found.append(str(name))
        return found

    def _unusable(self, error: Exception) -> ServiceError:
        return ServiceError(f"cannot write to --results-url: {_hidden(str(error), self._url) or type(error).__name__}")

    def place(self, organization: str, name: str) -> str:
        """The place of a file of an organization, such as the result of a statement, which has the statement's ID."""
        return f"{self._root}/{organization or 'none'}/{name}"

    def put(self, file: Path, name: str) -> None:
        try:
            self._call(partial(self._put, file, name))
        except TimeoutError:
            raise
        except OSError as error:
            why = reason(error) if error.strerror else type(error).__name__
            message = f"cannot write to the storage of --results-url: {why}"
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

    def _put(self, file: Path, name: str, progress: _Progress) -> None:
        self._make_folder(name.rpartition("/")[0])
        if not self._has_folders:
            self._files.put_file(str(file), name, callback=progress)
            return
        # The file must appear whole: stores of objects ensure that, directories need a rename.
        partial_name = f"{name}.{uuid.uuid4()}.part"
        try:
            with file.open("rb") as source, self._files.open(partial_name, "wb") as target:
                for chunk in _chunks(source, progress):
                    target.write(chunk)
            self._files.mv(partial_name, name)
        except BaseException:
            # On a full disk it would keep the disk full.
            with contextlib.suppress(OSError):
                self._files.rm_file(partial_name)
            raise

    def get(self, name: str, file: Path, digest: str) -> None:
        """Fetch a file if its SHA-256 is `digest`: others may be able to write to the store."""
        try:
            self._call(partial(self._get, name, file, digest))
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            with self._lock:
                removed = self._remove_unused(0)
            if not removed:
                raise
            self._call(partial(self._get, name, file, digest))

    def _get(self, name: str, file: Path, digest: str, progress: _Progress) -> None:
        fetched = file.with_name(f"{file.name}.{uuid.uuid4()}.part")
        try:
            if self._has_folders:
                with self._files.open(name, "rb") as source, fetched.open("wb") as target:
                    for chunk in _chunks(source, progress):
                        target.write(chunk)
            else:
                self._files.get_file(name, str(fetched), callback=progress)
            found = hashlib.sha256()
            with fetched.open("rb") as content:
                for chunk in _chunks(content, progress):
                    found.update(chunk)
            if found.hexdigest() != digest:
                raise OSError(errno.EIO, "the result's file in the shared storage was changed")
            fetched.replace(file)
            self.used(file)
        finally:
            fetched.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Remove a file if it exists. Never waits."""
        self._removing.submit(self._remove_or_log, name)

    def _remove_or_log(self, name: str) -> None:
        # What is not removed now is removed by a sweep.
        try:
            self._call(partial(self._remove, name))
        except OSError as error:
            _log.warning("cannot remove a result: %s", reason(error))

    def _remove(self, name: str, progress: _Progress) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._files.rm_file(name)

    def _call(self, work: Callable[[_Progress], T]) -> T:
        """Call the storage in a thread of its own, because nothing else ends a call that hangs. Raises OSError;
        TimeoutError if it makes no progress, and at once while an earlier call hangs.
        """
        with self._lock:
            self._silent = {call for call in self._silent if call.is_alive()}
            if self._silent and (time.monotonic() < self._retry or len(self._silent) >= MOST_SILENT):
                raise _silent()
            self._retry = time.monotonic() + PAUSE_SECONDS
        progress = _Progress()
        done: Future[T] = Future()

        def run() -> None:
            try:
                with _as_os_error():
                    done.set_result(work(progress))
            except BaseException as error:
                done.set_exception(error)

        call = threading.Thread(target=run, name="results", daemon=True)
        call.start()
        while not done.done():
            left = progress.last + self._silent_seconds - time.monotonic()
            if left <= 0:
                with self._lock:
                    self._silent.add(call)
                    self._retry = time.monotonic() + PAUSE_SECONDS
                raise _silent()
            wait([done], left)
        return done.result()

    def close(self) -> None:
        self._removing.shutdown()

    def _make_folder(self, name: str) -> None:
        # In a store of objects that would create the bucket, whose name may be misspelled.
        if self._has_folders:
            self._files.makedirs(name, exist_ok=True)


class _Progress(fsspec.Callback):  # type: ignore[misc]
    """Notes when a call of the storage last made progress, as a time of time.monotonic()."""

    def __init__(self) -> None:
        super().__init__()
        self.last = time.monotonic()

    def relative_update(self, inc: int = 1) -> None:
        self.last = time.monotonic()


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
        _log.warning("cannot access the storage of --results-url: %s", error)
        raise OSError(
            errno.EIO, "the storage does not respond, or refuses access; see the log for the error"
        ) from error


def _silent() -> TimeoutError:
    return TimeoutError(errno.ETIMEDOUT, "the storage of --results-url does not respond")


def _chunks(file: BinaryIO, progress: _Progress) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        progress.relative_update()
        yield chunk


def _statement_of(name: str) -> str:
    """The ID of the statement to whose result a file belongs."""
    return name.rpartition("/")[2].partition(".")[0]
