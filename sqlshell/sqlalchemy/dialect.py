"""The dialect. URLs: `sqlshell+https://host/v2`, `sqlshell:///file.duckdb`, `sqlshell://` (a database in memory)."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy import types as sqltypes
from sqlalchemy.dialects.postgresql import INTERVAL
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect, IsolationLevel
from sqlalchemy.engine.url import URL
from sqlalchemy.exc import NotSupportedError
from sqlalchemy.sql.compiler import InsertmanyvaluesSentinelOpts

from sqlshell import dbapi
from sqlshell.dbapi.literals import Literals
from sqlshell.sqlalchemy.compilers import (
    SqlshellCompiler,
    SqlshellDDLCompiler,
    SqlshellIdentifierPreparer,
    SqlshellTypeCompiler,
)
from sqlshell.sqlalchemy.connecting import AUTOCOMMIT, Connecting, engine_of
from sqlshell.sqlalchemy.reflection import Reflection
from sqlshell.sqlalchemy.types import Decimals, Floats, Json, JsonIndex, JsonPath, Uuids

SNAPSHOT: Final = "REPEATABLE READ"


class _Interval(INTERVAL):
    @classmethod
    def adapt_emulated_to_native(cls, interval: Any, **kw: Any) -> _Interval:  # type: ignore[override]
        return cls(precision=interval.second_precision)

    def literal_processor(self, dialect: Any) -> Any:
        return Literals().of


class SqlshellContext(DefaultExecutionContext):
    def fire_sequence(self, seq: Any, type_: Any) -> Any:
        name = self.identifier_preparer.format_sequence(seq)
        return self._execute_scalar(f"select nextval('{name}')", type_)


class SqlshellDialect(Connecting, Reflection):
    """The dialect of the local service. Its SQL and its reflection are DuckDB's."""

    name = "sqlshell"
    driver = "dbapi"
    default_paramstyle = "qmark"
    execution_ctx_cls = SqlshellContext
    statement_compiler = SqlshellCompiler
    ddl_compiler = SqlshellDDLCompiler
    type_compiler_cls = SqlshellTypeCompiler
    preparer = SqlshellIdentifierPreparer
    colspecs = {  # noqa: RUF012
        sqltypes.Uuid: Uuids,
        sqltypes.JSON: Json,
        sqltypes.JSON.JSONIndexType: JsonIndex,
        sqltypes.JSON.JSONPathType: JsonPath,
        sqltypes.Interval: _Interval,
        INTERVAL: _Interval,
        sqltypes.Numeric: Decimals,
        sqltypes.Float: Floats,
    }

    div_is_floordiv = False
    supports_alter = False
    supports_comments = True
    supports_default_values = True
    supports_multivalues_insert = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    supports_sequences = True
    supports_statement_cache = True
    postfetch_lastrowid = False
    insert_returning = True
    update_returning = True
    delete_returning = True
    insert_executemany_returning = True
    use_insertmanyvalues = True
    # DuckDB numbers the rows of VALUES from a sequence in their order, so that sorting by the numbers restores it.
    insertmanyvalues_implicit_sentinel = (
        InsertmanyvaluesSentinelOpts.AUTOINCREMENT
        | InsertmanyvaluesSentinelOpts.IDENTITY
        | InsertmanyvaluesSentinelOpts.SEQUENCE
    )
    _backslash_escapes = False

    @classmethod
    def get_dialect_cls(cls, url: URL) -> type[Dialect]:
        if engine_of(url) == "postgresql":
            from sqlshell.sqlalchemy.postgresql import PostgresqlDialect

            return PostgresqlDialect
        return cls

    def initialize(self, connection: Connection) -> None:
        super().initialize(connection)
        self.service_engine = getattr(connection.connection.dbapi_connection, "engine", str)()

    def get_isolation_level_values(self, dbapi_connection: DBAPIConnection) -> list[IsolationLevel]:
        return [AUTOCOMMIT, SNAPSHOT]

    def set_isolation_level(self, dbapi_connection: Any, level: IsolationLevel) -> None:
        dbapi_connection.autocommit = level == AUTOCOMMIT

    def get_isolation_level(self, dbapi_connection: Any) -> IsolationLevel:
        return AUTOCOMMIT if dbapi_connection.autocommit else SNAPSHOT

    def get_default_isolation_level(self, dbapi_conn: Any) -> IsolationLevel:
        return SNAPSHOT

    def do_savepoint(self, connection: Connection, name: str) -> None:
        if not self.service_engine:
            cause = dbapi.NotSupportedError(
                "DuckDB has no savepoints", hint="do not use begin_nested(); commit in smaller transactions"
            )
            raise NotSupportedError(f"SAVEPOINT {name}", None, cause) from cause
        super().do_savepoint(connection, name)  # type: ignore[no-untyped-call]

    def _get_default_schema_name(self, connection: Any) -> str:
        return str(connection.exec_driver_sql("select current_schema()").scalar())

    def _get_server_version_info(self, connection: Any) -> None:
        return None
