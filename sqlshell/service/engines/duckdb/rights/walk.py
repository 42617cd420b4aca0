"""Walks the JSON of DuckDB's parse tree and of its bound plan, and refuses unknown nodes.

Both are trees of objects; `type`, `class`, `expression_class` and `info_type` say what an object is. An object of an
unknown kind is refused, whatever field contains it, so that a later version of DuckDB leads to refusals instead of
holes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator
from typing import Any, Final

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.rights.functions import (
    AGGREGATES,
    BY_NAME,
    BY_STRING,
    CLOCKS,
    HIDDEN_COLUMNS,
    IMPLIED,
    SEEDS,
    SEQUENCES,
    SESSION,
    WINDOWS,
    is_scalar,
    is_table,
    names,
)
from sqlshell.service.failure import Failure
from sqlshell.service.rights import Rights

Path = tuple[str, ...]
"""A qualified name: database, schema, name; fewer parts if DuckDB found no such object."""

READING: Final = frozenset(
    f"LOGICAL_{name}"
    for name in names("""
    AGGREGATE_AND_GROUP_BY ANY_JOIN ASOF_JOIN CHUNK_GET COMPARISON_JOIN CROSS_PRODUCT CTE_REF DELIM_GET DELIM_JOIN
    DEPENDENT_JOIN DISTINCT DUMMY_SCAN EMPTY_RESULT EXCEPT EXPRESSION_GET FILTER GET INTERSECT JOIN LIMIT
    MATERIALIZED_CTE ORDER_BY PIVOT POSITIONAL_JOIN PROJECTION RECURSIVE_CTE RESET SAMPLE SET TOP_N TRANSACTION UNION
    UNNEST WINDOW
    """)
)
"""Operators of a plan that change nothing outside the session."""

CHANGING: Final = frozenset({"LOGICAL_DELETE", "LOGICAL_INSERT", "LOGICAL_MERGE_INTO", "LOGICAL_UPDATE"})
"""Operators that change rows of the relation that `table_info` names."""

MAKING: Final = frozenset(
    f"LOGICAL_{name}"
    for name in names("""
    ALTER CREATE_INDEX CREATE_MACRO CREATE_SCHEMA CREATE_SEQUENCE CREATE_TABLE CREATE_TYPE CREATE_VIEW DROP VACUUM
    """)
)
"""Operators that change the object that `info` names."""

BODIES: Final = frozenset({"LOGICAL_CREATE_MACRO", "LOGICAL_CREATE_VIEW"})
"""Operators that store SQL that other users run."""

SETTABLE: Final = frozenset({"timezone", "schema", "search_path"})
"""Settings that a statement may set and show."""

_BOUND: Final = frozenset(
    f"BOUND_{name}"
    for name in names("""
    AGGREGATE BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT DEFAULT FUNCTION LAMBDA LAMBDA_REF OPERATOR
    PARAMETER REF UNNEST WINDOW
    """)
)
_PARSED: Final = names("""
    BETWEEN CASE CAST COLLATE COLUMN_REF COMPARISON CONJUNCTION CONSTANT DEFAULT FUNCTION LAMBDA LAMBDA_REF OPERATOR
    PARAMETER POSITIONAL_REFERENCE STAR SUBQUERY TYPE WINDOW
    """)
_INFOS: Final = frozenset({"ALTER_INFO", "DROP_INFO", "TRANSACTION_INFO", "VACUUM_INFO"})
_DROPPED: Final = frozenset(
    f"{name}_ENTRY" for name in names("INDEX MACRO SCHEMA SEQUENCE TABLE TABLE_MACRO TRIGGER TYPE VIEW")
)
_CHANGING_NODES: Final = frozenset({"DELETE_QUERY_NODE", "INSERT_QUERY_NODE", "UPDATE_QUERY_NODE"})
_TYPES: Final = (
    _CHANGING_NODES
    | _DROPPED
    | names("""
        SELECT_NODE SET_OPERATION_NODE RECURSIVE_CTE_NODE CTE_NODE
        BASE_TABLE EMPTY EXPRESSION_LIST JOIN PIVOT SHOW_REF SUBQUERY TABLE_FUNCTION
        DISTINCT_MODIFIER LIMIT_MODIFIER LIMIT_PERCENT_MODIFIER ORDER_MODIFIER ASCENDING DESCENDING ORDER_DEFAULT
        CONSTANT_PERCENTAGE CONSTANT_VALUE EXPRESSION_PERCENTAGE EXPRESSION_VALUE UNSET
        CHECK FOREIGN_KEY NOT_NULL UNIQUE SCALAR_MACRO TABLE_MACRO
        """)
) - {"TRIGGER_ENTRY"}
"""Values of `type` other than operators and expressions."""

_UNREAD: Final = {
    "LOGICAL_CHUNK_GET": ("collection",),
    **dict.fromkeys(_DROPPED | {"TRIGGER_ENTRY"}, ("dependencies", "tags")),
}
"""Fields that contain constants of the user, or names that were checked when the object was created."""

_NESTED: Final = frozenset({dict, list})
"""Types of values in a decoded tree that contain other values."""

_PLAIN: Final = frozenset({"type", "select_list", "from_table", "aggregate_handling"})
"""Fields of a SELECT that is one row of literals; all others are empty."""

_PATHS: Final = ("/", "\\", "*", "?", "[", "://")
_ENDINGS: Final = (
    ".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson", ".geojson", ".txt", ".duckdb", ".db", ".ddb", ".gz",
    ".zst", ".xlsx", ".arrow", ".arrows", ".vortex",
)  # fmt: skip


class EngineState:
    """State shared by all statements of an engine.

    Before restrict() everything is allowed that the role may do. `functions`, `views` and `types` are the names of
    DuckDB's own objects, `settings` those of its settings, `read_only` databases that no statement changes; all in
    lower case.
    """

    def __init__(self) -> None:
        self.strict = False
        self.functions: frozenset[str] = frozenset()
        self.views: frozenset[str] = frozenset()
        self.types: frozenset[str] = frozenset()
        self.settings: frozenset[str] = frozenset()
        self.read_only = {"deltastream", "system"}
        self.version = 0
        """How often objects have changed, or may have: incremented before and after each change."""
        self._changing = 0
        self._counting = threading.Lock()

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Mark that objects may change: checks from before and during the block become invalid."""
        with self._counting:
            self._changing += 1
            self.version += 1
        try:
            yield
        finally:
            with self._counting:
                self._changing -= 1
                self.version += 1

    @property
    def settled(self) -> int | None:
        """The version, None while objects change."""
        with self._counting:
            return None if self._changing else self.version

    def restrict(
        self, functions: Collection[str], settings: Collection[str], views: Collection[str], types: Collection[str]
    ) -> None:
        """From now on allow only what is known to be harmless."""
        self.strict = True
        self.functions = frozenset(functions)
        self.settings = frozenset(settings)
        self.views = frozenset(views)
        self.types = frozenset(types)


