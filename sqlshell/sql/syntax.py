"""Short syntax of each statement, for `\\h`: the interface's statements, and those of the local service's engine.

`[x]` is optional, `{a | b}` is one of them, `…` is a continuation; words in lower case are placeholders.
"""

from __future__ import annotations

from typing import Final

from sqlshell.sql.keywords import CREATE_OBJECTS, LOCAL_STATEMENTS, STATEMENTS
from sqlshell.text import nearest

_OBJECT: Final = {
    "CREATE DATABASE": "CREATE DATABASE name",
    "CREATE SCHEMA": "CREATE SCHEMA [IF NOT EXISTS] name [IN DATABASE database]",
    "CREATE STORE": "CREATE STORE name WITH ('type' = 'files', 'uri' = '/path' [, 'writable' = TRUE])",
    "CREATE STREAM": "CREATE STREAM name (column type [NOT NULL], …) [WITH ('store' = '…', 'value.format' = '…')]\n"
    "CREATE STREAM name [WITH (…)] AS SELECT …",
    "CREATE CHANGELOG": "CREATE CHANGELOG name (column type, …, PRIMARY KEY (column)) [WITH (…)]\n"
    "CREATE CHANGELOG name [WITH (…)] AS SELECT … GROUP BY …",
    "CREATE TABLE": "CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name (column type [NOT NULL], …)\n"
    "CREATE [OR REPLACE] [TEMP] TABLE name AS SELECT …",
    "CREATE VIEW": "CREATE [OR REPLACE] [TEMP] VIEW name [(column, …)] AS SELECT …",
    "CREATE MATERIALIZED VIEW": "CREATE MATERIALIZED VIEW name AS SELECT …",
    "CREATE ENTITY": "CREATE ENTITY name [IN STORE store] [WITH ('kafka.partitions' = 1, …)]",
    "CREATE INDEX": "CREATE [UNIQUE] INDEX name ON table (column, …)",
    "CREATE FUNCTION": "CREATE FUNCTION name(argument type, …) RETURNS type LANGUAGE JAVA "
    "WITH ('source.name' = '…', 'class.name' = '…')\n"
    "CREATE [OR REPLACE] [TEMP] FUNCTION name(argument, …) AS expression",
    "CREATE FUNCTION_SOURCE": "CREATE FUNCTION_SOURCE name WITH ('file' = '@path/file.jar' [, 'description' = '…'])",
    "CREATE DESCRIPTOR_SOURCE": "CREATE DESCRIPTOR_SOURCE name WITH ('file' = '@path/file.desc')",
    "CREATE COMPUTE_POOL": "CREATE COMPUTE_POOL name WITH ('concurrency' = 2, 'queue' = 100, 'timeout' = '10m')",
    "CREATE ROLE": "CREATE ROLE name",
    "CREATE SECRET": "CREATE SECRET name\n"
    "  WITH ('type' = 'generic_string', 'secret_string' = '…' [, 'description' = '…'])",
    "CREATE SCHEMA_REGISTRY": "CREATE SCHEMA_REGISTRY name WITH ('type' = 'CONFLUENT', 'uris' = 'https://…' [, …])",
    "CREATE API_TOKEN": "CREATE API_TOKEN name [WITH ('role' = {'reader' | 'writer' | 'owner'})]",
    "CREATE ORGANIZATION": "CREATE ORGANIZATION name",
    "CREATE METRICS INTEGRATION": "CREATE METRICS INTEGRATION name WITH ('type' = '…', …)",
    "CREATE SECURITY INTEGRATION": "CREATE SECURITY INTEGRATION name WITH ('type' = '…', …)",
}
SYNTAX: Final[dict[str, str]] = {
    "SELECT": "[WITH name AS (SELECT …), …]\nSELECT [DISTINCT] expression [AS name], … [FROM relation [alias], …]\n"
    "  [{INNER | LEFT | RIGHT | FULL | CROSS} JOIN relation {ON condition | USING (column, …)}] [WHERE condition]\n"
    "  [GROUP BY expression, …] [HAVING condition] [ORDER BY expression [ASC | DESC], …] [LIMIT n] [OFFSET n]",
    "WITH": "WITH [RECURSIVE] name [(column, …)] AS (SELECT …), … {SELECT | INSERT | UPDATE | DELETE} …",
    "VALUES": "VALUES (value, …), …",
    "FROM": "FROM relation [SELECT …] [WHERE condition] …",
    "INSERT INTO": "INSERT INTO relation [(column, …)] {VALUES (value, …), … | SELECT …}\n"
    "INSERT INTO ENTITY name [IN STORE store] VALUE('{json}')",
    "UPDATE": "UPDATE relation SET column = value, … [FROM relation] [WHERE condition]\n"
    "UPDATE {STORE | COMPUTE_POOL | SECRET | SCHEMA_REGISTRY} name WITH ('option' = value, …)",
    "DELETE": "DELETE FROM relation [USING relation] [WHERE condition]",
    "MERGE INTO": "MERGE INTO relation USING relation ON condition WHEN [NOT] MATCHED THEN …",
    "TRUNCATE": "TRUNCATE [TABLE | RELATION] relation",
    **_OBJECT,
    "DROP": "DROP {DATABASE | SCHEMA | STORE | STREAM | CHANGELOG | TABLE | VIEW | MATERIALIZED VIEW | RELATION | "
    "INDEX |\n  FUNCTION | FUNCTION_SOURCE | DESCRIPTOR_SOURCE | COMPUTE_POOL | SECRET | SCHEMA_REGISTRY | API_TOKEN | "
    "ORGANIZATION}\n  [IF EXISTS] name [CASCADE]\nDROP ENTITY name [IN STORE store]\n"
    "DROP {ROLE | USER | METRICS INTEGRATION | SECURITY INTEGRATION} name      (not supported by the local service)",
    "ALTER": "ALTER TABLE name {ADD COLUMN column type | DROP COLUMN column | RENAME TO name}\n"
    "ALTER RELATION name SET description = '…'\n"
    "ALTER {COMPUTE_POOL | STORE | USER | …} name …      (not supported by the local service)",
    "LIST": "LIST {ORGANIZATIONS | ROLES | DATABASES | SCHEMAS [IN DATABASE name] | STORES |\n"
    "  {RELATIONS | TABLES} [IN {DATABASE | SCHEMA} name] | STREAMS | CHANGELOGS | ENTITIES [IN STORE name] |\n"
    "  QUERIES [WITH ('all')] | SESSIONS | FUNCTIONS | FUNCTION_SOURCES | DESCRIPTOR_SOURCES | "
    "COMPUTE_POOLS | USERS |\n  SECRETS | API_TOKENS | SCHEMA_REGISTRIES | INVITATIONS} [WHERE condition]\n"
    "LIST ENGINE {RELATIONS | INDEXES | FUNCTIONS | TYPES | DATABASES | SCHEMAS | ROLES | PRIVILEGES | …}\n"
    "  [IN SCHEMA name] [WITH DETAILS]      (on PostgreSQL and Spark)",
    "DESCRIBE": "DESCRIBE RELATION [COLUMNS] name\nDESCRIBE ENTITY name [IN STORE store]\n"
    "DESCRIBE {DATABASE | SCHEMA | STREAM | TABLE | STORE | COMPUTE_POOL | SECRET | SCHEMA_REGISTRY |\n"
    "  FUNCTION | ROLE | USER} name\n"
    "DESCRIBE QUERY [METRICS | EVENTS | STATE | HISTORY] id\n"
    "DESCRIBE {relation | CREATE … | INSERT …}\n"
    "DESCRIBE ENGINE {RELATION [COLUMNS | SQL] | FUNCTION SQL} name      (on PostgreSQL and Spark)",
    "USE": "USE {ORGANIZATION | ROLE | DATABASE | SCHEMA | STORE | COMPUTE_POOL} name",
    "PRINT ENTITY": "PRINT ENTITY name [IN STORE store] [FROM BEGINNING | WITH ('from_beginning')]",
    "TERMINATE QUERY": "TERMINATE QUERY id",
    "TERMINATE SESSION": "TERMINATE SESSION 'id' [WHEN IDLE]",
    "RESTART QUERY": "RESTART QUERY id",
    "RESUME QUERY": "RESUME QUERY id",
    "TEST STORE": "TEST STORE name",
    "TEST SCHEMA_REGISTRY": "TEST SCHEMA_REGISTRY name",
    "START COMPUTE_POOL": "START COMPUTE_POOL name",
    "STOP COMPUTE_POOL": "STOP COMPUTE_POOL name",
    "GRANT": "GRANT ROLE role TO {USER | ROLE} name\nGRANT privilege ON {object} name TO ROLE role",
    "REVOKE": "REVOKE ROLE role FROM {USER | ROLE} name\nREVOKE privilege ON {object} name FROM ROLE role",
    "SET DEFAULT": "SET DEFAULT {ORGANIZATION | ROLE | DATABASE | SCHEMA | STORE | COMPUTE_POOL} name",
    "CAN I": "CAN I privilege [ON {object} name]",
    "GENERATE COLUMNS": "GENERATE COLUMNS FOR ENTITY name",
    "INVITE USER": "INVITE USER 'address'",
    "COPY FUNCTION_SOURCE": "COPY FUNCTION_SOURCE name TO 'file'      (here: \\download function_source name)",
    "COPY DESCRIPTOR_SOURCE": "COPY DESCRIPTOR_SOURCE name TO 'file'    (here: \\download descriptor_source name)",
    "BEGIN APPLICATION": "BEGIN APPLICATION name\n  statement; …\nEND APPLICATION",
    "EXPLAIN": "EXPLAIN [ANALYZE] statement",
    "SHOW": "SHOW {TABLES | ALL TABLES | DATABASES | setting}\nSHOW SCHEMAS IN DATABASE name\n"
    "SHOW RELATIONS IN SCHEMA database.schema",
    "SET": "SET setting = value",
    "RESET": "RESET setting",
    "SUMMARIZE": "SUMMARIZE {relation | SELECT …}",
    "PIVOT": "PIVOT relation ON column USING aggregate [GROUP BY column, …]",
    "UNPIVOT": "UNPIVOT relation ON column, … INTO NAME name VALUE name",
    "COPY": "COPY {relation | (SELECT …)} TO 'file' [(FORMAT {csv | json | parquet})]\nCOPY relation FROM 'file' [(…)]",
    "ATTACH": "ATTACH 'file' [AS name] [(READ_ONLY)]",
    "DETACH": "DETACH name",
    "BEGIN TRANSACTION": "BEGIN [TRANSACTION]",
    "COMMIT": "COMMIT",
    "ROLLBACK": "ROLLBACK",
    "CALL": "CALL function(argument, …)",
    "PRAGMA": "PRAGMA name[(argument)]",
    "ANALYZE": "ANALYZE",
    "VACUUM": "VACUUM",
    "CHECKPOINT": "CHECKPOINT [database]",
    "INSTALL": "INSTALL extension",
    "LOAD": "LOAD extension",
    "EXPORT DATABASE": "EXPORT DATABASE 'directory' [(FORMAT parquet)]",
    "IMPORT DATABASE": "IMPORT DATABASE 'directory'",
}


