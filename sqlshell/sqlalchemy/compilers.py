"""Compilers of SQLAlchemy's statements, DDL and types to DuckDB's SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column
from sqlalchemy import types as sqltypes
from sqlalchemy.dialects.postgresql.base import PGCompiler
from sqlalchemy.sql import compiler
from sqlalchemy.sql.ddl import CreateTable, DropTable

from sqlshell.sql.keywords import KEYWORDS


class SqlshellCompiler(PGCompiler):
    """SELECT, INSERT, UPDATE and DELETE: as for PostgreSQL, except where DuckDB differs."""

    def visit_sequence(self, seq: Any, **kw: Any) -> str:  # type: ignore[override]
        return f"nextval('{self.preparer.format_sequence(seq)}')"

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        # `^` is exponentiation in DuckDB.
        return f"xor({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._regexp("regexp_matches", binary, **kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self._regexp('regexp_matches', binary, **kw)}"

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        # DuckDB does not lock rows.
        return ""

    def visit_json_getitem_op_binary(self, binary: Any, operator: Any, _cast_applied: bool = False, **kw: Any) -> str:
        given = f"{self.process(binary.left, **kw)}, {self.process(binary.right, **kw)}"
        if binary.type._type_affinity is sqltypes.JSON:
            return f"json_extract({given})"
        kind = self.dialect.type_compiler_instance.process(binary.type)
        # The string of a JSON null is NULL, and that of a JSON string has no quotes.
        return f"CAST(json_extract_string({given}) AS {kind})"

    visit_json_path_getitem_op_binary = visit_json_getitem_op_binary

    def _regexp(self, function: str, binary: Any, **kw: Any) -> str:
        given = [self.process(binary.left, **kw), self.process(binary.right, **kw)]
        flags = binary.modifiers["flags"]
        if flags is not None:
            literal = self.render_literal_value(flags, sqltypes.STRINGTYPE)  # type: ignore[no-untyped-call]
            given.append(literal)
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

    visit_datetime = visit_DATETIME = visit_TIMESTAMP

    def visit_BLOB(self, type_: Any, **kw: Any) -> str:
        return "BLOB"

    visit_BINARY = visit_VARBINARY = visit_BLOB

    def visit_CLOB(self, type_: Any, **kw: Any) -> str:
        return "VARCHAR"

    visit_NCHAR = visit_NVARCHAR = visit_CLOB

    def visit_JSON(self, type_: Any, **kw: Any) -> str:
        return "JSON"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        return "INTERVAL"

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        return f"{self.process(type_.item_type, **kw)}{'[]' * (type_.dimensions or 1)}"


class SqlshellIdentifierPreparer(compiler.IdentifierPreparer):
    reserved_words = compiler.RESERVED_WORDS | {word.lower() for word in KEYWORDS}
