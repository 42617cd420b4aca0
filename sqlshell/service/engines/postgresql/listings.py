"""SQL that lists what a database has, as psql's \\d commands do: LIST ENGINE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from sqlshell.service.engines.engine import ObjectQuery

TEXT, BOOLEAN, NUMBER = "VARCHAR", "BOOLEAN", "BIGINT"


class Column(Struct, frozen=True):
    """A column of a list: its name, the SQL of its values, its interface type, and whether it is only in the list WITH
    DETAILS."""

    name: str
    sql: str
    type: str = TEXT
    detail: bool = False


class Query(Struct, frozen=True):
    """A list: its columns, and the SQL after them. $1 is a schema, "" for all that are not the system's."""

    columns: tuple[Column, ...]
    source: str
    order: str
    by_schema: bool = True

    def shown(self, *, details: bool) -> list[tuple[str, str]]:
        """The names and interface types of the columns."""
        return [(column.name, column.type) for column in self.columns if details or not column.detail]

    def sql(self, *, details: bool) -> str:
        each = ", ".join(f"{_shown(column)}" for column in self.columns if details or not column.detail)
        return f"SELECT {each} {self.source} ORDER BY {self.order}"


def _shown(column: Column) -> str:
    return f"CASE WHEN {column.sql} THEN 'true' ELSE 'false' END" if column.type == BOOLEAN else f"({column.sql})::text"


def kind_of(relation: str) -> str:
    """SQL for the kind of a relation in words; `relation` is the alias of pg_class."""
    return (
        f"CASE {relation}.relpersistence WHEN 't' THEN 'temporary ' WHEN 'u' THEN 'unlogged ' ELSE '' END || "
        f"CASE {relation}.relkind WHEN 'r' THEN CASE WHEN {relation}.relnamespace = "
        "'pg_catalog'::pg_catalog.regnamespace "
        "THEN 'system table' ELSE 'table' END WHEN 'p' THEN 'partitioned table' "
        "WHEN 'f' THEN 'foreign table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence' "
        "WHEN 'i' THEN 'index' WHEN 'I' THEN 'partitioned index' WHEN 'c' THEN 'composite type' WHEN 't' THEN "
        f"'TOAST table' ELSE {relation}.relkind::text END"
    )


def _of_users(namespace: str) -> str:
    """SQL for the schemas that are listed: those of users, and the session's own for temporary objects; or one."""
    return (
        f"CASE WHEN $1::text <> '' THEN {namespace}.nspname = $1 ELSE {namespace}.nspname <> 'information_schema' AND "
        f"({namespace}.nspname !~ '^pg_' OR {namespace}.oid = pg_catalog.pg_my_temp_schema()) END"
    )


_DATABASE: Final = Column("Database", "pg_catalog.current_database()")
_SCHEMA, _COMMENTED = Column("Schema", "n.nspname"), "pg_catalog.obj_description({}.oid, '{}')"

RELATIONS: Final = Query(
    (
        _DATABASE,
        _SCHEMA,
        Column("Name", "c.relname"),
        Column("Type", kind_of("c")),
        Column("Owner", "pg_catalog.pg_get_userbyid(c.relowner)"),
        Column("Visible", "pg_catalog.pg_table_is_visible(c.oid)", BOOLEAN),
        Column(
            "Rows",
            "CASE WHEN c.reltuples >= 0 AND c.relkind IN ('r', 'm', 'p') THEN c.reltuples::bigint END",
            NUMBER,
            True,
        ),
        Column("Size", "pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid))", detail=True),
        Column("AccessMethod", "(SELECT m.amname FROM pg_catalog.pg_am m WHERE m.oid = c.relam)", detail=True),
        Column("Comment", _COMMENTED.format("c", "pg_class"), detail=True),
    ),
    "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    f"WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S', 'i', 'I') AND {_of_users('n')}",
    "2, 3",
)

COLUMNS: Final = Query(
    (
        _DATABASE,
        _SCHEMA,
        Column("Relation", "c.relname"),
        Column("Name", "a.attname"),
        Column("Type", "pg_catalog.format_type(a.atttypid, a.atttypmod)"),
    ),
    "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute "
    "a "
    "ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
    f"WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND {_of_users('n')}",
    "2, 3, a.attnum",
)

