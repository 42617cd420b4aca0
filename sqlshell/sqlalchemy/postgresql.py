"""The dialect for services whose engine is PostgreSQL: SQLAlchemy's own, on this DB-API."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import pool
from sqlalchemy import types as sqltypes
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGDialect
from sqlalchemy.dialects.postgresql.pg_catalog import INT2VECTOR, OIDVECTOR
from sqlalchemy.engine.interfaces import ConnectArgsType, DBAPIConnection, IsolationLevel
from sqlalchemy.engine.url import URL

from sqlshell.dbapi.opening import OPTIONS
from sqlshell.sqlalchemy.connecting import AUTOCOMMIT, Connecting
from sqlshell.sqlalchemy.types import Decimals, Floats, Json, Uuids

SCHEME: Final = "sqlshell+postgresql"
_WITH_QUESTION_MARKS: Final = frozenset({"?", "?|", "?&", "@?"})
"""The operators of jsonb."""


class _Json(Json, postgresql.JSON):
    pass


class _Jsonb(Json, postgresql.JSONB):
    pass


def _numbers(kind: Any, dialect: Any, coltype: object) -> Any:
    return lambda value: None if value is None else [int(part) for part in value.split()]


class _Int2Vector(INT2VECTOR):
    cache_ok = True
    result_processor = _numbers


class _OidVector(OIDVECTOR):
    cache_ok = True
    result_processor = _numbers


class PostgresqlCompiler(PGCompiler):
    def escape_literal_column(self, text: str) -> str:
        escaped = str(super().escape_literal_column(text))  # type: ignore[no-untyped-call]
        # In an operator, a single question mark would be a placeholder of the DB-API; in a literal it would not.
        return escaped.replace("?", "??") if text in _WITH_QUESTION_MARKS else escaped


class PostgresqlDialect(Connecting, PGDialect):
    """URLs: `sqlshell+postgresql://user@host/db`, and those of SqlshellDialect if PostgreSQL is behind them."""

    driver = "sqlshell"
    default_paramstyle = "qmark"
    statement_compiler = PostgresqlCompiler
    supports_statement_cache = True
    supports_native_decimal = True
    supports_sane_rowcount = True
    colspecs = PGDialect.colspecs | {
        sqltypes.Uuid: Uuids,
        sqltypes.JSON: _Json,
        postgresql.JSONB: _Jsonb,
        sqltypes.Numeric: Decimals,
        sqltypes.Float: Floats,
        INT2VECTOR: _Int2Vector,
        OIDVECTOR: _OidVector,
    }

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        return pool.QueuePool

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        if url.drivername != SCHEME:
            return super().create_connect_args(url)
        options = {name: value for name, value in url.query.items() if name in OPTIONS}
        target = url.set(drivername="postgresql").difference_update_query(options)
        return [target.render_as_string(hide_password=False)], options

    def get_isolation_level_values(self, dbapi_conn: DBAPIConnection) -> list[IsolationLevel]:
        return [AUTOCOMMIT, *super().get_isolation_level_values(dbapi_conn)]  # type: ignore[no-untyped-call]

    def set_isolation_level(self, dbapi_connection: Any, level: IsolationLevel) -> None:
        dbapi_connection.autocommit = level == AUTOCOMMIT
        if level != AUTOCOMMIT:
            super().set_isolation_level(dbapi_connection, level)  # type: ignore[no-untyped-call]

    def get_isolation_level(self, dbapi_connection: Any) -> IsolationLevel:
        if dbapi_connection.autocommit:
            return AUTOCOMMIT
        return super().get_isolation_level(dbapi_connection)  # type: ignore[no-any-return, no-untyped-call]
