"""Removes secrets from requests and responses that are shown: headers, JSON members, columns with secret names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlshell.mask import MASK
from sqlshell.sql.analysis.secrets import names_secret

SHOWN_BYTES = 1 << 16
"""Longer bodies are truncated."""

_MEMBER = re.compile(r'("(?:[^"\\]|\\.){0,100}"\s*:\s*)"(?:[^"\\]|\\.)*(?:"|\Z)')


def headers(given: Mapping[str, str]) -> list[str]:
    """`name: value` of each header."""
    return [f"{name}: {MASK if names_secret(name) else value}" for name, value in given.items()]


def body(given: bytes | bytearray, sql: Callable[[str], str]) -> str:
    """A body as text. `sql` removes the secrets from a statement. A long body is truncated and its rows are omitted."""
    if not given:
        return ""
    if len(given) <= SHOWN_BYTES or not given.startswith(b'{"sqlState"'):
        try:
            text = json.dumps(_clean(json.loads(given), sql), ensure_ascii=False)
        except (ValueError, RecursionError):
            pass
        else:
            return text if len(text) <= SHOWN_BYTES else f"{text[:2_000]}… ({len(given):,} bytes)"
    if not given.startswith((b"{", b"[")):
        # The form of the legacy interface, or something that only a proxy understands.
        text = sql(bytes(given[:SHOWN_BYTES]).decode(errors="replace"))
        return text if len(given) <= 2_000 else f"{text[:2_000]}… ({len(given):,} bytes)"
    cut = given.find(b'"data":[')
    shown = bytes(given[: min(cut if cut >= 0 else 2_000, 2_000)]).decode(errors="replace")
    text = _MEMBER.sub(lambda match: f'{match[1]}"{MASK}"' if names_secret(match[1]) else match[0], shown)
    return text if len(shown) == len(given) else f"{text}… ({len(given):,} bytes)"


def _clean(value: Any, sql: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [_clean(item, sql) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned: dict[str, Any] = {}
    for name, item in value.items():
        if names_secret(name) and isinstance(item, str):
            cleaned[name] = MASK
        elif name == "data":
            cleaned[name] = item
        elif isinstance(item, str):
            # A statement, or a message that quotes one.
            cleaned[name] = sql(item)
        elif name == "statements" and isinstance(item, list):
            cleaned[name] = [sql(each) if isinstance(each, str) else _clean(each, sql) for each in item]
        else:
            cleaned[name] = _clean(item, sql)
    hidden = _hidden(cleaned.get("metadata"))
    if hidden and isinstance(cleaned.get("data"), list):
        cleaned["data"] = [
            [MASK if number in hidden and cell is not None else cell for number, cell in enumerate(row)]
            if isinstance(row, list)
            else row
            for row in cleaned["data"]
        ]
    return cleaned


def _hidden(metadata: Any) -> set[int]:
    columns = metadata.get("columns") if isinstance(metadata, dict) else None
    if not isinstance(columns, list):
        return set()
    return {
        number
        for number, column in enumerate(columns)
        if isinstance(column, dict) and names_secret(str(column.get("name")))
    }
