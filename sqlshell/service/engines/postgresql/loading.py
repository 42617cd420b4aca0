"""The rows of a Parquet file as the data of a COPY … FROM STDIN."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import duckdb

from sqlshell.interface.arrow import ArrowError, strings
from sqlshell.runtime.isolated_duckdb import isolated_duckdb
from sqlshell.service.engines.files.failures import failure
from sqlshell.service.engines.files.render import type_id
from sqlshell.sql.identifiers import literal

_ESCAPES: Final = (("'\\'", "'\\\\'"), ("chr(10)", "'\\n'"), ("chr(13)", "'\\r'"), ("chr(9)", "'\\t'"))
_MEMORY: Final = "256MB"
_SETTINGS: Final = {"threads": "1", "arrow_large_buffer_size": "true"}
"""Rows are read in order and not kept, so that little memory is enough."""


def copy_data(path: Path) -> Iterator[bytes]:
    """Return the rows in blocks of whole lines in COPY's text format. Raises Failure."""
    source = f"read_parquet({literal(str(path))}, hive_partitioning = false)"
    try:
        with isolated_duckdb(_MEMORY, files=[path], settings=_SETTINGS) as root:
            described = root.execute(f"DESCRIBE FROM {source}").fetchall()
            names = [f"c{number}" for number in range(len(described))]
            values = [
                f"coalesce({_escaped(_text(root.type(item[1]), name))}, '\\N')"
                for item, name in zip(described, names, strict=True)
            ]
            line = " || chr(9) || ".join(values)
            for _, block in strings(root.sql(f"SELECT {line} || chr(10) FROM {source} t({', '.join(names)})")):
                yield block or b""
    except (duckdb.Error, ArrowError) as error:
        failed = failure(error)
        # The message names the file, which is not the user's.
        raise failed.with_message(
            failed.message.partition("\n\nLINE ")[0].replace(str(path), "the attachment")
        ) from error


def _text(kind: Any, name: str) -> str:
    """SQL for the text of a value as PostgreSQL reads it; NULL stays NULL."""
    match type_id(kind):
        case "date" | "timestamp" | "timestamp with time zone":
            # PostgreSQL writes the era without parentheses.
            return f"replace({name}::VARCHAR, '(BC)', 'BC')"
        case "blob":
            return f"'\\x' || lower(hex({name}))"
        case "map" | "struct" | "tuple":
            return f"to_json({name})::VARCHAR"
        case "list" | "array":
            return _array(kind, name, 0)
    return f"{name}::VARCHAR"


def _array(kind: Any, name: str, depth: int) -> str:
    """SQL for a list as PostgreSQL's text of an array."""
    child = dict(kind.children)["child"]
    item = f"v{depth}"
    if type_id(child) in {"list", "array"}:
        inner = _array(child, item, depth + 1)
    else:
        text = f"replace(replace({_text(child, item)}, '\\', '\\\\'), '\"', '\\\"')"
        inner = f"coalesce('\"' || {text} || '\"', 'NULL')"
    array = f"'{{' || array_to_string(list_transform({name}, lambda {item}: {inner}), ',') || '}}'"
    return f"CASE WHEN {name} IS NOT NULL THEN {array} END"


def _escaped(text: str) -> str:
    for sign, written in _ESCAPES:
        text = f"replace({text}, {sign}, {written})"
    return text
