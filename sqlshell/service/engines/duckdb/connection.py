"""One session of DuckDB, which returns rows as JSON text that DuckDB rendered, never as Python objects."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from msgspec import Struct
from msgspec.structs import replace

from sqlshell.context import is_timezone
from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.cancellation import READ_ONLY, Cancellation
from sqlshell.service.engines.duckdb.catalog import columns_of
from sqlshell.service.engines.duckdb.copying import OPTIONS_UNUSED, check_files, copied_out
from sqlshell.service.engines.duckdb.rights.check import CheckedStatement, Policy, check, denied, parsed, spoken
from sqlshell.service.engines.duckdb.rows import RowRunner, gives_rows
from sqlshell.service.engines.duckdb.statement import (
    check_nesting,
    check_replay,
    check_setting,
    returns_rows,
    writes_inside,
)
from sqlshell.service.engines.duckdb.translation.functions import may_need_translation
from sqlshell.service.engines.engine import (
    Outcome,
    Plan,
    Relation,
    Rights,
    Rows,
    RunOptions,
    Sink,
    StreamQuery,
    completed,
)
from sqlshell.service.engines.files.disk_space import CountingSink, DiskSpace
from sqlshell.service.engines.files.failures import Cause, failure, moved_to_end
from sqlshell.service.engines.files.render import own, type_name
from sqlshell.service.engines.files.result_files import ResultFiles
from sqlshell.service.engines.files.texts import bounded, command_of
from sqlshell.service.failure import Failure, check_unicode
from sqlshell.sql.analysis.tokens import first_word
from sqlshell.sql.identifiers import always_quoted, literal

if TYPE_CHECKING:
    from sqlshell.service.engines.duckdb.streams import StreamUse
    from sqlshell.service.engines.duckdb.translation.statement import Translation

KEEPS_PLACE = {"SELECT", "INSERT", "UPDATE", "DELETE", "EXPLAIN", "COPY", "MERGE_INTO", "ANALYZE"}
"""Statement types that do not change the current database and schema."""

SETTINGS = {"SET", "VARIABLE_SET", "PRAGMA", "CALL"}
"""Statement types that may change settings."""

COUNTED = {"INSERT", "UPDATE", "DELETE", "COPY", "MERGE_INTO", "CREATE"}

NEVER_FIRST = "]"
"""A text with which no statement begins or continues, except inside brackets."""

ANY_NUMBER = 1 << 62
"""As many columns as a relation has, whose result has a row for each."""

LARGE = 64 << 10
"""Characters of a statement that takes much memory after DuckDB has parsed it."""


class _Running(Struct):
    """The running statement as DuckDB is given it, and where it comes from: for its errors."""

    sql: str = ""
    translation: Translation | None = None
    kind: str = "INSERT"


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
        results: ResultFiles | None = None,
    ) -> None:
        self._policy = policy or Policy(frozenset)
        self._connection = connection
        self._room = room or DiskSpace()
        self._results = results
        self._strict = self._policy.strict
        self._cancellation = Cancellation(connection)
        self._asked = self._first = self.timezone = ""
        """The latest time zone that was requested, the first one, and that of the session."""
        self.transaction = ""
        self.leaves_state = False
        """Whether a statement may have created temporary state of this session."""
        self._ends = False
        """Whether the running statement ends a transaction."""
        self._read_only = False
        """Whether a READ ONLY transaction is open: a reader's BEGIN, or one around a single statement."""
        self._cancellation.execute("SET enable_progress_bar_print = false; SET enable_progress_bar = true")
        self.database, self.schema, _ = self._place()

    def run(self, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        counting = CountingSink(sink, self._room)
        try:
            with self._statement(options) as running:
                self._translate(sql, options, running)
                copied = copied_out(running.sql, paths=not self._strict)
                if copied is not None:
                    running.sql = copied.sql
                outcome = self._run(running, options, counting)
                if copied is not None and copied.options and outcome.sql_state == sqlstate.DONE:
                    outcome = replace(outcome, message=OPTIONS_UNUSED, sql_state=sqlstate.WARNING)
                if self._results is None or outcome.written is None or counting.path is None:
                    return outcome
                # Otherwise who called finds the partitions.
                filed = self._results.partitions(counting.path, outcome.written, options)
                return replace(outcome, filed=filed, written=None)
        finally:
            counting.close()
            if len(sql) > LARGE:
                # DuckDB keeps the last statement of a connection, in the transaction or out of it, until the next one.
                with contextlib.suppress(duckdb.Error, RuntimeError):
                    self._connection.execute("")

    def load(self, names: Sequence[str], columns: Sequence[str], path: Path, options: RunOptions) -> Outcome:
        from sqlshell.service.engines.duckdb.loading import load_rows

        reads = options.rights is Rights.READ
        with self._statement(options), self._reading(reads):
            self._ask_zone(options.timezone)
            return load_rows(self._connection, names, columns, path, changes=not reads, in_transaction=self._open)

    def use(self, database: str, schema: str) -> None:
        wanted = database or self.database
        try:
            known = self._connection.execute(
                "SELECT schema_name FROM system.main.duckdb_schemas() WHERE database_name = $1", [wanted]
            ).fetchall()
            if not known:
                raise Failure(sqlstate.NO_DATABASE, f'database "{wanted}" does not exist')
            names = {str(row[0]) for row in known}
            into = schema or ("main" if "main" in names else sorted(names)[0])
            # The engine ignores case, and a quoted name may differ in case.
            into = into if into in names else next((name for name in names if name.lower() == into.lower()), into)
            if into not in names:
                raise Failure(sqlstate.NO_SCHEMA, f'schema "{into}" does not exist in database "{wanted}"')
            self._connection.execute(f"USE {always_quoted(wanted)}.{always_quoted(into)}")
        except duckdb.Error as error:
            raise failure(error) from error
        self.database, self.schema, _ = self._place()

    def stream_query(self, sql: str, streams: Collection[Relation], options: RunOptions) -> StreamQuery | None:
        from sqlshell.service.engines.duckdb.streams import make_stream_query

        with self._statement(options) as running:
            self._translate(sql, options, running)
            statement = parsed(self._connection, running.sql)
            running.kind = statement.kind
            if statement.kind != "SELECT" or writes_inside(running.sql):
                return None
            # The rows of the SELECT are read again and again, in a READ ONLY transaction of the engine's own.
            self._checked(statement, replace(options, rights=Rights.READ))
            read = self._uses_of(streams, running.sql).read()
            if not read:
                return None
            with self._reading(options.rights is Rights.READ):
                query = make_stream_query(self._connection, running.sql, read)
            if query is not None:
                bounded(query.columns, options)
                if running.translation is not None:
                    query = replace(query, from_earliest=running.translation.from_earliest)
            return query

    def rows(self, query: StreamQuery, start: int, end: int) -> list[str]:
        from sqlshell.service.engines.duckdb.streams import evaluated

        with self._statement():
            self._ask_zone("UTC")
            with self._reading(True):
                return evaluated(self._connection, query, start, end)

    def plan(self, sql: str, options: RunOptions) -> Plan:
        from sqlshell.service.engines.duckdb.planned import planned

        with self._statement(options) as running:
            self._translate(sql, options, running)
            checked = self._checked(parsed(self._connection, running.sql), options)
            running.kind = checked.kind
            if options.streams:
                self._uses_of(options.streams, running.sql).check()
            # In a READ ONLY transaction, DuckDB would not plan what changes something.
            if options.rights is Rights.READ:
                raise denied(spoken(checked.kind, first_word(running.sql)), options.rights, checked.kind)
            plan = planned(self._connection, running.sql)
            bounded(plan.columns, replace(options, columns=ANY_NUMBER))
            return plan

    def columns(self, relation: Relation, options: RunOptions) -> list[ColumnInfo]:
        with self._statement():
            # A view of something that cannot be read now still has columns.
            found = self._connection.execute(columns_of(relation)).fetchall()
            columns = (ColumnInfo(name, self._type(kind), nullable) for name, kind, nullable in found)
            return bounded(columns, replace(options, columns=ANY_NUMBER))

    def _type(self, name: str) -> str:
        """The interface's name of a type of DuckDB."""
        try:
            return type_name(self._connection.type(name))
        except duckdb.Error:
            # Some types exist only as those of a value, such as the state of an aggregate: no text is their name.
            return name

    def listed(self, sql: str) -> Rows:
        """Return the rows of the service's own query, as strings; NULL is "". Raises Failure."""
        with self._statement():
            rows = self._connection.execute(own(sql)).fetchall()
        return [
            tuple("" if item is None else str(item).lower() if isinstance(item, bool) else str(item) for item in row)
            for row in rows
        ]

    def resolve(self, names: Sequence[str]) -> Relation:
        known = "SELECT 1 FROM system.main.duckdb_databases() WHERE database_name = $1"
        if len(names) == 2:
            # The session's own transaction may have failed.
            with self._connection.cursor() as other:
                if other.execute(known, [names[0]]).fetchone():
                    return names[0], "main", names[1]
        return completed(names, self.database, self.schema)

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

    @property
    def _open(self) -> bool:
        """Whether a transaction is open: the session's own, or one around a single statement."""
        return bool(self.transaction) or self._read_only

    @contextlib.contextmanager
    def _statement(self, options: RunOptions | None = None) -> Iterator[_Running]:
        """Mark a user's statement, which can be interrupted. Raises its errors as Failure, and updates the state of the
        transaction.
        """
        running = _Running()
        self._ends = False
        with self._cancellation.statement():
            try:
                yield running
            except (duckdb.Error, RuntimeError, Failure) as error:
                cause = error.__cause__ if isinstance(error, Failure) else error
                self._after_failure(cause)
                raise self._failure(error, running, options) from cause

    def _failure(self, error: Exception, running: _Running, options: RunOptions | None) -> Failure:
        """The error of a statement, with its position in the text that was typed."""
        cause = error.__cause__ if isinstance(error, Failure) else error
        if options and options.rights < Rights.OBJECTS and Cause.READ_ONLY_TRANSACTION.of(cause):
            return denied(spoken(running.kind, first_word(running.sql)), options.rights, running.kind)
        at_end = moved_to_end(str(error)) if isinstance(error, duckdb.ParserException) else ""
        # An error is at the end if a text behind the end changes it.
        if at_end and self._parser_error(f"{running.sql}\n{NEVER_FIRST}") != str(error):
            error = duckdb.ParserException(at_end)
        failed = error if isinstance(error, Failure) else failure(error)
        if running.translation is not None:
            failed = failed.with_message(running.translation.statement.explained(failed.message))
        return failed

    def _parser_error(self, sql: str) -> str:
        """The error of DuckDB's parser for a text, "" if there is none."""
        try:
            self._connection.extract_statements(sql)
        except duckdb.Error as error:
            return str(error)
        return ""

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

    def _uses_of(self, streams: Collection[Relation], sql: str) -> StreamUse:
        """What a statement does with streams."""
        from sqlshell.service.engines.duckdb.streams import StreamUse

        return StreamUse(self._connection, streams, self.resolve, sql, bound=not self._open)

    def _translate(self, sql: str, options: RunOptions, running: _Running) -> None:
        """Translate a statement into DuckDB's SQL. Raises Failure, also for a text that DuckDB cannot parse safely."""
        check_unicode(sql)
        check_nesting(sql)
        running.sql = sql
        if not may_need_translation(sql):
            return
        from sqlshell.service.engines.duckdb.translation.statement import has_function, mismatch, translated

        def mismatched(text: str) -> int | None:
            # A statement that fails, or is refused, does so when it runs.
            with contextlib.suppress(duckdb.Error, Failure):
                self._checked(parsed(self._connection, text), options)
                with self._reading(True):
                    return mismatch(self._connection, text)
            return None

        running.translation = translated(sql, partial(has_function, self._connection), mismatched)
        if running.translation is not None:
            running.sql = running.translation.statement.sql

    def _checked(self, statement: CheckedStatement, options: RunOptions) -> CheckedStatement:
        """A statement that may run. Raises Failure."""
        if not self._strict and options.rights is Rights.OBJECTS:
            return statement
        writes = bool(self.transaction) and not self._read_only
        return check(self._connection, self._policy, statement, options.rights, in_transaction=writes)

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
            # An interrupted USE may have changed it, which the aborted transaction did not tell.
            self._look_at_place()
            raise
        finally:
            self._read_only = False

    def _run(self, running: _Running, options: RunOptions, sink: CountingSink) -> Outcome:
        """Check a statement, and run it in the transaction that it needs."""
        sql = running.sql
        if not self._strict:
            check_files(sql)
        statement = self._checked(parsed(self._connection, sql), options)
        running.kind = statement.kind
        if options.streams:
            self._uses_of(options.streams, sql).check()
        if not statement.read_only or statement.transaction:
            return self._carry_out(statement, options, sink)
        with self._reading(True):
            return self._carry_out(statement, options, sink)

    def _carry_out(self, statement: CheckedStatement, options: RunOptions, sink: CountingSink) -> Outcome:
        kind, sql = statement.kind, statement.sql
        self._cancellation.check()
        self.leaves_state = self.leaves_state or statement.leaves_state
        if kind == "TRANSACTION":
            return self._change_transaction(statement, options)
        # In an aborted transaction this fails; COMMIT and ROLLBACK do not need it.
        self._ask_zone(options.timezone)
        rows = RowRunner(self._connection, options, sink, self._reaches_files)
        if kind == "SELECT" and not writes_inside(sql):
            return rows.select(sql, statement.parsed)
        if self._strict and kind == "ALTER":
            check_replay(self._connection, sql)
        resets_zone = kind in SETTINGS and check_setting(sql, self._profile)
        try:
            return self._other(statement, rows)
        finally:
            if kind not in KEEPS_PLACE:
                self._follow(resets_zone=resets_zone)

    def _change_transaction(self, statement: CheckedStatement, options: RunOptions) -> Outcome:
        self._ends = statement.transaction == "end"
        read_only = not self._ends and options.rights is Rights.READ
        try:
            self._cancellation.execute(READ_ONLY if read_only else statement.parsed)
            before, self.transaction = self.transaction, "" if self._ends else "open"
            self._read_only = read_only
        finally:
            self._follow()
        if before == "failed" and first_word(statement.sql) in {"commit", "end"}:
            message = "the transaction had failed and was rolled back; none of its changes were committed"
            return Outcome(message=message, sql_state=sqlstate.WARNING)
        return Outcome(message=command_of(statement.sql))

    def _other(self, statement: CheckedStatement, rows: RowRunner) -> Outcome:
        """Run a statement that is no plain SELECT."""
        kind, sql = statement.kind, statement.sql
        head = command_of(sql)
        counts = kind in COUNTED and not returns_rows(sql)
        if not counts and gives_rows(statement.parsed):
            return self._whole(statement, rows, head)
        self._connection.execute(statement.parsed)
        found = self._connection.fetchall() if self._connection.description else []
        number = f" {found[0][0]}" if counts and found and kind != "CREATE" else ""
        return Outcome(message=head + number)

    def _whole(self, statement: CheckedStatement, rows: RowRunner, head: str) -> Outcome:
        """Run a statement that cannot be a subquery, once, and commit it when its rows have been kept."""
        run = partial(rows.once, statement.kind, statement.sql, statement.parsed, head)
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
            if statement.kind == "CALL" and isinstance(error, duckdb.TransactionException):
                # The statement, such as FORCE CHECKPOINT, cannot run inside a transaction, and did not. Such statements
                # return no rows.
                self._connection.execute(statement.sql).fetchall()
                return Outcome(message=head)
            raise
        return outcome

    def _place(self) -> tuple[str, str, str]:
        """Database, schema and time zone of the session."""
        with self._cancellation.protected():
            rows = self._connection.execute(
                "SELECT system.main.current_database(), system.main.current_schema(), "
                "system.main.current_setting('TimeZone')"
            ).fetchall()
        database, schema, timezone = rows[0]
        return str(database), str(schema), str(timezone)

    def _look_at_place(self) -> str | None:
        """Read the session's database, schema and time zone, which is None in an aborted transaction: it tells none."""
        try:
            self.database, self.schema, timezone = self._place()
        except duckdb.Error:
            return None
        return timezone

    def _follow(self, *, resets_zone: bool = False) -> None:
        """Update the session's place after a statement. Raises Failure for a time zone that only DuckDB knows."""
        timezone = self._look_at_place()
        if timezone is None or not self._asked:
            return
        before, self.timezone = self.timezone, timezone
        if resets_zone:
            # DuckDB would fall back to the machine's time zone, which was not chosen.
            self._go_to_zone(self._first)
        elif timezone != before and not is_timezone(timezone):
            self._go_to_zone(before)
            message = f"unknown time zone {timezone!r}; use a name such as Europe/Berlin or Etc/GMT-5"
            raise Failure("22023", message)

    def _ask_zone(self, timezone: str) -> None:
        """Change the time zone if another one is requested: until then the session's own SET TimeZone applies."""
        if timezone != self._asked:
            self._go_to_zone(timezone)
            self._first = self._first or timezone
            self._asked = timezone

    def _go_to_zone(self, timezone: str) -> None:
        if timezone != self.timezone:
            self._cancellation.execute(f"SET TimeZone = {literal(timezone)}")
            self.timezone = timezone

    def _profile(self) -> str:
        """The file to which profiles are written, or ""."""
        row = self._connection.execute("SELECT system.main.current_setting('profiling_output')").fetchone()
        return str(row[0] or "") if row else ""

    def _reaches_files(self) -> bool:
        """Whether the engine can write a file of the service: the user may have disabled its access to files."""
        if self._strict:
            return True
        rows = self._connection.execute(
            "SELECT system.main.current_setting('enable_external_access') AND NOT system.main.contains("
            "system.main.current_setting('disabled_filesystems'), 'LocalFileSystem')"
        ).fetchall()
        return bool(rows[0][0])
