"""Temporary files of this process: removed at exit, or by the user's next start if the process was killed.

They are in one folder, `sqlshell-…` in the system's temporary directory. Its file `owner` is locked and names the
process (pid and start time, because pids are reused); its file `beside` lists temporary files in other folders.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import os
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

_PREFIX: Final = "sqlshell-"
_OWNER: Final = "owner"
_BESIDE: Final = "beside"
UNFINISHED_SECONDS: Final = 60.0
"""An older folder without the file `owner` comes from a process that died while creating it."""
TRIES: Final = 3
"""Number of attempts to remove a folder: a running thread may add a file during the removal."""


class Scratch:
    """The folder of one process, created on first use. Every method is thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._root: Path | None = None
        self._owner: IO[str] | None = None
        self._beside: set[Path] = set()
        self._process = os.getpid()

    def folder(self, name: str) -> Path:
        """A new folder, mode 0700. Raises OSError."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._root_folder()))

    def add(self, path: Path) -> None:
        """Register a temporary file in another folder, which will be renamed to its final name. Raises OSError."""
        status = path.stat()
        with (self._root_folder() / _BESIDE).open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{status.st_dev} {status.st_ino} {path.absolute()}\0")
        with self._lock:
            self._beside.add(path)

    def forget(self, path: Path) -> None:
        """Unregister a file that was renamed or removed."""
        with self._lock:
            self._beside.discard(path)

    def remove(self) -> None:
        """Remove all temporary files. Raises nothing. A process that was forked leaves those of its parent."""
        if self._process != os.getpid():
            return
        with self._lock:
            root, self._root = self._root, None
            owner, self._owner = self._owner, None
            beside, self._beside = self._beside, set()
        for path in beside:
            with contextlib.suppress(OSError):
                path.unlink()
        if root is not None:
            _remove(root)
        if owner is not None:
            owner.close()

    def _root_folder(self) -> Path:
        with self._lock:
            if self._root is None:
                root = Path(tempfile.mkdtemp(prefix=_PREFIX))
                self._owner = (root / _OWNER).open("x")
                with contextlib.suppress(OSError):
                    fcntl.flock(self._owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._owner.write(f"{os.getpid()} {start_time(os.getpid())}")
                self._owner.flush()
                self._root = root
                atexit.register(self.remove)
            return self._root


@functools.cache
def scratch() -> Scratch:
    """The Scratch of this process."""
    return Scratch()


os.register_at_fork(after_in_child=scratch.cache_clear)


def sweep() -> None:
    """Remove the temporary files of this user's killed processes, but not those of live ones. Raises nothing."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if not entry.name.startswith(_PREFIX):
                continue
            with contextlib.suppress(OSError), _left(Path(entry.path)) as left:
                if left:
                    _remove_all(Path(entry.path))


@contextlib.contextmanager
def _left(root: Path) -> Iterator[bool]:
    """Whether the owner of a folder is dead; the folder is locked inside the `with` block."""
    status = root.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        yield False
        return
    try:
        owner = (root / _OWNER).open("r+")
    except FileNotFoundError:
        if time.time() - status.st_mtime > UNFINISHED_SECONDS:
            # rmdir() removes only an empty folder: another program may use such a name.
            root.rmdir()
        yield False
        return
    with owner:
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        number, _, began = owner.read().partition(" ")
        yield number.isdecimal() and start_time(int(number)) != began


def _remove_all(root: Path) -> None:
    try:
        noted = (root / _BESIDE).read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        noted = ""
    for line in noted.split("\0")[:-1]:
        device, inode, path = line.split(" ", 2)
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            if (str(status.st_dev), str(status.st_ino)) == (device, inode) and Path(path).name.startswith("."):
                Path(path).unlink()
    _remove(root)


def _remove(root: Path) -> None:
    for _ in range(TRIES):
        shutil.rmtree(root, ignore_errors=True)
        if not root.exists():
            return


def start_time(process: int) -> str:
    """The start time of a process in the system's own notation; "" if the process does not exist."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    if Path("/proc/self/stat").exists():
        return ""
    with contextlib.suppress(OSError):
        asked = ["ps", "-o", "lstart=", "-p", str(process)]
        return subprocess.run(asked, stdout=subprocess.PIPE, check=False, text=True).stdout.strip()
    return ""
