"""Compilers of SQLAlchemy's statements, DDL and types to DuckDB's SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column
from sqlalchemy import types as sqltypes
from sqlalchemy.dialects.postgresql.base import PGCompiler
from sqlalchemy.sql import compiler
from sqlalchemy.sql.ddl import CreateTable, DropTable

from sqlshell.sql.keywords import KEYWORDS


class SqlshellCompiler(compiler.SQLCompiler):
    """SELECT, INSERT, UPDATE and DELETE. PostgreSQL's compiler writes the clauses that DuckDB has in common with it."""

    visit_on_conflict_do_nothing = PGCompiler.visit_on_conflict_do_nothing
    visit_on_conflict_do_update = PGCompiler.visit_on_conflict_do_update
    _on_conflict_target = PGCompiler._on_conflict_target
    returning_clause = PGCompiler.returning_clause
    update_from_clause = PGCompiler.update_from_clause
    delete_extra_from_clause = PGCompiler.delete_extra_from_clause
    get_select_precolumns = PGCompiler.get_select_precolumns
    visit_getitem_binary = PGCompiler.visit_getitem_binary
    visit_slice = PGCompiler.visit_slice

    def visit_sequence(self, sequence: Any, **kw: Any) -> str:
        return f"nextval('{self.preparer.format_sequence(sequence)}')"

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        # `^` is exponentiation in DuckDB.
        return f"xor({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    def visit_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._like(binary, "ILIKE", **kw)

    def visit_not_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._like(binary, "NOT ILIKE", **kw)

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._regexp("regexp_matches", binary, **kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self._regexp('regexp_matches', binary, **kw)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._regexp("regexp_replace", binary, **kw)

    def visit_is_distinct_from_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)} IS DISTINCT FROM {self.process(binary.right, **kw)}"

    def visit_json_getitem_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._json_item(binary, **kw)

    def visit_json_path_getitem_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._json_item(binary, **kw)

    def visit_empty_set_expr(self, element_types: Any, **kw: Any) -> str:
        kinds = element_types or [sqltypes.Integer()]
        nulls = (f"CAST(NULL AS {self.dialect.type_compiler_instance.process(kind)})" for kind in kinds)
        return f"SELECT {', '.join(nulls)} WHERE 1!=1"

    def limit_clause(self, select: Any, **kw: Any) -> str:
        text = ""
        if select._limit_clause is not None:
            text += f"\n LIMIT {self.process(select._limit_clause, **kw)}"
        if select._offset_clause is not None:
            text += f"\n OFFSET {self.process(select._offset_clause, **kw)}"
        return text

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        # DuckDB does not lock rows.
        return ""

    def _json_item(self, binary: Any, **kw: Any) -> str:
        given = f"{self.process(binary.left, **kw)}, {self.process(binary.right, **kw)}"
        if binary.type._type_affinity is sqltypes.JSON:
            return f"json_extract({given})"
        kind = self.dialect.type_compiler_instance.process(binary.type)
        # The string of a JSON null is NULL, and that of a JSON string has no quotes.
        return f"CAST(json_extract_string({given}) AS {kind})"

    def _like(self, binary: Any, operator: str, **kw: Any) -> str:
        escape = binary.modifiers.get("escape")
        behind = f" ESCAPE {self.render_literal_value(escape, sqltypes.STRINGTYPE)}" if escape is not None else ""
        return f"{self.process(binary.left, **kw)} {operator} {self.process(binary.right, **kw)}{behind}"

    def _regexp(self, function: str, binary: Any, **kw: Any) -> str:
        given = [self.process(binary.left, **kw), self.process(binary.right, **kw)]
        flags = binary.modifiers["flags"]
        if flags is not None:
            given.append(self.render_literal_value(flags, sqltypes.STRINGTYPE))
        return f"{function}({', '.join(given)})"