DECLARED: Final = (
    "NOT EXISTS (SELECT FROM pg_catalog.pg_constraint d WHERE d.oid = k.conparentid AND d.conrelid = k.conrelid)"
)
"""SQL for the constraints `k` without those that a foreign key to a partitioned table has for each partition."""

FOREIGN_KEYS: Final = Query(
    (
        Column("Name", "k.conname"),
        _DATABASE,
        _SCHEMA,
        Column("Relation", "c.relname"),
        Column("TargetRelation", "t.relname"),
        Column("Column", "a.attname"),
        Column("TargetColumn", "b.attname"),
        Column("TargetSchema", "m.nspname"),
    ),
    "FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n "
    "ON n.oid = c.relnamespace JOIN pg_catalog.pg_class t ON t.oid = k.confrelid JOIN pg_catalog.pg_namespace m "
    "ON m.oid = t.relnamespace CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(k.conkey), "
    "pg_catalog.unnest(k.confkey)) WITH ORDINALITY "
    "u (mine, its, place) JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.mine "
    "JOIN pg_catalog.pg_attribute b ON b.attrelid = t.oid AND b.attnum = u.its "
    f"WHERE k.contype = 'f' AND {DECLARED} AND {_of_users('n')}",
    "3, 4, 1, u.place",
)

INDEXES: Final = Query(
    (
        _SCHEMA,
        Column("Name", "c.relname"),
        Column("Type", kind_of("c")),
        Column("Owner", "pg_catalog.pg_get_userbyid(c.relowner)"),
        Column("Table", "t.relname"),
        Column("Visible", "pg_catalog.pg_table_is_visible(c.oid)", BOOLEAN),
        Column("Definition", "pg_catalog.pg_get_indexdef(c.oid)", detail=True),
        Column("Size", "pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid))", detail=True),
        Column("Comment", _COMMENTED.format("c", "pg_class"), detail=True),
    ),
    "FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_class t "
    f"ON t.oid = i.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE {_of_users('n')}",
    "1, 2",
)

_INTERNAL: Final = (
    "EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.typtype = 'p' AND t.typname !~ '^(any|record$|void$)' "
    "AND t.oid = ANY (p.prorettype || p.proargtypes::pg_catalog.oid[])) "
    "OR p.oid IN (SELECT oprcode FROM pg_catalog.pg_operator UNION SELECT amproc FROM pg_catalog.pg_amproc "
    "UNION SELECT unnest(ARRAY[typsend, typmodin]) FROM pg_catalog.pg_type UNION SELECT unnest(ARRAY[aggtransfn, "
    "aggfinalfn, aggmtransfn, aggminvtransfn, aggmfinalfn]) FROM pg_catalog.pg_aggregate)"
)
"""SQL for functions that are not called by name: their arguments are none of SQL, or they implement an operator, an
index, a type or an aggregate."""

FUNCTIONS: Final = Query(
    (
        _SCHEMA,
        Column("Name", "p.proname"),
        Column("Result", "pg_catalog.pg_get_function_result(p.oid)"),
        Column("Arguments", "pg_catalog.pg_get_function_arguments(p.oid)"),
        Column(
            "Type",
            "CASE p.prokind WHEN 'a' THEN 'aggregate' WHEN 'w' THEN 'window' WHEN 'p' THEN 'procedure' ELSE CASE WHEN "
            "p.prorettype = 'pg_catalog.trigger'::pg_catalog.regtype THEN 'trigger' ELSE 'function' END END",
        ),
        Column("Own", "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'", BOOLEAN),
        Column("Visible", "pg_catalog.pg_function_is_visible(p.oid)", BOOLEAN),
        Column("Internal", f"n.nspname = 'pg_catalog' AND ({_INTERNAL})", BOOLEAN),
        Column(
            "Volatility",
            "CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END",
            detail=True,
        ),
        Column(
            "Parallel",
            "CASE p.proparallel WHEN 'r' THEN 'restricted' WHEN 's' THEN 'safe' ELSE 'unsafe' END",
            detail=True,
        ),
        Column("Owner", "pg_catalog.pg_get_userbyid(p.proowner)", detail=True),
        Column("Security", "CASE WHEN p.prosecdef THEN 'definer' ELSE 'invoker' END", detail=True),
        Column("Privileges", "pg_catalog.array_to_string(p.proacl, E'\\n')", detail=True),
        Column("Language", "l.lanname", detail=True),
        Column("Description", _COMMENTED.format("p", "pg_proc"), detail=True),
    ),
    "FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace JOIN pg_catalog.pg_language l "
    "ON l.oid = p.prolang WHERE $1::text = '' OR n.nspname = $1",
    "1, 2, 4",
)

