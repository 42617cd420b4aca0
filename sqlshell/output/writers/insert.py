"""INSERT statements for a named table, which insert the same rows when they are run."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from sqlshell.errors import UsageError
from sqlshell.interface.types import Kind, base, field_of, is_named, kind, parts_of, size_of
from sqlshell.output.writer import Summary, Values, Writer, WriterOptions, encode
from sqlshell.output.writers.column_names import distinct_names
from sqlshell.result import Batch, Column
from sqlshell.sql.duckdb_types import duckdb_type
from sqlshell.sql.identifiers import always_quoted, quoted
from sqlshell.sql.identifiers import literal as _quoted_text

STATEMENT_ROWS = 500
STATEMENT_SIZE = 1 << 20
"""A statement ends after this many rows or characters."""

_NUMBER = re.compile(r"[-+]?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?+\d++)?+", re.ASCII)
_NEGATIVE_ZERO = re.compile(r"-0++(?:\.0*+)?+")
_PART = r'(?:[^\W\d][\w$]*+|"(?:[^"]|"")++")'
_TABLE = re.compile(rf"{_PART}(?:\.{_PART})*+")
_BOOLEANS = {"true": "TRUE", "false": "FALSE"}


class InsertWriter(Writer):
    """`INSERT INTO t (a, b) VALUES …;` for every 500 rows or 1 MiB.

    Numbers and booleans are written as such, arrays as ARRAY[…] with a type whose name DuckDB and PostgreSQL share;
    every other value is a string, which the column's type takes. Raises UsageError without a table's name.
    """

    def __init__(self, options: WriterOptions) -> None:
        if not options.table:
            raise UsageError(
                "the insert format requires the name of a table",
                "set it with --insert-table NAME or \\pset insert_table",
            )
        if not _TABLE.fullmatch(options.table):
            raise UsageError(
                f"{options.table!r} is not the name of a table",
                'write it as in SQL, such as sales.orders or "My Table"',
            )
        self._table = options.table
        self._own = _POSTGRESQL if options.engine == "postgresql" else {}
        self._head = ""
        self._literals: list[Callable[[str], str]] = []
        self._rows = 0
        self._size = 0

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        names = ", ".join(map(quoted, distinct_names(columns)))
        self._head = f"INSERT INTO {self._table} ({names}) VALUES"
        self._literals = [
            self._own.get(column.kind) or _nested_literal(column.type) or _LITERALS.get(column.kind, literal)
            for column in columns
        ]
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not batch.rows or not batch.width:
            return
        columns = zip(self._literals, zip(*batch.rows, strict=True), strict=True)
        texts = [_column(turn, values) for turn, values in columns]
        for row in zip(*texts, strict=True):
            line = f"({', '.join(row)})"
            if self._rows and (self._rows >= STATEMENT_ROWS or self._size + len(line) > STATEMENT_SIZE):
                yield b";\n"
                self._rows = self._size = 0
            yield encode(f"{',' if self._rows else self._head}\n  {line}")
            self._rows += 1
            self._size += len(line)

    def end(self, summary: Summary) -> Iterable[bytes]:
        return [b";\n"] if self._rows else []


def _column(turn: Callable[[str], str], values: Values) -> list[str]:
    return ["NULL" if value is None else turn(value) for value in values]


def literal(text: str) -> str:
    """A file with a zero byte would be binary."""
    if "\0" not in text:
        return _quoted_text(text)
    return f"({' || chr(0) || '.join(map(_quoted_text, text.split(chr(0))))})"


def _number(text: str) -> str:
    """NaN and the infinities are strings, which a column of numbers takes."""
    return text if _NUMBER.fullmatch(text) else literal(text)


def _float(text: str) -> str:
    """Without an exponent, -0.0 is a DECIMAL, which has no negative zero."""
    return f"{text}e0" if _NEGATIVE_ZERO.fullmatch(text) else _number(text)


def _boolean(text: str) -> str:
    return _BOOLEANS.get(text.lower()) or literal(text)


def _bytes(text: str) -> str:
    return f"from_base64({literal(text)})"


def _hexadecimal(text: str) -> str:
    """PostgreSQL's own form; a text that is not base64 is left to its column."""
    try:
        return f"'\\x{base64.b64decode(text, validate=True).hex()}'"
    except ValueError:
        return literal(text)


def _nested(text: str) -> str:
    return f"CAST({literal(text)} AS JSON)"


