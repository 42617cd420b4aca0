"""Details of a relation: columns, keys, constraints, indexes, its definition.

Requested in the first of three ways that the service supports: DuckDB's catalog functions; information_schema, and
pg_indexes if it exists; DESCRIBE.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from sqlshell.errors import StatementError, Where
from sqlshell.interface import sqlstate
from sqlshell.result import Column, Rows
from sqlshell.sql.completion.catalog import Relation
from sqlshell.sql.identifiers import literal, qualified, quoted

_SIZE = (
    "SELECT count(DISTINCT block) * (SELECT max(block_size) FROM pragma_database_size()) FROM "
    "(SELECT unnest(list_append(additional_block_ids, block_id)) AS block FROM pragma_storage_info({name})) "
    "WHERE block >= 0"
)
"""The blocks in which DuckDB has stored a table: it lists those of each column."""

NAMED = re.compile(r'(?:"(?:[^"]|"")++"|[^\W\d][\w$]*+)(?:\.(?:"(?:[^"]|"")++"|[^\W\d][\w$]*+))*+')
"""A name as written in a statement, and nothing else."""

Ask = Callable[[str], Awaitable[tuple[list[Column], Rows]]]
"""Runs a statement that reads, and returns its columns and rows. Raises StatementError."""

Condition = Callable[[str, str, str], str]
"""A condition on the columns that contain database, schema and name of a relation."""


class ColumnDetails(Struct):
    """`nullable` is "true", "false" or "" if it is unknown; `default` is None if there is none."""

    name: str
    type: str
    nullable: str = ""
    default: str | None = None
    comment: str = ""


class Constraint(Struct):
    """`kind` is PRIMARY KEY, UNIQUE, FOREIGN KEY or CHECK; `definition` is the constraint as SQL."""

    kind: str
    name: str
    definition: str
    columns: tuple[str, ...] = ()
    target: str = ""
    """The target of a foreign key, as `table(columns)`."""


class Details(Struct):
    """`source` is the way in which they were requested; "described" has only columns. `definition` is that of a view,
    `ddl` creates the relation.
    """

    source: str
    columns: list[ColumnDetails] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    indexes: list[tuple[str, str]] = field(default_factory=list)
    """Names with definitions."""
    referenced: list[tuple[str, str]] = field(default_factory=list)
    """Other tables, with their foreign keys to this relation."""
    definition: str = ""
    ddl: str = ""
    comment: str = ""
    rows: str = ""
    """The approximate number of rows."""
    age: int = 0
    """Increases with the time of creation, within a kind."""
    sequence: dict[str, str] = field(default_factory=dict)
    size: int = 0
    """The approximate size of the stored rows in bytes, 0 if it is not known."""


class Inspector:
    """Requests details of relations from one service, and remembers what the service does not support."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._sources = [self._catalog_functions, self._information_schema]

    async def details(self, relation: Relation) -> Details:
        """The details of a relation. Raises the errors of DESCRIBE if no other way is supported."""
        for source in list(self._sources):
            try:
                details = await source(relation)
            except StatementError:
                self._sources.remove(source)
                continue
            if details.columns or details.sequence:
                return details
        return await self.describe(qualified(*filter(None, (relation.database, relation.schema, relation.name))))

    async def size(self, relation: Relation) -> int:
        """The approximate size of a table in bytes; 0 if the service does not know it, or the table is in memory."""
        name = literal(qualified(*filter(None, (relation.database, relation.schema, relation.name))))
        with contextlib.suppress(StatementError, LookupError, ValueError):
            return int((await self._ask(_SIZE.format(name=name)))[1][0][0] or 0)
        return 0

    async def describe(self, name: str) -> Details:
        """The output of DESCRIBE for a name as written in a statement. Raises StatementError."""
        if not NAMED.fullmatch(name):
            raise StatementError(f"{name} is not a valid relation name", where=Where(sqlstate.NO_RELATION))
        _, rows = await self._ask(f"DESCRIBE RELATION COLUMNS {name}")
        if not rows:
            raise StatementError(f"relation {name} does not exist", where=Where(sqlstate.NO_RELATION))
        padded = [[*(value or "" for value in row), "", "", ""] for row in rows]
        return Details("described", [ColumnDetails(row[0], row[1], row[2].lower()) for row in padded])

    async def _catalog_functions(self, relation: Relation) -> Details:
        """DuckDB's catalog functions in one statement: each row as JSON, because the fields differ between versions."""
        here = _matches(relation)
        around = _matches(Relation(relation.database, relation.schema, ""))
        parts = [
            ("column", "columns", here("database_name", "schema_name", "table_name")),
            ("constraint", "constraints", here("database_name", "schema_name", "table_name")),
            (
                "referenced",
                "constraints",
                f"constraint_type = 'FOREIGN KEY' AND referenced_table = {literal(relation.name)} AND "
                + around("database_name", "schema_name", ""),
            ),
            ("index", "indexes", here("database_name", "schema_name", "table_name")),
            ("made", "tables", here("database_name", "schema_name", "table_name")),
            ("made", "views", here("database_name", "schema_name", "view_name")),
            ("sequence", "sequences", here("database_name", "schema_name", "sequence_name")),
        ]
        sql = " UNION ALL ".join(
            f"SELECT '{what}' AS what, to_json(c)::VARCHAR AS told FROM duckdb_{function}() c WHERE {condition}"
            for what, function, condition in parts
        )
        _, rows = await self._ask(sql)
        try:
            return _from_catalog(rows, relation)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            raise StatementError("cannot read the rows that the service's catalog functions returned") from None

    async def _information_schema(self, relation: Relation) -> Details:
        here = _matches(relation)
        plain = here("table_catalog", "table_schema", "table_name")
        _, rows = await self._ask(
            "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns "
            f"WHERE {plain} ORDER BY ordinal_position"
        )
        rows = [row for row in rows if len(row) > 3]
        if not rows:
            return Details("information_schema")
        columns = [ColumnDetails(row[0] or "", row[1] or "", _truth(row[2] or ""), row[3]) for row in rows]
        of_key = here("c.table_catalog", "c.table_schema", "c.table_name")
        keys = await self._rows(
            "SELECT c.constraint_name, c.constraint_type, k.column_name FROM information_schema.table_constraints c "
            "JOIN information_schema.key_column_usage k ON k.constraint_name = c.constraint_name "
            f"AND k.constraint_schema = c.constraint_schema AND k.table_name = c.table_name WHERE {of_key} "
            "ORDER BY c.constraint_type DESC, c.constraint_name, k.ordinal_position",
            3,
        )
        targets = await self._rows(
            "SELECT c.constraint_name, t.table_name, t.column_name FROM information_schema.table_constraints c "
            "JOIN information_schema.referential_constraints r ON r.constraint_name = c.constraint_name "
            "AND r.constraint_schema = c.constraint_schema "
            "JOIN information_schema.key_column_usage t ON t.constraint_name = r.unique_constraint_name "
            f"AND t.constraint_schema = r.unique_constraint_schema WHERE {of_key} "
            "ORDER BY c.constraint_name, t.ordinal_position",
            3,
        )
        checks = await self._rows(
            "SELECT c.constraint_name, k.check_clause FROM information_schema.table_constraints c "
            "JOIN information_schema.check_constraints k ON k.constraint_name = c.constraint_name "
            f"AND k.constraint_schema = c.constraint_schema WHERE {of_key} ORDER BY c.constraint_name",
            2,
        )
        views = await self._rows(f"SELECT view_definition FROM information_schema.views WHERE {plain}", 1)
        within = _matches(Relation("", relation.schema, relation.name))("", "schemaname", "tablename")
        indexes = await self._rows(f"SELECT indexname, indexdef FROM pg_indexes WHERE {within} ORDER BY indexname", 2)
        return Details(
            "information_schema",
            columns,
            [
                *_keys(keys, targets),
                *(
                    Constraint("CHECK", name, clause if clause.upper().startswith("CHECK") else f"CHECK ({clause})")
                    for name, clause in checks
                    if not clause.upper().endswith("IS NOT NULL")
                ),
            ],
            [(name, text) for name, text in indexes],
            definition=views[0][0] if views else "",
        )

    async def _rows(self, sql: str, width: int) -> list[list[str]]:
        """The rows of a statement with as many values as `width`; none if the service does not support it."""
        with contextlib.suppress(StatementError):
            return [[value or "" for value in row] for row in (await self._ask(sql))[1] if len(row) == width]
        return []