TYPES: Final = Query(
    (
        _SCHEMA,
        Column("Name", "t.typname"),
        Column("Visible", "pg_catalog.pg_type_is_visible(t.oid)", BOOLEAN),
        Column(
            "Type",
            "CASE t.typtype WHEN 'e' THEN 'enum (' || (SELECT "
            "pg_catalog.string_agg(pg_catalog.quote_literal(e.enumlabel), "
            "', ' ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid) || ')' "
            "WHEN 'd' THEN 'domain over ' || pg_catalog.format_type(t.typbasetype, t.typtypmod) || CASE WHEN "
            "t.typnotnull "
            "THEN ' NOT NULL' ELSE '' END || coalesce(' DEFAULT ' || t.typdefault, '') || coalesce((SELECT ' ' || "
            "pg_catalog.string_agg(pg_catalog.pg_get_constraintdef(k.oid), ' ' ORDER BY k.conname) FROM "
            "pg_catalog.pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c'), '') "
            "WHEN 'c' THEN 'composite (' || coalesce((SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname) "
            "|| "
            "' ' || pg_catalog.format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum) FROM "
            "pg_catalog.pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped), '') || "
            "')' "
            "WHEN 'r' THEN 'range of ' || (SELECT pg_catalog.format_type(r.rngsubtype, NULL) FROM pg_catalog.pg_range "
            "r "
            "WHERE r.rngtypid = t.oid) WHEN 'm' THEN 'multirange' WHEN 'p' THEN 'pseudo-type' ELSE 'base type' END",
        ),
        Column("Owner", "pg_catalog.pg_get_userbyid(t.typowner)", detail=True),
        Column("Privileges", "pg_catalog.array_to_string(t.typacl, E'\\n')", detail=True),
        Column("Comment", _COMMENTED.format("t", "pg_type"), detail=True),
    ),
    "FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace "
    "WHERE (t.typrelid = 0 OR EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c')) "
    f"AND NOT EXISTS (SELECT FROM pg_catalog.pg_type e WHERE e.oid = t.typelem AND e.typarray = t.oid) "
    f"AND {_of_users('n')}",
    "1, 2",
)

DATABASES: Final = Query(
    (
        Column("Name", "d.datname"),
        Column("Current", "d.datname = pg_catalog.current_database()", BOOLEAN),
        Column("Owner", "pg_catalog.pg_get_userbyid(d.datdba)"),
        Column("Encoding", "pg_catalog.pg_encoding_to_char(d.encoding)"),
        Column("Collate", "d.datcollate"),
        Column("Ctype", "d.datctype"),
        Column("Privileges", "pg_catalog.array_to_string(d.datacl, E'\\n')"),
        Column(
            "Size",
            "CASE WHEN pg_catalog.has_database_privilege(d.oid, 'CONNECT') THEN "
            "pg_catalog.pg_size_pretty(pg_catalog.pg_database_size(d.oid)) ELSE 'no access' END",
            detail=True,
        ),
        Column(
            "Tablespace",
            "(SELECT s.spcname FROM pg_catalog.pg_tablespace s WHERE s.oid = d.dattablespace)",
            detail=True,
        ),
        Column("Comment", "pg_catalog.shobj_description(d.oid, 'pg_database')", detail=True),
    ),
    "FROM pg_catalog.pg_database d",
    "1",
    by_schema=False,
)