LOCAL_SYNTAX: Final = {
    "SELECT": "[WITH [RECURSIVE] name [(column, …)] AS (SELECT …), …]\n"
    "SELECT   [DISTINCT [ON (expression, …)]] {* | expression [AS name]}, …\n"
    "FROM     relation [alias] [TABLESAMPLE n%], …\n"
    "         [{INNER | LEFT | RIGHT | FULL | SEMI | ANTI | ASOF} JOIN relation {ON condition | USING (column, …)}]\n"
    "         [{CROSS | POSITIONAL} JOIN relation]\n"
    "WHERE    condition\n"
    "GROUP BY {ALL | expression, … | ROLLUP (…) | CUBE (…) | GROUPING SETS (…)}\n"
    "HAVING   condition on groups\n"
    "WINDOW   name AS ([PARTITION BY expression, …] [ORDER BY expression, …] [frame]), …\n"
    "QUALIFY  condition on window functions\n"
    "USING SAMPLE {n% | n ROWS}\n"
    "{UNION | INTERSECT | EXCEPT} [ALL] [BY NAME] SELECT …\n"
    "ORDER BY {ALL | expression, …} [ASC | DESC] [NULLS {FIRST | LAST}]\n"
    "LIMIT    {n | n%}\n"
    "OFFSET   n\n"
    "Only SELECT or FROM is required; FROM may come first. The order of evaluation is: FROM, WHERE, GROUP BY, HAVING, "
    "window functions, QUALIFY, SELECT, DISTINCT, ORDER BY, OFFSET and LIMIT.",
}
"""The syntax of the local service's engine, where it is more than that of the interface. The clauses are in order."""

