"""An instance of DuckDB beside the engine's, for the rows of finished results."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping

import duckdb

from sqlshell.runtime.isolated_duckdb import hide_progress
from sqlshell.service.engines.duckdb.failures import failure

_SETTINGS = {
    "enable_external_file_cache": "false",
    "autoinstall_known_extensions": "false",
}


def separate_instance(threads: int, settings: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A new instance in memory. `settings` are SQL by name; with 0 threads DuckDB chooses their number."""
    root = duckdb.connect(":memory:")
    hide_progress(root)
    for name, value in {**_SETTINGS, **settings}.items():
        root.execute(f"SET {name} = {value}")
    if threads:
        root.execute(f"SET threads = {threads}")
    return root


class SharedInstance:
    """A separate instance for callers in any thread: opened for the first one, closed by release_memory()."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """`settings` are SQL by name."""
        self.threads = 0
        self._settings = settings
        self._lock = threading.Lock()
        self._root: duckdb.DuckDBPyConnection | None = None
        self._active = 0

    @property
    def open(self) -> bool:
        return self._root is not None

    def release_memory(self) -> None:
        """Close the instance, unless it is in use."""
        with self._lock:
            if self._root is not None and not self._active:
                self._root.close()
                self._root = None

    @contextlib.contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor for a block, whose errors of DuckDB become Failure."""
        with self._lock:
            if self._root is None:
                self._root = separate_instance(self.threads, self._settings)
            cursor = self._root.cursor()
            self._active += 1
        try:
            yield cursor
        except duckdb.Error as error:
            raise failure(error) from error
        finally:
            cursor.close()
            with self._lock:
                self._active -= 1
