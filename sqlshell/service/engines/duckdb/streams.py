"""Streams: what statements do with them, and the queries that the engine evaluates for new rows only.

A stream only grows. DuckDB's own parser parses a SELECT on one: filters and projections are supported; operations that
need state over unbounded input are refused.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import duckdb

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.rows import fetch_rows
from sqlshell.service.engines.duckdb.statement import Word, words
from sqlshell.service.engines.engine import NO_CONTINUOUS_QUERIES, Relation, StreamQuery
from sqlshell.service.engines.files.failures import failure
from sqlshell.service.engines.files.render import row, type_name
from sqlshell.service.error_places import without_place
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import always_quoted, qualified
from sqlshell.text import format_count

_READS: Final = frozenset(
    ("copy", "from", "join", "pivot", "pivot_wider", "summarize", "table", "unpivot", "using")
)  # fmt: skip
_OBJECTS: Final = frozenset(("table", "view"))
_FILLERS: Final = frozenset(("exists", "if", "not"))
_DESCRIBES: Final = frozenset(("desc", "describe", "show"))
_UNTOLD: Final = frozenset(
    ("delete", "export", "macro", "merge", "pivot", "pivot_wider", "truncate", "unnest", "update", "view")
)
"""Words of statements whose tables DuckDB does not tell, or that read all that are there."""

_NOT_READ: Final = frozenset(("insert", "make", "shadow"))

Resolve = Callable[[Sequence[str]], Relation]


class StreamUse:
    """What a statement of a session does with `streams`.

    `resolve` completes the name of a relation. `bound` says that DuckDB may bind the statement: an error would fail an
    open transaction.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        streams: Collection[Relation],
        resolve: Resolve,
        sql: str,
        *,
        bound: bool,
    ) -> None:
        self._connection = connection
        self._streams = {tuple(part.lower() for part in stream): stream for stream in streams}
        self._resolve = resolve
        self._sql = sql
        self._bound = bound
        found = words(sql)
        self._plain = [item.word for item in found]
        self._uses = list(self._found(found))

    def check(self) -> None:
        """Raises Failure (0A000) for a statement that changes a stream in another way than by INSERT, or that would
        read a stream to its end, which it does not have.
        """
        plain = self._plain
        if plain[0] == "explain" and "analyze" not in plain[:3]:
            return
        replaces = "conflict" in plain or ("insert" in plain and "or" in plain[plain.index("insert") :][1:2])
        for stream, how in self._uses:
            if how == "drop":
                name = ".".join(stream)
                raise Failure(sqlstate.UNSUPPORTED, f"{name} is a stream; use DROP STREAM {name}")
            if how in {"change", "make"} or (how == "insert" and replaces):
                without = " without OR or ON CONFLICT" if how == "insert" else ""
                raise Failure(sqlstate.UNSUPPORTED, f"a stream is append-only; use INSERT INTO{without}")
        if "macro" not in plain and self.read():
            message = f"a statement that reads a stream would never end: {NO_CONTINUOUS_QUERIES}"
            raise Failure(sqlstate.UNSUPPORTED, message)

    def read(self) -> list[Relation]:
        """Return the streams that the statement reads, also by macros if it may be bound; none if it describes
        something."""
        if not _DESCRIBES.isdisjoint(self._plain):
            return []
        if self._bound and _UNTOLD.isdisjoint(self._plain):
            with contextlib.suppress(duckdb.Error):
                told = self._connection.get_table_names(self._sql, qualified=True)
                # DuckDB names the table that is created too.
                made = {stream for stream, _ in self._uses} - {s for s, how in self._uses if how not in _NOT_READ}
                return [stream for name in told for stream, _ in self._found(words(name)) if stream not in made]
        return [stream for stream, how in self._uses if how == "read"]

    def _found(self, found: Sequence[Word]) -> Iterator[tuple[Relation, str]]:
        """The streams that words name, and what happens to each: "change", "drop", "insert", "make", "read", "shadow"
        for a temporary relation of its name, "" for unknown.
        """
        names = {name for _, _, name in self._streams}
        before: list[str] = ["", "", ""]
        number = 0
        while number < len(found):
            path = [found[number].name]
            while number + 2 < len(found) and found[number + 1].word == ".":
                number += 2
                path.append(found[number].name)
            if path[-1] in names and (stream := self._stream(path)):
                yield stream, _how(before)
            if found[number].word not in _FILLERS:
                before = [found[number].word, *before[:2]]
            number += 1

    def _stream(self, names: Sequence[str]) -> Relation | None:
        """The stream of this name; None if there is none, or if the session has a temporary relation of its name."""
        stream = self._streams.get(tuple(part.lower() for part in self._resolve(names)))
        if stream is None or len(names) > 1:
            return stream
        found = self._connection.execute(
            "SELECT 1 FROM (SELECT database_name, table_name AS name FROM system.main.duckdb_tables() UNION ALL "
            "SELECT database_name, view_name FROM system.main.duckdb_views()) "
            "WHERE database_name = 'temp' AND system.main.lower(name) = $1",
            [names[0]],
        )
        return None if found.fetchone() else stream


def _how(before: Sequence[str]) -> str:
    """What happens to a relation behind these words, the nearest first."""
    match before:
        case ["into", "merge", _] | ["from", "delete", _] | ["update" | "truncate", *_] | ["table", "truncate", _]:
            return "change"
        case ["into", *_]:
            return "insert"
        case [kind, verb, _] if kind in _OBJECTS and verb in {"alter", "create", "drop", "recursive", "replace"}:
            return {"drop": "drop", "alter": "change"}.get(verb, "make")
        case [kind, "temp" | "temporary", _] if kind in _OBJECTS:
            return "shadow"
        case [kind, "on", _] if kind in _OBJECTS:
            return ""
        case [word, *_] if word in _READS:
            return "read"
    return ""


