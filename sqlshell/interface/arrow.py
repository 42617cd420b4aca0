"""Values from DuckDB by its Arrow C streams: whole columns at a time, without pyarrow."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any


class Array(ctypes.Structure):
    """`struct ArrowArray` of the Arrow C data interface."""


_ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", _ReleaseArray),
    ("private_data", ctypes.c_void_p),
]


class Stream(ctypes.Structure):
    """`struct ArrowArrayStream` of the Arrow C stream interface."""


_Next = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))
_LastError = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))
Stream._fields_ = [
    ("get_schema", ctypes.c_void_p),
    ("get_next", _Next),
    ("get_last_error", _LastError),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


TEXT, BYTES = "text", "bytes"


class ArrowError(Exception):
    """The producer of a stream failed; the text is its message."""


def strings(relation: Any) -> Iterator[tuple[int, bytes | None]]:
    """The values of the only column, large strings: for each array their number, and all of them without anything
    between them; None if one is NULL.

    Raises duckdb.Error and ArrowError.
    """
    for batch in _arrays(relation):
        yield _joined(batch)


def stretches(relation: Any, counts: Sequence[int]) -> Iterator[bytes]:
    """The values of the only column, large strings and none NULL: for each count, as many of the next ones without
    anything between them.

    Raises duckdb.Error and ArrowError.
    """
    wanted = iter(counts)
    left = next(wanted, 0)
    pieces: list[bytes] = []
    for batch in _arrays(relation):
        values = batch.children[0].contents
        at, end = values.offset, values.offset + values.length
        offsets = (ctypes.c_int64 * (end + 1)).from_address(values.buffers[1]) if at < end else ()
        while at < end:
            taken = min(left, end - at)
            pieces.append(ctypes.string_at(values.buffers[2] + offsets[at], offsets[at + taken] - offsets[at]))
            at, left = at + taken, left - taken
            if not left:
                yield pieces[0] if len(pieces) == 1 else b"".join(pieces)
                pieces, left = [], next(wanted, 0)
                if not left:
                    return


def columns(relation: Any, formats: Sequence[str], seen: Callable[[bytes], None]) -> Iterator[list[list[Any]]]:
    """The values of each column, for each array of the stream. A format is TEXT, BYTES or the code of a number in the
    module array. `seen` gets the strings of each column of an array. Raises duckdb.Error, ArrowError and
    UnicodeDecodeError.
    """
    for batch in _arrays(relation):
        yield [_values(batch.children[number].contents, code, seen) for number, code in enumerate(formats)]


def _arrays(relation: Any) -> Iterator[Array]:
    """The arrays of a stream. ctypes releases the GIL while DuckDB evaluates."""
    capsule = relation.__arrow_c_stream__()
    stream = Stream.from_address(_pointer(capsule, b"arrow_array_stream"))
    while True:
        batch = Array()
        if stream.get_next(ctypes.byref(stream), ctypes.byref(batch)):
            raise ArrowError((stream.get_last_error(ctypes.byref(stream)) or b"").decode("utf-8", "replace"))
        if not batch.release:
            return
        try:
            yield batch
        finally:
            batch.release(ctypes.byref(batch))


def _values(column: Array, code: str, seen: Callable[[bytes], None]) -> list[Any]:
    count, start = column.length, column.offset
    if not count:
        return []
    if code in {TEXT, BYTES}:
        values = _strings(column, code, seen)
    else:
        numbers = array.array(code)
        numbers.frombytes(ctypes.string_at(column.buffers[1] + start * numbers.itemsize, count * numbers.itemsize))
        values = numbers.tolist()
    if not column.null_count:
        return values
    valid = int.from_bytes(ctypes.string_at(column.buffers[0], (start + count + 7) // 8), "little") >> start
    bits = f"{valid & ((1 << count) - 1):0{count}b}"[::-1]
    return [value if bit == "1" else None for value, bit in zip(values, bits, strict=True)]


def _strings(column: Array, code: str, seen: Callable[[bytes], None]) -> list[Any]:
    places = array.array("i")
    places.frombytes(ctypes.string_at(column.buffers[1] + column.offset * 4, (column.length + 1) * 4))
    first = places[0]
    data = ctypes.string_at(column.buffers[2] + first, places[-1] - first) if places[-1] > first else b""
    seen(data)
    spans = pairwise([place - first for place in places] if first else places)
    if code == TEXT and data.isascii():
        text = data.decode("ascii")
        return [text[begin:end] for begin, end in spans]
    if code == TEXT:
        return [data[begin:end].decode() for begin, end in spans]
    return [data[begin:end] for begin, end in spans]


def _joined(batch: Array) -> tuple[int, bytes | None]:
    values = batch.children[0].contents
    if values.null_count or not values.length:
        return values.length, None if values.null_count else b""
    offsets = (ctypes.c_int64 * (values.offset + values.length + 1)).from_address(values.buffers[1])
    start, end = offsets[values.offset], offsets[values.offset + values.length]
    return values.length, ctypes.string_at(values.buffers[2] + start, end - start) if end > start else b""
