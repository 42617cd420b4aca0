"""An instance of DuckDB beside the engine's, for the rows of finished results."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from sqlshell.runtime.isolated_duckdb import hide_progress

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