class SqlshellDDLCompiler(compiler.DDLCompiler):
    """CREATE and DROP. IDENTITY columns and integer primary keys of one column get their values from a sequence."""

    def visit_create_table(self, create: CreateTable, **kw: Any) -> str:
        temporary = "TEMPORARY " if {"TEMP", "TEMPORARY"} & {each.upper() for each in create.element._prefixes} else ""
        before = [
            f"CREATE {temporary}SEQUENCE IF NOT EXISTS {name}{' ' + options if options else ''};"
            for name, options in self._sequences(create.element)
        ]
        table: str = super().visit_create_table(create, **kw)  # type: ignore[no-untyped-call]
        return "".join(before) + table

    def visit_drop_table(self, drop: DropTable, **kw: Any) -> str:
        dropped = [f";\nDROP SEQUENCE IF EXISTS {name}" for name, _ in self._sequences(drop.element)]
        table: str = super().visit_drop_table(drop, **kw)  # type: ignore[no-untyped-call]
        return table + "".join(dropped)

    def get_column_specification(self, column: Column[Any], **kw: Any) -> str:
        kind = self.dialect.type_compiler_instance.process(column.type, type_expression=column)
        parts = [self.preparer.format_column(column), kind]
        if column.computed is not None:
            parts.append(self.process(column.computed))
        elif (default := self.get_column_default_string(column)) is not None:
            parts.append(f"DEFAULT {default}")
        elif _numbered(column):
            name = self.sql_compiler.render_literal_value(self._sequence(column), sqltypes.STRINGTYPE)
            parts.append(f"DEFAULT nextval({name})")
        if not column.nullable:
            parts.append("NOT NULL")
        return " ".join(parts)

    def _sequences(self, table: Any) -> list[tuple[str, str]]:
        """The names and options of the sequences that a table's columns use."""
        return [
            (self._sequence(column), self.get_identity_options(column.identity) if column.identity is not None else "")
            for column in table.columns
            if _numbered(column)
        ]

    def _sequence(self, column: Any) -> str:
        name = self.preparer.quote(f"{column.table.name}_{column.name}_seq")
        schema = self.preparer.schema_for_object(column.table)
        return f"{self.preparer.quote_schema(schema)}.{name}" if schema else name


def _numbered(column: Any) -> bool:
    """Whether a column gets its values from a sequence that is created with the table."""
    if column.identity is not None:
        return True
    if column is not column.table._autoincrement_column or column.server_default is not None:
        return False
    return column.default is None


class SqlshellTypeCompiler(compiler.GenericTypeCompiler):
    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        # DuckDB's FLOAT is a REAL, whose precision is 24 bits.
        return "REAL" if type_.precision and type_.precision <= 24 else "DOUBLE"

    def visit_DOUBLE_PRECISION(self, type_: Any, **kw: Any) -> str:
        return "DOUBLE"

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"

    def visit_datetime(self, type_: Any, **kw: Any) -> str:
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_BLOB(self, type_: Any, **kw: Any) -> str:
        return "BLOB"

    def visit_BINARY(self, type_: Any, **kw: Any) -> str:
        return "BLOB"

    def visit_VARBINARY(self, type_: Any, **kw: Any) -> str:
        return "BLOB"

    def visit_CLOB(self, type_: Any, **kw: Any) -> str:
        return "VARCHAR"

    def visit_NCHAR(self, type_: Any, **kw: Any) -> str:
        return "VARCHAR"

    def visit_NVARCHAR(self, type_: Any, **kw: Any) -> str:
        return "VARCHAR"

    def visit_JSON(self, type_: Any, **kw: Any) -> str:
        return "JSON"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        return "INTERVAL"

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        return f"{self.process(type_.item_type, **kw)}{'[]' * (type_.dimensions or 1)}"


class SqlshellIdentifierPreparer(compiler.IdentifierPreparer):
    reserved_words = compiler.RESERVED_WORDS | {word.lower() for word in KEYWORDS}
