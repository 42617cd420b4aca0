"""What an instance contains: the service's lists of databases, schemas, relations and functions, LIST ENGINE and
DESCRIBE ENGINE; and rows of the service as SQL.

This module does not import DuckDB, which the service's own process does not load.
"""

from __future__ import annotations

import json
import string
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import (
    SYSTEM_DATABASE,
    Capabilities,
    CatalogQuery,
    EngineSession,
    Listing,
    LocalSession,
    ObjectQuery,
    Relation,
    Rows,
    Traits,
)
from sqlshell.service.engines.files.render import own
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import always_quoted, literal, qualified, quoted
from sqlshell.text import byte_size

INITIAL_SCHEMA = "main"
"""The schema that exists in every database."""

FIRST_SCHEMA = "public"
"""The schema that a new database has in addition to `main`."""

HIDDEN = frozenset({"system", "temp", SYSTEM_DATABASE})
"""The internal databases of DuckDB and the service."""

RESERVED = HIDDEN | {"memory", "main", "pg_catalog", "information_schema"}
"""Names that users' databases cannot have, in any case, because the engine uses them."""

CAPABILITIES: Final = Capabilities(
    transactions=True,
    temporary_tables=True,
    streams=True,
    applications=True,
    cancel=True,
    progress=True,
    typed_results=True,
    roles=True,
    databases=True,
    store_entities=True,
    attachments=True,
    plans=True,
)


class DuckdbCatalog(ABC):
    """The members of Engine that tell what an instance is and contains, in this process or in another."""

    name = "duckdb"
    capabilities = CAPABILITIES
    traits = Traits(
        initial_schema=INITIAL_SCHEMA,
        hidden_databases=HIDDEN,
        reserved_names=RESERVED,
        interface_sql=True,
    )

    @property
    def version(self) -> str:
        # importlib.metadata imports the package email, which an engine's process never needs.
        from importlib.metadata import version as installed

        return f"DuckDB {installed('duckdb')}"

    @abstractmethod
    def read_listing(self, sql: str) -> Rows:
        """Return the rows of the service's own query, as strings; NULL is "". Raises Failure."""

    def catalog(self, query: CatalogQuery, seen: EngineSession | None = None) -> Rows:
        return _told(_listing(query), self.read_listing)

    def objects(self, query: ObjectQuery, seen: EngineSession) -> Listing:
        return _found(query, cast(LocalSession, seen))

    def inline(self, rows: Listing) -> str:
        names = [f"c{number}" for number in range(len(rows.columns))]
        texts = []
        for number, name in enumerate(names):
            held = json.dumps([row[number] for row in rows.rows], ensure_ascii=False)
            # A path of the organization's files in one of the values is none that the statement names.
            held = held.replace("-", "\\u002d")
            texts.append(f"unnest(from_json({literal(held)}, '[\"VARCHAR\"]')) AS {name}")
        return own(f"SELECT {typed(names, rows.columns)} FROM (SELECT {', '.join(texts)})")


def _told(sql: str, read: Callable[[str], Rows]) -> Rows:
    """The rows of a query, without what it tells of constraints if DuckDB cannot list them. Raises Failure."""
    try:
        return read(sql)
    except Failure:
        if _CONSTRAINTS not in sql:
            raise
        # DuckDB binds the CHECK of every table, which may name what only the schema of its table has.
        return read(sql.replace(_CONSTRAINTS, f"(FROM {_CONSTRAINTS} WHERE false)"))


_CONSTRAINTS: Final = "duckdb_constraints()"
_PARAMETERS: Final = (
    "array_to_string(list_transform(list_zip(parameters, parameter_types), lambda p: "
    "trim(concat(struct_extract_at(p, 1), ' ', struct_extract_at(p, 2)))), ', ')"
)
"""The parameters of a function, with their types."""


