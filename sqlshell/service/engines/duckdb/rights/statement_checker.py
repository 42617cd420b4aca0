"""Checks what a statement may do under `serve`: DuckDB parses and binds it, and the tree and the plan are checked.

The order matters. The parse tree is checked before anything is bound, because DuckDB evaluates the arguments of table
functions and opens files while it binds. Then the plan is checked, because only the plan contains the definitions of
views, macros and defaults. No decision depends on the statement's text.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final

import duckdb
from msgspec import Struct
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.cancellation import Cancellation
from sqlshell.service.engines.duckdb.results.copying import select_of_copy
from sqlshell.service.engines.duckdb.results.returned import kind_of
from sqlshell.service.engines.duckdb.rights import decomposition
from sqlshell.service.engines.duckdb.rights.binding import BOUND_BY_EXPLAIN, Binder
from sqlshell.service.engines.duckdb.rights.functions import SEQUENCES
from sqlshell.service.engines.duckdb.rights.insert_shapes import InsertShape, plain_insert
from sqlshell.service.engines.duckdb.rights.walk import EngineState, Path, StatementEffects, is_constant, refused, walk
from sqlshell.service.engines.engine import NO_CONTINUOUS_QUERIES, RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.rights import Rights
from sqlshell.sql.identifiers import always_quoted

PLANNED: Final = frozenset(
    {
        "ALTER", "ANALYZE", "CREATE", "DELETE", "DROP", "INSERT", "MERGE_INTO", "SELECT", "SET", "TRANSACTION",
        "UPDATE", "VACUUM", "VARIABLE_SET",
    }
)  # fmt: skip
"""Types of statements that have a plan. EXPLAIN and MULTI are split into parts; all others are refused."""

_WRITTEN: Final = frozenset({"CALL", "DROP", "LOAD", "PRAGMA", "VACUUM"})
"""Types that several statements share: CHECKPOINT, DEALLOCATE, INSTALL, IMPORT and ANALYZE too."""

_SHOW_SCHEMAS: Final = re.compile(r"\s*+show\s++schemas\s*+;?\s*+", re.I)
_SCHEMAS: Final = """
SELECT database_name, schema_name, database_name = current_database() AND schema_name = current_schema() AS current
FROM system.main.duckdb_schemas()
WHERE database_name IN (SELECT database_name FROM system.main.duckdb_databases() WHERE NOT internal) ORDER BY ALL
"""
"""SHOW SCHEMAS without the columns of duckdb_databases() that it reads but does not show."""

_SETS: Final = frozenset({"SET", "VARIABLE_SET"})

_WRAPPED: Final = frozenset({"DELETE", "INSERT", "UPDATE"})
"""Types that DuckDB also parses as the body of a common table expression, which shows their trees."""

_TYPES_WITHOUT_DDL: Final = frozenset({"DELETE", "INSERT", "MERGE_INTO", "SELECT", "UPDATE"})
"""Types that change no objects; EXPLAIN ANALYZE of CREATE does."""

_READ: Final = frozenset({"SELECT", "SET", "TRANSACTION", "VARIABLE_SET"})
"""Types that a reader may run, in addition to EXPLAIN and PIVOT."""

_COPYING: Final = frozenset({"COPY_DATABASE", "EXPORT", "PRAGMA"})
"""Types of statements that copy whole databases."""

_REMEMBERED: Final = frozenset({"DELETE", "INSERT", "SELECT", "UPDATE"})
"""Types of statements whose check is valid until objects change."""

_KEPT: Final = 64
_SHORT: Final = 200
"""Maximum number of remembered checks of each kind, and maximum length of their statements in characters."""

_ARGUMENT_ERRORS: Final = frozenset({"NO_MATCHING_FUNCTION", "COLUMN_NOT_FOUND", "MISSING_ENTRY"})
"""Error types of a statement that calls a function with wrong arguments."""

_MANY_ARGUMENTS: Final = 9
"""More arguments than any macro is expected to have."""

_APPEND_ONLY: Final = "a stream is append-only; use INSERT INTO"
_ENDLESS: Final = f"a statement that reads a stream would never end: {NO_CONTINUOUS_QUERIES}"


class AllowedStatement(Struct, frozen=True):
    """A statement that may run: its type, the SQL to run instead, and the objects to remove afterwards."""

    kind: str
    sql: str
    parsed: Any
    required_rights: Rights = Rights.READ
    transaction: str = ""
    """BEGIN_TRANSACTION, COMMIT or ROLLBACK, "" for any other statement."""
    types: tuple[str, ...] = ()
    """Temporary types that were created for a PIVOT."""
    leaves_state: bool = False
    """Whether it may create session state: temporary objects, settings, variables, a seed."""
    reevaluated_default: str = ""
    """The function in the DEFAULT of ADD COLUMN that returns another value when it is evaluated again after a crash."""
    reads: frozenset[Path] = frozenset()
    """The relations that a SELECT reads, with the names that DuckDB bound."""


class StatementChecker:
    """Checks the statements of one connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, known: EngineState, cancellation: Cancellation) -> None:
        self._connection = connection
        self._cancellation = cancellation
        self._binder = Binder(connection, cancellation, known)
        self._known = known
        self._constants: dict[str, AllowedStatement] = {}
        self._inserts: dict[tuple[str, frozenset[str], Rights], int] = {}
        """Allowed INSERTs of literals, by the text around the literals, with the version of the
        objects at the check.
        """
        self._allowed: dict[tuple[Any, ...], tuple[int, AllowedStatement]] = {}
        """Allowed statements by their text and all options that affect the check, with the version of the objects."""
        self._functions: dict[str, tuple[int, bool]] = {}
        """Whether functions of these names exist, with the version of the objects."""
        self._lasting = True
        """Whether the current check depends only on objects."""

    def constant(self, sql: str) -> AllowedStatement | None:
        """A SELECT of literals that was allowed before: it is allowed for every role at any time. None for others."""
        return self._constants.get(sql)

    @contextlib.contextmanager
    def running(self, allowed: AllowedStatement) -> Iterator[None]:
        """Mark that a statement is running."""
        if allowed.kind in _TYPES_WITHOUT_DDL:
            yield
        elif allowed.kind in _SETS:
            try:
                yield
            finally:
                self.forget()
        else:
            with self._known.changing():
                yield

    def forget(self) -> None:
        """Forget checks that depend on the session's database, schema or settings."""
        self._inserts.clear()
        self._allowed.clear()
        self._functions.clear()

    def has_function(self, name: str) -> bool:
        """Whether a scalar function or macro of this name exists for the session."""
        version, known = self._known.settled, self._functions.get(name)
        if known is not None and known[0] == version and self._known.strict:
            return known[1]
        try:
            # No macro has this many arguments, so none is evaluated.
            plan = self._binder.bind(f"SELECT {always_quoted(name)}({', '.join('1' * _MANY_ARGUMENTS)})")
        except duckdb.Error:
            return True
        exists = bool(plan.get("error_subtype") != "MISSING_ENTRY")
        if version is not None:
            self._functions[name] = version, exists
        return exists

    def mismatch(self, sql: str, options: RunOptions, *, in_transaction: bool) -> int | None:
        """The position in a statement, in characters, of a function that does not accept its arguments.

        None if all do, if there is another error, or if only a checked statement may be bound. An open transaction is
        not affected. Raises Failure for what is not allowed.
        """
        try:
            statements = self._connection.extract_statements(sql)
            kind = str(statements[0].type.name) if len(statements) == 1 else ""
        except (duckdb.Error, ValueError):
            return None
        if kind not in (_READ if options.rights is Rights.READ else PLANNED) - {"TRANSACTION"}:
            return None
        with self._binder.reading(in_transaction), self._failing(sql, in_transaction):
            tree = self._binder.tree(self._showing(kind, sql))
            if tree is not None:
                self._walked(kind, tree, options)
            elif self._known.strict and kind in _WRAPPED | {"SELECT"}:
                return None
            plan = self._binder.bind(sql)
        if plan.get("error_subtype") not in _ARGUMENT_ERRORS or "position" not in plan:
            return None
        return len(sql.encode()[: int(plan["position"])].decode(errors="ignore"))

    def check(self, sql: str, options: RunOptions, *, in_transaction: bool) -> AllowedStatement:
        """Check a statement. Raises Failure, and duckdb.Error if DuckDB cannot parse or bind it.

        The result is remembered for the same statement until an object of the engine changes or is about to, or the
        session's database or schema changes: until then DuckDB binds the statement in the same way.
        """
        version = self._known.settled
        key = (sql, options.rights, options.streams, options.stores)
        seen = self._allowed.get(key)
        if seen is not None and seen[0] == version:
            return seen[1]
        self._lasting = self._known.strict and len(sql) <= _SHORT
        allowed = self._check(sql, options, in_transaction)
        if allowed.reevaluated_default and self._known.strict:
            message = f"DEFAULT {allowed.reevaluated_default} is not supported with IF NOT EXISTS; omit IF NOT EXISTS"
            raise Failure(sqlstate.UNSUPPORTED, message)
        if self._lasting and version is not None and allowed.kind in _REMEMBERED and version == self._known.settled:
            _keep(self._allowed, key, (version, allowed))
        return allowed

    def _check(self, sql: str, options: RunOptions, in_transaction: bool) -> AllowedStatement:
        statements = self._connection.extract_statements(sql)
        if len(statements) != 1:
            raise Failure(sqlstate.SYNTAX, f"expected one statement, found {len(statements)}")
        statement = statements[0]
        try:
            kind = str(statement.type.name)
        except ValueError:
            kind = "EXTENSION"
        # DuckDB's whitespace characters count as whitespace.
        text = str(statement.query)
        if kind == "MULTI" and decomposition.tokens(text)[0].word == "explain":
            kind = "EXPLAIN"
        confined = self._known.strict or options.rights < Rights.OBJECTS
        if kind == "EXPLAIN" and confined:
            return self._explained(text, options, in_transaction)
        if kind == "MULTI" and confined and (once := decomposition.added(text)):
            return self._added(once, text, statement, options, in_transaction)
        if kind == "MULTI" and (confined or (options.streams and decomposition.pivot(text, "") is not None)):
            return self._pivoted(text, options, in_transaction)
        if kind == "SELECT" and self._known.strict and _SHOW_SCHEMAS.fullmatch(text):
            return self._check(_SCHEMAS, options, in_transaction)
        if kind not in PLANNED:
            if self._known.strict:
                raise refused(_spoken(kind, text))
            nothing = StatementEffects(strict=False)
            nothing.needs(Rights.OBJECTS, kind)
            _may(nothing, options)
            if options.streams:
                self._check_endless(kind, text, options, in_transaction)
            return AllowedStatement(kind_of(statement, sql), sql, statement, Rights.OBJECTS)
        if options.rights is Rights.READ and kind not in _READ:
            # A reader may not evaluate what binding would evaluate either.
            changes = StatementEffects(strict=False)
            changes.needs(Rights.DATA if kind in _WRAPPED | {"MERGE_INTO"} else Rights.OBJECTS, _spoken(kind, text))
            _may(changes, options)
        plain = plain_insert(text) if kind == "INSERT" else None
        if plain is not None:
            # The literals of the INSERT do not matter, and there may be very many.
            self._inserted(plain, options, in_transaction)
            return AllowedStatement(kind, text, statement, Rights.DATA)
        seen = self._seen(kind, text, options, in_transaction)
        reads = frozenset(seen.reads)
        allowed = AllowedStatement(
            kind,
            text,
            statement,
            seen.required_rights,
            seen.transaction,
            leaves_state=seen.leaves_state,
            reads=reads,
            reevaluated_default=seen.reevaluated_default,
        )
        if seen.constant and len(sql) <= _SHORT:
            _keep(self._constants, sql, replace(allowed, parsed=text))
        return allowed

    def _check_endless(self, kind: str, sql: str, options: RunOptions, in_transaction: bool) -> None:
        """Refuse a statement without a plan of its own that would read a stream to its end, or change it."""
        name = decomposition.copied_database(sql) if kind in _COPYING else None
        if name is not None:
            name = name or str(self._connection.execute("SELECT current_database()").fetchall()[0][0])
            copied = [".".join(stream) for stream in options.streams if stream[0].lower() == name.lower()]
            if copied:
                raise Failure(sqlstate.UNSUPPORTED, f"{copied[0]} is a stream: {_ENDLESS}")
        elif kind == "PREPARE":
            try:
                self._check(decomposition.prepared(sql), options, in_transaction)
            except (duckdb.Error, Failure) as error:
                # DuckDB reports other errors in it: here its parameters have no types.
                if isinstance(error, Failure) and error.sql_state == sqlstate.UNSUPPORTED:
                    raise
        elif read := _read_whole(kind, sql):
            self._check(read, options, in_transaction)

    def _inserted(self, inserted: InsertShape, options: RunOptions, in_transaction: bool) -> None:
        key, version = (inserted.head, inserted.shapes, options.rights), self._known.settled
        if version is None or self._inserts.get(key) != version or options.rights < Rights.DATA:
            self._lasting = True
            self._seen("INSERT", f"{inserted.head} {inserted.rows}", options, in_transaction)
            if self._lasting and version is not None and version == self._known.settled:
                _keep(self._inserts, key, version)
        # The next INSERT has other values in its text.
        self._lasting = False

    def _explained(self, sql: str, options: RunOptions, in_transaction: bool) -> AllowedStatement:
        head, inner, runs = decomposition.explained(sql)
        if not runs:
            # EXPLAIN without ANALYZE reads and changes nothing.
            options = replace(options, streams=())
        allowed = self._check(inner, options, in_transaction)
        if allowed.kind not in BOUND_BY_EXPLAIN:
            raise refused(f"EXPLAIN of {allowed.kind}")
        text = head + allowed.sql
        parsed = self._connection.extract_statements(text)
        if [str(item.type.name) for item in parsed] != ["EXPLAIN"]:
            raise refused("this form of EXPLAIN")
        return AllowedStatement(
            "EXPLAIN",
            text,
            parsed[0],
            allowed.required_rights,
            types=allowed.types,
            leaves_state=allowed.leaves_state,
        )

    def _added(
        self, once: str, sql: str, statement: Any, options: RunOptions, in_transaction: bool
    ) -> AllowedStatement:
        """ADD COLUMN with an expression as DEFAULT, which DuckDB runs as ADD COLUMN, UPDATE and SET DEFAULT.

        `once` is the same as one statement, which shows the effects of all three; DuckDB would evaluate its expression
        again after a crash.
        """
        try:
            allowed = self._check(once, options, in_transaction)
        except duckdb.NotImplementedException as error:
            message = (
                "ADD COLUMN with an expression as DEFAULT does not support NOT NULL; add the column, then SET NOT NULL"
            )
            raise Failure(sqlstate.UNSUPPORTED, message) from error
        if allowed.kind != "ALTER":
            raise refused("this form of ALTER")
        return replace(allowed, sql=sql, parsed=statement, reevaluated_default="")

    def _pivoted(self, sql: str, options: RunOptions, in_transaction: bool) -> AllowedStatement:
        """A PIVOT whose columns depend on its data, with types that provide them, as in DuckDB's own implementation."""
        taken = decomposition.pivot(sql, "__pivoted_")
        if taken is None:
            message = "this PIVOT requires a list of values: PIVOT t ON column IN (value, …) USING …"
            raise Failure(sqlstate.UNSUPPORTED, message)
        created: list[str] = []
        self._lasting = False
        try:
            for name, values in taken.values:
                allowed = self._check(values, options, in_transaction)
                if allowed.kind != "SELECT" or allowed.required_rights > Rights.READ:
                    raise refused("this form of PIVOT")
                created.append(name)
                self._connection.execute(f'CREATE OR REPLACE TEMP TYPE "{name}" AS ENUM (\n{allowed.sql}\n)')
            allowed = self._check(taken.sql, options, in_transaction)
        except BaseException:
            self.remove(tuple(created))
            raise
        return replace(allowed, types=(*allowed.types, *created))

    def remove(self, types: tuple[str, ...]) -> None:
        """Remove the temporary types of a PIVOT."""
        for name in types:
            with contextlib.suppress(duckdb.Error):
                self._cancellation.execute(f'DROP TYPE IF EXISTS temp."{name}"')

    def _seen(self, kind: str, sql: str, options: RunOptions, in_transaction: bool) -> StatementEffects:
        if kind == "TRANSACTION":
            effects = StatementEffects(strict=self._known.strict)
            walk(self._binder.transaction_plan(sql), self._known, effects)
            return effects
        with self._binder.reading(in_transaction), self._failing(sql, in_transaction):
            text = self._showing(kind, sql)
            tree = self._binder.tree(text)
            seen = StatementEffects(strict=self._known.strict)
            if tree is None and text and kind in _SETS:
                raise Failure(sqlstate.SYNTAX, "invalid value of SET: expected an expression")
            if tree is not None:
                seen = self._walked(kind, tree, options)
                seen.constant = kind == "SELECT" and is_constant(tree)
                if seen.constant:
                    return seen
            elif self._known.strict and kind in _WRAPPED | {"SELECT"}:
                raise refused("this kind of statement")
            tells = tree is not None and not seen.files
            effects = StatementEffects(strict=self._known.strict)
            selected = 0
            own = not self._known.strict and options.rights == Rights.OBJECTS
            if kind == "CREATE" and tree is not None:
                # The plan of CREATE VIEW contains its SELECT only in parsed form, and not what it reads.
                walk(self._plan("SELECT", text, tells, own=own), self._known, effects)
                selected, effects.described = effects.described, 0
            plan = self._plan(kind, sql, tells, own=own)
        walk(plan, self._known, effects)
        if self._known.strict and max(selected, effects.described) > seen.describes:
            raise refused("DESCRIBE at this position")
        effects.needs(seen.required_rights, seen.because)
        _may(effects, options)
        self._check_places(effects, options)
        return effects

    def _walked(self, kind: str, tree: Any, options: RunOptions) -> StatementEffects:
        """The effects of a parse tree, which may then be bound. Raises Failure for what is not allowed."""
        seen = StatementEffects(strict=self._known.strict)
        # The value of a setting is evaluated while it is bound.
        walk(tree, self._known, seen, "argument" if kind in _SETS else "")
        _may(seen, options)
        if self._known.strict:
            self._check_files(seen)
        return seen

    @contextlib.contextmanager
    def _failing(self, sql: str, in_transaction: bool) -> Iterator[None]:
        """Fail the open transaction if binding has advanced a sequence: its COMMIT would invalidate the instance."""
        low = sql.lower()
        advances = any(name in low for name in SEQUENCES)
        self._lasting = self._lasting and not advances
        if not in_transaction or not advances:
            yield
            return
        before = self._binder.sequences()
        try:
            yield
        finally:
            try:
                after = self._binder.sequences()
            except duckdb.TransactionException:
                # The error that aborted the transaction is reported; such a transaction cannot be committed.
                after = before
            if after != before:
                self._cancellation.fail_transaction()
                message = (
                    "nextval and setval are not allowed in expressions that are evaluated before the statement runs"
                )
                raise Failure(sqlstate.PRIVILEGE, message)

    @staticmethod
    def _showing(kind: str, sql: str) -> str:
        """A SELECT that shows the parse tree of a statement, "" if there is none."""
        if kind in _WRAPPED:
            return f"WITH wrapped AS (\n{decomposition.bare(sql)}\n) SELECT 1"
        if kind == "CREATE":
            return decomposition.select_of_create(sql)
        if kind in _SETS:
            return decomposition.value(sql)
        return decomposition.bare(sql) if kind == "SELECT" else ""

    def _plan(self, kind: str, sql: str, tells: bool, *, own: bool) -> Any:
        plan, is_lasting = self._binder.plan(kind, sql, tells, own=own)
        self._lasting = self._lasting and is_lasting
        return plan

    def _check_files(self, seen: StatementEffects) -> None:
        """Refuse missing relations, for which DuckDB would look for files."""
        for path in seen.files:
            self._lasting = False
            if not self._binder.exists(path):
                message = (
                    f"relation {'.'.join(path)} does not exist; to read a file, run CREATE STORE and use store.entity"
                )
                raise Failure(sqlstate.PRIVILEGE, message)

    def _check_places(self, effects: StatementEffects, options: RunOptions) -> None:
        """Refuse changes of read-only databases, and changes of streams other than INSERT."""
        stores = {name.lower() for name in options.stores}
        streams = {tuple(part.lower() for part in stream): stream for stream in options.streams}
        for operator, path in effects.writes:
            database = path[0].lower() if path else ""
            if database in stores:
                cause = f"cannot change store {path[0]!r} with this statement"
                hint = "use INSERT INTO ENTITY to add records to a writable store"
                raise Failure(sqlstate.UNSUPPORTED, f"{cause}; {hint}")
            if database in self._known.read_only:
                raise Failure(sqlstate.PRIVILEGE, f"database {path[0]!r} is read-only")
            name = tuple(part.lower() for part in path)
            if name not in streams or operator in {"COMMENT", "CREATE INDEX"}:
                continue
            if operator == "DROP":
                stream = ".".join(path)
                raise Failure(sqlstate.UNSUPPORTED, f"{stream} is a stream; use DROP STREAM {stream}")
            if operator != "INSERT":
                raise Failure(sqlstate.UNSUPPORTED, _APPEND_ONLY)
        if any(tuple(part.lower() for part in path) in streams for path in effects.reads):
            raise Failure(sqlstate.UNSUPPORTED, _ENDLESS)


