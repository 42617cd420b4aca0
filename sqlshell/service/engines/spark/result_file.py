"""A large result as a Parquet file, which grows by a row group at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from sqlshell.interface.models import COLUMNS_KEY, INSTANTS_KEY, ColumnInfo
from sqlshell.service.engines.duckdb.results.filed import DICTIONARY_BYTES
from sqlshell.service.engines.duckdb.results.render import instants
from sqlshell.service.engines.engine import Options
from sqlshell.service.engines.spark.rendering import Rendering


class ResultFile:
    """Writes the file that DuckDB's results are written to too. Each method is called in a thread, one after another.

    Between two calls it holds no thread, so that a server that is slow to send rows takes nothing from others.
    """

    def __init__(
        self, path: Path, columns: Sequence[ColumnInfo], kinds: Sequence[Any], rendering: Rendering, options: Options
    ) -> None:
        self._path = path
        self._kinds = kinds
        self._rendering = rendering
        self._options = options
        self._rows = 0
        zoned = [number for number, _ in instants(kinds)]
        told = {COLUMNS_KEY: list(columns), INSTANTS_KEY: zoned}
        self._metadata = {key: msgspec.json.encode(value) for key, value in told.items()}
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Add rows. Raises duckdb.Error and OSError."""
        made = self._rendering.to_file(table, self._kinds)
        if self._writer is None:
            fields = [pa.field(field.name, field.type) for field in made.schema]
            self._writer = pq.ParquetWriter(
                self._path,
                pa.schema(fields),
                compression="snappy",
                version="2.6",
                data_page_version="2.0",
                dictionary_pagesize_limit=DICTIONARY_BYTES,
                write_statistics=False,
                store_schema=False,
            )
            self._writer.add_key_value_metadata(self._metadata)
        self._writer.write_table(made.cast(self._writer.schema), row_group_size=max(1, made.num_rows))
        self._rows += made.num_rows

    def finish(self) -> list[tuple[int, int]]:
        """End the file. Returns the rows and approximate bytes of each partition. Raises duckdb.Error and OSError."""
        self.close()
        return self._rendering.partitions(self._path, self._rows, self._kinds, self._options)

    def close(self) -> None:
        """End the file, which may be incomplete. Raises OSError."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
