"""The grammar that completion goes by: what may follow which words, and the statements that have rules of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlshell.sql import words

Wanted = tuple[tuple[str, ...], tuple[str, ...], str]
"""Kinds of names, keywords, and what else the kinds depend on."""

OBJECTS: Final = {
    "DATABASE": "database",
    "SCHEMA": "schema",
    "STORE": "store",
    "ROLE": "role",
    "ORGANIZATION": "organization",
    "COMPUTE_POOL": "pool",
    "STREAM": "relation",
    "CHANGELOG": "relation",
    "TABLE": "relation",
    "VIEW": "relation",
    "MATERIALIZED VIEW": "relation",
    "RELATION": "relation",
    "ENTITY": "entity",
    "FUNCTION": "function",
    "FUNCTION_SOURCE": "source",
    "DESCRIPTOR_SOURCE": "source",
    "QUERY": "query",
}
"""The kinds of names behind an object's word."""

RELATION_AFTER: Final = frozenset({"FROM", "JOIN", "INTO", "UPDATE", "TABLE", "OVERWRITE"})
OPERAND_AFTER: Final = frozenset(
    [
        "SELECT",
        "DISTINCT",
        "WHERE",
        "ON",
        "HAVING",
        "AND",
        "OR",
        "NOT",
        "WHEN",
        "THEN",
        "ELSE",
        "CASE",
        "BETWEEN",
        "IN",
        "LIKE",
        "ILIKE",
        "SET",
        "RETURNING",
        "BY",
        "QUALIFY",
        "ALL",
        "LIMIT",
        "OFFSET",
        "IS",
        "SIMILAR",
        "GLOB",
    ]
)
AFTER_RELATION: Final = (
    "WHERE", "JOIN", "LEFT JOIN", "INNER JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "ON", "USING", "GROUP BY",
    "ORDER BY", "LIMIT", "AS", "HAVING", "UNION ALL", "UNION", "SET", "VALUES", "SELECT",
)  # fmt: skip
AFTER_OPERAND: Final = (
    "FROM", "AS", "AND", "OR", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "ASC", "DESC", "IN", "IS NULL", "IS NOT NULL",
    "BETWEEN", "LIKE", "ILIKE", "NOT", "OVER", "FILTER", "THEN", "WHEN", "ELSE", "END", "HAVING", "UNION ALL", "UNION",
    "OFFSET", "NULLS LAST", "JOIN", "ON", "USING",
)  # fmt: skip
OPERANDS: Final = ("CASE", "NOT", "NULL", "TRUE", "FALSE", "DISTINCT", "EXISTS", "CAST", "INTERVAL")
QUERY: Final = ("SELECT", "WITH", "VALUES", "FROM")
WINDOW: Final = ("PARTITION BY", "ORDER BY", "ROWS BETWEEN", "RANGE BETWEEN")
COMPLETE_TYPES: Final = ("column", "function", "relation")


def statement_words(said: Sequence[str]) -> Wanted | None:
    """Statements that have a grammar of their own, by the words before the cursor."""
    first, count = said[0], len(said)
    second = said[1] if count > 1 else ""
    last = said[-1]
    match first:
        case "USE":
            return ((), words.CONTEXT_PARTS, "") if count == 1 else _objects(second, count == 2, 2)
        case "LIST":
            if count == 1:
                return (), words.LIST_OBJECTS, ""
            if last == "IN":
                return (), ("STORE", "DATABASE", "SCHEMA", "ORGANIZATION"), ""
            return _objects(last, True, 1) if said[-2] == "IN" else ((), ("IN", "LIKE"), "")
        case "DESCRIBE" | "DESC":
            if count == 1:
                return ("relation",), words.DESCRIBE_OBJECTS, ""
            if second == "QUERY" and count == 2:
                return ("query",), words.DESCRIBE_PARTS["QUERY"], ""
            return _objects(second, count == 2 or last in {"COLUMNS", "HISTORY", "STATE", "EVENTS", "METRICS"}, 2)
        case "CREATE" if count == 1 or (count == 3 and said[1:] == ["OR", "REPLACE"]):
            return (), ("OR REPLACE", *words.CREATE_OBJECTS, "VIEW", "TEMP TABLE"), ""
        case "DROP" | "ALTER":
            if count == 1:
                return (), (*words.DROP_OBJECTS, "VIEW"), ""
            if last == "EXISTS":
                return _objects(said[-3], True, 1)
            if count == 2 or second == "MATERIALIZED":
                kinds, _, within = _objects(second, True, 2)
                return kinds, ("IF EXISTS",), within
            return (), ("CASCADE", "RESTRICT") if first == "DROP" else ("ADD COLUMN", "DROP COLUMN", "RENAME TO"), ""
        case "PRINT":
            return ((), ("ENTITY",), "") if count == 1 else _print(count)
        case "TERMINATE" | "RESTART" | "RESUME":
            return ((), ("QUERY",), "") if count == 1 else (("query",), (), "")
        case "START" | "STOP":
            return ((), ("COMPUTE_POOL",), "") if count == 1 else (("pool",), (), "")
        case "INSERT" if count == 1:
            return (), ("INTO",), ""
        case "DELETE" if count == 1:
            return (), ("FROM",), ""
        case "EXPLAIN" if count == 1:
            return (), ("ANALYZE", *QUERY, "INSERT INTO"), ""
        case "SET" | "RESET":
            return (("setting",), (), "") if count == 1 else ((), ("=", "TO"), "")
        case "SHOW" if count == 1:
            return ("setting",), ("TABLES", "DATABASES", "ALL TABLES"), ""
        case "COPY" if count == 1:
            return ("relation",), ("FUNCTION_SOURCE", "DESCRIPTOR_SOURCE"), ""
        case "GRANT" | "REVOKE":
            return ("role",), ("ROLE", "ON", "TO", "FROM", "USER"), ""
        case "BEGIN" if count == 1:
            return (), ("APPLICATION", "TRANSACTION"), ""
        case "END" if count == 1:
            return (), ("APPLICATION",), ""
    return None


def _objects(word: str, wanted: bool, _: int) -> Wanted:
    word = {"MATERIALIZED": "MATERIALIZED VIEW"}.get(word, word)
    return (((OBJECTS[word],) if word in OBJECTS else ()) if wanted else (), (), "")


def _print(count: int) -> Wanted:
    return (("entity", "relation"), (), "") if count == 2 else ((), ("FROM BEGINNING", "LIMIT"), "")
