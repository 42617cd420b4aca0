"""The files of finished results, which DuckDB reads and writes in this process whatever the engine is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.failures import failure
from sqlshell.service.engines.duckdb.results.converted import convert
from sqlshell.service.engines.duckdb.results.filed import Reader
from sqlshell.service.engines.engine import RunOptions


class ResultFiles:
    """The parts of Engine that concern files of results."""

    def __init__(self) -> None:
        self._results = Reader()

    def read(self, path: Path, start: int, counts: Sequence[int]) -> list[bytes]:
        try:
            return self._results.read(path, start, counts)
        except duckdb.Error as error:
            raise failure(error) from error

    def partitions(self, path: Path, rows: int, options: RunOptions) -> list[tuple[int, int]]:
        try:
            return self._results.partitions(path, rows, options)
        except duckdb.Error as error:
            raise failure(error) from error

    def convert(
        self, source: Path, ends: Sequence[int], columns: Sequence[ColumnInfo], instants: Sequence[int], target: Path
    ) -> None:
        try:
            convert(source, ends, columns, instants, target, self._results.threads)
        except duckdb.Error as error:
            raise failure(error) from error

    def release_memory(self) -> None:
        self._results.release_memory()
