"""The DuckDB engine: one instance for one organization, or for the user of the embedded service."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from sqlshell.errors import ServiceError, UsageError
from sqlshell.runtime.compressed_files import is_empty
from sqlshell.runtime.scratch import scratch
from sqlshell.service.engines.duckdb.catalog import FIRST_SCHEMA, DuckdbCatalog
from sqlshell.service.engines.duckdb.connection import DuckdbConnection
from sqlshell.service.engines.duckdb.rights.check import Policy
from sqlshell.service.engines.duckdb.statement import SESSION_SETTINGS
from sqlshell.service.engines.engine import (
    FOLDERS,
    SYSTEM_DATABASE,
    SYSTEM_FOLDER,
    Limits,
    Listing,
    Relation,
    Rows,
)
from sqlshell.service.engines.files.data_files import explained, reader
from sqlshell.service.engines.files.disk_space import DiskSpace
from sqlshell.service.engines.files.failures import Cause, failure, holder
from sqlshell.service.engines.files.render import own
from sqlshell.service.engines.files.result_files import ResultFiles
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import always_quoted, literal, qualified


class DuckdbEngine(DuckdbCatalog, ResultFiles):
    """An instance on a database file, or in memory, with a view for each of `views` (name -> data file).

    `temporary` is the directory for temporary data of an instance in memory, None for one that is removed at the end.
    With `read_only` no statement can change the file, and no extension is downloaded; neither is one without
    `installs`. Raises UsageError if the file is not a database or cannot be read, ServiceError if another process has
    it open.
    """

    def __init__(
        self,
        database: Path | None = None,
        views: Mapping[str, Path] | None = None,
        temporary: Path | None = None,
        *,
        read_only: bool = False,
        installs: bool = True,
    ) -> None:
        self._policy = Policy(self._functions)
        self._lock = threading.RLock()
        self._shown: dict[str, Listing] = {}
        """The system relations that were published."""
        self._stores: dict[str, dict[str, tuple[str, int, int]]] = {}
        """The stores that were mounted, and the files of their views with the time and size of each."""
        self.broken: dict[str, str] = {}
        super().__init__()
        self._root = _opened(database, temporary, read_only)
        if read_only or not installs:
            # Extensions are installed in a directory of the user.
            self._root.execute("SET autoinstall_known_extensions = false")
        self.first_database = str(self._root.execute("SELECT current_database()").fetchall()[0][0])
        self._admin: duckdb.DuckDBPyConnection | None = None
        self._room = DiskSpace()
        for name, path in (views or {}).items():
            if is_empty(path):
                # DuckDB would make up a column.
                self._root.close()
                raise UsageError(f"{path} is empty")
            try:
                self._root.execute(f"CREATE VIEW {always_quoted(name)} AS FROM {reader(path.name, path)}")
            except (duckdb.Error, Failure) as error:
                self._root.close()
                message = explained(str(error))
                if message == str(error):
                    message = f"cannot read {path}: {message.partition(chr(10))[0]}"
                # The statement is not the user's.
                raise UsageError(message.partition("\n\nLINE ")[0]) from None

    def lock(
        self,
        folder: Path,
        databases: Mapping[str, Path],
        limits: Limits,
        system: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    ) -> None:
        """Keep `databases` (name -> file) attached, forbid access to files outside of the engine's folders in `folder`,
        and lock the configuration. `system` are the columns of the relations that publish() writes.

        Sessions begin in the first database that can be opened; if none can, in the service's own.
        """
        from sqlshell.service.engines.duckdb import published

        root = self._root
        if limits.threads:
            root.execute(f"SET threads = {limits.threads}")
            self.threads = limits.threads
        if limits.memory:
            root.execute(f"SET memory_limit = {literal(limits.memory)}")
        root.execute(f"SET temp_directory = {literal(str(folder / 'temporary'))}")
        if limits.spill is not None:
            root.execute(f"SET max_temp_directory_size = '{limits.spill} bytes'")
        if limits.results is not None:
            self._room.size = limits.results
        for name, path in databases.items():
            new = not path.exists()
            try:
                root.execute(f"ATTACH {literal(str(path))} AS {always_quoted(name)}")
                if new:
                    root.execute(f"CREATE SCHEMA {always_quoted(name)}.{FIRST_SCHEMA}")
            except duckdb.Error as error:
                self.broken[name] = str(error).partition("\n")[0].replace(str(path), path.name)
        published.attach(root, folder / SYSTEM_FOLDER, system or {})
        # New connections begin in the database that was attached first.
        self.first_database = next((name for name in databases if name not in self.broken), SYSTEM_DATABASE)
        root.execute(f"USE {always_quoted(self.first_database)}")
        root.execute("DETACH memory")
        self._policy.restrict(folder)
        for setting in (
            f"allowed_directories = [{', '.join(literal(str(folder / name)) for name in FOLDERS)}]",
            # The files of published relations are replaced.
            "enable_external_file_cache = false",
            "allow_community_extensions = false",
            "autoinstall_known_extensions = false",
            "autoload_known_extensions = false",
            "enable_external_access = false",
            # Return the memory of a statement to the system instead of keeping it until the instance is closed.
            "allocator_background_threads = true",
            "lock_configuration = true",
        ):
            root.execute(f"SET {setting}")

    def connect(self) -> DuckdbConnection:
        # Under `serve` the process that writes results cannot read them.
        results = None if self._policy.strict else self
        return DuckdbConnection(self._root.cursor(), self._policy, self._room, results)

    def attach(self, name: str, path: Path | None) -> None:
        source, access = (literal(str(path)), "") if path else ("':memory:'", " (READ_WRITE)")
        self._execute(f"ATTACH {source} AS {always_quoted(name)}{access}")
        self._execute(f"CREATE SCHEMA IF NOT EXISTS {always_quoted(name)}.{FIRST_SCHEMA}")

    def detach(self, name: str) -> None:
        with self._lock:
            self._execute(f"DETACH {always_quoted(name)}")
            self._stores.pop(name, None)

    def mount(self, store: str, copy: Path) -> None:
        with self._lock:
            # Only an older copy of the same store is replaced.
            verb = "ATTACH OR REPLACE" if store in self._stores else "ATTACH"
            self._execute(f"{verb} {literal(str(copy))} AS {always_quoted(store)} (READ_ONLY)")
            self._stores[store] = {}

    def view(self, store: str, entities: Mapping[str, Path]) -> None:
        with self._lock:
            if not self.read_listing(f"SELECT 1 FROM duckdb_databases() WHERE database_name = {literal(store)}"):
                self._execute(f"ATTACH ':memory:' AS {always_quoted(store)} (READ_WRITE)")
                self._stores[store] = {}
            views = self._stores.setdefault(store, {})
            for name, path in entities.items():
                state = path.stat()
                stamp = (str(path), state.st_mtime_ns, state.st_size)
                if views.get(name) != stamp:
                    target = f"{always_quoted(store)}.main.{always_quoted(name)}"
                    self._execute(f"CREATE OR REPLACE VIEW {target} AS FROM {reader(name, path, lines=True)}")
                    views[name] = stamp

    def read_listing(self, sql: str) -> Rows:
        with self._lock:
            try:
                rows = self._cursor().execute(own(sql)).fetchall()
            except duckdb.Error as error:
                raise failure(error) from error
        return [tuple("" if item is None else str(item) for item in row) for row in rows]

    def publish(self, tables: Mapping[str, Listing]) -> None:
        with self._lock:
            # READ_WRITE, because the instance may be read-only.
            self._execute(f"ATTACH IF NOT EXISTS ':memory:' AS {SYSTEM_DATABASE} (READ_WRITE)")
            self._execute(f"CREATE SCHEMA IF NOT EXISTS {SYSTEM_DATABASE}.sys")
            for name, rows in tables.items():
                if self._shown.get(name) != rows:
                    self._execute(
                        f"CREATE OR REPLACE TABLE {SYSTEM_DATABASE}.sys.{always_quoted(name)} AS {self.inline(rows)}"
                    )
                    self._shown[name] = rows

    def head(self, stream: Relation, least: int = 0) -> int:
        name = qualified(*stream)
        rows = self.read_listing(f"SELECT max(rowid) FROM {name} WHERE rowid >= {least}")
        return int(rows[0][0]) + 1 if rows and rows[0][0] else least

    def close(self) -> None:
        self.close_files()
        for connection in (self._admin, self._root):
            if connection is not None:
                connection.close()

    def _functions(self) -> list[str]:
        """The names of DuckDB's own functions, in lower case; pragmas are not called by a name."""
        # A macro of a database may have the name of any of them.
        asked = "SELECT function_name FROM system.main.duckdb_functions() WHERE internal AND function_type <> 'pragma'"
        return [str(name).lower() for (name,) in self._root.cursor().execute(asked).fetchall()]

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        if self._admin is None:
            self._admin = self._root.cursor()
            if self._policy.strict:
                # No object of a user's database takes the place of one of DuckDB's there.
                self._admin.execute(f"USE {SYSTEM_DATABASE}.sys")
        return self._admin

    def _execute(self, sql: str) -> None:
        with self._lock:
            try:
                self._cursor().execute(sql)
            except duckdb.Error as error:
                raise failure(error) from error


