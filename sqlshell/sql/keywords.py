"""The words of the dialect by their role: statements of the interface, and the SQL of the local service.

Words of several parts have single spaces. Everything except functions and system tables is in upper case.
"""

from __future__ import annotations

from typing import Final

from sqlshell.sql.object_kinds import PLURALS, names


def words(text: str) -> tuple[str, ...]:
    """The words of a text, for lists that are longer than a line."""
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


TYPES: Final = words(
    "ARRAY BIGINT BOOLEAN BYTES CHAR DATE DECIMAL DOUBLE FLOAT INT INTEGER INTERVAL JSON MAP NUMERIC REAL SMALLINT"
    " STRING STRUCT TEXT TIME TIMESTAMP TIMESTAMPTZ TIMESTAMP_LTZ TIMESTAMP_TZ TINYINT UUID VARCHAR VARBINARY BLOB"
    " HUGEINT UBIGINT UINTEGER USMALLINT UTINYINT"
)
"""Names of types: first those of the interface, then those of the local service."""

CREATE_OBJECTS: Final = names("create")
"""What may follow CREATE."""

CREATE_FILLERS: Final = ("OR", "REPLACE", "TEMP", "TEMPORARY", "UNIQUE", "RECURSIVE", "LOCAL")
"""What may be between CREATE and the kind of an object of the local service's engine."""

DROP_OBJECTS: Final = names("drop")
"""What may follow DROP."""

UPDATE_OBJECTS: Final = names("update")
"""What may follow UPDATE, other than a relation, if WITH follows the name."""

LIST_OBJECTS: Final = PLURALS
"""What may follow LIST."""

SHOW_OBJECTS: Final = ("RELATIONS", "SCHEMAS", "STORES")
"""What may follow SHOW in addition to the engine's own statements."""

PRIVILEGES: Final = (
    *("CREATE_API_TOKEN", "CREATE_COMPUTE_POOL", "CREATE_DATABASE", "CREATE_QUERY", "CREATE_SCHEMA", "CREATE_STORE"),
    *("CREATE_STREAM",),
)
"""What may follow CAN I."""

DESCRIBE_OBJECTS: Final = names("describe")
"""What may follow DESCRIBE."""

DESCRIBE_PARTS: Final = {
    "QUERY": ("EVENTS", "HISTORY", "METRICS", "STATE"),
    "RELATION": ("COLUMNS",),
}
"""What may follow the name, or precede it, in a DESCRIBE of a part of an object."""

CONTEXT_PARTS: Final = ("COMPUTE_POOL", "DATABASE", "ORGANIZATION", "ROLE", "SCHEMA", "STORE")
"""What may follow USE."""

QUERY_ACTIONS: Final = ("RESTART", "RESUME", "TERMINATE")
"""What may precede QUERY and its ID."""

POOL_ACTIONS: Final = ("START", "STOP")
"""What may precede COMPUTE_POOL and its name."""

STATEMENTS: Final = _phrases(
    "ALTER, BEGIN APPLICATION, CAN I, CREATE, DELETE, DESCRIBE, DROP, END APPLICATION, EXPLAIN, GENERATE COLUMNS,"
    " GRANT, INSERT INTO, INVITE USER, LIST, PRINT ENTITY, RESTART QUERY, RESUME QUERY, REVOKE, SELECT,"
    " SET DEFAULT, START COMPUTE_POOL, STOP COMPUTE_POOL, TERMINATE QUERY, TEST STORE, UPDATE, USE, WITH"
)
"""The beginnings of statements."""

LOCAL_STATEMENTS: Final = _phrases(
    "ANALYZE, ATTACH, BEGIN TRANSACTION, CALL, CHECKPOINT, COMMIT, COPY, DETACH, EXPORT DATABASE, FROM,"
    " IMPORT DATABASE, INSTALL, LOAD, MERGE INTO, PIVOT, PRAGMA, RESET, ROLLBACK, SET, SHOW, SUMMARIZE, TRUNCATE,"
    " UNPIVOT, VACUUM, VALUES"
)
"""The beginnings of statements that only the local service supports."""

CLAUSES: Final = words(
    "ALL AND ANTI ANY AS ASC ASOF AT BETWEEN BY CASE CAST COLLATE CROSS CURRENT CURRENT_DATE CURRENT_TIME"
    " CURRENT_TIMESTAMP DESC DISTINCT ELSE END ESCAPE EXCEPT EXCLUDE EXISTS EXTRACT FETCH FILTER FIRST FOLLOWING FOR"
    " FROM FULL GLOB GROUP GROUPING HAVING ILIKE IN INNER INTERSECT IS ISNULL JOIN LAST LATERAL LEFT LIKE LIMIT"
    " NATURAL NOT NOTNULL NULLS OFFSET ON OR ORDER OUTER OVER PARTITION POSITIONAL PRECEDING QUALIFY RANGE RECURSIVE"
    " RIGHT ROLLUP ROW ROWS SAMPLE SEMI SIMILAR SOME TABLESAMPLE THEN TO TRY_CAST UNBOUNDED UNION USING WHEN WHERE"
    " WINDOW WITHIN"
)
"""Words in queries."""

