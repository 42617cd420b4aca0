"""Short syntax of each statement, for `\\h`: the interface's statements, and those of the local service's engine.

`[x]` is optional, `{a | b}` is one of them, `…` is a continuation; words in lower case are placeholders.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Final

from sqlshell.sql.keywords import CREATE_OBJECTS, LOCAL_STATEMENTS, STATEMENTS
from sqlshell.sql.object_kinds import OBJECT_KINDS, PLURALS, names
from sqlshell.text import nearest

_LISTED: Final = {
    "SCHEMAS": "SCHEMAS [IN DATABASE name]",
    "RELATIONS": "{RELATIONS | TABLES} [IN {DATABASE | SCHEMA} name]",
    "ENTITIES": "ENTITIES [IN STORE name]",
    "QUERIES": "QUERIES [WITH ('all')]",
}
"""What LIST takes with some plurals."""
_NOT_DROPPED: Final = ("ROLE", "USER", "METRICS INTEGRATION", "SECURITY INTEGRATION")


def _one_of(verb: str, words: Iterable[str], rest: str) -> str:
    """A verb with one of some words, on lines of a terminal's width."""
    alternatives = " | ".join(word.replace(" ", "\u00a0") for word in words)
    text = textwrap.fill(f"{verb} {{{alternatives}}} {rest}", 100, subsequent_indent="  ", break_long_words=False)
    return text.replace("\u00a0", " ")


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
    **{f"CREATE {kind.name}": kind.create for kind in OBJECT_KINDS if kind.create},
    "DROP": _one_of(
        *("DROP", [name for name in (*names("drop"), "VIEW") if name not in {"ENTITY", *_NOT_DROPPED}]),
        "[IF EXISTS] name [CASCADE]",
    )
    + "\nDROP ENTITY name [IN STORE store]\n"
    + f"DROP {{{' | '.join(_NOT_DROPPED)}}} name      (not supported by the local service)",
    "ALTER": "ALTER TABLE name {ADD COLUMN column type | DROP COLUMN column | RENAME TO name}\n"
    "ALTER RELATION name SET description = '…'\n"
    "ALTER {COMPUTE_POOL | STORE | USER | …} name …      (not supported by the local service)",
    "LIST": _one_of("LIST", (_LISTED.get(name, name) for name in (*PLURALS, "SESSIONS")), "[WHERE condition]") + "\n"
    "LIST ENGINE {RELATIONS | INDEXES | FUNCTIONS | TYPES | DATABASES | SCHEMAS | ROLES | PRIVILEGES | …}\n"
    "  [IN SCHEMA name] [WITH DETAILS]      (on PostgreSQL and Spark)",
    "DESCRIBE": "DESCRIBE RELATION [COLUMNS] name\nDESCRIBE ENTITY name [IN STORE store]\n"
    + _one_of(
        "DESCRIBE",
        [name for name in (*names("describe"), "TABLE") if name not in {"ENTITY", "QUERY", "RELATION"}],
        "name",
    )
    + "\n"
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
