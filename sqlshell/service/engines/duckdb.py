"""DuckDB as an engine: rows leave it as JSON text that it made itself, never as Python objects where that can be."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from sqlshell.errors import ServiceError, UsageError
from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import Failure, Keep, Options, Outcome
from sqlshell.service.engines.failures import failure
from sqlshell.service.engines.render import ZONED, identifier, literal, type_name, value

KEEPS_PLACE = {"SELECT", "INSERT", "UPDATE", "DELETE", "EXPLAIN", "COPY", "MERGE_INTO", "ANALYZE"}
"""Statement types after which database and schema are what they were."""

COUNTED = {"INSERT", "UPDATE", "DELETE", "COPY", "MERGE_INTO", "CREATE"}


class DuckdbEngine:
    """One DuckDB instance, in memory or on a file, with a view for each of `views` (name -> data file).

    Raises UsageError for a file that is no database or cannot be read, ServiceError for one that another process holds.
    """

    def __init__(self, database: Path | None = None, views: Mapping[str, Path] | None = None) -> None:
        try:
            self._root = duckdb.connect(str(database) if database else ":memory:")
        except duckdb.IOException as error:
            text = str(error).partition("\n")[0]
            if "lock" in text.lower():
                raise ServiceError(f"{database} is in use by another process", "close it there first") from None
            raise UsageError(f"{database} cannot be opened as a DuckDB database: {text}") from None
        except duckdb.Error as error:
            text = str(error).partition("\n")[0]
            raise UsageError(f"{database} cannot be opened as a DuckDB database: {text}") from None
        self._root.execute("SET python_enable_replacements = false")
        for name, path in (views or {}).items():
            try:
                self._root.execute(f"CREATE VIEW {identifier(name)} AS FROM {literal(str(path))}")
            except duckdb.Error as error:
                self._root.close()
                raise UsageError(f"{path} cannot be read: {str(error).partition(chr(10))[0]}") from None

    def connect(self) -> DuckdbConnection:
        return DuckdbConnection(self._root.cursor())

    def close(self) -> None:
        self._root.close()


class DuckdbConnection:
    """One session: a connection of its own, so that transactions, temporary tables and settings are its own too."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._timezone = ""
        self._watched = False
        self.database, self.schema = self._place()

    def run(self, sql: str, options: Options, keep: Keep) -> Outcome:
        try:
            return self._run(sql, options, keep)
        except duckdb.Error as error:
            raise failure(error) from error
        except RuntimeError as error:
            raise failure(error) from error

    def use(self, database: str, schema: str) -> None:
        wanted = database or self.database
        known = self._connection.execute(
            "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = $1", [wanted]
        ).fetchall()
        if not known:
            raise Failure(sqlstate.NO_DATABASE, f"database {wanted!r} does not exist")
        names = {str(row[0]) for row in known}
        into = schema or ("main" if "main" in names else sorted(names)[0])
        if into not in names:
            raise Failure(sqlstate.NO_SCHEMA, f"schema {into!r} does not exist in database {wanted!r}")
        try:
            self._connection.execute(f"USE {identifier(wanted)}.{identifier(into)}")
        except duckdb.Error as error:
            raise failure(error) from error
        self.database, self.schema = self._place()

    def interrupt(self) -> None:
        self._connection.interrupt()

    def progress(self) -> float | None:
        try:
            share = self._connection.query_progress()
        except duckdb.Error:
            return None
        return share / 100 if 0 <= share <= 100 else None

    def close(self) -> None:
        self._connection.close()

    def _place(self) -> tuple[str, str]:
        found = self._connection.execute("SELECT current_database(), current_schema()").fetchone()
        return (str(found[0]), str(found[1])) if found else ("", "")

    def _prepare(self, options: Options) -> None:
        if not self._watched:
            self._watched = True
            self._connection.execute("SET enable_progress_bar = true")
            self._connection.execute("SET enable_progress_bar_print = false")
        if options.timezone != self._timezone:
            self._connection.execute(f"SET TimeZone = {literal(options.timezone)}")
            self._timezone = options.timezone

    def _run(self, sql: str, options: Options, keep: Keep) -> Outcome:
        parsed = self._connection.extract_statements(sql)
        if len(parsed) != 1:
            raise Failure(sqlstate.SYNTAX, f"this is not one statement but {len(parsed)}")
        kind = parsed[0].type.name
        if kind != "TRANSACTION":
            # Neither setting may fail inside a transaction that is aborted: COMMIT and ROLLBACK go without.
            self._prepare(options)
        if kind == "SELECT":
            try:
                return self._select(sql, options, keep)
            except duckdb.Error as error:
                raise failure(error, lines_before=1) from error
        try:
            return self._other(kind, parsed[0], sql, options, keep)
        finally:
            if kind not in KEEPS_PLACE:
                self._after(kind)

    def _after(self, kind: str) -> None:
        try:
            self.database, self.schema = self._place()
            if kind in {"SET", "VARIABLE_SET", "MULTI"}:
                self._timezone = ""
        except duckdb.Error:
            # An aborted transaction answers nothing; the place is what it was.
            return

    def _select(self, sql: str, options: Options, keep: Keep) -> Outcome:
        described = self._connection.execute(f"DESCRIBE\n{sql}").fetchall()
        kinds = [self._connection.type(row[1]) for row in described]
        columns = [
            ColumnInfo(str(row[0]), type_name(kind), row[2] != "NO") for row, kind in zip(described, kinds, strict=True)
        ]
        names = [f"c{number}" for number in range(len(kinds))]
        values = ", ".join(value(kind, name) for kind, name in zip(kinds, names, strict=True))
        limit = options.row_limit
        bound = f" LIMIT {limit + 1}" if limit is not None else ""
        self._connection.execute(f"SELECT to_json([{values}]) FROM (\n{sql}\n) t({', '.join(names)}){bound}")
        kept, more = 0, False
        while rows := self._connection.fetchmany(options.partition_rows):
            texts = [row[0] for row in rows]
            if limit is not None and kept + len(texts) > limit:
                texts, more = texts[: limit - kept], True
            kept += len(texts)
            if texts:
                keep(texts)
        zoned = tuple(number for number, kind in enumerate(kinds) if kind.id == ZONED)
        if more:
            said = f"stopped at {limit:,} rows; \\pset rowlimit 0 shows all"
            return Outcome(columns, zoned, said, sqlstate.WARNING)
        return Outcome(columns, zoned)

    def _other(self, kind: str, parsed: Any, sql: str, options: Options, keep: Keep) -> Outcome:
        self._connection.execute(parsed)
        described = self._connection.description or []
        words = sql.split(None, 2)
        head = " ".join(words[:2] if kind in {"CREATE", "DROP", "ALTER"} else words[:1]).upper().rstrip(";")
        returns = "QUERY_RESULT" in {item.name for item in parsed.expected_result_type}
        counts = kind in COUNTED and [item[0] for item in described] == ["Count"] and "returning" not in sql.lower()
        if not described or not returns or counts:
            rows = self._connection.fetchall() if described else []
            number = f" {rows[0][0]}" if counts and rows and kind != "CREATE" else ""
            return Outcome(message=head + number)
        kinds = [item[1] for item in described]
        columns = [ColumnInfo(str(item[0]), type_name(kind), True) for item, kind in zip(described, kinds, strict=True)]
        if len(columns) == 1 and columns[0].name == "Success" and not (found := self._connection.fetchall()):
            del found
            return Outcome(message=head)
        convert = [_python(item) for item in kinds]
        while rows := self._connection.fetchmany(options.partition_rows):
            keep([_encoded(row, convert) for row in rows])
        return Outcome(columns, tuple(number for number, item in enumerate(kinds) if item.id == ZONED))


def _encoded(row: Sequence[Any], convert: Sequence[Callable[[Any], str]]) -> str:
    texts = [None if item is None else turn(item) for item, turn in zip(row, convert, strict=True)]
    return json.dumps(texts, ensure_ascii=False)


def _python(kind: Any) -> Callable[[Any], str]:
    """How a Python value of a statement that DuckDB cannot render itself (RETURNING, CALL, …) becomes a string."""
    match kind.id:
        case "list" | "array" | "map" | "struct":
            return lambda item: json.dumps(item, default=_plain, ensure_ascii=False)
    return _plain


def _plain(item: Any) -> str:
    match item:
        case bool():
            return "true" if item else "false"
        case float():
            if math.isfinite(item):
                return repr(item)
            return "NaN" if math.isnan(item) else "Infinity" if item > 0 else "-Infinity"
        case bytes():
            return base64.b64encode(item).decode()
        case datetime.datetime() if item.tzinfo is not None:
            return item.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(" ") + "Z"
        case datetime.datetime():
            return item.isoformat(" ")
        case str():
            return item
    return str(item)