class StatementEffects:
    """The effects of a statement, from its parse tree and its plan."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self.required_rights = Rights.READ
        self.because = ""
        """The operator or function that requires `least`."""
        self.reads: set[Path] = set()
        self.writes: list[tuple[str, Path]] = []
        """Operators without LOGICAL_, and the object that each changes."""
        self.describes = 0
        """DESCRIBEs in the parse tree, and those below the results of such in the plan."""
        self.described = 0
        self.files: list[Path] = []
        """Relations of the parse tree whose names DuckDB may read as file names."""
        self.constant = False
        """Whether it is a SELECT of literals."""
        self.transaction = ""
        """BEGIN_TRANSACTION, COMMIT or ROLLBACK."""
        self.leaves_state = False
        """Whether it may leave state in its session."""
        self.reevaluated_default = ""
        """The function in the DEFAULT of an added column that returns another value when it is evaluated again."""

    def needs(self, least: Rights, because: str) -> None:
        if least > self.required_rights:
            self.required_rights, self.because = least, because

    def refuse(self, what: str, advice: str = "") -> None:
        """Refuse something that no role may do; in the embedded service, require the highest role instead."""
        if self._strict:
            raise refused(what, advice)
        self.needs(Rights.OBJECTS, what)


def walk(tree: Any, known: EngineState, effects: StatementEffects, place: str = "") -> None:
    """Add the effects of a parse tree or plan to `effects`. Raises Failure (42501) for anything that no role may do.

    `place` is its position: "", an "argument" that is evaluated while it is bound, or the "body" of a view or macro.
    """
    waiting: list[tuple[Any, str]] = [(tree, place)]
    named = _common(tree)
    # DuckDB binds the parsed expressions of a plan later: USING, DEFAULT, CHECK, generated columns, indexes, macros.
    planned = tree.__class__ is dict and "plans" in tree
    while waiting:
        node, place = waiting.pop()
        if node.__class__ is list:
            waiting += [(item, place) for item in node if item.__class__ in _NESTED]
            continue
        if "is_null" in node and node.keys() <= {"is_null", "type", "value"}:
            # A constant: its content comes from the user, and is neither a function nor a relation.
            continue
        within = _node(node, place, known, effects, named)
        if planned and known.strict and node.get("class") == "FUNCTION":
            _check_aggregate(node, effects)
        unread = _UNREAD.get(str(node.get("type")), ())
        waiting += [
            (value, within) for key, value in node.items() if value.__class__ in _NESTED and value and key not in unread
        ]


def is_constant(tree: Any) -> bool:
    """Whether a parsed SELECT is one row of literals, which needs no further checks."""
    node = tree["statements"][0]["node"]
    return (
        len(tree["statements"]) == 1
        and node["type"] == "SELECT_NODE"
        and node["from_table"]["type"] == "EMPTY"
        and all(item.get("class") == "CONSTANT" for item in node["select_list"])
        and not any(value for key, value in node.items() if key not in _PLAIN and key != "cte_map")
        and not node["cte_map"]["map"]
    )


def _common(tree: Any) -> frozenset[str]:
    """The names of common table expressions anywhere in a tree, in lower case."""
    names: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.__class__ is dict:
            common = node.get("cte_map")
            if isinstance(common, dict) and isinstance(common.get("map"), list):
                names.update(str(item["key"]).lower() for item in common["map"] if "key" in item)
            node = node.values()
        waiting += [item for item in node if item.__class__ in _NESTED and item]
    return frozenset(names)


def _node(
    node: dict[str, Any], place: str, known: EngineState, effects: StatementEffects, named: Collection[str]
) -> str:
    """Check one object; returns the place of the objects inside it."""
    if "expression_class" in node:
        _bound(node, effects)
        return place
    if "class" in node:
        return _parsed(node, place, known, effects)
    kind = node.get("type")
    if "info_type" in node:
        _info(node, effects)
    elif not isinstance(kind, str) or kind.endswith("_TYPE_INFO"):
        return place
    elif kind.startswith("LOGICAL_"):
        _operator(kind, node, known, effects)
        return "body" if kind in BODIES else place
    elif kind == "COPY_QUERY_NODE":
        effects.refuse("COPY")
    elif kind not in _TYPES:
        effects.refuse(kind)
    elif kind in _CHANGING_NODES:
        effects.needs(Rights.DATA, kind.partition("_")[0])
    elif kind == "TABLE_FUNCTION":
        _named(node["function"], effects, named)
        return "body" if place == "body" else "argument"
    elif kind == "BASE_TABLE":
        _table(_path(node), effects, named)
        # AT (… => value) is evaluated while it is bound, and so are the values of a PIVOT.
        return place or "argument"
    elif kind == "PIVOT":
        return place or "argument"
    elif kind == "SHOW_REF":
        _show(node, place, known, effects)
    return place


def _parsed(node: dict[str, Any], place: str, known: EngineState, effects: StatementEffects) -> str:
    if node["class"] not in _PARSED:
        effects.refuse(f"expression {node['class']}")
    if node["class"] in {"STAR", "TYPE"}:
        return place or "argument"
    if node["class"] not in {"FUNCTION", "WINDOW"}:
        return place
    name = str(node["function_name"]).lower()
    if name in SEQUENCES:
        if place and known.strict:
            where = "a view or macro" if place == "body" else "expressions that are evaluated before the statement runs"
            raise Failure(sqlstate.PRIVILEGE, f"{name} is not allowed in {where}")
        effects.needs(Rights.DATA, name)
    elif name not in known.functions:
        # A macro of the user, or an unknown function. The plan contains the definition of a macro.
        return place or "argument"
    elif not (is_scalar(name) or is_table(name) or name in AGGREGATES or name in WINDOWS):
        effects.refuse(f"function {name}")
    return place


def _check_aggregate(node: dict[str, Any], effects: StatementEffects) -> None:
    """Refuse a function that takes the name of an aggregate function, unless the name is a constant and allowed."""
    name = str(node["function_name"]).lower()
    if name not in BY_STRING:
        return
    arguments = node["arguments"]
    given = arguments[1].get("expression") or {} if len(arguments) > 1 else {}
    constant = (given.get("literal") or {}).get("text") if given.get("class") == "CONSTANT" else None
    if constant is None or any(item.get("name") for item in arguments):
        effects.refuse(f"{name} without the name of an aggregate function as a string literal")
    elif str(constant).lower() not in AGGREGATES:
        effects.refuse(f"aggregate {constant}")


def _bound(node: dict[str, Any], effects: StatementEffects) -> None:
    kind = node["expression_class"]
    if kind not in _BOUND:
        effects.refuse(f"expression {kind}")
    if kind not in {"BOUND_FUNCTION", "BOUND_AGGREGATE", "BOUND_WINDOW"}:
        if "qname" in node:
            effects.refuse(f"a function in {kind}")
        return
    if kind == "BOUND_WINDOW" and not (node.get("qname") or {}).get("path"):
        if node["type"] == "WINDOW_AGGREGATE":
            effects.refuse("a window of an unnamed aggregate")
        return
    name = _function(node, effects)
    effects.leaves_state = effects.leaves_state or name in SEEDS
    if kind == "BOUND_FUNCTION" and name in SEQUENCES:
        effects.needs(Rights.DATA, name)
    elif kind == "BOUND_FUNCTION" and not (is_scalar(name) or name in IMPLIED):
        effects.refuse(f"function {name}")
    elif kind == "BOUND_AGGREGATE" and name not in AGGREGATES:
        effects.refuse(f"aggregate {name}")
    elif kind == "BOUND_WINDOW" and not (name in AGGREGATES or name in WINDOWS):
        effects.refuse(f"window function {name}")


def _function(node: dict[str, Any], effects: StatementEffects) -> str:
    """The name of a function in a plan; the name of a user's function cannot occur in a plan."""
    path = [str(part) for part in node["qname"]["path"]]
    if len(path) > 1 and path[0] != "system":
        effects.refuse(f"function {'.'.join(path)}")
    return path[-1].lower()


