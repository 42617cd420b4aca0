"""Reflection of a database by DuckDB's catalog functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, exc, text
from sqlalchemy.engine import reflection
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import (
    ReflectedCheckConstraint,
    ReflectedColumn,
    ReflectedForeignKeyConstraint,
    ReflectedIndex,
    ReflectedPrimaryKeyConstraint,
    ReflectedTableComment,
    ReflectedUniqueConstraint,
)

from sqlshell.dbapi.exceptions import NotSupportedError
from sqlshell.sqlalchemy.types import type_of

_HERE = "database_name = current_database() and schema_name = coalesce(:schema, current_schema())"


class Reflection(DefaultDialect):
    """The methods that Inspector calls. Methods about a table or view raise NoSuchTableError if it does not exist.

    All raise NotSupportedError before they send a statement if the service's engine is not DuckDB: a statement that
    fails would end the transaction.
    """

    service_engine = ""
    """The engine that the service announced, "" for DuckDB."""

    @reflection.cache
    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        sql = "select schema_name from duckdb_schemas() where database_name = current_database() order by schema_name"
        return _names(connection, sql)

    @reflection.cache
    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        sql = f"select table_name from duckdb_tables() where {_HERE} and not temporary order by table_name"
        return _names(connection, sql, schema=schema)

    @reflection.cache
    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        sql = (
            f"select view_name from duckdb_views() where {_HERE} and not internal and not temporary order by view_name"
        )
        return _names(connection, sql, schema=schema)

    @reflection.cache
    def get_temp_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        return _names(connection, "select table_name from duckdb_tables() where temporary order by table_name")

    @reflection.cache
    def get_temp_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        sql = "select view_name from duckdb_views() where temporary and not internal order by view_name"
        return _names(connection, sql)

    @reflection.cache
    def get_sequence_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        sql = f"select sequence_name from duckdb_sequences() where {_HERE} order by sequence_name"
        return _names(connection, sql, schema=schema)

    @reflection.cache
    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        self._ensure_has_table_connection(connection)
        return self._exists(connection, table_name, schema)

    @reflection.cache
    def has_sequence(self, connection: Connection, sequence_name: str, schema: str | None = None, **kw: Any) -> bool:
        return sequence_name in self.get_sequence_names(connection, schema, **kw)

    @reflection.cache
    def get_view_definition(self, connection: Connection, view_name: str, schema: str | None = None, **kw: Any) -> str:
        rows = _rows(
            connection,
            f"select sql from duckdb_views() where {_HERE} and view_name = :name",
            schema=schema,
            name=view_name,
        )
        if not rows:
            raise exc.NoSuchTableError(view_name)
        return str(rows[0][0])

    @reflection.cache
    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedColumn]:
        rows = self._about(
            connection,
            "column_name, data_type, is_nullable, column_default, comment, is_generated, generation_expression",
            "duckdb_columns()",
            table_name,
            schema,
            "column_index",
        )
        if not rows:
            rows = self._described(connection, table_name, schema)
        columns: list[ReflectedColumn] = []
        for name, kind, nullable, default, comment, generated, expression in rows:
            column: ReflectedColumn = {
                "name": name,
                "type": type_of(kind),
                "nullable": nullable,
                "default": None if generated else default,
                "autoincrement": bool(default) and default.startswith("nextval("),
                "comment": comment,
            }
            if generated:
                column["computed"] = {"sqltext": _uncast(expression or default or "", kind)}
            columns.append(column)
        return columns

    @reflection.cache
    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        for name, columns in self._constraints(connection, "PRIMARY KEY", table_name, schema):
            return {"name": name, "constrained_columns": columns}
        return reflection.ReflectionDefaults.pk_constraint()

    @reflection.cache
    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedUniqueConstraint]:
        constraints = self._constraints(connection, "UNIQUE", table_name, schema)
        return [{"name": name, "column_names": columns} for name, columns in constraints]

    @reflection.cache
    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedCheckConstraint]:
        constraints = self._constraints(connection, "CHECK", table_name, schema, "constraint_name, expression")
        return [{"name": name, "sqltext": expression} for name, expression in constraints]

    @reflection.cache
    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedForeignKeyConstraint]:
        chosen = "constraint_name, constraint_column_names, referenced_table, referenced_column_names"
        return [
            {
                "name": name,
                "constrained_columns": columns,
                "referred_schema": schema,
                "referred_table": table,
                "referred_columns": others,
                "options": {},
            }
            for name, columns, table, others in self._constraints(connection, "FOREIGN KEY", table_name, schema, chosen)
        ]

    @reflection.cache
    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedIndex]:
        indexes = self._about(
            connection,
            "index_name, is_unique, cast(expressions as varchar[])",
            "duckdb_indexes()",
            table_name,
            schema,
            "index_name",
            "not is_primary",
        )
        self._check_exists(connection, table_name, schema)
        return [_index(name, unique, expressions) for name, unique, expressions in indexes]

    @reflection.cache
    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedTableComment:
        rows = self._about(connection, "comment", "duckdb_tables()", table_name, schema, "table_name")
        if not rows:
            self._check_exists(connection, table_name, schema)
        return {"text": rows[0][0] if rows else None}

    def _constraints(
        self,
        connection: Connection,
        kind: str,
        table: str,
        schema: str | None,
        chosen: str = "constraint_name, constraint_column_names",
    ) -> Sequence[Any]:
        self._check_exists(connection, table, schema)
        condition = f"constraint_type = '{kind}'"
        return self._about(connection, chosen, "duckdb_constraints()", table, schema, "constraint_index", condition)

    def _about(
        self,
        connection: Connection,
        chosen: str,
        function: str,
        table: str,
        schema: str | None,
        order: str,
        condition: str = "true",
    ) -> Sequence[Any]:
        here = f"({_HERE} or (:schema is null and database_name = 'temp'))"
        sql = f"select {chosen} from {function} where {here} and table_name = :table and {condition} order by {order}"
        return _rows(connection, sql, schema=schema, table=table)

    def _described(self, connection: Connection, view: str, schema: str | None) -> Sequence[Any]:
        """The columns of a view that DuckDB has not bound since the database was opened."""
        self._check_exists(connection, view, schema)
        name = self.identifier_preparer.quote_identifier(view)
        name = f"{self.identifier_preparer.quote_identifier(schema)}.{name}" if schema else name
        rows = connection.exec_driver_sql(f"select column_name, column_type from (describe from {name})").fetchall()
        return [(column, kind, True, None, None, False, None) for column, kind in rows]

    def _exists(self, connection: Connection, table: str, schema: str | None) -> bool:
        tables = self._about(connection, "1", "duckdb_tables()", table, schema, "1")
        views = "(select *, view_name as table_name from duckdb_views())"
        return bool(tables or self._about(connection, "1", views, table, schema, "1"))

    def _check_exists(self, connection: Connection, table: str, schema: str | None) -> None:
        if not self._exists(connection, table, schema):
            raise exc.NoSuchTableError(table)


def _rows(connection: Connection, sql: str, **given: Any) -> Sequence[Any]:
    engine = getattr(connection.dialect, "service_engine", "")
    if engine:
        raise NotSupportedError(
            f"this dialect reflects only DuckDB databases, but the service's engine is {engine}",
            hint="add engine=postgresql to the URL's parameters" if engine == "postgresql" else "",
        )
    return connection.execute(text(sql), given).fetchall()


def _names(connection: Connection, sql: str, **given: Any) -> list[str]:
    return [row[0] for row in _rows(connection, sql, **given)]


def _index(name: str, unique: bool, expressions: Sequence[str]) -> ReflectedIndex:
    """An index from its items: names of columns, quoted if necessary, and expressions in parentheses."""
    columns = [None if item.startswith("(") else _unquoted(item) for item in expressions]
    index: ReflectedIndex = {"name": name, "unique": unique, "column_names": columns, "dialect_options": {}}
    if None in columns:
        index["expressions"] = [column or item for column, item in zip(columns, expressions, strict=True)]
    return index


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _uncast(expression: str, kind: str) -> str:
    """The expression of a generated column without the cast to the column's type that DuckDB adds."""
    cast, end = "CAST(", f" AS {kind})"
    if expression.startswith(cast) and expression.endswith(end):
        return expression[len(cast) : -len(end)]
    return expression
