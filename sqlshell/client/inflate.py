"""Bodies as they were sent, inflated in bounded steps: a small body may hold gigabytes of zeros."""

from __future__ import annotations

import zlib

from sqlshell.errors import ConnectionBroken, ProtocolError

STEP = 1 << 20


class Body:
    """Takes the raw pieces of one answer. `encoding` is its Content-Encoding; `name` names the service in errors."""

    def __init__(self, encoding: str, limit: int, name: str) -> None:
        self._limit = limit
        self._name = name
        self._whole = bytearray()
        self._inflater = None
        match encoding.strip().lower():
            case "" | "identity":
                pass
            case "gzip" | "x-gzip" | "deflate":
                # 32 more: zlib finds out by itself whether the header is gzip's or zlib's.
                self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)
            case other:
                raise ProtocolError(f"{name} sent a body in the encoding {other[:40]!r}, which was not asked for")

    def take(self, piece: bytes) -> None:
        """Raises ProtocolError for a body that is too large or no gzip."""
        if self._inflater is None:
            self._add(piece)
            return
        try:
            while piece and not self._inflater.eof:
                self._add(self._inflater.decompress(piece, STEP))
                piece = self._inflater.unconsumed_tail
        except zlib.error as error:
            raise ProtocolError(f"{self._name} sent a body that is not the gzip it says to be: {error}") from None
        if piece or self._inflater.unused_data:
            raise ProtocolError(f"{self._name} sent more behind the end of a gzip body")

    def end(self) -> bytearray:
        """The whole body. Raises ConnectionBroken where gzip's own end did not come."""
        if self._inflater is not None and not self._inflater.eof:
            raise ConnectionBroken(f"{self._name} broke off in mid-body")
        return self._whole

    def _add(self, text: bytes) -> None:
        self._whole += text
        if len(self._whole) > self._limit:
            size = f"{self._limit >> 20} MiB" if self._limit >> 20 else f"{self._limit} bytes"
            raise ProtocolError(f"{self._name} sent more than {size} in one answer", "answer_limit sets the limit")