def _operator(kind: str, node: dict[str, Any], known: EngineState, effects: StatementEffects) -> None:
    spoken = kind.removeprefix("LOGICAL_").replace("_", " ")
    if kind in CHANGING:
        effects.needs(Rights.DATA, spoken)
        effects.writes.append((spoken, _path(node["table_info"])))
    elif kind in MAKING:
        path = _path(node["info"])
        _own(kind, path, node["info"], known, effects)
        if kind == "LOGICAL_ALTER" and known.strict and node["info"].get("alter_table_type") == "ALTER_COLUMN_TYPE":
            _check_using(node["info"].get("expression"), known)
            if name := _not_lasting(node["info"].get("expression")):
                raise Failure(sqlstate.UNSUPPORTED, f"{name} is not supported in USING; use UPDATE")
        if kind == "LOGICAL_ALTER" and node["info"].get("alter_table_type") == "ADD_COLUMN":
            effects.reevaluated_default = _not_lasting(node["info"]["new_column"]["expression"], known.functions)
        if str(node["info"].get("type", "")).startswith("SET_"):
            spoken = "COMMENT"
        effects.needs(Rights.DATA if path[:1] == ("temp",) else Rights.OBJECTS, spoken)
        effects.leaves_state = effects.leaves_state or path[:1] == ("temp",) or len(path) < 2
        effects.writes.append((spoken, path))
    elif kind not in READING:
        effects.refuse({"COPY TO FILE": "COPY", "LOAD": "LOAD or INSTALL"}.get(spoken, spoken))
    elif kind == "LOGICAL_GET":
        _get(node, effects)
    elif kind == "LOGICAL_CHUNK_GET":
        effects.described += 1
    elif kind in {"LOGICAL_SET", "LOGICAL_RESET"}:
        _setting(node, effects)


