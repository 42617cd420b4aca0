"""The types of the interface, as far as readers of values distinguish them.

A type is text: `DECIMAL(10,2)`, `TIMESTAMP_LTZ(3)`, `ARRAY<INTEGER>`, possibly followed by a hint after a semicolon
(`VARCHAR;nowrap`) and by `NOT NULL`. Every value is a string or null.
"""

from __future__ import annotations

import enum
import functools
import re


class Kind(enum.Enum):
    """How a reader treats the values of a type."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    TEXT = "text"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    NESTED = "nested"

    @property
    def numeric(self) -> bool:
        return self in {Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT}


KINDS = {
    "BOOLEAN": Kind.BOOLEAN,
    "BOOL": Kind.BOOLEAN,
    "TINYINT": Kind.INTEGER,
    "SMALLINT": Kind.INTEGER,
    "INTEGER": Kind.INTEGER,
    "INT": Kind.INTEGER,
    "BIGINT": Kind.INTEGER,
    "OID": Kind.INTEGER,
    "UBIGINT": Kind.INTEGER,
    "HUGEINT": Kind.INTEGER,
    "UHUGEINT": Kind.INTEGER,
    "BIGNUM": Kind.INTEGER,
    "FLOAT": Kind.FLOAT,
    "REAL": Kind.FLOAT,
    "DOUBLE": Kind.FLOAT,
    "DECIMAL": Kind.DECIMAL,
    "NUMERIC": Kind.DECIMAL,
    "VARCHAR": Kind.TEXT,
    "CHAR": Kind.TEXT,
    "STRING": Kind.TEXT,
    "BYTES": Kind.BYTES,
    "VARBINARY": Kind.BYTES,
    "BINARY": Kind.BYTES,
    "DATE": Kind.DATE,
    "TIME": Kind.TIME,
    "TIMETZ": Kind.TIME,
    "TIMESTAMP": Kind.TIMESTAMP,
    "TIMESTAMP_LTZ": Kind.TIMESTAMP,
    "TIMESTAMP_TZ": Kind.TIMESTAMP,
    "ARRAY": Kind.NESTED,
    "MAP": Kind.NESTED,
    "STRUCT": Kind.NESTED,
    "ROW": Kind.NESTED,
}

_SIZE = re.compile(r"\s*\w+\s*\(\s*([0-9]{1,9}(?:\s*,\s*[0-9]{1,9})?)\s*\)")
_NAME = re.compile(r"\s*([A-Za-z_0-9]+)")


def base(type_name: str) -> str:
    """The upper-case name of a type without parameters: `DECIMAL(10,2);nowrap` is `DECIMAL`; "" if there is none."""
    match = _NAME.match(type_name)
    return match.group(1).upper() if match else ""


@functools.lru_cache(maxsize=256)
def kind(type_name: str) -> Kind:
    """The kind of a type; unknown types are text."""
    return KINDS.get(base(type_name), Kind.TEXT)


def size_of(text: str) -> list[int]:
    """The numbers of a scalar type: precision and scale of `DECIMAL(10,2)`, the length of `VARCHAR(20)`, or none."""
    match = _SIZE.match(text)
    return [int(number) for number in match[1].split(",")] if match is not None else []


def parts_of(text: str) -> list[str]:
    """The parts of a nested type: the element of an ARRAY, key and value of a MAP, the fields of a STRUCT."""
    return _separated(text[text.find("<") + 1 : text.rfind(">")]) if "<" in text and ">" in text else []


def is_named(part: str) -> bool:
    """Whether a field of a STRUCT has a name before its type: the fields of a tuple have only types."""
    return field_of(part)[0] != part


def field_of(text: str) -> tuple[str, str]:
    """The name of a field, which may contain spaces, and its type, which contains spaces only in brackets."""
    text = re.sub(r"(?<!\s)\s++NOT\s++NULL\s*+$", "", text, flags=re.IGNORECASE)
    depth = 0
    for at in range(len(text) - 1, 0, -1):
        depth += (text[at] in ">)") - (text[at] in "<(")
        if not depth and text[at] == " ":
            name = text[:at].strip().removesuffix(":")
            quoted = len(name) > 1 and name[0] == name[-1] and name[0] in '"`'
            return (name[1:-1].replace(name[0] * 2, name[0]) if quoted else name), text[at + 1 :]
    return text, "VARCHAR"


def _separated(text: str) -> list[str]:
    """The parts between commas outside of brackets and quotes."""
    parts, depth, quote, begun = [], 0, "", 0
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in '"`':
            quote = char
        elif char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
        elif char == "," and not depth:
            parts.append(text[begun:at].strip())
            begun = at + 1
    rest = text[begun:].strip()
    return [*parts, rest] if rest else parts
