"""The dialect. URLs: `sqlshell+https://host/v2`, `sqlshell:///file.duckdb`, `sqlshell://` (a database in memory)."""

from __future__ import annotations

import uuid
from decimal import Decimal
from types import ModuleType
from typing import Any, Final

from sqlalchemy import pool
from sqlalchemy import types as sqltypes
from sqlalchemy.dialects.postgresql import INTERVAL
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.engine.interfaces import ConnectArgsType, DBAPIConnection, IsolationLevel
from sqlalchemy.engine.url import URL

from sqlshell.dbapi.values.literals import Literals
from sqlshell.sqlalchemy.compilers import (
    SqlshellCompiler,
    SqlshellDDLCompiler,
    SqlshellIdentifierPreparer,
    SqlshellTypeCompiler,
)
from sqlshell.sqlalchemy.reflection import Reflection

MEMORY = ":memory:"
AUTOCOMMIT: Final = "AUTOCOMMIT"
SNAPSHOT: Final = "REPEATABLE READ"

LOST = frozenset({"08003", "57P02"})
"""The sqlStates of errors that end a session."""


class _Uuid(sqltypes.Uuid[Any]):
    """Accepts strings too, which a service without the type UUID returns."""

    def bind_processor(self, dialect: Any) -> Any:
        return None if self.native_uuid else super().bind_processor(dialect)

    def result_processor(self, dialect: Any, coltype: object) -> Any:
        if not self.native_uuid:
            return super().result_processor(dialect, coltype)  # type: ignore[no-untyped-call]
        if not self.as_uuid:
            return lambda value: None if value is None else str(value)
        return lambda value: uuid.UUID(value) if isinstance(value, str) else value


class _Json(sqltypes.JSON):
    """Decodes only strings, which a service without the type JSON returns; the DB-API decodes JSON itself."""

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return None if coltype in {"JSON", "JSONB"} else super().result_processor(dialect, coltype)


class _Numeric(sqltypes.Numeric[Any]):
    """Converts floats too, because DuckDB divides decimals as DOUBLE."""

    def result_processor(self, dialect: Any, coltype: object) -> Any:
        if self.asdecimal:
            return lambda value: Decimal(repr(value)) if isinstance(value, float) else value
        return lambda value: float(value) if isinstance(value, Decimal) else value


class _Float(sqltypes.Float[Any]):
    result_processor = _Numeric.result_processor


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


class SqlshellDialect(Reflection):
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
        sqltypes.Uuid: _Uuid,
        sqltypes.JSON: _Json,
        sqltypes.Interval: _Interval,
        INTERVAL: _Interval,
        sqltypes.Numeric: _Numeric,
        sqltypes.Float: _Float,
    }

    div_is_floordiv = False
    supports_alter = False
    supports_comments = True
    supports_default_values = True
    supports_empty_insert = True
    supports_multivalues_insert = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_enum = False
    supports_native_uuid = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    supports_sequences = True
    sequences_optional = False
    supports_statement_cache = True
    supports_is_distinct_from = True
    supports_identity_columns = False
    postfetch_lastrowid = False
    insert_returning = True
    update_returning = True
    delete_returning = True
    insert_executemany_returning = True
    use_insertmanyvalues = True
    default_sequence_base = 1
    cte_follows_insert = False
    tuple_in_values = False
    _backslash_escapes = False

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        import sqlshell.dbapi

        return sqlshell.dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        memory = not url.host and not url.query.get("profile") and url.database in {None, "", MEMORY}
        # A database in memory belongs to one connection, so each thread keeps its connection.
        return pool.SingletonThreadPool if memory else pool.QueuePool

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        options: dict[str, Any] = dict(url.query)
        token = url.password or url.username
        if token:
            options["token"] = token
        if not url.host:
            return [url.database or ("" if options.get("profile") else MEMORY)], options
        scheme = "http" if url.drivername.endswith("+http") else "https"
        host = f"[{url.host}]" if ":" in url.host else url.host
        port = f":{url.port}" if url.port else ""
        return [f"{scheme}://{host}{port}/{url.database or ''}"], options

    def get_isolation_level_values(self, dbapi_connection: DBAPIConnection) -> list[IsolationLevel]:
        return [AUTOCOMMIT, SNAPSHOT]

    def set_isolation_level(self, dbapi_connection: Any, level: IsolationLevel) -> None:
        dbapi_connection.autocommit = level == AUTOCOMMIT

    def get_isolation_level(self, dbapi_connection: Any) -> IsolationLevel:
        return AUTOCOMMIT if dbapi_connection.autocommit else SNAPSHOT

    def get_default_isolation_level(self, dbapi_conn: Any) -> IsolationLevel:
        return SNAPSHOT

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        if getattr(connection, "closed", False):
            return True
        kind = getattr(self.loaded_dbapi, "OperationalError", Exception)
        state = getattr(e, "sqlstate", None)
        return isinstance(e, kind) and (state == "" or state in LOST)

    def _get_default_schema_name(self, connection: Any) -> str:
        return str(connection.exec_driver_sql("select current_schema()").scalar())

    def _get_server_version_info(self, connection: Any) -> None:
        return None
