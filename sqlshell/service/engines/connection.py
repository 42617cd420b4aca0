"""One session of DuckDB: rows leave it as JSON text that it made itself, never as Python objects where that can be."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import duckdb
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.copying import OPTIONS_UNUSED, check_files, copied_out
from sqlshell.service.engines.engine import Failure, Feed, Options, Outcome, Relation, Rights, Sink
from sqlshell.service.engines.failures import failure
from sqlshell.service.engines.feeds import make_feed
from sqlshell.service.engines.fetch import fetched
from sqlshell.service.engines.filed import write
from sqlshell.service.engines.gate import Gate, first_word, needed
from sqlshell.service.engines.plain import encoded, plain
from sqlshell.service.engines.render import ZONED, finished, identifier, literal, row, type_name
from sqlshell.service.engines.simple import SMALL, brief, line, one_row, writers

KEEPS_PLACE = {"SELECT", "INSERT", "UPDATE", "DELETE", "EXPLAIN", "COPY", "MERGE_INTO", "ANALYZE"}
"""Statement types after which database and schema are what they were."""

COUNTED = {"INSERT", "UPDATE", "DELETE", "COPY", "MERGE_INTO", "CREATE"}

LARGE = 50_000
"""Rows, by DuckDB's estimate, from which a result is written to a file of its own form and not as text."""

ENDS = {"commit", "end", "rollback", "abort"}
"""First words of statements that end a transaction."""

QUICK = 3
"""Brief statements one after another from which nobody is told of their progress."""

_FROM = re.compile(r"(?<!\w)(?:from|table|pivot|unpivot|values)(?!\w)", re.I)
_WRITES = re.compile(r"\(\s*(?:insert|update|delete|merge|copy)(?!\w)", re.I)


