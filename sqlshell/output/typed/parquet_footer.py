"""The footer of a Parquet file, changed without its pages: columns renamed and left out.

The footer is a struct of Thrift's compact protocol (https://github.com/apache/parquet-format). A struct is read as its
fields by number, each with its type; what is not known here is written again as it was.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

MAGIC: Final = b"PAR1"
LONGEST: Final = 32 << 20
"""The maximum bytes of a footer that is changed."""

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS: Final = frozenset({4, 5, 6})

Fields = dict[int, tuple[int, Any]]
"""The type and the value of each field; that of a list is the type of its items and the items."""

# FileMetaData, SchemaElement, RowGroup, ColumnChunk and ColumnMetaData.
_SCHEMA, _ROW_GROUPS, _KEY_VALUES, _ORDERS = 2, 4, 5, 7
_NAME, _CHILDREN = 4, 5
_CHUNKS, _GROUP_SIZE, _SORTING, _GROUP_COMPRESSED = 1, 2, 4, 6
_META, _PATH, _SIZE, _COMPRESSED = 3, 3, 6, 7


class UnknownFooterError(Exception):
    """The footer is not one that can be changed."""


def with_columns(place: Path, names: Sequence[str]) -> tuple[int, bytes]:
    """Where the pages of a file end, and what comes after them in a file with its first columns under these names.

    The file has no nested columns. Raises UnknownFooterError and OSError.
    """
    with place.open("rb") as file:
        end = file.seek(0, os.SEEK_END) - 8
        if end < len(MAGIC):
            raise UnknownFooterError
        file.seek(end)
        length, magic = struct.unpack("<i4s", file.read(8))
        if magic != MAGIC or not 0 < length <= min(LONGEST, end - 4):
            raise UnknownFooterError
        file.seek(end - length)
        footer = file.read(length)
    try:
        read = _Reader(footer).struct()
        _change(read, [name.encode() for name in names])
        written = _written(read)
    except (IndexError, KeyError, TypeError, ValueError, struct.error, RecursionError) as error:
        raise UnknownFooterError from error
    return end - length, written + struct.pack("<i", len(written)) + MAGIC


def _change(footer: Fields, names: Sequence[bytes]) -> None:
    kept = len(names)
    root, *columns = footer[_SCHEMA][1][1]
    if not kept <= len(columns) == root[_CHILDREN][1] or any(_CHILDREN in column for column in columns):
        raise UnknownFooterError
    root[_CHILDREN] = (root[_CHILDREN][0], kept)
    for column, name in zip(columns, names, strict=False):
        column[_NAME] = (_BINARY, name)
    footer[_SCHEMA] = (_LIST, (_STRUCT, [root, *columns[:kept]]))
    for group in footer[_ROW_GROUPS][1][1]:
        chunks = group[_CHUNKS][1][1]
        if len(chunks) != len(columns):
            raise UnknownFooterError
        for chunk, name in zip(chunks, names, strict=False):
            chunk[_META][1][_PATH] = (_LIST, (_BINARY, [name]))
        left_out = [chunk[_META][1] for chunk in chunks[kept:]]
        for total, part in ((_GROUP_SIZE, _SIZE), (_GROUP_COMPRESSED, _COMPRESSED)):
            if total in group:
                group[total] = (group[total][0], group[total][1] - sum(meta[part][1] for meta in left_out))
        group[_CHUNKS] = (_LIST, (_STRUCT, chunks[:kept]))
        group.pop(_SORTING, None)
    if _ORDERS in footer:
        kind, orders = footer[_ORDERS][1]
        footer[_ORDERS] = (_LIST, (kind, orders[:kept]))
    footer.pop(_KEY_VALUES, None)


class _Reader:
    """Reads a struct. Raises IndexError where the bytes end, and UnknownFooterError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> Fields:
        fields: Fields = {}
        number = 0
        while head := self._byte():
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = (kind, kind == _TRUE if kind in {_TRUE, _FALSE} else self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BINARY:
            return self._taken(self._number())
        if kind == _STRUCT:
            return self.struct()
        if kind in {_LIST, _SET}:
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._number()
            item = head & 15
            return item, [self._byte() if item in {_TRUE, _FALSE} else self._value(item) for _ in range(count)]
        if kind in {_BYTE, _DOUBLE}:
            return self._taken(1 if kind == _BYTE else 8)
        raise UnknownFooterError

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _taken(self, count: int) -> bytes:
        if self._at + count > len(self._data):
            raise UnknownFooterError
        self._at += count
        return self._data[self._at - count : self._at]

    def _number(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def _integer(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)


def _written(fields: Fields) -> bytes:
    out = bytearray()
    _add_struct(out, fields)
    return bytes(out)


def _add_struct(out: bytearray, fields: Fields) -> None:
    before = 0
    for number, (kind, value) in sorted(fields.items()):
        known = kind if kind not in {_TRUE, _FALSE} else _TRUE if value else _FALSE
        if 0 < number - before < 16:
            out.append((number - before) << 4 | known)
        else:
            out.append(known)
            _add_integer(out, number)
        before = number
        if kind not in {_TRUE, _FALSE}:
            _add(out, kind, value)
    out.append(0)


def _add(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _add_integer(out, value)
    elif kind == _BINARY:
        _add_number(out, len(value))
        out += value
    elif kind == _STRUCT:
        _add_struct(out, value)
    elif kind in {_LIST, _SET}:
        item, values = value
        out.append(min(len(values), 15) << 4 | item)
        if len(values) >= 15:
            _add_number(out, len(values))
        for each in values:
            if item in {_TRUE, _FALSE}:
                out.append(each)
            else:
                _add(out, item, each)
    else:
        out += value


def _add_integer(out: bytearray, value: int) -> None:
    _add_number(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _add_number(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