def _nested_literal(type_name: str) -> Callable[[str], str] | None:
    """Write values of an ARRAY of scalars, also nested, as ARRAY['1', NULL]::INTEGER[], and of types with bytes, which
    are base64 in JSON, with these decoded; None for other types."""
    if array := _array_type(type_name):
        begin, end = "", f"::{array}"
    elif kind(type_name) is Kind.NESTED and _has_bytes(type_name):
        begin, end = "CAST(", ""
    else:
        return None

    def turn(text: str) -> str:
        try:
            value = _typed(_JSON.decode(text), type_name, "ARRAY[" if array else "[")
            return f"{begin}{value}{end or f' AS {_typed_name(type_name)})'}"
        except (msgspec.DecodeError, RecursionError, TypeError, ValueError):
            return _nested(text)

    return turn


def _array_type(type_name: str) -> str:
    """The type of an ARRAY of scalars, also nested, as DuckDB and PostgreSQL call it; "" for other types."""
    depth, part = 0, type_name
    while base(part) == "ARRAY" and len(parts_of(part)) == 1:
        depth, part = depth + 1, parts_of(part)[0]
    wanted = _ELEMENTS.get(base(part))
    if not depth or wanted is None:
        return ""
    sizes = ", ".join(map(str, size_of(part))) if wanted == "DECIMAL" else ""
    return f"{wanted}{f'({sizes})' if sizes else ''}{'[]' * depth}"


def _has_bytes(type_name: str) -> bool:
    return kind(type_name) is Kind.BYTES or any(map(_has_bytes, _inner(type_name)))


def _inner(type_name: str) -> list[str]:
    return [field_of(part)[1] if is_named(part) else part for part in parts_of(type_name)]


def _typed_name(type_name: str) -> str:
    """DuckDB's type, with bytes as such. Raises TypeError for a struct without names."""
    if kind(type_name) is not Kind.NESTED:
        return "BLOB" if kind(type_name) is Kind.BYTES else duckdb_type(type_name)
    types = list(map(_typed_name, _inner(type_name)))
    if base(type_name) == "ARRAY":
        return f"{types[0]}[]"
    if base(type_name) == "MAP":
        return f"MAP({', '.join(types)})"
    if not all(map(is_named, parts_of(type_name))):
        raise TypeError(type_name)
    names = [field_of(part)[0] for part in parts_of(type_name)]
    fields = ", ".join(f"{always_quoted(name)} {each}" for name, each in zip(names, types, strict=True))
    return f"STRUCT({fields})"


def _typed(value: object, type_name: str, array: str) -> str:
    """A nested value or a part of one; `array` begins an array. Raises TypeError and ValueError if it is not a value of
    the type."""
    if value is None:
        return "NULL"
    if kind(type_name) is not Kind.NESTED:
        if not isinstance(value, str | int):
            raise TypeError(value)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return _bytes(text) if kind(type_name) is Kind.BYTES else literal(text)
    types = _inner(type_name)
    if base(type_name) == "ARRAY" and isinstance(value, list):
        return f"{array}{', '.join(_typed(item, types[0], array) for item in value)}]"
    if not isinstance(value, dict):
        raise TypeError(value)
    if base(type_name) == "MAP":
        pairs = (f"{_typed(key, types[0], array)}: {_typed(item, types[1], array)}" for key, item in value.items())
        return f"MAP {{{', '.join(pairs)}}}"
    fields = zip(value.items(), types, strict=True)
    return f"{{{', '.join(f'{literal(name)}: {_typed(item, part, array)}' for (name, item), part in fields)}}}"


_JSON = msgspec.json.Decoder(float_hook=str)
"""Numbers keep their digits."""

_ELEMENTS = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "SMALLINT",
    "SMALLINT": "SMALLINT",
    "INTEGER": "INTEGER",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "DECIMAL": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "FLOAT": "REAL",
    "REAL": "REAL",
    "DOUBLE": "DOUBLE PRECISION",
    "VARCHAR": "TEXT",
    "DATE": "DATE",
    "TIME": "TIME",
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMP_LTZ": "TIMESTAMPTZ",
    "TIMESTAMP_TZ": "TIMESTAMPTZ",
}
"""Types of elements by the names that DuckDB and PostgreSQL have for them."""

_LITERALS: dict[Kind, Callable[[str], str]] = {
    Kind.INTEGER: _number,
    Kind.DECIMAL: _number,
    Kind.FLOAT: _float,
    Kind.BOOLEAN: _boolean,
    Kind.BYTES: _bytes,
    Kind.NESTED: _nested,
}

_POSTGRESQL: dict[Kind, Callable[[str], str]] = {Kind.BYTES: _hexadecimal}
"""The parts that are written differently for PostgreSQL."""
