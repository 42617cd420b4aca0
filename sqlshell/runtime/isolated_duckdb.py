"""DuckDB instances that reach only the files they are given, because what they read may come from a hostile service."""

from __future__ import annotations

import contextlib
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
    settings: Mapping[str, str] = {},
) -> duckdb.DuckDBPyConnection:
    """An instance that reads and writes `files`, all files in `folder`, and nothing else.

    `memory` is the memory limit, such as 512MB; `spilled` a folder for temporary files, without which there are none;
    `settings` are further settings as SQL. The time zone is UTC, and no setting can be changed afterwards.
    """
    import duckdb

    instance = duckdb.connect(
        ":memory:",
        config={
            "threads": str(min(2, os.cpu_count() or 1)),
            "memory_limit": memory,
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "enable_external_file_cache": "false",
            "python_enable_replacements": "false",
        },
    )
    hide_progress(instance)
    for name, value in {
        "temp_directory": literal(str(spilled or "")),
        "TimeZone": "'UTC'",
        **settings,
        "allowed_paths": _list(files),
        "allowed_directories": _list([folder] if folder is not None else []),
        "enable_external_access": "false",
        "lock_configuration": "true",
    }.items():
        instance.execute(f"SET {name} = {value}")
    return instance


def hide_progress(instance: duckdb.DuckDBPyConnection) -> None:
    """Turn off the progress that DuckDB prints to stdout in an interactive Python."""
    import duckdb

    # In a notebook without ipywidgets there is no progress bar, and DuckDB refuses to turn it off.
    with contextlib.suppress(duckdb.InvalidInputException):
        instance.execute("SET enable_progress_bar = false")


def _list(places: Sequence[Path]) -> str:
    return f"[{', '.join(literal(str(place)) for place in places)}]"