WINDOWING: Final = (
    *("ADVANCE", "CUMULATE", "DAY", "DAYS", "EMIT", "HOP", "HOUR", "HOURS", "MINUTE", "MINUTES", "MONTH", "MONTHS"),
    *("SECOND", "SECONDS", "SIZE", "TUMBLE", "WEEK", "WEEKS", "YEAR", "YEARS"),
)
"""Windows over streams, and units of time."""

DEFINITIONS: Final = words(
    "ADD APPLICATION ATOMIC AUTHORIZATION BEGIN CASCADE CHECK COLUMN COLUMNS CONFLICT CONSTRAINT DATA DEFAULT DO"
    " FOREIGN GENERATED HEADERS IF INTO KEY LANGUAGE MACRO JAVA METADATA NO NOTHING OF OPTION OWNER PARAMS PRIMARY"
    " PRIVILEGES PROCEDURE QUERY REFERENCES RENAME REPLACE RESTRICT RETURN RETURNING RETURNS SANDBOX SEQUENCE SET"
    " TEMP TEMPORARY TRANSACTION TYPE UNIQUE UPSERT USAGE USER VALUES VIEW WITH WITHOUT"
)
"""Words of CREATE, ALTER, GRANT, INSERT and UPDATE."""

CONSTANTS: Final = ("FALSE", "NULL", "TRUE")

FUNCTIONS: Final = words(
    "abs array_agg array_contains array_length avg ceil char_length coalesce concat concat_ws convert_timezone"
    " convert_tz count current_database current_schema date_diff date_part date_format date_trunc dense_rank"
    " element_at exp first_value floor from_unixtime greatest if ifnull json_exists json_query json_value lag"
    " last_value lead least length ln lower lpad ltrim max md5 min mod now nullif percent_rank power random rank"
    " regexp_extract regexp_matches regexp_replace replace round row_number rpad rtrim sha256 split_part sqrt"
    " starts_with stddev string_agg strftime strptime substr substring sum timestampadd timestampdiff to_char"
    " to_date to_timestamp to_timestamp_ltz trim trunc unix_timestamp unnest upper uuid variance"
)

SIGNATURES: Final = {
    "array_join": "(array, separator) -> VARCHAR",
    "array_max": "(array) -> T",
    "array_min": "(array) -> T",
    "array_remove": "(array, value) -> T[]",
    "convert_tz": "(text, from_zone, to_zone) -> VARCHAR",
    "current_row_timestamp": "() -> TIMESTAMPTZ",
    "date_format": "(time, pattern) -> VARCHAR",
    "e": "() -> DOUBLE",
    "element": "(array) -> T",
    "from_unixtime": "(seconds[, pattern]) -> VARCHAR",
    "initcap": "(text) -> VARCHAR",
    "is_alpha": "(text) -> BOOLEAN",
    "is_decimal": "(text) -> BOOLEAN",
    "is_digit": "(text) -> BOOLEAN",
    "json_query": "(json, path) -> VARCHAR",
    "json_string": "(value) -> VARCHAR",
    "locate": "(part, text) -> BIGINT",
    "map_from_arrays": "(keys, values) -> MAP(K, V)",
    "map_union": "(map, other) -> MAP(K, V)",
    "nvl": "(value, default) -> T",
    "rand": "() -> DOUBLE",
    "rand_integer": "(bound) -> INTEGER",
    "regexp": "(text, regex) -> BOOLEAN",
    "split_index": "(text, separator, index) -> VARCHAR",
    "timestampadd": "(unit, count, time) -> TIMESTAMP",
    "timestampdiff": "(unit, start, end) -> BIGINT",
    "to_date": "(text[, pattern]) -> DATE",
    "to_timestamp_ltz": "(text[, pattern[, zone]]) -> TIMESTAMPTZ (+1 overload)",
    "truncate": "(number[, digits]) -> T",
    "unix_timestamp": "([text[, pattern]]) -> BIGINT",
}
"""The interface's own functions, which no service lists with their parameters."""

UNLISTED: Final = SIGNATURES | {"coalesce": "(value, ...) -> T", "ifnull": "(value, default) -> T"}
"""Those, and functions that are part of SQL's grammar."""

IN_GRAMMAR: Final = {
    "coalesce": "(value, ...)",
    "greatest": "(value, ...)",
    "least": "(value, ...)",
    "nullif": "(value, other)",
}
"""Functions that are part of SQL's grammar on a server, which does not list them."""

KEYWORDS: Final = frozenset(
    word
    for table in (
        *(STATEMENTS, LOCAL_STATEMENTS, CREATE_OBJECTS, DROP_OBJECTS, LIST_OBJECTS, DESCRIBE_OBJECTS, CONTEXT_PARTS),
        *(*DESCRIBE_PARTS.values(), QUERY_ACTIONS, POOL_ACTIONS, CLAUSES, WINDOWING, DEFINITIONS, CONSTANTS),
    )
    for phrase in table
    for word in phrase.split()
) - {"I"}
"""All single words above that are neither types nor functions."""