class DuckdbConnection:
    """A connection of its own, so that transactions, temporary tables and settings are its own too.

    `gate` is what keeps statements from files and settings, None where the service is its user's own.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, gate: Gate | None = None) -> None:
        self._connection = connection
        self._gate = gate
        self._timezone = ""
        self._watched = False
        self._brief: int | None = None
        self.transaction = ""
        self.database, self.schema = self._place()

    def run(self, sql: str, options: Options, sink: Sink, *, trusted: bool = False) -> Outcome:
        try:
            if trusted:
                self._prepare(sql, options)
                return self._select(sql, options, sink)
            copied = copied_out(sql, paths=self._gate is None)
            if copied is None:
                return self._run(sql, options, sink)
            outcome = self._run(copied.sql, options, sink)
            if copied.options and outcome.sql_state == sqlstate.DONE:
                return replace(outcome, message=OPTIONS_UNUSED, sql_state=sqlstate.WARNING)
            return outcome
        except (duckdb.Error, RuntimeError) as error:
            self._after_failure(sql, error)
            raise self._explained(failure(error)) from error
        except Failure as error:
            self._after_failure(sql, error.__cause__)
            raise self._explained(error) from error

    @property
    def in_transaction(self) -> bool:
        return bool(self.transaction)

    def run_all(self, statements: Sequence[str], options: Options, sink: Sink) -> None:
        if self.in_transaction:
            raise Failure("25001", "a transaction is open already: COMMIT or ROLLBACK comes first")
        for sql in statements:
            kind = self._allowed(sql, options).type.name
            if kind in {"TRANSACTION", "SET", "VARIABLE_SET"} or self._elsewhere(sql):
                said = f"{first_word(sql).upper()} … works on something else than the present database"
                raise Failure(sqlstate.UNSUPPORTED, f"{said}, and cannot be part of an atomic application")
        self._connection.execute("BEGIN")
        try:
            for sql in statements:
                self.run(sql, options, sink)
            self._connection.execute("COMMIT")
        except duckdb.Error as error:
            raise failure(error) from error
        finally:
            if self._open():
                self._connection.execute("ROLLBACK")

    def use(self, database: str, schema: str) -> None:
        wanted = database or self.database
        try:
            known = self._connection.execute(
                "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = $1", [wanted]
            ).fetchall()
            if not known:
                raise Failure(sqlstate.NO_DATABASE, f"database {wanted!r} does not exist")
            names = {str(row[0]) for row in known}
            into = schema or ("main" if "main" in names else sorted(names)[0])
            if into not in names:
                raise Failure(sqlstate.NO_SCHEMA, f"schema {into!r} does not exist in database {wanted!r}")
            self._connection.execute(f"USE {identifier(wanted)}.{identifier(into)}")
        except duckdb.Error as error:
            raise failure(error) from error
        self.database, self.schema = self._place()

    def feed(self, sql: str, streams: Collection[Relation], options: Options) -> Feed | None:
        if self._gate is not None:
            self._gate.before(sql)
        return make_feed(self._connection, sql, streams, self.resolve)

    def resolve(self, names: Sequence[str]) -> Relation:
        name = names[-1]
        schema = names[-2] if len(names) > 1 else self.schema
        database = names[-3] if len(names) > 2 else self.database
        if (
            len(names) == 2
            and self._connection.execute(
                "SELECT 1 FROM duckdb_databases() WHERE database_name = $1", [schema]
            ).fetchone()
        ):
            return schema, "main", name
        return database, schema, name

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

    def _explained(self, error: Failure) -> Failure:
        return self._gate.explain(error) if self._gate is not None else error

    def _after_failure(self, sql: str, error: BaseException | None) -> None:
        """See what a failure left of the transaction: some errors fail all of it."""
        if not self.transaction:
            return
        if (
            first_word(sql) in ENDS
            and isinstance(error, duckdb.Error)
            and not isinstance(error, duckdb.ParserException)
        ):
            self.transaction = ""
            return
        try:
            self._connection.execute("SELECT 1")
        except duckdb.Error:
            self.transaction = "failed"

    def _prepare(self, sql: str, options: Options) -> None:
        if self._brief is None:
            self._connection.execute("SET enable_progress_bar_print = false")
        # To watch its progress takes longer than a small statement itself.
        self._brief = min(QUICK, (self._brief or 0) + 1) if brief(sql) else 0
        watched = self._brief < QUICK
        if watched is not self._watched:
            self._connection.execute(f"SET enable_progress_bar = {str(watched).lower()}")
            self._watched = watched
        if options.timezone != self._timezone:
            self._connection.execute(f"SET TimeZone = {literal(options.timezone)}")
            self._timezone = options.timezone

    def _allowed(self, sql: str, options: Options) -> Any:
        """The parsed statement, if it is one and may run."""
        if self._gate is None:
            check_files(sql)
        else:
            self._gate.before(sql)
        parsed = self._connection.extract_statements(sql)
        if len(parsed) != 1:
            raise Failure(sqlstate.SYNTAX, f"this is not one statement but {len(parsed)}")
        kind = parsed[0].type.name
        if self._gate is not None:
            self._gate.check(sql, kind)
        if options.rights < Rights.OBJECTS and (least := needed(sql, kind)) > options.rights:
            may = {Rights.DATA: "changes data", Rights.OBJECTS: "changes objects"}[least]
            raise Failure(sqlstate.PRIVILEGE, f"the role may not do this: {first_word(sql).upper()} {may}")
        return parsed[0]

    def _run(self, sql: str, options: Options, sink: Sink) -> Outcome:
        parsed = self._allowed(sql, options)
        kind = parsed.type.name
        if kind != "TRANSACTION":
            # Neither setting may fail inside a transaction that is aborted: COMMIT and ROLLBACK go without.
            self._prepare(sql, options)
        if kind == "SELECT" and one_row(sql) and (outcome := self._simple(parsed, sink)) is not None:
            return outcome
        if kind == "SELECT" and not _WRITES.search(sql):
            # A CTE that writes may stand in no subquery, where it would be rendered.
            try:
                return self._select(sql, options, sink)
            except duckdb.Error as error:
                raise failure(error, lines_before=1) from error
        try:
            outcome = self._other(kind, parsed, sql, options, sink)
            if kind == "TRANSACTION":
                before, word = self.transaction, first_word(sql)
                self.transaction = "" if word in ENDS else "open"
                if before == "failed" and word in {"commit", "end"}:
                    said = "the transaction had failed: it was rolled back, nothing of it was kept"
                    return replace(outcome, message=said, sql_state=sqlstate.WARNING)
            return outcome
        finally:
            if kind not in KEEPS_PLACE:
                self._after(kind)

    def _open(self) -> bool:
        try:
            self._connection.execute("BEGIN")
        except duckdb.TransactionException:
            return True
        self._connection.execute("ROLLBACK")
        return False

    def _elsewhere(self, sql: str) -> bool:
        """Whether a statement names another database than the present one."""
        names = {
            str(row[0]) for row in self._connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()
        }
        others = names - {self.database, "system", "temp", "deltastream"}
        return any(
            re.search(rf"(?<![\w.\"])\"?{re.escape(name)}\"?\s*\.\s*[\w\"]", sql, re.I) for name in others
        ) or first_word(sql) in {"use", "attach", "detach"}

    def _after(self, kind: str) -> None:
        try:
            self.database, self.schema = self._place()
            if kind in {"SET", "VARIABLE_SET", "MULTI"}:
                self._timezone = ""
        except duckdb.Error:
            # An aborted transaction answers nothing; the place is what it was.
            return

    def _select(self, sql: str, options: Options, sink: Sink) -> Outcome:
        described = self._connection.execute(f"DESCRIBE\n{sql}").fetchall()
        kinds = [self._connection.type(item[1]) for item in described]
        named = zip(described, kinds, strict=True)
        columns = [ColumnInfo(str(item[0]), type_name(kind), item[2] != "NO") for item, kind in named]
        names = [f"c{number}" for number in range(len(kinds))]
        zoned = tuple(number for number, kind in enumerate(kinds) if kind.id == ZONED)
        limit = options.row_limit
        estimate = self._estimate(sql) if limit is None else SMALL + 1
        if estimate >= LARGE:
            return Outcome(columns, zoned, filed=write(self._connection, sql, kinds, sink.file(), options))
        writes = writers(kinds) if estimate <= SMALL else None
        if writes is not None:
            self._connection.execute(f"\n{sql}")
        else:
            bound = f" LIMIT {limit + 1}" if limit is not None else ""
            self._connection.execute(f"SELECT {row(kinds, names)} FROM (\n{sql}\n) t({', '.join(names)}){bound}")
        kept, more = 0, False
        for texts in fetched(self._connection, partial(line, writes=writes) if writes is not None else _rendered):
            if limit is not None and kept + len(texts) > limit:
                texts, more = texts[: limit - kept], True
            kept += len(texts)
            sink.keep(texts)
        if more:
            said = f"stopped at {limit:,} rows; \\pset rowlimit 0 shows all"
            return Outcome(columns, zoned, said, sqlstate.WARNING)
        return Outcome(columns, zoned)

    def _simple(self, parsed: Any, sink: Sink) -> Outcome | None:
        """Run a SELECT that is one row of constants; None where DuckDB has to render it."""
        self._connection.execute(parsed)
        described = self._connection.description or []
        writes = writers([item[1] for item in described])
        if writes is None or not described:
            return None
        if found := self._connection.fetchall():
            sink.keep([line(item, writes) for item in found])
        return Outcome([ColumnInfo(str(item[0]), type_name(item[1]), True) for item in described])

    def _estimate(self, sql: str) -> int:
        """How many rows DuckDB expects of a SELECT."""
        if not _FROM.search(sql):
            return SMALL + 1
        try:
            plan = self._connection.execute(f"EXPLAIN (FORMAT json)\n{sql}").fetchone()
        except duckdb.ParserException:
            # SHOW and its like cannot be explained.
            return SMALL + 1
        return _root(plan[1]) if plan is not None else SMALL + 1

    def _other(self, kind: str, parsed: Any, sql: str, options: Options, sink: Sink) -> Outcome:
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
        convert = [plain(item) for item in kinds]
        for texts in fetched(self._connection, partial(encoded, convert=convert)):
            sink.keep(texts)
        return Outcome(columns, tuple(number for number, item in enumerate(kinds) if item.id == ZONED))


def _rendered(row: Sequence[str]) -> str:
    return finished(row[0])


def _root(plan: str) -> int:
    """The estimate of a plan's root: its own, or that of its first child that has one."""
    nodes = json.loads(plan)
    while nodes:
        told = nodes[0].get("extra_info", {}).get("Estimated Cardinality")
        if told is not None:
            return int(told)
        nodes = nodes[0].get("children", [])
    return 0
