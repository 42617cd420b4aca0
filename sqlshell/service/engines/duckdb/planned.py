"""The relation that a statement would create, from DuckDB's plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.statement import words
from sqlshell.service.engines.engine import Plan, Relation
from sqlshell.service.engines.files.failures import failure
from sqlshell.service.engines.files.render import NAMES, field_name

_RELATIONS = frozenset({"LOGICAL_CREATE_TABLE", "LOGICAL_CREATE_VIEW", "LOGICAL_INSERT"})

LARGEST = 1 << 20
"""A plan with more than this many characters is left out."""


def planned(connection: duckdb.DuckDBPyConnection, sql: str) -> Plan:
    """Return the plan of an allowed CREATE or INSERT. Raises duckdb.Error."""
    plans = _plans(connection, sql)
    try:
        explained = connection.execute(f"EXPLAIN (FORMAT json)\n{sql}").fetchone()
    except duckdb.Error as error:
        raise failure(error, lines_before=1) from error
    tree = str(explained[1]) if explained is not None else ""
    view = bool(plans) and plans[0]["type"] == "LOGICAL_CREATE_VIEW"
    # The plan of a view contains its SELECT only in parsed form.
    reads = sorted(set(_reads(_plans(connection, _select(sql)) if view else plans)))
    return Plan(_columns(plans[0]) if plans else [], reads, tree if len(tree) <= LARGEST else "")


def _plans(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
    asked = "SELECT system.main.json_serialize_plan($1, optimize := false)"
    serialized = connection.execute(asked, [sql]).fetchone()
    plans: list[Any] = json.loads(serialized[0]).get("plans", []) if serialized else []
    return plans


def _select(sql: str) -> str:
    """The text behind the first AS of a CREATE VIEW that is in no parentheses."""
    depth = 0
    for word in words(sql):
        depth += (word.word == "(") - (word.word == ")")
        if word.word == "as" and not depth:
            return sql.encode()[word.start + 2 :].decode()
    return sql


def _reads(tree: Any) -> Iterator[Relation]:
    """The tables that a plan reads."""
    if isinstance(tree, dict):
        table = (tree.get("function_data") or {}).get("qualified_name") or {}
        if tree.get("type") == "LOGICAL_GET" and len(table.get("path", ())) == 3:
            database, schema, name = table["path"]
            yield database, schema, name
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from _reads(part)


def _columns(plan: Mapping[str, Any]) -> list[ColumnInfo]:
    """The columns of the relation that a plan creates or inserts into."""
    info = plan.get("table_info") or plan.get("info")
    if not isinstance(info, dict) or plan["type"] not in _RELATIONS:
        return []
    if plan["type"] == "LOGICAL_CREATE_VIEW":
        named = zip(info["aliases"] or info["names"], info["types"], strict=False)
        return [ColumnInfo(name, _named(kind), True) for name, kind in named]
    columns = info["columns"]["columns"]
    needed = {columns[item["index"]]["name"] for item in info["constraints"] if item["type"] == "NOT_NULL"}
    needed |= {name for item in info["constraints"] if item.get("is_primary_key") for name in item["columns"]}
    return [ColumnInfo(item["name"], _named(item["type"]), item["name"] not in needed) for item in columns]


def _named(kind: Mapping[str, Any]) -> str:
    """The interface's name of a type in a plan."""
    info = kind.get("type_info") or {}
    match kind["id"]:
        case "DECIMAL":
            return f"DECIMAL({info['width']},{info['scale']})"
        case "LIST" | "ARRAY" if "child_type" in info:
            return f"ARRAY<{_named(info['child_type'])}>"
        case "MAP" if "child_type" in info:
            key, value = (item["second"] for item in info["child_type"]["type_info"]["child_types"])
            return f"MAP<{_named(key)}, {_named(value)}>"
        case "STRUCT" if "child_types" in info:
            parts = (f"{field_name(item['first'])} {_named(item['second'])}" for item in info["child_types"])
            return f"STRUCT<{', '.join(parts)}>"
    return NAMES.get(kind["id"].lower(), "VARCHAR")