MOST = 16 << 20
"""The maximum number of characters of rows that are evaluated at once."""

NOT_HERE = f"a SELECT on a stream supports only filters and projections, because {NO_CONTINUOUS_QUERIES}"


def make_stream_query(
    connection: duckdb.DuckDBPyConnection, sql: str, streams: Sequence[Relation]
) -> StreamQuery | None:
    """Return the query of a SELECT that reads `streams`; None if DuckDB does not show its tree.

    Raises Failure (0A000) if it is not supported.
    """
    tree = _parsed(connection, sql)
    if tree is None:
        return None
    stream = streams[0]
    if len(streams) > 1:
        raise Failure(sqlstate.UNSUPPORTED, f"a join of streams is not supported: {NOT_HERE}")
    node = tree["statements"][0]["node"]
    _check(connection, node)
    table = node["from_table"]
    source = qualified(*stream)
    alias = always_quoted(table["alias"] or stream[2])
    inner = _parsed(
        connection,
        f"SELECT * FROM (SELECT * FROM {source} WHERE rowid >= $lo AND rowid < $hi ORDER BY rowid) AS {alias}",
    )
    assert inner is not None
    node["from_table"] = inner["statements"][0]["node"]["from_table"]
    deserialized = connection.execute("SELECT system.main.json_deserialize_sql(?)", [json.dumps(tree)]).fetchone()
    over_new = str(deserialized[0]) if deserialized else ""
    described = connection.execute(f"DESCRIBE\n{over_new}", {"lo": 0, "hi": 0}).fetchall()
    kinds = [connection.type(item[1]) for item in described]
    names = [f"c{number}" for number in range(len(kinds))]
    columns = [ColumnInfo(str(item[0]), type_name(kind), True) for item, kind in zip(described, kinds, strict=True)]
    return StreamQuery(stream, columns, f"SELECT {row(kinds, names)} FROM (\n{over_new}\n) t({', '.join(names)})")


def evaluated(connection: duckdb.DuckDBPyConnection, query: StreamQuery, start: int, end: int) -> list[str]:
    """Return the output of a query for the rows of its stream from `start` to before `end`.

    Raises Failure: 54000 if the rows have more than MOST characters.
    """
    rows: list[str] = []
    size = 0
    try:
        connection.execute(query.sql, {"lo": start, "hi": end})
        for texts in fetch_rows(connection):
            rows += texts
            size += sum(map(len, texts))
            if size > MOST:
                message = f"more than {MOST:,} characters in {format_count(end - start, 'row')} of the stream"
                raise Failure(sqlstate.TOO_LARGE, message)
        return rows
    except duckdb.Error as error:
        # The statement is not the user's text.
        failed = failure(error)
        raise failed.with_message(without_place(failed.message)) from error


def _parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    """The parse tree of a SELECT, None for other statements."""
    serialized = connection.execute("SELECT system.main.json_serialize_sql(?)", [sql]).fetchone()
    tree: Any = json.loads(serialized[0]) if serialized else {"error": True}
    return None if tree["error"] or len(tree["statements"]) != 1 else tree


def _check(connection: duckdb.DuckDBPyConnection, node: Any) -> None:
    """Raises Failure for everything except SELECT … FROM stream [WHERE …]."""
    reason = ""
    if node["type"] != "SELECT_NODE":
        reason = "a set operation"
    elif (node.get("cte_map") or {}).get("map"):
        reason = "WITH"
    elif node["from_table"].get("type") != "BASE_TABLE":
        reason = "a join or subquery"
    elif node["modifiers"]:
        kinds = [item["type"].removesuffix("_MODIFIER") for item in node["modifiers"]]
        reason = " and ".join("ORDER BY" if kind == "ORDER" else kind.replace("_", " ") for kind in kinds)
    elif node["group_expressions"] or node["group_sets"] or node["having"]:
        reason = "GROUP BY"
    elif node["sample"] or node["qualify"] or node["from_table"]["sample"]:
        reason = "QUALIFY or a sample"
    else:
        names = set(_functions(node["select_list"])) | set(_functions(node["where_clause"]))
        if "" in names:
            reason = "a window or subquery"
        elif names:
            # concat, repeat and similar functions are also scalar functions of the same name.
            aggregate = connection.execute(
                "SELECT function_name FROM system.main.duckdb_functions() WHERE function_name = ANY($1) GROUP BY ALL "
                "HAVING system.main.bool_and(function_type IN ('aggregate', 'window')) ORDER BY ALL LIMIT 1",
                [sorted(names)],
            ).fetchone()
            reason = f"the aggregate {aggregate[0]}" if aggregate else ""
    if reason:
        raise Failure(
            sqlstate.UNSUPPORTED, f"{reason} {'are' if ' and ' in reason else 'is'} not supported: {NOT_HERE}"
        )


def _functions(tree: Any) -> Iterator[str]:
    """The functions of expressions; "" for a window or subquery."""
    if isinstance(tree, dict):
        match tree.get("class"):
            case "FUNCTION":
                yield tree["function_name"].lower()
            case "WINDOW" | "SUBQUERY":
                yield ""
        for part in tree.values():
            yield from _functions(part)
    elif isinstance(tree, list):
        for part in tree:
            yield from _functions(part)
