"""One session of DuckDB, which returns rows as JSON text that DuckDB rendered, never as Python objects."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb import messages
from sqlshell.service.engines.duckdb.attached_rows import AttachedRows
from sqlshell.service.engines.duckdb.cancellation import READ_ONLY, Cancellation
from sqlshell.service.engines.duckdb.configuration import Setting, check_setting, is_zone, keep_unlocked
from sqlshell.service.engines.duckdb.contents import columns
from sqlshell.service.engines.duckdb.failures import failure
from sqlshell.service.engines.duckdb.planned import planned
from sqlshell.service.engines.duckdb.results.copying import OPTIONS_UNUSED, check_files, copied_out
from sqlshell.service.engines.duckdb.results.disk_space import CountingSink, DiskSpace
from sqlshell.service.engines.duckdb.results.render import type_name
from sqlshell.service.engines.duckdb.results.result_files import Reader
from sqlshell.service.engines.duckdb.results.rows import RowRunner, bounded, check_columns, gives_rows, kind_of
from sqlshell.service.engines.duckdb.rights.check import AllowedStatement, Policy, check, denied, spoken
from sqlshell.service.engines.duckdb.statement_traits import (
    brief,
    check_nesting,
    check_replay,
    first_word,
    returns_rows,
    writes_inside,
)
from sqlshell.service.engines.duckdb.streams import StreamUse, make_stream_query
from sqlshell.service.engines.duckdb.translation.binding import Binder, explained
from sqlshell.service.engines.duckdb.translation.statement import Translation, translated
from sqlshell.service.engines.engine import Outcome, Plan, Relation, Rows, RunOptions, Sink, StreamQuery
from sqlshell.service.failure import Failure, check_unicode
from sqlshell.service.rights import Rights
from sqlshell.sql.identifiers import always_quoted, literal, qualified
from sqlshell.sql.keywords import CREATE_FILLERS

KEEPS_PLACE = {"SELECT", "INSERT", "UPDATE", "DELETE", "EXPLAIN", "COPY", "MERGE_INTO", "ANALYZE"}
"""Statement types that do not change the current database and schema."""

SETTINGS = {"SET", "VARIABLE_SET", "PRAGMA", "CALL"}
"""Statement types that may change settings."""

COUNTED = {"INSERT", "UPDATE", "DELETE", "COPY", "MERGE_INTO", "CREATE"}

OBJECT_VERBS = {"create", "drop", "alter"}
"""First words that are reported together with the kind of object."""

ENDS = {"commit", "end", "rollback", "abort"}
"""First words of statements that end a transaction."""

NEVER_FIRST = "]"
"""A text with which no statement begins or continues, except inside brackets."""

LARGE = 64 << 10
"""Characters of a statement that takes much memory after DuckDB has parsed it."""

QUICK = 3
"""Consecutive short statements whose progress is not reported."""


class DuckdbConnection:
    """A separate connection, so that its transactions, temporary tables and settings are separate too.

    `policy` is what statements are checked with; it is strict under `serve`. `results` reads the files that it writes;
    without it, the partitions of an Outcome's `written` are to be found elsewhere.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        policy: Policy | None = None,
        room: DiskSpace | None = None,
        results: Reader | None = None,
    ) -> None:
        self._policy = policy or Policy(frozenset)
        self._connection = connection
        self._room = room or DiskSpace()
        self._results = results
        self._strict = self._policy.strict
        self._cancellation = Cancellation(connection)
        self._binder = Binder(connection, self._cancellation)
        self._watched = False
        self._brief: int | None = None
        self._asked = self._first = self.timezone = ""
        self.transaction = ""
        self.leaves_state = False
        """Whether a statement may have created temporary state of this session."""
        self._ends = False
        """Whether the running statement ends a transaction."""
        self._read_only = False
        """Whether a READ ONLY transaction is open: a reader's BEGIN, or one around a single statement."""
        self._placed = True
        """Whether database and schema are known to be those of the DuckDB connection."""
        self.database, self.schema, _ = self._place()

    def run(self, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        growing = CountingSink(sink, self._room)
        try:
            with self._statement():
                outcome = self._ran(sql, options, growing)
                if self._results is None or outcome.written is None or growing.path is None:
                    return outcome
                # Otherwise who called finds the partitions.
                filed = self._results.partitions(growing.path, outcome.written, options)
                return replace(outcome, filed=filed, written=None)
        finally:
            growing.close()
            if len(sql) > LARGE:
                # DuckDB keeps the last statement of a connection, in the transaction or out of it, until the next one.
                with contextlib.suppress(duckdb.Error, RuntimeError):
                    self._connection.execute("")

    def _ran(self, sql: str, options: RunOptions, sink: CountingSink) -> Outcome:
        self._ends = False
        check_unicode(sql)
        translation = self._translation(sql, options)
        if translation is None:
            return self._copied_or_run(sql, options, sink)
        with explained(translation):
            return self._copied_or_run(translation.statement.sql, options, sink)

    @contextlib.contextmanager
    def _statement(self) -> Iterator[None]:
        """Mark a user's statement, which can be interrupted. Translates DuckDB's errors to Failure and updates the
        state of the transaction.
        """
        with self._cancellation.statement():
            try:
                yield
            except (duckdb.Error, RuntimeError) as error:
                self._after_failure(error)
                raise failure(error) from error
            except Failure as error:
                self._after_failure(error.__cause__)
                raise

    def _copied_or_run(self, sql: str, options: RunOptions, sink: CountingSink) -> Outcome:
        copied = copied_out(sql, paths=not self._strict)
        if copied is None:
            return self._run(sql, options, sink)
        outcome = self._run(copied.sql, options, sink)
        if copied.options and outcome.sql_state == sqlstate.DONE:
            return replace(outcome, message=OPTIONS_UNUSED, sql_state=sqlstate.WARNING)
        return outcome

    def _translation(self, sql: str, options: RunOptions) -> Translation | None:
        """The statement translated into DuckDB's SQL, None if it needs no translation. The only
        place that translates. Raises Failure, also if it is nested too deeply for DuckDB's parser.
        """
        check_nesting(sql)

        def mismatch(text: str) -> int | None:
            try:
                self._checked(text, options)
            except (duckdb.Error, Failure):
                # The statement fails, or is refused, when it runs.
                return None
            return self._binder.mismatch(text, in_transaction=self._open)

        return translated(sql, self._binder.has_function, mismatch)

    def load(self, names: Sequence[str], columns: Sequence[str], path: Path, options: RunOptions) -> Outcome:
        # The path is not a pattern, and the names of its folders are not values.
        source = f"read_parquet({literal(str(path))}, hive_partitioning = false)"
        listed = f" ({', '.join(map(always_quoted, columns))})" if columns else ""
        into = f"INSERT INTO {'.'.join(map(always_quoted, names))}{listed}"
        with self._statement(), self._refusing("INSERT", options), self._reading(options.rights is Rights.READ):
            self._ends = False
            try:
                if options.rights is Rights.READ:
                    # Nothing of the file is read for a reader who may not change the relation.
                    self._connection.execute(f"DELETE FROM {'.'.join(map(always_quoted, names))} WHERE false")
                sources = [(row[0], row[1]) for row in self._connection.execute(f"DESCRIBE FROM {source}").fetchall()]
                self._prepare(into, options)
                table = f"SELECT {listed.strip(' ()') or '*'} FROM {'.'.join(map(always_quoted, names))}"
                targets = [(row[0], row[1]) for row in self._connection.execute(f"DESCRIBE {table}").fetchall()]
                rows = AttachedRows(source, sources, targets)
                try:
                    counts = self._connection.execute(f"{into} {rows.select}").fetchall()
                except duckdb.ConversionException as error:
                    if self._open or not (place := rows.first_invalid_value(self._connection)):
                        raise
                    raise failure(error).with_message(place) from error
            except (duckdb.Error, Failure) as error:
                failed = error if isinstance(error, Failure) else failure(error)
                # The lines that the message quotes are not from the user's statement, and name the file.
                message = failed.message.partition("\n\nLINE ")[0].replace(str(path), "the attachment")
                raise failed.with_message(message) from error
        return Outcome(message=f"COPY {counts[0][0]}")

    def use(self, database: str, schema: str) -> None:
        wanted = database or self.database
        try:
            known = self._connection.execute(
                "SELECT schema_name FROM system.information_schema.schemata WHERE catalog_name = $1", [wanted]
            ).fetchall()
            if not known:
                raise Failure(sqlstate.NO_DATABASE, f"database {wanted!r} does not exist")
            names = {str(row[0]) for row in known}
            into = schema or ("main" if "main" in names else sorted(names)[0])
            # The engine ignores case, and a quoted name may differ in case.
            into = into if into in names else next((name for name in names if name.lower() == into.lower()), into)
            if into not in names:
                raise Failure(sqlstate.NO_SCHEMA, f"schema {into!r} does not exist in database {wanted!r}")
            self._connection.execute(f"USE {always_quoted(wanted)}.{always_quoted(into)}")
        except duckdb.Error as error:
            raise failure(error) from error
        self.database, self.schema, _ = self._place()

    def stream_query(self, sql: str, streams: Collection[Relation], options: RunOptions) -> StreamQuery | None:
        with self._statement():
            translation = self._translation(sql, options)
            if translation is None:
                query = self._stream_query(sql, streams, options)
            else:
                with explained(translation):
                    query = self._stream_query(translation.statement.sql, streams, options)
                query = replace(query, from_earliest=translation.from_earliest) if query is not None else None
            if query is not None:
                check_columns(len(query.columns), options)
                bounded(query.columns, options)
            return query

    def _stream_query(self, sql: str, streams: Collection[Relation], options: RunOptions) -> StreamQuery | None:
        if self._parsed(sql).kind != "SELECT" or writes_inside(sql):
            return None
        # The rows of the SELECT are read again and again, in a READ ONLY transaction of the engine's own.
        self._checked(sql, replace(options, rights=Rights.READ))
        read = StreamUse(self._connection, streams, self.resolve, bound=not self._open).read(sql)
        with self._reading(options.rights is Rights.READ):
            return make_stream_query(self._connection, sql, read) if read else None

    def plan(self, sql: str, options: RunOptions) -> Plan:
        with self._statement():
            translation = self._translation(sql, options)
            with explained(translation):
                asked = translation.statement.sql if translation is not None else sql
                checked = self._checked(asked, options)
                self._check_streams(asked, options)
                # In a READ ONLY transaction, DuckDB would not plan what changes something.
                if options.rights is Rights.READ:
                    raise denied(spoken(checked.kind, first_word(asked)), options.rights, checked.kind)
                plan = planned(self._connection, asked)
            bounded(plan.columns, options)
            return plan

    def columns(self, relation: Relation, options: RunOptions) -> list[ColumnInfo]:
        with self._cancellation.statement():
            return bounded(self._columns(relation), options)

    def _columns(self, relation: Relation) -> list[ColumnInfo]:
        name = qualified(*relation)
        try:
            described = self._connection.execute(f"DESCRIBE {name}").fetchall()
            kinds = self._connection.query(f"FROM {name}").types
        except duckdb.Error as error:
            self._after_failure(error)
            if self.transaction == "failed" or isinstance(error, duckdb.InterruptException):
                raise failure(error) from error
            # A view of something that cannot be read now still has columns.
            listed = self._connection.execute(columns(relation)).fetchall()
            return [ColumnInfo(str(item[0]), str(item[1]), bool(item[2])) for item in listed]
        named = zip(described, kinds, strict=True)
        return [ColumnInfo(str(item[0]), type_name(kind), item[2] != "NO") for item, kind in named]

    def listed(self, sql: str) -> Rows:
        """The rows of the service's own query, as strings; NULL is "". Raises Failure."""
        with self._cancellation.statement():
            try:
                rows = self._connection.execute(sql).fetchall()
            except duckdb.Error as error:
                self._after_failure(error)
                raise failure(error) from error
        return [
            tuple("" if item is None else str(item).lower() if isinstance(item, bool) else str(item) for item in row)
            for row in rows
        ]

    def resolve(self, names: Sequence[str]) -> Relation:
        name = names[-1]
        schema = names[-2] if len(names) > 1 else self.schema
        database = names[-3] if len(names) > 2 else self.database
        if (
            len(names) == 2
            and self._connection.execute(
                "SELECT 1 FROM system.main.duckdb_databases() WHERE database_name = $1", [schema]
            ).fetchone()
        ):
            return schema, "main", name
        return database, schema, name

    def cancel(self, *, force: bool = False) -> bool:
        self._cancellation.request()
        return not force

    def progress(self) -> float | None:
        try:
            share = self._connection.query_progress()
        except duckdb.Error:
            return None
        return share / 100 if 0 <= share <= 100 else None

    def close(self) -> None:
        self._connection.close()

    def lose_transaction(self) -> None:
        self._cancellation.execute("BEGIN")
        self.transaction = "failed"
        self._cancellation.fail_transaction()

    def _place(self) -> tuple[str, str, str]:
        """Database, schema and time zone of the session."""
        with self._cancellation.protected():
            rows = self._connection.execute(
                "SELECT system.main.current_database(), system.main.current_schema(), "
                "system.main.current_setting('TimeZone')"
            ).fetchall()
        database, schema, timezone = rows[0]
        return str(database), str(schema), str(timezone)

    @property
    def _open(self) -> bool:
        """Whether a transaction is open: the session's own, or one around a single statement."""
        return bool(self.transaction) or self._read_only

    def _checked(self, sql: str, options: RunOptions) -> AllowedStatement:
        """A statement that may run. Raises Failure, and duckdb.Error for a syntax error."""
        if self._strict or options.rights < Rights.OBJECTS:
            writes = bool(self.transaction) and not self._read_only
            return check(self._connection, self._policy, sql, options.rights, in_transaction=writes)
        return self._parsed(sql)

    def _check_streams(self, sql: str, options: RunOptions) -> None:
        if options.streams:
            StreamUse(self._connection, options.streams, self.resolve, bound=not self._open).check(sql)

    @contextlib.contextmanager
    def _reading(self, read_only: bool) -> Iterator[None]:
        """Run a statement in a READ ONLY transaction if it has to, and no other one is open."""
        if not read_only or self._open:
            yield
            return
        self._cancellation.execute(READ_ONLY)
        self._read_only = True
        try:
            self._cancellation.check()
            yield
            # Temporary objects are lasting in the session.
            self._cancellation.execute("COMMIT")
        except BaseException:
            self._cancellation.roll_back()
            raise
        finally:
            self._read_only = False
            if not self._placed:
                self._look_at_place()

    @contextlib.contextmanager
    def _refusing(self, what: str, options: RunOptions, kind: str = "INSERT") -> Iterator[None]:
        """Say of a change that a READ ONLY transaction does not allow that the role may not make it."""
        try:
            yield
        except (duckdb.Error, Failure) as error:
            cause = error if isinstance(error, duckdb.Error) else error.__cause__
            if options.rights < Rights.OBJECTS and messages.is_read_only_transaction(str(cause)):
                raise denied(what, options.rights, kind) from cause
            raise

    def _after_failure(self, error: BaseException | None) -> None:
        """Update the state of the transaction after a failure: some errors fail the whole transaction."""
        if not self.transaction:
            return
        if self._ends and isinstance(error, duckdb.Error):
            self.transaction = ""
            self._read_only = False
            return
        try:
            self._cancellation.execute("SELECT 1")
        except duckdb.Error:
            self.transaction = "failed"

    def _prepare(self, sql: str, options: RunOptions) -> None:
        if self._brief is None:
            self._cancellation.execute("SET enable_progress_bar_print = false")
        # Watching the progress of a small statement takes longer than the statement.
        self._brief = min(QUICK, (self._brief or 0) + 1) if brief(sql) else 0
        watched = self._brief < QUICK
        if watched is not self._watched:
            self._cancellation.execute(f"SET enable_progress_bar = {str(watched).lower()}")
            self._watched = watched
        if options.timezone != self._asked:
            # The time zone is set only if another one is requested: until then the session's own SET TimeZone applies.
            self._go_to_zone(options.timezone)
            self._first = self._first or options.timezone
            self._asked = options.timezone

    def _go_to_zone(self, timezone: str) -> None:
        if timezone != self.timezone:
            self._cancellation.execute(f"SET TimeZone = {literal(timezone)}")
            self.timezone = timezone

    def _profile(self) -> str:
        """The file to which profiles are written, or ""."""
        row = self._connection.execute("SELECT current_setting('profiling_output')").fetchone()
        return str(row[0] or "") if row else ""

    def _parsed(self, sql: str) -> AllowedStatement:
        """A statement's type and its parsed form. Raises Failure unless it is exactly one statement."""
        statements = self._connection.extract_statements(sql)
        if len(statements) != 1:
            raise Failure(sqlstate.SYNTAX, f"expected one statement, found {len(statements)}")
        kind = kind_of(statements[0], sql)
        ends = kind == "TRANSACTION" and first_word(str(statements[0].query)) in ENDS
        return AllowedStatement(kind, sql, statements[0], "end" if ends else "")

    @contextlib.contextmanager
    def _finding_end(self, sql: str) -> Iterator[None]:
        """Say of a syntax error at the end of a statement that it is there."""
        try:
            yield
        except duckdb.ParserException as error:
            at_end = messages.moved_to_end(str(error))
            if not at_end or self._first_error(f"{sql}\n{NEVER_FIRST}") == str(error):
                raise
            raise duckdb.ParserException(at_end) from error

    def _first_error(self, sql: str) -> str:
        """The error of DuckDB's parser for a text, "" if there is none."""
        try:
            self._connection.extract_statements(sql)
        except duckdb.Error as error:
            return str(error)
        return ""

    def _run(self, sql: str, options: RunOptions, sink: CountingSink) -> Outcome:
        with self._finding_end(sql):
            return self._check_and_run(sql, options, sink)

    def _check_and_run(self, sql: str, options: RunOptions, sink: CountingSink) -> Outcome:
        if not self._strict:
            check_files(sql, self._profile)
        checked = self._checked(sql, options)
        what = spoken(checked.kind, first_word(sql))
        self._check_streams(sql, options)
        with self._refusing(what, options, checked.kind), self._reading(checked.read_only and not checked.transaction):
            if self._strict and checked.kind == "ALTER":
                check_replay(self._connection, sql)
            if checked.transaction == "begin" and options.rights is Rights.READ:
                checked = replace(checked, parsed=READ_ONLY)
            return self._carry_out(checked, options, sink)

    def _carry_out(self, allowed: AllowedStatement, options: RunOptions, sink: CountingSink) -> Outcome:
        kind, parsed, sql = allowed.kind, allowed.parsed, allowed.sql
        self._cancellation.check()
        self.leaves_state = self.leaves_state or allowed.leaves_state
        if kind != "TRANSACTION":
            # Setting these fails in an aborted transaction: COMMIT and ROLLBACK do not need them.
            self._prepare(sql, options)
        self._ends = allowed.transaction == "end"
        if kind == "SELECT" and not writes_inside(sql):
            return self._rows(options, sink).select(sql, parsed)
        setting = Setting(sql) if kind in SETTINGS else None
        if setting is not None:
            check_setting(self._connection, setting)
            if setting.locks:
                keep_unlocked(self._connection)
        try:
            outcome = self._other(kind, parsed, sql, options, sink)
            if kind == "TRANSACTION":
                before, self.transaction = self.transaction, "" if self._ends else "open"
                self._read_only = not self._ends and parsed is READ_ONLY
                if before == "failed" and first_word(sql) in {"commit", "end"}:
                    message = "the transaction had failed and was rolled back; none of its changes were committed"
                    return replace(outcome, message=message, sql_state=sqlstate.WARNING)
            return outcome
        finally:
            if kind not in KEEPS_PLACE:
                self._after(setting)

    def _after(self, setting: Setting | None) -> None:
        """Update the session's state after a statement. Raises Failure for a time zone that only the engine knows."""
        timezone = self._look_at_place()
        if timezone is None:
            return
        if not self._asked:
            return
        before, self.timezone = self.timezone, timezone
        if setting is not None and setting.resets_zone:
            # The engine would fall back to the machine's time zone, which was not chosen.
            self._go_to_zone(self._first)
        elif timezone != before and not is_zone(timezone):
            self._go_to_zone(before)
            message = f"unknown time zone {timezone!r}; use a name such as Europe/Berlin or Etc/GMT-5"
            raise Failure("22023", message)

    def _look_at_place(self) -> str | None:
        """Read the session's database and schema. Its time zone is None if an aborted transaction does not reveal it,
        which an interrupted USE may leave behind.
        """
        try:
            self.database, self.schema, timezone = self._place()
        except duckdb.Error:
            self._placed = False
            return None
        self._placed = True
        return timezone

    def _rows(self, options: RunOptions, sink: CountingSink) -> RowRunner:
        return RowRunner(self._connection, options, sink, self._reaches_files)

    def _reaches_files(self) -> bool:
        """Whether the engine can write a file of the service: the user may have disabled its access to files."""
        if self._strict:
            return True
        rows = self._connection.execute(
            "SELECT current_setting('enable_external_access') AND NOT current_setting('disabled_filesystems') "
            "LIKE '%LocalFileSystem%'"
        ).fetchall()
        return bool(rows[0][0])

    def _other(self, kind: str, parsed: Any, sql: str, options: RunOptions, sink: CountingSink) -> Outcome:
        first, *words = sql.split(None, 6)
        creates = first.lower() in OBJECT_VERBS
        named = [word for word in words if word.upper() not in CREATE_FILLERS][:1] if creates else []
        head = " ".join([first, *named]).upper().rstrip(";")
        counts = kind in COUNTED and not returns_rows(sql)
        if not counts and kind != "TRANSACTION" and gives_rows(parsed):
            return self._whole(kind, sql, parsed, head, options, sink)
        if kind == "TRANSACTION":
            self._cancellation.execute(parsed)
            return Outcome(message=head)
        self._connection.execute(parsed)
        rows = self._connection.fetchall() if self._connection.description else []
        number = f" {rows[0][0]}" if counts and rows and kind != "CREATE" else ""
        return Outcome(message=head + number)

    def _whole(self, kind: str, sql: str, parsed: Any, head: str, options: RunOptions, sink: CountingSink) -> Outcome:
        """Run a statement that cannot be a subquery, once, and commit it when its rows have been
        rendered and stored.
        """
        run = partial(self._rows(options, sink).once, kind, sql, parsed, head)
        if self._read_only:
            return run()
        if self.transaction:
            try:
                return run()
            except BaseException:
                # The effect of the statement cannot be undone separately: the transaction fails with it.
                self.transaction = "failed"
                self._cancellation.fail_transaction()
                raise
        self._cancellation.execute("BEGIN")
        try:
            self._cancellation.check()
            outcome = run()
            self._cancellation.check()
            self._cancellation.execute("COMMIT")
        except BaseException as error:
            self._cancellation.roll_back()
            if kind == "CALL" and isinstance(error, duckdb.TransactionException):
                # The statement, such as FORCE CHECKPOINT, cannot run inside a transaction, and did not. Such statements
                # return no rows.
                self._connection.execute(sql).fetchall()
                return Outcome(message=head)
            raise
        return outcome