def _listing(query: CatalogQuery) -> str:
    """SQL for databases, schemas, relations, and user-defined functions, except in internal databases."""
    unseen = ", ".join(literal(name) for name in sorted({*HIDDEN, *query.hidden}))

    def within(column: str) -> str:
        return same(column, query.database) if query.database else f"{column} NOT IN ({unseen})"

    match query.kind:
        case "databases":
            return (
                "SELECT DISTINCT database_name AS name FROM duckdb_schemas() "
                f"WHERE database_name NOT IN ({unseen}) ORDER BY 1"
            )
        case "schemas":
            return (
                f"SELECT schema_name AS name, database_name AS database FROM duckdb_schemas() "
                f"WHERE {within('database_name')} AND schema_name NOT IN ('information_schema', 'pg_catalog') "
                "ORDER BY 2, 1"
            )
        case "relations":
            known = ", ".join(literal(".".join(name)) for name in sorted(query.streams)) or "''"
            inside = f" AND {same('schema_name', query.schema)}" if query.schema else ""
            place = f"WHERE NOT internal AND NOT temporary AND {within('database_name')}{inside}"
            name = query.name
            table, view = (f" AND {same(f'{kind}_name', name)}" if name else "" for kind in ("table", "view"))
            return (
                "SELECT table_name AS name, schema_name AS schema, "
                f"CASE WHEN concat_ws('.', database_name, schema_name, table_name) IN ({known}) "
                "THEN 'stream' ELSE 'table' END AS type, database_name AS database, "
                "coalesce(keys, '') AS primary_key, comment FROM duckdb_tables() LEFT JOIN (SELECT database_oid, "
                f"table_oid, array_to_string(constraint_column_names, ', ') AS keys FROM {_CONSTRAINTS} "
                f"WHERE constraint_type = 'PRIMARY KEY') USING (database_oid, table_oid) {place}{table} UNION ALL "
                "SELECT view_name, schema_name, 'view', database_name, '', comment FROM duckdb_views() "
                f"{place}{view} ORDER BY ALL"
            )
        case "relation":
            place = " AND ".join((same("database_name", query.database), same("schema_name", query.schema)))
            return (
                f"SELECT table_oid::VARCHAR FROM duckdb_tables() WHERE {place} AND {same('table_name', query.name)} "
                f"UNION ALL SELECT '' FROM duckdb_views() WHERE {place} AND {same('view_name', query.name)}"
            )
        case "function":
            return (
                f"SELECT 1 FROM duckdb_functions() WHERE lower(function_name) = {literal(query.name.lower())} LIMIT 1"
            )
    # User-defined functions; the engine's own are in its catalog.
    return (
        "SELECT DISTINCT function_name AS name, "
        f"concat(function_name, '(', {_PARAMETERS}, ')') AS signature, "
        "function_type AS type, database_name AS database, schema_name AS schema FROM duckdb_functions() "
        f"WHERE NOT internal AND {within('database_name')} ORDER BY ALL"
    )


def same(column: str, name: str) -> str:
    """Return SQL for whether a column equals this name. In names DuckDB ignores the case of ASCII letters only."""
    plain = name.translate(str.maketrans(string.ascii_uppercase, string.ascii_lowercase))
    return f"translate({column}, '{string.ascii_uppercase}', '{string.ascii_lowercase}') = {literal(plain)}"


def columns_of(relation: Relation) -> str:
    """Return SQL for the names, types and nullability of a relation's columns."""
    named = zip(("database_name", "schema_name", "table_name"), relation, strict=True)
    return own(
        "SELECT column_name AS name, data_type AS type, is_nullable AS nullable FROM duckdb_columns() "
        f"WHERE {' AND '.join(same(column, name) for column, name in named)} ORDER BY column_index"
    )


def typed(texts: Sequence[str], columns: Sequence[tuple[str, str]]) -> str:
    """Return the columns (name, interface type) of a SELECT of the service's texts; an unknown value, which is "", is
    NULL."""
    listed = []
    for text, (name, kind) in zip(texts, columns, strict=True):
        value = text if KINDS[kind] == "VARCHAR" else f"nullif({text}, '')::{KINDS[kind]}"
        listed.append(f"{value} AS {always_quoted(name)}")
    return ", ".join(listed)


KINDS = {
    "VARCHAR": "VARCHAR",
    "BOOLEAN": "BOOLEAN",
    "INTEGER": "INTEGER",
    "TIMESTAMP_LTZ(6)": "TIMESTAMPTZ",
}
"""The engine's types by interface type, for rows of the service."""


