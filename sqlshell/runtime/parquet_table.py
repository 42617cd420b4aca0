"""The rows of a Parquet file in a DuckDB of their own, for queries that run one after another in a thread."""

from __future__ import annotations

import asyncio
import shutil
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlshell.errors import OutputError
from sqlshell.interface.strings import literal
from sqlshell.runtime.event_loops import interrupt_until_done
from sqlshell.runtime.isolated_duckdb import isolated_duckdb

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")


class ParquetTable:
    """The rows of the file `place`. `source` is SQL for them: a relation with `file_row_number` from 0.

    The file is alone in its folder, which close() removes, or the garbage collector; `made` is a file there that
    queries may write.
    """

    def __init__(self, place: Path, memory: str, settings: Mapping[str, str] = {}) -> None:
        self.place = place
        self.made = place.with_name("made.parquet")
        self.size = place.stat().st_size
        self.source = f"read_parquet({literal(str(place))}, file_row_number = true)"
        self._threads = ThreadPoolExecutor(1, "table")
        self._cursors: list[duckdb.DuckDBPyConnection] = []
        self._finalizer = weakref.finalize(self, shutil.rmtree, place.parent, ignore_errors=True)
        self.connection = isolated_duckdb(
            memory,
            files=[place, self.made],
            spilled=place.with_name("spilled"),
            settings={"parquet_metadata_cache": "true", **settings},
        )

    def submit(self, work: Callable[..., T], *args: Any) -> Future[T]:
        """Call a function in the thread of this object, after those before it."""
        return self._threads.submit(work, *args)

    async def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, which is interrupted where this is canceled. Raises OutputError."""
        running = self._threads.submit(self._run, sql)
        try:
            return await asyncio.shield(asyncio.wrap_future(running))
        except asyncio.CancelledError:
            if not running.cancel():
                await interrupt_until_done(asyncio.wrap_future(running), self.connection.interrupt)
            raise

    async def texts(self, sql: str) -> list[list[str | None]]:
        """The rows of a query with one column, a list of strings. Raises OutputError."""
        return [row for (row,) in await self.query(sql)]

    def interrupt(self) -> None:
        """Stop what runs in another thread."""
        for connection in (self.connection, *self._cursors):
            connection.interrupt()

    def close(self) -> None:
        """Interrupt what runs, and remove the file and all that was written beside it."""
        self.interrupt()
        self._threads.shutdown()
        self.connection.close()
        self._finalizer()

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            return self.connection.execute(sql).fetchall()
        except duckdb.Error as error:
            raise OutputError(f"cannot read the result: {str(error).splitlines()[0]}") from error
