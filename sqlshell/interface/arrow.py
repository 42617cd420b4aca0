"""Values from DuckDB by its Arrow C streams: whole columns at a time, without pyarrow."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
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


def _joined(batch: Array) -> tuple[int, bytes | None]:
    values = batch.children[0].contents
    if values.null_count or not values.length:
        return values.length, None if values.null_count else b""
    offsets = (ctypes.c_int64 * (values.offset + values.length + 1)).from_address(values.buffers[1])
    start, end = offsets[values.offset], offsets[values.offset + values.length]
    return values.length, ctypes.string_at(values.buffers[2] + start, end - start) if end > start else b""