def _own(kind: str, path: Path, info: dict[str, Any], known: EngineState, effects: StatementEffects) -> None:
    """Refuse an object that would replace an object of DuckDB in the service's own queries."""
    name = path[-1] if path else ""
    created, what, taken = {
        "LOGICAL_CREATE_MACRO": ("macro", "function", known.functions),
        "LOGICAL_CREATE_TYPE": ("type", "type", known.types),
        "LOGICAL_CREATE_TABLE": ("table", "view", known.views),
        "LOGICAL_CREATE_VIEW": ("view", "view", known.views),
        "LOGICAL_ALTER": ("relation", "view", known.views),
    }.get(kind, ("", "", frozenset[str]()))
    if kind == "LOGICAL_ALTER":
        name = str(info.get("new_table_name") or info.get("new_view_name") or "")
    if name.lower() in taken:
        effects.refuse(f"a {created} named like DuckDB's own {what} {name}")


def _check_using(expression: Any, known: EngineState) -> None:
    """Refuse USING with a name that depends on the current database. DuckDB writes the expression to its log unchanged,
    and replays the log without a current database, so it could not open the database again.
    """
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
            continue
        if not isinstance(node, dict):
            continue
        waiting += node.values()
        taken = {"TYPE": known.types, "FUNCTION": known.functions - SEQUENCES}.get(str(node.get("class")))
        path = _path(node)
        if taken is None or len(path) > 2 or (len(path) == 1 and path[0].lower() in taken):
            continue
        name = ".".join(path)
        if name in SEQUENCES:
            raise Failure(sqlstate.UNSUPPORTED, f"{name} is not supported in USING; use UPDATE")
        message = f"{name} must be qualified with database and schema in USING, such as local.main.{path[-1]}"
        raise Failure(sqlstate.UNSUPPORTED, message)