NOT_LOCAL: Final = frozenset(
    {"CREATE ROLE", "CREATE METRICS INTEGRATION", "CREATE SECURITY INTEGRATION", "RESUME QUERY", "GRANT", "REVOKE"}
    | {"SET DEFAULT", "GENERATE COLUMNS", "INVITE USER", "COPY FUNCTION_SOURCE", "COPY DESCRIPTOR_SOURCE"}
)
"""Statements that the local service does not support."""


OF_SERVICE: Final = (
    *("LIST", "DESCRIBE", "USE", "TERMINATE QUERY", "TERMINATE SESSION", "CREATE API_TOKEN", "CREATE COMPUTE_POOL"),
    *("START COMPUTE_POOL", "STOP COMPUTE_POOL", "CREATE SECRET", "CREATE SCHEMA_REGISTRY", "TEST SCHEMA_REGISTRY"),
    "BEGIN APPLICATION",
)
"""Statements that the local service itself carries out when its engine is a server, which runs all others."""

DOCUMENTED: Final = {
    "postgresql": ("PostgreSQL", "https://www.postgresql.org/docs/current/sql-commands.html"),
    "spark": ("Spark", "https://spark.apache.org/docs/latest/sql-ref-syntax.html"),
}
"""The products of such engines, and where the syntax of their statements is documented."""


def supported_statements(*, local: bool) -> list[str]:
    """The statements that a service supports: the local one, or another one, which supports those of the interface."""
    if local:
        return [name for name in SYNTAX if name not in NOT_LOCAL]
    objects = {f"CREATE {name}" for name in CREATE_OBJECTS}
    return [
        name
        for name in SYNTAX
        if name in NOT_LOCAL or name in objects or (name in STATEMENTS and name not in LOCAL_STATEMENTS)
    ]


def syntax(words: str, *, local: bool = False) -> list[tuple[str, str]]:
    """The statements that begin with these words, in any case; very similar ones if none does.

    `local` gives the syntax of the local service's engine.
    """
    wanted = " ".join(words.upper().split())
    known = SYNTAX | LOCAL_SYNTAX if local else SYNTAX
    exact = [(name, text) for name, text in known.items() if name == wanted]
    found = exact or [(name, text) for name, text in known.items() if name.startswith(wanted)]
    if not found and " " in wanted:
        found = [(name, text) for name, text in known.items() if wanted.startswith(f"{name} ")]
    return found or [(name, known[name]) for name in nearest(wanted, known, 3, 0.75)]
