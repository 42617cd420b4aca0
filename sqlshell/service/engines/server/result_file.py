"""A large result as a Parquet file, which grows by a row group at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from sqlshell.interface.models import COLUMNS_KEY, INSTANTS_KEY, ColumnInfo
from sqlshell.service.engines.duckdb.results.parquet import WIDTH


class ResultFile:
    """Writes the file that DuckDB's results are written to too. Each method is called in a thread, one after another.

    Between two calls it holds no thread, so that a server that is slow to send rows takes nothing from others. `zoned`
    are the numbers of the columns with instants.
    """

    def __init__(self, path: Path, columns: Sequence[ColumnInfo], zoned: Sequence[int]) -> None:
        self.path = path
        self.rows = 0
        metadata = {COLUMNS_KEY: list(columns), INSTANTS_KEY: list(zoned)}
        self._metadata = {key: msgspec.json.encode(value) for key, value in metadata.items()}
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> int:
        """Add rows, whose columns are c0, c1, … and perhaps WIDTH. Returns the bytes that the file has now.

        Raises OSError.
        """
        if self._writer is None:
            fields = [pa.field(field.name, field.type) for field in table.schema]
            self._writer = pq.ParquetWriter(
                self.path,
                pa.schema(fields),
                compression="snappy",
                version="2.6",
                data_page_version="2.0",
                # Dictionaries of strings take time to build, and readers then have to measure the strings.
                use_dictionary=[WIDTH],
                write_statistics=False,
                store_schema=False,
            )
            self._writer.add_key_value_metadata(self._metadata)
        self._writer.write_table(table.cast(self._writer.schema), row_group_size=max(1, table.num_rows))
        self.rows += table.num_rows
        return self.path.stat().st_size

    def close(self) -> None:
        """End the file, which may be incomplete. Raises OSError."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