def _keep(known: dict[Any, Any], key: Any, value: Any) -> None:
    """Remember an entry; the oldest one is removed if there are too many."""
    if len(known) >= _KEPT:
        known.pop(next(iter(known)))
    known[key] = value


def _read_whole(kind: str, sql: str) -> str:
    """The relation that a statement without a plan of its own reads to its end, which a stream does not have; "" for
    other statements.
    """
    if kind == "COPY":
        return select_of_copy(sql)
    if kind == "EXPLAIN":
        with contextlib.suppress(Failure):
            _, inner, runs = decomposition.explained(sql)
            return inner if runs else ""
    return ""


def _spoken(kind: str, sql: str) -> str:
    """The name of a kind of statement in messages."""
    if kind == "EXTENSION":
        return "this kind of statement"
    if kind == "COPY":
        return "COPY, except COPY … TO STDOUT,"
    return decomposition.tokens(sql)[0].word.upper() if kind in _WRITTEN else kind.replace("_", " ")


def _may(effects: StatementEffects, options: RunOptions) -> None:
    if effects.required_rights > options.rights:
        changed = {Rights.DATA: "changes data", Rights.OBJECTS: "changes objects"}[effects.required_rights]
        raise Failure(
            sqlstate.PRIVILEGE,
            f"permission denied: role {options.rights.role!r} cannot run {effects.because}, which {changed}",
        )