SCHEMAS: Final = Query(
    (
        Column("Name", "n.nspname"),
        Column("Owner", "pg_catalog.pg_get_userbyid(n.nspowner)"),
        Column("Privileges", "pg_catalog.array_to_string(n.nspacl, E'\\n')", detail=True),
        Column("Comment", _COMMENTED.format("n", "pg_namespace"), detail=True),
    ),
    "FROM pg_catalog.pg_namespace n WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'",
    "1",
    by_schema=False,
)

ROLES: Final = Query(
    (
        Column("Name", "r.rolname"),
        Column(
            "Attributes",
            "pg_catalog.concat_ws(', ', CASE WHEN r.rolsuper THEN 'superuser' END, CASE WHEN NOT r.rolinherit THEN "
            "'no inheritance' END, CASE WHEN r.rolcreaterole THEN 'create role' END, CASE WHEN r.rolcreatedb THEN "
            "'create DB' END, CASE WHEN NOT r.rolcanlogin THEN 'cannot login' END, CASE WHEN r.rolreplication THEN "
            "'replication' END, CASE WHEN r.rolbypassrls THEN 'bypass RLS' END, CASE WHEN r.rolconnlimit >= 0 THEN "
            "'connections: ' || r.rolconnlimit END, 'password valid until ' || r.rolvaliduntil)",
        ),
        Column(
            "MemberOf",
            "(SELECT pg_catalog.string_agg(g.rolname, ', ' ORDER BY g.rolname) FROM pg_catalog.pg_auth_members m "
            "JOIN pg_catalog.pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid)",
        ),
        Column("Comment", "pg_catalog.shobj_description(r.oid, 'pg_authid')", detail=True),
    ),
    "FROM pg_catalog.pg_roles r WHERE r.rolname !~ '^pg_'",
    "1",
    by_schema=False,
)

PRIVILEGES: Final = Query(
    (
        _SCHEMA,
        Column("Name", "c.relname"),
        Column("Type", kind_of("c")),
        Column("Privileges", "pg_catalog.array_to_string(c.relacl, E'\\n')"),
        Column(
            "ColumnPrivileges",
            "(SELECT pg_catalog.string_agg(a.attname || E':\\n  ' || pg_catalog.array_to_string(a.attacl, E'\\n  '), "
            "E'\\n' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped "
            "AND a.attacl IS NOT NULL)",
        ),
        Column(
            "Policies",
            "(SELECT pg_catalog.string_agg(p.polname || CASE WHEN p.polpermissive THEN '' ELSE ' (RESTRICTIVE)' END || "
            "CASE WHEN p.polcmd = '*' THEN ':' ELSE ' (' || p.polcmd::text || '):' END || coalesce(E'\\n  (u): ' || "
            "pg_catalog.pg_get_expr(p.polqual, p.polrelid), '') || coalesce(E'\\n  (c): ' || "
            "pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid), '') || CASE WHEN p.polroles = '{0}' THEN '' ELSE "
            "E'\\n  to: ' || pg_catalog.array_to_string(ARRAY(SELECT r.rolname FROM pg_catalog.pg_roles r WHERE "
            "r.oid = ANY (p.polroles) ORDER BY 1), ', ') END, E'\\n' ORDER BY p.polname) FROM pg_catalog.pg_policy p "
            "WHERE p.polrelid = c.oid)",
        ),
    ),
    "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    f"WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND {_of_users('n')}",
    "1, 2",
)

LISTS: Final[Mapping[str, Query]] = {
    "relations": RELATIONS,
    "columns": COLUMNS,
    "foreign_keys": FOREIGN_KEYS,
    "indexes": INDEXES,
    "functions": FUNCTIONS,
    "types": TYPES,
    "databases": DATABASES,
    "schemas": SCHEMAS,
    "roles": ROLES,
    "privileges": PRIVILEGES,
}
"""The lists by their word in LIST ENGINE."""


def parameters(query: ObjectQuery) -> tuple[str, ...]:
    """The parameters of a list's SQL."""
    return (query.schema,) if LISTS[query.kind].by_schema else ()
