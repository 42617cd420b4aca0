"""Many rows of an INSERT as a Parquet file, for services that load attachments: about twenty times faster."""

from __future__ import annotations

import base64
import datetime
import itertools
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from sqlshell.dbapi.binding import Parameters, RowInsert
from sqlshell.runtime.isolated_duckdb import isolated_duckdb
from sqlshell.runtime.scratch import scratch
from sqlshell.sql.duckdb_types import BYTES, TEXT, select_from_csv
from sqlshell.sql.identifiers import literal

EXTENSION: Final = "copy"
"""The extension that a service announces if it loads attached Parquet files."""

FILE: Final = "rows.parquet"
"""The name of the attachment."""

MEMORY: Final = "512MB"

LEAST_ROWS: Final = 4_000
"""With fewer rows INSERT is faster than importing DuckDB and writing a file."""

MOST_ROWS: Final = 100_000
MOST_BYTES: Final = 16 << 20
"""The approximate limits of one file."""

_NAME: Final = r'(?:"(?:[^"]|"")+"|\w+)'
_HEAD: Final = re.compile(
    rf"\s*insert\s+into\s+({_NAME}(?:\s*\.\s*{_NAME})*)\s*(\(\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\))?\s*values\s*", re.I
)


def copy_statement(insert: RowInsert) -> str | None:
    """The COPY that inserts the same rows from a file; None for an INSERT that does more than that."""
    match = _HEAD.fullmatch(insert.head)
    between = [piece.strip() for piece in insert.row.pieces]
    plain = len(between) > 1 and between == ["(", *[","] * (len(between) - 2), ")"]
    if match is None or not plain or insert.tail.strip() not in {"", ";"}:
        return None
    return f"COPY {match[1]} {match[2] or ''} FROM '@{FILE}' (FORMAT parquet)"


def file_chunks(rows: Iterable[Parameters]) -> Iterator[list[Parameters]]:
    """The rows in lists that fit into one file each."""
    each = iter(rows)
    while part := list(_part(each)):
        yield part


def _part(each: Iterator[Parameters]) -> Iterator[Parameters]:
    size = 0
    for row in itertools.islice(each, MOST_ROWS):
        yield row
        values = row.values() if isinstance(row, Mapping) else row if isinstance(row, list | tuple) else ()
        size += sum(len(value) for value in values if isinstance(value, str | bytes)) + 8
        if size >= MOST_BYTES:
            return


def write_parquet(rows: Sequence[Parameters], names: Sequence[str], width: int) -> Path | None:
    """A Parquet file with the rows, in a folder of its own; None if a literal can say more than the file.

    Each column has values of one type, which the service casts as it would cast literals.
    """
    if len(rows) < LEAST_ROWS:
        return None
    try:
        listed = [[row[name] for name in names] for row in rows if isinstance(row, Mapping)] if names else rows
    except KeyError:
        return None
    if any(not isinstance(row, list | tuple) or len(row) != width for row in listed) or len(listed) != len(rows):
        return None
    columns = [_column(values) for values in zip(*listed, strict=True)]
    texts = [texts for texts, _ in columns if texts is not None]
    if len(texts) < width:
        return None
    if width == 1:
        texts.append(["1"] * len(rows))
    folder = scratch().folder("rows")
    try:
        source = folder / "rows.csv"
        source.write_text("".join(f"{','.join(line)}\n" for line in zip(*texts, strict=True)), "utf-8", newline="")
        _convert(source, folder / FILE, [kind for _, kind in columns])
    except (UnicodeEncodeError, OSError):
        shutil.rmtree(folder, ignore_errors=True)
        return None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder / FILE


def _column(values: Sequence[Any]) -> tuple[list[str] | None, str]:
    """The values as text for CSV, and DuckDB's type; None instead of the text for values that need a literal."""
    types = set(map(type, values)) - {type(None)}
    kind, write = _KINDS.get(types.pop(), ("", repr)) if len(types) == 1 else (TEXT, repr)
    if types or not kind:
        return None, TEXT
    try:
        return ["" if value is None else write(value) for value in values], kind
    except ValueError:
        return None, TEXT


def _convert(source: Path, place: Path, types: Sequence[str]) -> None:
    names = [f"c{number}" for number in range(len(types))]
    query = select_from_csv(str(source), names, types)
    with isolated_duckdb(MEMORY, files=[source, place], spilled=source.parent) as connection:
        connection.execute(f"COPY ({query}) TO {literal(str(place))} (FORMAT parquet)")


def _integer(value: int) -> str:
    if not -(2**63) <= value < 2**63:
        raise ValueError
    return str(value)


def _decimal(value: Decimal) -> str:
    if not value.is_finite() or value.adjusted() > 38:
        raise ValueError
    return f"{value:f}"


def _instant(value: datetime.datetime) -> str:
    if value.tzinfo is not None:
        # A naive one in the same column would be in the zone of the session.
        raise ValueError
    return value.isoformat(" ")


def _time(value: datetime.time) -> str:
    if value.tzinfo is not None:
        raise ValueError
    return value.isoformat()


def _quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


_KINDS: Final[dict[type, tuple[str, Callable[[Any], str]]]] = {
    bool: ("BOOLEAN", lambda value: "true" if value else "false"),
    int: ("BIGINT", _integer),
    float: ("DOUBLE", repr),
    Decimal: (TEXT, _decimal),
    str: (TEXT, _quoted),
    bytes: (BYTES, lambda value: f'"{base64.b64encode(value).decode()}"'),
    datetime.date: ("DATE", datetime.date.isoformat),
    datetime.time: ("TIME", _time),
    datetime.datetime: ("TIMESTAMP", _instant),
}
