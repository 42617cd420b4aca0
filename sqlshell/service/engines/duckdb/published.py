"""The service's own relations `deltastream.sys` under `serve`: views of files that the service writes.

The database of the views is attached read-only, so that no statement can change it. Its relations have new rows as soon
as a file is replaced, also in open transactions.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqlshell.service.engines.duckdb.catalog import typed
from sqlshell.service.engines.engine import SYSTEM_DATABASE, Listing
from sqlshell.service.engines.files.render import own
from sqlshell.sql.identifiers import always_quoted, literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Columns = Sequence[tuple[str, str]]
"""Names and interface types."""


def attach(root: DuckDBPyConnection, folder: Path, relations: Mapping[str, Columns]) -> None:
    """Attach the database, which is created if these relations have none yet. Raises duckdb.Error and OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    views = ["CREATE SCHEMA begun.sys"]
    for name, columns in relations.items():
        file = _file(folder, name)
        file.touch(mode=0o600)
        names = [always_quoted(column) for column, _ in columns]
        texts = ", ".join(f"{column} := 'VARCHAR'" for column in names)
        rows = f"read_json({literal(str(file))}, format = 'newline_delimited', columns = struct_pack({texts}))"
        view = own(f"SELECT {typed(names, columns)} FROM {rows}")
        views.append(f"CREATE VIEW begun.sys.{always_quoted(name)} AS {view}")
    sql = "; ".join(views)
    database = folder / f"{hashlib.sha256(sql.encode()).hexdigest()[:16]}.data"
    if not database.exists():
        begun = database.with_suffix(".begun")
        begun.unlink(missing_ok=True)
        root.execute(f"ATTACH {literal(str(begun))} AS begun; {sql}; DETACH begun")
        begun.rename(database)
    root.execute(f"ATTACH {literal(str(database))} AS {SYSTEM_DATABASE} (READ_ONLY)")


class PublishedRelations:
    """Writes the rows of the relations. Used from any thread, by one process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shown: dict[str, Listing] = {}
        self._lock = threading.Lock()

    def publish(self, tables: Mapping[str, Listing]) -> None:
        """Replace the rows of relations that have changed. Raises OSError."""
        for name, listing in tables.items():
            with self._lock:
                if self._shown.get(name) != listing:
                    self._write(name, listing)
                    self._shown[name] = listing

    def _write(self, name: str, listing: Listing) -> None:
        names = [column for column, _ in listing.columns]
        lines = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in listing.rows]
        # Statements that read the old file continue.
        written = _file(self._folder, f"{name}.new")
        written.write_text("".join(f"{line}\n" for line in lines))
        written.rename(_file(self._folder, name))


def _file(folder: Path, relation: str) -> Path:
    return folder / f"{relation}.json"