def _from_catalog(rows: Rows, relation: Relation) -> Details:
    """Raises an exception of Python's for rows that the catalog functions do not have."""
    entries: dict[str, list[dict[str, Any]]] = {}
    for what, text in rows:
        entries.setdefault(what or "", []).append(json.loads(text or "{}"))
    entry = (entries.get("made") or [{}])[0]
    columns = sorted(entries.get("column", ()), key=lambda row: int(row["column_index"]))
    return Details(
        "catalog",
        [_column(row) for row in columns],
        [_constraint(row) for row in entries.get("constraint", ()) if row["constraint_type"] != "NOT NULL"],
        [(row["index_name"], row["sql"]) for row in entries.get("index", ())],
        [(row["table_name"], row["constraint_text"]) for row in entries.get("referenced", ())],
        entry["sql"] if "view_name" in entry else "",
        _create_statement(entry, relation) or (entries.get("sequence") or [{}])[0].get("sql", ""),
        entry.get("comment") or "",
        "" if entry.get("estimated_size") is None else str(entry["estimated_size"]),
        int(entry.get("table_oid") or entry.get("view_oid") or 0),
        {
            title: "" if row.get(name) is None else str(row[name]).lower()
            for row in entries.get("sequence", ())
            for title, name in _SEQUENCE.items()
        },
    )


