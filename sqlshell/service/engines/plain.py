"""Python values as the interface's strings, where DuckDB cannot render the rows itself: RETURNING, PRAGMA, …"""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable, Sequence
from typing import Any


def encoded(row: Sequence[Any], convert: Sequence[Callable[[Any], str]]) -> str:
    """A row as a JSON array."""
    texts = [None if item is None else turn(item) for item, turn in zip(row, convert, strict=True)]
    return json.dumps(texts, ensure_ascii=False)


def plain(kind: Any) -> Callable[[Any], str]:
    """How a value of a DuckDBPyType becomes a string."""
    match kind.id:
        case "list" | "array" | "map" | "struct":
            return lambda item: json.dumps(item, default=_plain, ensure_ascii=False)
    return _plain


def _plain(item: Any) -> str:
    match item:
        case bool():
            return "true" if item else "false"
        case float():
            if math.isfinite(item):
                return repr(item)
            return "NaN" if math.isnan(item) else "Infinity" if item > 0 else "-Infinity"
        case bytes():
            return base64.b64encode(item).decode()
        case datetime.datetime() if item.tzinfo is not None:
            return item.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(" ") + "Z"
        case datetime.datetime():
            return item.isoformat(" ")
        case str():
            return item
    return str(item)
