"""Limits the disk space of results while they are written."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Sink
from sqlshell.service.failure import Failure
from sqlshell.service.settings import UNLIMITED

WATCH_SECONDS = 0.02
"""How often the size of a file that the engine writes is checked."""


class DiskSpace:
    """The disk space for all results that an engine is writing. Thread-safe."""

    def __init__(self, size: int = UNLIMITED) -> None:
        self.size = size
        self._taken = 0
        self._lock = threading.Lock()

    def take(self, number: int) -> None:
        """Reserve bytes. Raises Failure (53000) if there is not enough space."""
        with self._lock:
            if self._taken + number > self.size:
                cause = f"writing this result would exceed {_written(self.size)}"
                raise Failure(sqlstate.LIMIT, f"{cause} (limit set by sqlshell serve --quota)")
            self._taken += number

    def give(self, number: int) -> None:
        with self._lock:
            self._taken -= number

    @contextlib.contextmanager
    def watch(self, path: Path, interrupt: Callable[[], None]) -> Iterator[None]:
        """Count the size of the file at `path` while the engine writes it; call `interrupt` when the space is used up.

        In that case raises Failure, and removes the file.
        """
        if self.size >= UNLIMITED:
            yield
            return
        written, taken, exceeded = threading.Event(), 0, list[Failure]()

        def count() -> None:
            nonlocal taken
            with contextlib.suppress(OSError):
                size = path.stat().st_size
                try:
                    self.take(max(0, size - taken))
                    taken = max(taken, size)
                except Failure as failure:
                    exceeded.append(failure)

        def look() -> None:
            while not written.wait(WATCH_SECONDS):
                if not exceeded:
                    count()
                if exceeded:
                    # Repeatedly: an interrupt between two steps of a statement may be lost.
                    interrupt()

        thread = threading.Thread(target=look, name="disk space", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise Failure(sqlstate.LIMIT, f"there is not enough memory for this result: {error}") from error
        try:
            yield
        except Exception:
            path.unlink(missing_ok=True)
            if not exceeded:
                raise
        finally:
            written.set()
            thread.join()
            if not exceeded:
                count()
            self.give(taken)
        if exceeded:
            path.unlink(missing_ok=True)
            raise exceeded[0]


class CountingSink:
    """A sink that counts the size of its rows in `room` until it is closed."""

    def __init__(self, sink: Sink, room: DiskSpace) -> None:
        self._sink = sink
        self._room = room
        self._taken = self._filed = 0
        self.path: Path | None = None
        """The file of the result, if the engine writes one."""

    def keep(self, rows: Sequence[str]) -> None:
        """Add rows. Raises Failure if there is not enough space."""
        size = sum(len(row) if row.isascii() else len(row.encode("utf-8", "surrogatepass")) + 1 for row in rows)
        self._room.take(size)
        self._taken += size
        self._sink.keep(rows)

    def file(self) -> Path | None:
        self.path = self._sink.file()
        return self.path

    def grown(self, size: int) -> None:
        """Count the bytes that a file has now, if the engine reports them. Raises the same Failure as keep()."""
        more = size - self._filed
        if more > 0:
            self._room.take(more)
            self._taken += more
            self._filed = size

    def finish(self, filed: Sequence[tuple[int, int]] | None = None) -> None:
        self._sink.finish(filed)

    def counted(self, path: Path, interrupt: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        """Count the size of a file while it is written. Raises the same errors as DiskSpace.watch()."""
        return self._room.watch(path, interrupt)

    def close(self) -> None:
        self._room.give(self._taken)
        self._taken = 0


def _written(size: int) -> str:
    return f"{size / (1 << 30):g} GiB" if size >= 1 << 30 else f"{size / (1 << 20):g} MiB"