TEXT, BOOLEAN, NUMBER = "VARCHAR", "BOOLEAN", "BIGINT"


class Query(Struct, frozen=True):
    """A list: its columns with their interface types, those of them that only WITH DETAILS has, and the SQL of its
    source. In the SQL, {within} is the condition on database_name, schema_name and internal."""

    columns: tuple[tuple[str, str], ...]
    details: tuple[tuple[str, str], ...]
    source: str


_PLACED: Final = (("Database", TEXT), ("Schema", TEXT))
_RELATIONS: Final = (
    "SELECT database_name, schema_name, name, "
    "concat(CASE WHEN temporary AND NOT internal THEN 'temporary ' END, type) AS type, "
    "temporary OR ({here}) AS visible, rows, comment FROM ("
    "SELECT database_name, schema_name, table_name AS name, 'table' AS type, "
    "temporary, internal, estimated_size AS rows, comment FROM duckdb_tables() UNION ALL "
    "SELECT database_name, schema_name, view_name, 'view', temporary, internal, NULL, "
    "comment FROM duckdb_views() UNION ALL "
    "SELECT database_name, schema_name, sequence_name, 'sequence', false, false, NULL, comment "
    "FROM duckdb_sequences() UNION ALL "
    "SELECT database_name, schema_name, index_name, 'index', false, false, NULL, comment FROM duckdb_indexes()"
    ") WHERE {within}"
)
LISTS: Final[Mapping[str, Query]] = {
    "relations": Query(
        (*_PLACED, ("Name", TEXT), ("Type", TEXT), ("Visible", BOOLEAN)),
        (("Rows", NUMBER), ("Comment", TEXT)),
        f"{_RELATIONS} ORDER BY ALL",
    ),
    "columns": Query(
        (*_PLACED, ("Relation", TEXT), ("Name", TEXT), ("Type", TEXT)),
        (("Comment", TEXT),),
        "SELECT database_name, schema_name, table_name, column_name, data_type, comment FROM duckdb_columns() "
        "WHERE {within} ORDER BY database_name, schema_name, table_name, column_index",
    ),
    "foreign_keys": Query(
        (
            ("Name", TEXT),
            *_PLACED,
            ("Relation", TEXT),
            ("TargetRelation", TEXT),
            ("Column", TEXT),
            ("TargetColumn", TEXT),
        ),
        (),
        "SELECT constraint_name, database_name, schema_name, table_name, referenced_table, "
        "unnest(constraint_column_names), unnest(referenced_column_names) FROM (SELECT *, false AS internal FROM "
        "duckdb_constraints()) WHERE constraint_type = 'FOREIGN KEY' AND {within}",
    ),
    "indexes": Query(
        (("Schema", TEXT), ("Name", TEXT), ("Table", TEXT), ("Database", TEXT)),
        (("Definition", TEXT), ("Comment", TEXT)),
        "SELECT schema_name, index_name, table_name, database_name, sql, comment FROM "
        "(SELECT *, false AS internal FROM duckdb_indexes()) WHERE {within} ORDER BY schema_name, index_name",
    ),
    "types": Query(
        (("Schema", TEXT), ("Name", TEXT), ("Type", TEXT), ("Database", TEXT)),
        (("Comment", TEXT),),
        "SELECT schema_name, type_name, CASE WHEN len(labels) > 0 THEN concat('ENUM(''', "
        "array_to_string(labels, ''', '''), ''')') ELSE logical_type END, database_name, comment FROM duckdb_types() "
        "WHERE {within} ORDER BY schema_name, type_name",
    ),
    "functions": Query(
        (
            *(
                ("Schema", TEXT),
                ("Name", TEXT),
                ("Result", TEXT),
                ("Arguments", TEXT),
                ("Type", TEXT),
                ("Own", BOOLEAN),
            ),
            *(("Internal", BOOLEAN), ("Parameters", TEXT), ("ParameterTypes", TEXT), ("Variadic", BOOLEAN)),
        ),
        (("Description", TEXT), ("Definition", TEXT)),
        "SELECT DISTINCT schema_name, function_name, return_type, concat_ws(', ', "
        f"nullif({_PARAMETERS}, ''), CASE WHEN varargs IS NOT NULL THEN concat(varargs, '...') END), "
        "replace(function_type, '_', ' '), NOT internal, function_type = 'pragma', "
        "to_json(parameters)::VARCHAR, to_json(parameter_types)::VARCHAR, varargs IS NOT NULL, "
        "coalesce(comment, description), macro_definition FROM duckdb_functions() ORDER BY ALL",
    ),
}
_OWN: Final = frozenset({"system", "pg_catalog", "information_schema"})
"""Where DuckDB has relations of its own, which are listed only if they are asked for."""
_SEQUENCE: Final = {
    "start": "start_value",
    "minimum": "min_value",
    "maximum": "max_value",
    "increment": "increment_by",
    "cycles": "cycle",
    "last": "last_value",
}
_PHASES: Final = ("sequence", "table", "stream", "changelog", "view")
"""The kinds of relations in the order in which a script creates them; others follow."""
_STORED: Final = (
    "SELECT multiply(count(DISTINCT block), (SELECT max(block_size) FROM pragma_database_size())) FROM "
    "(SELECT unnest(list_append(additional_block_ids, block_id)) AS block FROM pragma_storage_info({name})) "
    "WHERE block >= 0"
)
"""The size of the blocks in which DuckDB has stored a table: it lists those of each column."""