def _opened(database: Path | None, temporary: Path | None, read_only: bool) -> duckdb.DuckDBPyConnection:
    try:
        root = duckdb.connect(str(database) if database else ":memory:", read_only=read_only and database is not None)
    except duckdb.Error as error:
        if read_only and database is not None and not database.exists():
            raise UsageError(f"{database} does not exist; a read-only database cannot be created") from None
        text = str(error).partition("\n")[0]
        if isinstance(error, duckdb.ConnectionException) and Cause.OPEN_OTHERWISE.of(text):
            raise ServiceError(
                f"{database} is already open in this shell in another mode (read-only or writable)",
                "close the other connection or start another shell",
            ) from None
        if isinstance(error, duckdb.IOException) and Cause.OPEN_IN_ANOTHER_PROCESS.of(text):
            raise ServiceError(f"{database} is in use by {holder(text)}", "close it in that process first") from None
        raise UsageError(f"cannot open {database} as a DuckDB database: {text}") from None
    root.execute("SET python_enable_replacements = false")
    # The configuration may be locked later.
    root.execute(f"SET allowed_configs = [{', '.join(map(literal, SESSION_SETTINGS))}]")
    if database is None or read_only:
        # DuckDB's default is the current directory, or the directory of the file.
        root.execute(f"SET temp_directory = {literal(str(temporary or scratch().folder('engine')))}")
    else:
        _tidy(Path(f"{database}.tmp"))
    return root


def _tidy(temporary: Path) -> None:
    """Remove what a killed process left behind: only the process that has the database open uses this directory."""
    with contextlib.suppress(OSError):
        for file in temporary.glob("duckdb_temp_*"):
            file.unlink()
        temporary.rmdir()
