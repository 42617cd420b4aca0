"""DuckDB instances that reach only the files they are given, because what they read may come from a hostile service."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqlshell.interface.strings import literal

if TYPE_CHECKING:
    import duckdb


def isolated_duckdb(
    memory: str,
    *,
    files: Sequence[Path] = (),
    folder: Path | None = None,
    spilled: Path | None = None,
    database: Path | None = None,
    settings: Mapping[str, str] = {},
) -> duckdb.DuckDBPyConnection:
    """An instance that reads and writes `files`, all files in `folder`, and nothing else.

    `memory` is the memory limit, such as 512MB; `spilled` a folder for temporary files, without which there are none;
    `database` the file of the database, without which it is in memory; `settings` are further settings as SQL. The time
    zone is UTC, and no setting can be changed afterwards.
    """
    import duckdb

    instance = duckdb.connect(
        ":memory:" if database is None else str(database),
        config={
            "threads": str(min(2, os.cpu_count() or 1)),
            "memory_limit": memory,
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "enable_external_file_cache": "false",
            "python_enable_replacements": "false",
        },
    )
    for name, value in {
        "temp_directory": literal(str(spilled or "")),
        "TimeZone": "'UTC'",
        # In an interactive Python DuckDB prints progress to stdout.
        "enable_progress_bar": "false",
        **settings,
        "allowed_paths": _list(files),
        "allowed_directories": _list([folder] if folder is not None else []),
        "enable_external_access": "false",
        "lock_configuration": "true",
    }.items():
        instance.execute(f"SET {name} = {value}")
    return instance


def _list(places: Sequence[Path]) -> str:
    return f"[{', '.join(literal(str(place)) for place in places)}]"