_HEADS: Final = {"CHECK": "Check constraints", "FOREIGN KEY": "Foreign keys"}

Entries = Mapping[str, list[dict[str, Any]]]
"""Rows of DuckDB's catalog functions about one relation: columns, constraints, indexes…"""


def _found(query: ObjectQuery, seen: LocalSession) -> Listing:
    """The answer. Raises Failure."""
    if query.kind == "relation":
        return _relation(query, seen)
    if query.kind == "function":
        return _macros(query.names, seen)
    if query.kind not in LISTS:
        raise Failure(sqlstate.UNSUPPORTED, f"the engine duckdb does not support LIST ENGINE {query.kind.upper()}")
    wanted = LISTS[query.kind]
    unseen = ", ".join(literal(name) for name in sorted({*HIDDEN - {"temp"}, *query.hidden}))
    within = f"NOT internal AND database_name NOT IN ({unseen})"
    if query.schema:
        # `database.name` is the name in that database if no schema is called so.
        place = f"({same('schema_name', query.schema)} OR {same('database_name', query.schema)})"
        within = place if query.schema.lower() in _OWN else f"{place} AND {within}"
    rows = _told(_sql(wanted.source, seen, within), seen.listed)
    columns = [*wanted.columns, *(wanted.details if query.details else ())]
    if query.kind == "relations":
        rows = [(*row[:3], _kind(row, query), *row[4:]) for row in rows]
    return Listing(columns, [list(row[: len(columns)]) for row in rows])


def _sql(source: str, seen: LocalSession, within: str) -> str:
    """A query of a list, with the conditions on where things are, and on what is in the session's own place."""
    here = f"{same('database_name', seen.database)} AND {same('schema_name', seen.schema)}"
    return source.replace("{within}", within).replace("{here}", here)


def _kind(row: Sequence[str], query: ObjectQuery) -> str:
    """The kind of a relation: the service keeps those of streams, which are tables to the engine."""
    return query.kinds.get((row[0], row[1], row[2]), row[3]).replace("_", " ")


def _relation(query: ObjectQuery, seen: LocalSession) -> Listing:
    relation, kind = _named(query, seen)
    entries = _entries(relation, seen)
    if query.part == "columns":
        return _columns(entries, details=query.details)
    if query.part == "sql":
        phase = next((at for at, word in enumerate(_PHASES) if word in kind), len(_PHASES))
        made = _first(entries, "made")
        age = str(made.get("table_oid") or made.get("view_oid") or 0)
        row = [str(phase), age, _statements(relation, kind, entries)]
        return Listing([("Phase", "INTEGER"), ("Age", NUMBER), ("Sql", TEXT)], [row])
    shown = ".".join(map(quoted, relation[2:] if kind.startswith("temporary") else relation[1:]))
    notes = [[kind, shown, ""], *_notes(entries)]
    if query.details:
        notes += _further_notes(relation, entries, seen)
    return Listing([("What", TEXT), ("Name", TEXT), ("Definition", TEXT)], notes)


