"""Rows as the text of JSON arrays, written by Python if their types are simple; and the limits for columns.

For few rows, DuckDB takes several times as long to plan the SQL of render.py, whose output is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.engines.files.render import type_id
from sqlshell.service.failure import Failure
from sqlshell.sql.analysis.tokens import first_word, tokens
from sqlshell.sql.keywords import CREATE_FILLERS
from sqlshell.text import format_count

Write = Callable[[Any], str]

_OBJECT_VERBS: Final = frozenset({"CREATE", "DROP", "ALTER"})
"""First words that are reported together with the kind of object, which is among the first _LONGEST_HEAD words."""

_LONGEST_HEAD: Final = 7


def bounded(columns: Iterable[ColumnInfo], options: RunOptions) -> list[ColumnInfo]:
    """Return the columns of a result. Raises Failure (54011) if there are too many, or if their names and types are too
    long: each record stores them, and each of its responses contains them."""
    kept = list(columns)
    if len(kept) > options.columns:
        raise Failure(
            "54011", f"the result has {format_count(len(kept), 'column')}; the maximum is {options.columns:,}"
        )
    # As JSON, in which a character of a name may take six bytes.
    if len(msgspec.json.encode(kept)) > options.columns_size:
        most = format_count(options.columns_size, "byte")
        cause = f"the names and types of the result's columns have more than {most}"
        raise Failure("54011", cause)
    return kept


def command_of(sql: str) -> str:
    """Return the words with which the message about a statement begins, such as INSERT or CREATE TABLE."""
    verb = first_word(sql).upper()
    if verb not in _OBJECT_VERBS:
        return verb
    kinds = (token.word for token in islice(tokens(sql), 1, _LONGEST_HEAD) if token.word not in CREATE_FILLERS)
    return f"{verb} {next(kinds, '')}".strip()


def writers(kinds: Sequence[Any]) -> list[Write] | None:
    """Return functions that render the values of these DuckDBPyTypes; None if only DuckDB can render them."""
    writes = [_write(kind) for kind in kinds]
    return None if None in writes else [write for write in writes if write is not None]


def line(row: Sequence[Any], writes: Sequence[Write]) -> str:
    """Return a row as the text of a JSON array of strings and nulls."""
    texts = [None if value is None else write(value) for value, write in zip(row, writes, strict=True)]
    return _encode(texts).decode()


def _write(kind: Any) -> Write | None:
    known = type_id(kind)
    if known == "decimal":
        size = dict(kind.children)
        return _fraction if size["precision"] == size["scale"] else _fixed
    return _WRITES.get(known)


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _fixed(value: Any) -> str:
    return format(value, "f")


def _fraction(value: Any) -> str:
    """Decimals whose type has no digit before the point: DuckDB does not write one either."""
    return format(value, "f").replace("0.", ".", 1)


_INTEGERS: Final = (
    *("tinyint", "smallint", "integer", "bigint", "hugeint"),
    *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
)
_WRITES: Final[dict[str, Write]] = {
    "boolean": _truth,
    "varchar": str,
    "null": str,
    **dict.fromkeys(_INTEGERS, str),
}
_encode = msgspec.json.Encoder().encode
