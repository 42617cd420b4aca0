"""Which parts of its context a statement needs to resolve the names in it."""

from __future__ import annotations

import re

from sqlshell.service.dialect import (
    Alter,
    Application,
    Create,
    CreateAs,
    Describe,
    DescribeStatement,
    DialectStatement,
    Drop,
    EngineObjects,
    InsertEntity,
    List,
    Load,
    Names,
    Print,
    Truncate,
    Update,
    Use,
)

PARTS = ("database", "schema", "store", "compute_pool")
RELATIONS = frozenset({"relation", "table", "view", "stream", "changelog", "materialized_view"})
_SCHEMAS = re.compile(r"\s*+(?:create|drop)\s++schema(?!\w)", re.I)


def required_parts(asked: DialectStatement | None, sql: str) -> tuple[str, ...]:
    """The parts of PARTS that a statement needs: all for the engine's statements, few for statements about objects.

    With each request, clients send names in the context that their first statements have yet to create.
    """
    match asked:
        case None if _SCHEMAS.match(sql):
            return ("database",)
        case None | Application() | CreateAs() | DescribeStatement() | Load():
            return PARTS
        case Print(store=""):
            return PARTS
        case Print():
            return ("compute_pool",)
        case List(what="schemas", place=""):
            return ("database",)
        case List(what="entities", store="", place="" | "entity"):
            return ("store",)
        case List(what="relations" | "tables" | "functions", place="" | "schema"):
            return _behind(asked.names)
        case Use(kind="schema") | Describe(kind="schema") | Create(kind="schema") | Drop(kind="schema"):
            return ("database",) if len(asked.names) == 1 else ()
        case Describe(kind="entity", store="") | InsertEntity(store=""):
            return ("database", "schema", "store")
        case Create(kind="entity", store="") | Drop(kind="entity", store="") | Update(kind="entity", store=""):
            return ("store",)
        case EngineObjects(kind="databases" | "connections" | "roles" | "schemas"):
            return ()
        case EngineObjects(names=()):
            return _behind(asked.place)
        case Truncate() | Alter() | EngineObjects():
            return _behind(asked.names[:-1])
        case Describe() | Create() | Drop() if asked.kind in RELATIONS:
            return _behind(asked.names[:-1])
    return ()


def _behind(before: Names) -> tuple[str, ...]:
    """The parts that resolve a relation with these names before its own."""
    return ("database", "schema")[: max(0, 2 - len(before))]