def _named(query: ObjectQuery, seen: LocalSession) -> tuple[Relation, str]:
    """The relation of this name, and its kind. Raises Failure if there is none."""
    names = query.names
    name = same("name", names[-1])
    match [*names[:-1]]:
        case []:
            within = f"{name} AND (temporary OR {{here}})"
        case [outer]:
            current = f"{same('database_name', seen.database)} AND {same('schema_name', outer)}"
            within = f"{name} AND ({current} OR {same('database_name', outer)})"
        case parts:
            within = f"{name} AND {same('database_name', parts[-2])} AND {same('schema_name', parts[-1])}"
    rows = list(seen.listed(_sql(f"{_RELATIONS} AND type <> 'index' ORDER BY ALL", seen, within)))
    # A temporary relation hides others. In `name.relation` the first name is a schema if there is one, otherwise a
    # database.
    rows.sort(key=lambda row: row[0] != "temp" if len(names) == 1 else row[1].lower() != names[-2].lower())
    if not rows:
        raise Failure(sqlstate.NO_RELATION, f'relation "{".".join(names)}" does not exist')
    return (rows[0][0], rows[0][1], rows[0][2]), _kind(rows[0], query)


def _entries(relation: Relation, seen: LocalSession) -> Entries:
    """What DuckDB's catalog functions say of a relation: rows as JSON, because their fields differ between versions."""

    def here(*columns: str) -> str:
        pairs = zip(columns, relation, strict=False)
        return " AND ".join(f"{column} = {literal(part)}" for column, part in pairs)

    table = here("database_name", "schema_name", "table_name")
    referring = f"constraint_type = 'FOREIGN KEY' AND referenced_table = {literal(relation[2])}"
    parts = [
        ("column", "columns", table),
        ("constraint", "constraints", table),
        ("referenced", "constraints", f"{referring} AND {here('database_name', 'schema_name')}"),
        ("index", "indexes", table),
        ("made", "tables", table),
        ("made", "views", here("database_name", "schema_name", "view_name")),
        ("sequence", "sequences", here("database_name", "schema_name", "sequence_name")),
    ]
    entries: dict[str, list[dict[str, Any]]] = {}
    sql = " UNION ALL ".join(
        f"SELECT '{what}' AS what, to_json(struct_pack(*COLUMNS(*)))::VARCHAR AS told "
        f"FROM duckdb_{function}() WHERE {condition}"
        for what, function, condition in parts
    )
    for what, text in _told(sql, seen.listed):
        entries.setdefault(what, []).append(json.loads(text))
    entries["constraint"] = [row for row in entries.get("constraint", ()) if row["constraint_type"] != "NOT NULL"]
    entries.get("column", []).sort(key=lambda row: int(row["column_index"]))
    return entries


def _first(entries: Entries, what: str) -> dict[str, Any]:
    return next(iter(entries.get(what, ())), {})


def _columns(entries: Entries, *, details: bool) -> Listing:
    """The columns of a relation; of a sequence its properties."""
    if sequence := _first(entries, "sequence"):
        values = [sequence.get(name) for name in _SEQUENCE.values()]
        row = ["" if value is None else str(value).lower() for value in values]
        return Listing([(title, TEXT) for title in _SEQUENCE], [row])
    titles = ["name", "type", "nullable", "default", *(("key", "comment") if details else ())]
    rows = []
    for column in entries.get("column", ()):
        nullable = "true" if column.get("is_nullable", True) else "false"
        row = [column["column_name"], column["data_type"], nullable, _default(column) or ""]
        rows.append([*row, _keys(column["column_name"], entries), column.get("comment") or ""][: len(titles)])
    return Listing([(title, TEXT) for title in titles], rows)


def _default(column: Mapping[str, Any]) -> str | None:
    default: str | None = column.get("column_default")
    if column.get("is_generated"):
        return f"generated always as ({column.get('generation_expression') or default})"
    return default