def _not_lasting(expression: Any, functions: Collection[str] = ()) -> str:
    """The first function of an expression that may return another value when DuckDB replays its log after a crash, ""
    if there is none. If `functions` are given, every function that is not among them counts, such as a macro.
    """
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        if not isinstance(node, dict):
            continue
        waiting += node.values()
        path = _path(node) if node.get("class") == "FUNCTION" else tuple(node.get("column_names") or ())
        name = path[-1].lower() if path else ""
        macro = bool(functions) and name not in functions
        if path and (name in SESSION or name in SEQUENCES or name in CLOCKS or macro):
            return ".".join(path)
    return ""


def _get(node: dict[str, Any], effects: StatementEffects) -> None:
    name = _function(node, effects)
    if name == "seq_scan":
        effects.reads.add(_path(node["function_data"]))
        return
    if not is_table(name):
        effects.refuse(f"function {name}")
    used = {node["names"][at] for item in node["column_indexes"] if (at := item["index"]) < len(node["names"])}
    if used & HIDDEN_COLUMNS.get(name, frozenset()):
        shown = ", ".join(column for column in node["names"] if column not in HIDDEN_COLUMNS[name])
        hidden = ", ".join(sorted(HIDDEN_COLUMNS[name] & used))
        effects.refuse(f"reading {hidden} of {name}", f"; select only columns of {shown}")


def _setting(node: dict[str, Any], effects: StatementEffects) -> None:
    name = str(node["name"]).lower()
    # The session's database and schema may be in another process.
    effects.leaves_state = effects.leaves_state or node["scope"] == "VARIABLE" or name != "schema"
    if node["scope"] == "VARIABLE":
        return
    if name not in SETTABLE:
        effects.refuse(f"setting {name}")


def _info(node: dict[str, Any], effects: StatementEffects) -> None:
    kind = node["info_type"]
    if kind not in _INFOS:
        effects.refuse(str(kind).removesuffix("_INFO").replace("_", " "))
    if kind == "DROP_INFO" and node["type"] not in _DROPPED:
        effects.refuse(f"DROP {str(node['type']).removesuffix('_ENTRY').replace('_', ' ')}")
    if kind == "TRANSACTION_INFO":
        effects.transaction = str(node["type"])


def _named(function: dict[str, Any], effects: StatementEffects, named: Collection[str]) -> None:
    """Note the relation that a table function takes by its name."""
    if str(function.get("function_name", "")).lower() not in BY_NAME:
        return
    for argument in function.get("arguments", ())[:1]:
        given = argument.get("expression") or {}
        text = (given.get("literal") or {}).get("text")
        _table(tuple(map(str, given.get("column_names", ()))) if text is None else (str(text),), effects, named)


def _table(path: Path, effects: StatementEffects, named: Collection[str]) -> None:
    text = ".".join(path).lower()
    if text in named:
        return
    if any(sign in text for sign in _PATHS) or text.endswith(_ENDINGS):
        effects.files.append(path)


def _show(node: dict[str, Any], place: str, known: EngineState, effects: StatementEffects) -> None:
    if place == "body" and known.strict:
        raise Failure(sqlstate.PRIVILEGE, "DESCRIBE, SHOW and SUMMARIZE are not allowed in a view or macro")
    if node["show_type"] == "DESCRIBE":
        effects.describes += 1
        return
    name = str(node.get("table_name", "")).lower()
    if node["show_type"] == "SHOW" and name in known.settings:
        if name not in SETTABLE:
            effects.refuse(f"setting {name}")
        effects.describes += 1


def _path(node: dict[str, Any]) -> Path:
    return tuple(str(part) for part in (node.get("qualified_name") or {}).get("path", ()))


def refused(what: str, advice: str = "") -> Failure:
    return Failure(sqlstate.PRIVILEGE, f"{what} is not allowed on this service{advice}")