_SEQUENCE = {
    "start": "start_value",
    "minimum": "min_value",
    "maximum": "max_value",
    "increment": "increment_by",
    "cycles": "cycle",
    "last": "last_value",
}


def _matches(relation: Relation) -> Condition:
    parts = (relation.database, relation.schema, relation.name)

    def condition(*columns: str) -> str:
        wanted = [f"{column} = {literal(part)}" for column, part in zip(columns, parts, strict=True) if part and column]
        return " AND ".join(wanted) or "TRUE"

    return condition


def _truth(word: str) -> str:
    return {"YES": "true", "NO": "false"}.get(word.upper(), word.lower())


def _column(row: dict[str, Any]) -> ColumnDetails:
    default = row.get("column_default")
    if row.get("is_generated"):
        default = f"generated always as ({row.get('generation_expression') or default})"
    nullable = "true" if row.get("is_nullable", True) else "false"
    return ColumnDetails(row["column_name"], row["data_type"], nullable, default, row.get("comment") or "")


def _constraint(row: dict[str, Any]) -> Constraint:
    target = ""
    if row.get("referenced_table"):
        target = f"{quoted(row['referenced_table'])}({_listed(row.get('referenced_column_names') or ())})"
    return Constraint(
        row["constraint_type"],
        row.get("constraint_name") or "",
        row["constraint_text"],
        tuple(row.get("constraint_column_names") or ()),
        target,
    )


def _keys(keys: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]) -> Iterable[Constraint]:
    """Keys, from rows that contain one column of a key each."""
    columns: dict[tuple[str, str], list[str]] = {}
    for name, kind, column in keys:
        columns.setdefault((name, kind), []).append(column)
    tables: dict[str, str] = {}
    referenced: dict[str, list[str]] = {}
    for name, table, column in targets:
        tables[name] = table
        referenced.setdefault(name, []).append(column)
    for (name, kind), key_columns in columns.items():
        target = f"{quoted(tables[name])}({_listed(dict.fromkeys(referenced[name]))})" if name in tables else ""
        end = f" REFERENCES {target}" if target else ""
        yield Constraint(kind, name, f"{kind} ({_listed(key_columns)}){end}", tuple(key_columns), target)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def _create_statement(row: dict[str, Any], relation: Relation) -> str:
    text = str(row.get("sql") or "")
    # To the engine, a stream is a table.
    return text.replace("CREATE TABLE", "CREATE STREAM", 1) if relation.kind == "stream" else text


def ddl(relation: Relation, details: Details) -> str:
    """SQL that creates a relation: the service's own, otherwise composed of the known details."""
    name = (
        quoted(relation.name)
        if relation.schema in {"", "main"}
        else f"{quoted(relation.schema)}.{quoted(relation.name)}"
    )
    statement = details.ddl
    if not statement and details.definition:
        text = details.definition.strip().rstrip(";")
        statement = text if text[:6].upper() == "CREATE" else f"CREATE VIEW {name} AS\n{text}"
    if not statement:
        lines = [_definition(column) for column in details.columns]
        lines += [constraint.definition for constraint in details.constraints]
        statement = f"CREATE {(relation.kind or 'table').upper()} {name} (\n  " + ",\n  ".join(lines) + "\n)"
    statements = [statement, *(text for _, text in details.indexes)]
    what = "VIEW" if details.definition else "TABLE"
    if details.comment:
        statements.append(f"COMMENT ON {what} {name} IS {literal(details.comment)}")
    statements += [
        f"COMMENT ON COLUMN {name}.{quoted(column.name)} IS {literal(column.comment)}"
        for column in details.columns
        if column.comment
    ]
    return "\n".join(f"{text.strip().rstrip(';')};" for text in statements)


def _definition(column: ColumnDetails) -> str:
    null = " NOT NULL" if column.nullable == "false" else ""
    default = f" DEFAULT {column.default}" if column.default is not None else ""
    return f"{quoted(column.name)} {column.type}{null}{default}"


def key_of(column: str, constraints: Sequence[Constraint]) -> str:
    """The keys that contain a column, in words."""
    return ", ".join(
        f"references {item.target}" if item.target else item.kind.lower()
        for item in constraints
        if column in item.columns and item.kind != "CHECK"
    )