def _keys(column: str, entries: Entries) -> str:
    """The keys that contain a column, in words."""
    return ", ".join(
        f"references {quoted(row['referenced_table'])}({_quoted(row.get('referenced_column_names') or ())})"
        if row.get("referenced_table")
        else row["constraint_type"].lower()
        for row in entries["constraint"]
        if column in (row.get("constraint_column_names") or ()) and row["constraint_type"] != "CHECK"
    )


def _notes(entries: Entries) -> list[list[str]]:
    """Keys, constraints, indexes, and other tables that refer to this one, as (heading, name, text)."""
    notes = [
        [_HEADS.get(row["constraint_type"], "Keys"), quoted(row.get("constraint_name") or ""), row["constraint_text"]]
        for row in entries["constraint"]
    ]
    notes.sort(key=lambda note: ("Keys", "Check constraints", "Foreign keys").index(note[0]))
    notes += [["Indexes", quoted(row["index_name"]), row["sql"]] for row in entries.get("index", ())]
    referring = entries.get("referenced", ())
    return notes + [["Referenced by", quoted(row["table_name"]), row["constraint_text"]] for row in referring]


def _further_notes(relation: Relation, entries: Entries, seen: LocalSession) -> list[list[str]]:
    made = _first(entries, "made")
    size = 0
    if "table_name" in made and made.get("estimated_size"):
        try:
            size = int(seen.listed(_STORED.format(name=literal(qualified(*relation))))[0][0] or 0)
        except Failure:
            # A table that DuckDB has not stored yet.
            size = 0
    notes = (
        ("View definition", str(made.get("sql") or "").strip() if "view_name" in made else ""),
        ("Comment", str(made.get("comment") or "").strip()),
        ("Rows", f"about {made['estimated_size']:,}" if made.get("estimated_size") is not None else ""),
        ("Size", f"about {byte_size(size)}" if size else ""),
    )
    return [[head, "", text] for head, text in notes if text]


def _statements(relation: Relation, kind: str, entries: Entries) -> str:
    """The SQL that creates a relation, with its indexes and comments."""
    made = _first(entries, "made") or _first(entries, "sequence")
    schema, name = relation[1:]
    shown = quoted(name) if schema in {"", "main"} else f"{quoted(schema)}.{quoted(name)}"
    # To the engine, a stream is a table.
    sql = str(made.get("sql") or "")
    statements = [sql.replace("CREATE TABLE", "CREATE STREAM", 1) if kind == "stream" else sql]
    statements += [row["sql"] for row in entries.get("index", ())]
    if comment := made.get("comment"):
        what = "SEQUENCE" if kind == "sequence" else "VIEW" if "view_name" in made else "TABLE"
        statements.append(f"COMMENT ON {what} {shown} IS {literal(comment)}")
    statements += [
        f"COMMENT ON COLUMN {shown}.{quoted(row['column_name'])} IS {literal(row['comment'])}"
        for row in entries.get("column", ())
        if row.get("comment")
    ]
    return ";\n".join(text.strip().rstrip(";") for text in statements)


def _macros(names: Sequence[str], seen: LocalSession) -> Listing:
    """The statements that create the macros of a name. DuckDB does not report the default values of parameters."""
    conditions = [same("function_name", names[-1]), *(same("schema_name", part) for part in names[-2:-1])]
    rows = seen.listed(
        "SELECT schema_name, function_name, function_type, array_to_string(parameters, ', '), macro_definition FROM "
        f"duckdb_functions() WHERE {' AND '.join(conditions)} ORDER BY ALL"
    )
    shown = ".".join(map(quoted, names))
    if not rows:
        raise Failure("42883", f"function {shown} does not exist")
    macros = [row for row in rows if row[4]]
    if not macros:
        raise Failure("42809", f"DuckDB does not report the definition of {shown}; \\df+ shows what it reports")
    return Listing(
        [("Sql", TEXT)],
        [
            [
                f"CREATE OR REPLACE MACRO {quoted(schema)}.{quoted(name)}({arguments}) AS "
                f"{'TABLE ' if kind == 'table_macro' else ''}{definition}"
            ]
            for schema, name, kind, arguments, definition in macros
        ],
    )


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))
