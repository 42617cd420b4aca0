"""Turns a SELECT on a stream into SQL that the engine evaluates for new rows only.

DuckDB's own parser parses the statement. Filters and projections are supported; operations that need state over
unbounded input are refused.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.bounds import limit_note
from sqlshell.service.engines.duckdb.failures import failure
from sqlshell.service.engines.duckdb.results.render import row, type_name
from sqlshell.service.engines.duckdb.results.texts import fetch_rows
from sqlshell.service.engines.duckdb.translation.text import without_place
from sqlshell.service.engines.engine import NO_CONTINUOUS_QUERIES, Relation, StreamQuery
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import always_quoted, qualified

MOST = 16 << 20
"""The maximum number of characters of rows that are evaluated at once."""

AGAIN_SECONDS = 0.05
"""How often an evaluation that takes too long is interrupted."""

NOT_HERE = f"a SELECT on a stream supports only filters and projections, because {NO_CONTINUOUS_QUERIES}"


def make_feed(connection: duckdb.DuckDBPyConnection, sql: str, streams: Sequence[Relation]) -> StreamQuery | None:
    """The feed of a SELECT that reads `streams`; None if DuckDB does not show its tree.

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
    try:
        described = connection.execute(f"DESCRIBE\n{over_new}", {"lo": 0, "hi": 0}).fetchall()
    except duckdb.InvalidInputException:
        described = connection.execute(f"DESCRIBE\n{over_new.replace('$lo', '0').replace('$hi', '0')}").fetchall()
    kinds = [connection.type(item[1]) for item in described]
    names = [f"c{number}" for number in range(len(kinds))]
    columns = [ColumnInfo(str(item[0]), type_name(kind), True) for item, kind in zip(described, kinds, strict=True)]
    return StreamQuery(stream, columns, f"SELECT {row(kinds, names)} FROM (\n{over_new}\n) t({', '.join(names)})")


def evaluate(
    connection: duckdb.DuckDBPyConnection,
    feed: StreamQuery,
    start: int,
    end: int,
    seconds: float,
    unwanted: threading.Event,
) -> list[str]:
    """The output of a feed for the rows of its stream from `start` to before `end`; `connection` is then closed.

    Raises Failure: 57014 after the time limit in seconds (0: none), 57000 if it becomes `unwanted`, 54000 if the rows
    have more than MOST characters.
    """
    over = threading.Event()
    late = False
    rows: list[str] = []
    size = 0

    def watch() -> None:
        nonlocal late
        late = not unwanted.wait(seconds or None)
        while not over.wait(AGAIN_SECONDS):
            # An interrupt between two steps may be lost.
            connection.interrupt()

    watching = threading.Thread(target=watch, name="watch", daemon=True)
    watching.start()
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("BEGIN TRANSACTION READ ONLY")
        connection.execute(feed.sql, {"lo": start, "hi": end})
        for texts in fetch_rows(connection):
            rows += texts
            size += sum(map(len, texts))
            if size > MOST:
                message = f"{end - start} rows of the stream exceed {MOST >> 20} Mi characters"
                raise Failure(sqlstate.TOO_LARGE, message)
        return rows
    except duckdb.Error as error:
        if unwanted.is_set():
            raise Failure(sqlstate.CANCELED, "canceled: no client is reading the rows") from error
        if late:
            cause = f"evaluating {end - start} rows of the stream took longer than {seconds:g} seconds"
            raise Failure(sqlstate.TIMEOUT, f"{cause} {limit_note('seconds')}") from error
        # The statement is not the user's text.
        failed = failure(error)
        raise failed.with_message(without_place(failed.message)) from error
    finally:
        over.set()
        unwanted.set()
        watching.join()
        connection.close()


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
        reason = " and ".join(sorted({item["type"].replace("_MODIFIER", "") for item in node["modifiers"]}))
    elif node["group_expressions"] or node["group_sets"] or node["having"]:
        reason = "GROUP BY"
    elif node["sample"] or node["qualify"] or node["from_table"]["sample"]:
        reason = "QUALIFY or a sample"
    else:
        names = set(_functions(node["select_list"])) | set(_functions(node["where_clause"]))
        if "" in names:
            reason = "a window or subquery"
        elif names:
            marks = ", ".join("?" for _ in names)
            rows = connection.execute(
                "SELECT function_name FROM duckdb_functions() WHERE function_type IN ('aggregate', 'window') "
                f"AND function_name IN ({marks})",
                sorted(names),
            ).fetchall()
            # concat, repeat and similar functions are also scalar functions of the same name.
            reason = f"the aggregate {rows[0][0]}" if rows and not _is_scalar(connection, rows[0][0]) else ""
    if reason:
        raise Failure(sqlstate.UNSUPPORTED, f"{reason} is not supported: {NOT_HERE}")


def _is_scalar(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM duckdb_functions() WHERE function_name = ? AND function_type IN ('scalar', 'macro') LIMIT 1",
        [name],
    ).fetchone()
    return found is not None


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
