"""The grammar for completion: what may follow which words, and statements with rules of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlshell.sql import keywords

Wanted = tuple[tuple[str, ...], tuple[str, ...], str]
"""Kinds of names, keywords, and the context of the kinds."""

OBJECTS: Final = {
    "DATABASE": "database",
    "SCHEMA": "schema",
    "STORE": "store",
    "ROLE": "role",
    "ORGANIZATION": "organization",
    "COMPUTE_POOL": "pool",
    "STREAM": "relation",
    "CHANGELOG": "relation",
    "TABLE": "relation:table",
    "VIEW": "relation:view",
    "MATERIALIZED VIEW": "relation:materialized",
    "RELATION": "relation",
    "ENTITY": "entity",
    "FUNCTION": "macro",
    "FUNCTION_SOURCE": "source",
    "DESCRIPTOR_SOURCE": "source",
    "QUERY": "query",
    "SEQUENCE": "sequence",
    "INDEX": "index",
    "TYPE": "user type",
    "MACRO": "macro",
}
"""The kinds of names after the word for an object."""

RELATION_AFTER: Final = frozenset({"FROM", "JOIN", "INTO", "UPDATE", "TABLE", "OVERWRITE"})
OPERAND_AFTER: Final = frozenset(
    keywords.words(
        "SELECT DISTINCT WHERE ON HAVING AND OR NOT WHEN THEN ELSE CASE BETWEEN IN LIKE ILIKE SET RETURNING BY QUALIFY"
        " ALL IS SIMILAR GLOB"
    )
)
JOINS: Final = ("JOIN", "LEFT JOIN", "INNER JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN")
OPERATORS: Final = ("AND", "OR", "IN", "IS NULL", "IS NOT NULL", "NOT", "BETWEEN", "LIKE", "ILIKE")
UNIONS: Final = ("UNION ALL", "UNION", "EXCEPT", "INTERSECT")
TAIL: Final = ("ORDER BY", "LIMIT", "OFFSET", *UNIONS)
AFTER_CLAUSE: Final = {
    "SELECT": ("FROM", "AS", *OPERATORS, "OVER", "FILTER", "WHERE", "GROUP BY", "HAVING", *TAIL),
    "FROM": ("WHERE", *JOINS, "AS", "GROUP BY", "HAVING", *TAIL, "USING SAMPLE"),
    "JOIN": ("ON", "USING", "AS"),
    "ON": (*OPERATORS, *JOINS, "WHERE", "GROUP BY", "HAVING", *TAIL),
    "USING": (*JOINS, "WHERE", "GROUP BY", "HAVING", *TAIL),
    "WHERE": (*OPERATORS, "GROUP BY", "HAVING", "QUALIFY", *TAIL),
    "GROUP": ("HAVING", "QUALIFY", *TAIL),
    "HAVING": (*OPERATORS, "QUALIFY", *TAIL),
    "QUALIFY": (*OPERATORS, *TAIL),
    "ORDER": ("ASC", "DESC", "NULLS FIRST", "NULLS LAST", "LIMIT", "OFFSET"),
    "PARTITION": ("ORDER BY", "ROWS BETWEEN", "RANGE BETWEEN"),
    "LIMIT": ("OFFSET",),
    "OFFSET": ("LIMIT",),
    "INTO": ("VALUES", "SELECT", "BY NAME", "DEFAULT VALUES", "WITH"),
    "VALUES": ("ON CONFLICT", "RETURNING"),
    "UPDATE": ("SET", "AS"),
    "SET": ("WHERE", "FROM", "RETURNING", *OPERATORS),
    "DELETE": ("WHERE", "USING", "RETURNING"),
    "RETURNING": ("AS",),
    "PIVOT": ("ON", "USING", "GROUP BY"),
    "MERGE": ("USING", "ON"),
    "WITH": ("SELECT", "INSERT INTO", "UPDATE", "DELETE FROM"),
    "CASE": ("WHEN", "THEN", "ELSE", "END", *OPERATORS),
    "": (*OPERATORS, "AS", "ORDER BY"),
}
"""What may follow an operand or a relation, by clause."""

WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("GROUP", "ORDER", "PARTITION"), ("BY",)),
    **dict.fromkeys(("LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL"), ("JOIN", "OUTER JOIN")),
    **dict.fromkeys(("ASOF", "SEMI", "ANTI", "OUTER", "POSITIONAL"), ("JOIN", "OUTER JOIN")),
    "WITH": ("RECURSIVE",),
    "IS": ("NULL", "NOT NULL", "DISTINCT FROM"),
    **dict.fromkeys(("INTERVAL", "LATERAL"), ()),
    "LIMIT": ("ALL",),
    "OFFSET": (),
    "FETCH": ("FIRST", "NEXT"),
    "FOR": ("UPDATE", "SHARE"),
    "TABLESAMPLE": ("BERNOULLI", "SYSTEM", "RESERVOIR"),
    "CONFLICT": ("DO NOTHING", "DO UPDATE SET"),
    "DO": ("NOTHING", "UPDATE SET"),
    "MATCHED": ("THEN", "AND", "BY SOURCE"),
}
"""What alone may follow a word, in every clause."""
MERGED: Final = {
    "WHEN": ("MATCHED THEN", "NOT MATCHED THEN"),
    "THEN": ("UPDATE SET", "DELETE", "INSERT", "DO NOTHING"),
}
"""The same for MERGE."""

PARTS_OF_TIME: Final = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "EPOCH", "DOW", "DOY")
EXPLAINED: Final = ("ANALYZE", "VERBOSE", "COSTS", "BUFFERS", "SETTINGS", "WAL", "TIMING", "SUMMARY", "FORMAT")
"""The options of EXPLAIN (…)."""
PLAN_FORMATS: Final = ("TEXT", "JSON", "XML", "YAML")
GRANTED: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "USAGE", "EXECUTE", "ALL PRIVILEGES", "ROLE")
OPERANDS: Final = ("CASE", "NOT", "NULL", "TRUE", "FALSE", "EXISTS", "CAST", "INTERVAL")
QUERY: Final = ("SELECT", "WITH", "VALUES", "FROM")
WINDOW: Final = ("PARTITION BY", "ORDER BY", "ROWS BETWEEN", "RANGE BETWEEN")
QUERIES: Final = frozenset(
    {*QUERY, "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "TABLE", "COPY", "LOCK", "PIVOT", "UNPIVOT", "PREPARE"}
)
"""The words of which a statement has at least one, if clauses may follow its first word."""
FILE_STATEMENTS: Final = frozenset({"COPY", "ATTACH", "IMPORT", "EXPORT"})
FILE_FUNCTIONS: Final = frozenset({"glob", "sniff_csv"})
"""Functions whose first argument is a file name, in addition to read_… and parquet_…"""
COMPLETE_TYPES: Final = ("column", "function", "relation")


def statement_words(words: Sequence[str]) -> Wanted | None:
    """Statements with a grammar of their own, by the words before the cursor."""
    first, count = words[0], len(words)
    second = words[1] if count > 1 else ""
    last = words[-1]
    match first:
        case "USE":
            return ((), keywords.CONTEXT_PARTS, "") if count == 1 else _objects(second, count == 2)
        case "LIST":
            if count == 1:
                return (), keywords.LIST_OBJECTS, ""
            if last == "IN":
                return (), ("STORE", "DATABASE", "SCHEMA", "ORGANIZATION"), ""
            if "WHERE" in words:
                return (), (), ""
            return _objects(last, True) if words[-2] == "IN" else ((), ("IN", "WHERE"), "")
        case "DESCRIBE" | "DESC":
            if count == 1:
                return ("relation",), (*keywords.DESCRIBE_OBJECTS, "CREATE", "INSERT INTO"), ""
            if second in {"CREATE", "INSERT"}:
                return statement_words(words[1:])
            if second in keywords.DESCRIBE_PARTS and count == 2:
                return (OBJECTS[second],), keywords.DESCRIBE_PARTS[second], ""
            if second == "ENTITY" and count > 2:
                return _inside(words, "STORE", ())
            return _objects(second, count == 2 or last in {"COLUMNS", "HISTORY", "STATE", "EVENTS", "METRICS"})
        case "CREATE" if count == 1 or (count == 3 and words[1:] == ["OR", "REPLACE"]):
            return (), ("OR REPLACE", *keywords.CREATE_OBJECTS, "VIEW", "TEMP TABLE"), ""
        case "CREATE" if second == "ENTITY" and count > 2 and last != "WITH":
            return _inside(words, "STORE", ("WITH",))
        case "CREATE" if second == "SCHEMA" and count > 2:
            return _inside(words, "DATABASE", ())
        case "DROP" | "ALTER":
            if count == 1:
                return (), (*keywords.DROP_OBJECTS, "VIEW"), ""
            if first == "ALTER" and second == "RELATION" and count > 2:
                return (), {"SET": ("DESCRIPTION",)}.get(last, ("SET",)), ""
            if second == "ENTITY" and count > 2:
                return _inside(words, "STORE", ("CASCADE",))
            if last == "EXISTS":
                return _objects(words[-3], True)
            if first == "ALTER" and second == "TABLE" and count > 2:
                return _altered(words)
            if count == 2 or (second == "MATERIALIZED" and count == 3):
                kinds, _, within = _objects(second, True)
                return kinds, ("IF EXISTS",), within
            return (), ("CASCADE", "RESTRICT") if first == "DROP" else ("RENAME TO",), ""
        case "PRINT":
            if count < 3:
                return ((), ("ENTITY",), "") if count == 1 else (("entity", "relation"), (), "")
            return _inside(words, "STORE", ("WITH", "FROM BEGINNING", "LIMIT")) if last != "WITH" else ((), (), "")
        case "CAN" if count < 3:
            return (), ("I",) if count == 1 else keywords.PRIVILEGES, ""
        case "TEST":
            return ((), ("STORE",), "") if count == 1 else _objects(second, count == 2)
        case "UPDATE" if count == 1:
            return ("relation",), keywords.UPDATE_OBJECTS, ""
        case "UPDATE" if second in keywords.UPDATE_OBJECTS and "SET" not in words and last != "WITH":
            if count == 2:
                return _objects(second, True)
            return _inside(words, "STORE", ("WITH",)) if second == "ENTITY" else ((), ("WITH", "SET"), "")
        case "TERMINATE" | "RESTART" | "RESUME":
            return ((), ("QUERY",), "") if count == 1 else (("query",), (), "")
        case "START" | "STOP":
            return ((), ("COMPUTE_POOL",), "") if count == 1 else (("pool",), (), "")
        case "TRUNCATE" | "SUMMARIZE" if count == 1:
            return ("relation",), ("TABLE", "RELATION") if first == "TRUNCATE" else ("SELECT",), ""
        case "TRUNCATE" | "PIVOT" | "UNPIVOT" if count == 1 or list(words[1:]) in (["TABLE"], ["RELATION"]):
            return ("relation",), (), ""
        case "VACUUM" | "ANALYZE" if count == 1:
            return ("relation",), ("ANALYZE",) if first == "VACUUM" else (), ""
        case "COMMENT":
            return _comment(words)
        case "CALL" | "PRAGMA" if count == 1:
            return ("function",), (), ""
        case "INSTALL" | "LOAD" | "EXECUTE" | "DEALLOCATE" | "COMMIT" | "ROLLBACK" | "ABORT":
            return (), (), ""
        case "ATTACH" | "IMPORT" | "EXPORT":
            return (), {"ATTACH": ("AS",)}.get(first, ("DATABASE",)) if last != "AS" else (), ""
        case "DETACH" | "CHECKPOINT" if count == 1:
            return ("database",), (), ""
        case "INSERT" if count == 1:
            return (), ("INTO",), ""
        case "INSERT" if second == "INTO" and count == 2:
            return ("relation",), ("ENTITY",), ""
        case "INSERT" if list(words[1:3]) == ["INTO", "ENTITY"] and "VALUE" not in words:
            return (("entity",), (), "") if count == 3 else _inside(words, "STORE", ("VALUE",))
        case "DELETE" if count == 1:
            return (), ("FROM",), ""
        case "EXPLAIN":
            # The options are words, or stand in brackets.
            begun = next((at for at in range(1, count) if words[at] not in {"ANALYZE", "VERBOSE", ""}), count)
            if begun < count:
                return statement_words(words[begun:])
            options = ("ANALYZE",) if count == 1 else ()
            return (), (*options, *QUERY, "INSERT INTO", "UPDATE", "DELETE FROM"), ""
        case "SET" | "RESET":
            if count == 1:
                return ("setting",), (), ""
            if second in {"SCHEMA", "SEARCH_PATH"} and count > 2:
                return ("schema",), (), ""
            return (), ("=", "TO") if count == 2 and first == "SET" else (), ""
        case "REFRESH":
            if count < 3:
                return (), ("MATERIALIZED VIEW",) if count == 1 else ("VIEW",), ""
            behind = ("CONCURRENTLY",) if count == 3 else ()
            return ((OBJECTS["MATERIALIZED VIEW"],), behind, "") if last in {"VIEW", "CONCURRENTLY"} else ((), (), "")
        case "SHOW" if count == 1:
            return ("setting",), ("TABLES", "DATABASES", "ALL TABLES", *keywords.SHOW_OBJECTS), ""
        case "SHOW" if second in keywords.SHOW_OBJECTS:
            return statement_words(["LIST", *words[1:]])
        case "COPY" if count == 1:
            return ("relation",), ("FUNCTION_SOURCE", "DESCRIPTOR_SOURCE"), ""
        case "COPY":
            return (), () if "TO" in words or "FROM" in words else ("TO", "FROM"), ""
        case "GRANT" | "REVOKE":
            return _granted(words)
        case "LOCK" if count == 1:
            return ("relation",), ("TABLE",), ""
        case "BEGIN" if count == 1:
            return (), ("APPLICATION", "TRANSACTION"), ""
        case "END" if count == 1:
            return (), ("APPLICATION",), ""
    return None


def _altered(words: Sequence[str]) -> Wanted:
    """ALTER TABLE name …"""
    match list(words[-2:]):
        case ["DROP" | "ALTER" | "RENAME", "COLUMN"]:
            return ("columnof",), (), ""
        case [_, "ADD"] | [_, "DROP"]:
            return (), ("COLUMN",), ""
        case [_, "ALTER"]:
            return ("columnof",), ("COLUMN",), ""
        case [_, "RENAME"]:
            return (), ("TO", "COLUMN"), ""
        case [_, "TYPE"]:
            return ("type",), (), ""
        case [_, "SET"]:
            return (), ("DEFAULT", "NOT NULL", "DATA TYPE"), ""
        case ["RENAME" | "ADD", _] | [_, "TO" | "DEFAULT"]:
            return (), (), ""
    if "RENAME" in words[2:]:
        return (), ("TO",), ""
    if "ADD" in words[2:]:
        return (("type",), (), "") if words[-2] == "COLUMN" else ((), ("NOT NULL", "DEFAULT", "UNIQUE", "CHECK"), "")
    if "ALTER" in words[2:]:
        return (), ("TYPE", "SET DEFAULT", "DROP DEFAULT", "SET NOT NULL", "DROP NOT NULL"), ""
    if "DROP" in words[2:]:
        return (), ("CASCADE", "RESTRICT"), ""
    return (), ("ADD COLUMN", "DROP COLUMN", "RENAME TO", "RENAME COLUMN", "ALTER COLUMN"), ""


def _granted(words: Sequence[str]) -> Wanted:
    """GRANT privilege ON object TO role, and REVOKE … FROM."""
    toward = "TO" if words[0] == "GRANT" else "FROM"
    match words[-1]:
        case "GRANT" | "REVOKE":
            return (), GRANTED, ""
        case "ON":
            return ("relation",), ("SCHEMA", "DATABASE", "TABLE", "ALL TABLES IN SCHEMA"), ""
        case "ROLE" | "USER" | "TO" | "FROM":
            return ("role",), ("ROLE", "USER") if words[-1] == toward else (), ""
        case "SCHEMA" | "DATABASE" | "TABLE" | "STORE" | "STREAM":
            return (OBJECTS[words[-1]],), (), ""
    return (), (toward,) if "ON" in words or "ROLE" in words else ("ON",), ""


def _comment(words: Sequence[str]) -> Wanted:
    """COMMENT ON object name IS '…'"""
    if len(words) < 3:
        return (), ("ON",) if len(words) == 1 else ("TABLE", "VIEW", "COLUMN", "INDEX", "SEQUENCE", "TYPE", "MACRO"), ""
    if len(words) == 3:
        kinds = (OBJECTS.get(words[2], ""),) if words[2] != "COLUMN" else ("relation", "columnof")
        return kinds, (), ""
    return (), ("IS",) if words[-1] != "IS" else ("NULL",), ""


def _objects(word: str, wanted: bool) -> Wanted:
    word = {"MATERIALIZED": "MATERIALIZED VIEW"}.get(word, word)
    return (((OBJECTS[word],) if word in OBJECTS else ()) if wanted else (), (), "")


def _inside(words: Sequence[str], what: str, behind: tuple[str, ...]) -> Wanted:
    """After a name: the store or database that contains it, and then `behind`."""
    if words[-1] == "IN":
        return (), (what,), ""
    if words[-1] == what and words[-2] == "IN":
        return (OBJECTS[what],), (), ""
    return (), behind if what in words[3:] else (f"IN {what}", *behind), ""
