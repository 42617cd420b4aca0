"""Decompression of response bodies within limits: a small body may expand to gigabytes."""

from __future__ import annotations

import zlib
from typing import Final

from sqlshell.errors import ConnectionBroken, ProtocolError

STEP: Final = 1 << 20

UNANNOUNCED: Final = 64 << 20
"""Bytes of an answer whose rows nobody has announced."""

LARGEST: Final = 256 << 20
"""Bytes of an answer, however many rows are announced."""

ROW: Final = 4 << 10
"""Bytes that each announced row adds."""

ERROR: Final = 1 << 20
"""Bytes of an answer that tells of an error."""

PER_VALUE: Final = 16
"""A value of JSON may be two bytes long, and takes many times that once it is read: so many bytes of the bound."""

FEW: Final = 2 << 20
"""A body of so many bytes is not counted: whatever it holds is small."""

_NOT_COUNTED: Final = bytes(code for code in range(256) if code not in b",[{")


def bound(limit: int, rows: int | None) -> int:
    """Bytes that an answer may have once it is inflated: `limit`, or where that is 0 by the rows that are announced."""
    return limit or min(LARGEST, UNANNOUNCED + ROW * max(0, rows or 0))


class BodyReader:
    """Takes the raw pieces of one answer. `encoding` is its Content-Encoding; `name` names the service in errors."""

    def __init__(self, encoding: str, limit: int, name: str, *, failed: int = 0) -> None:
        """`failed` is the status of an answer that tells of an error, 0 for any other."""
        self._limit = min(limit, ERROR) if failed else limit
        self._failed = failed
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
                raise ProtocolError(f"{name} sent a response with the unsupported Content-Encoding {other[:40]!r}")

    def take(self, piece: bytes) -> None:
        """Raises ProtocolError for a body that is too large or no gzip."""
        if self._inflater is None:
            self._add(piece)
            return
        try:
            while piece and not self._inflater.eof:
                self._add(self._inflater.decompress(piece, min(STEP, self._limit + 1)))
                piece = self._inflater.unconsumed_tail
        except zlib.error as error:
            raise ProtocolError(f"{self._name} sent an invalid gzip body: {error}") from None
        if piece or self._inflater.unused_data:
            raise ProtocolError(f"{self._name} sent data after the end of a gzip body")

    def end(self) -> bytearray:
        """The whole body. Raises ConnectionBroken where gzip's own end did not come, ProtocolError for too many values
        to be read within the bound."""
        if self._inflater is not None and not self._inflater.eof:
            raise ConnectionBroken(f"{self._name} closed the connection in the middle of the response")
        most = max(FEW, self._limit // PER_VALUE)
        if len(self._whole) > FEW and (found := values_in(self._whole)) > most:
            raise ProtocolError(
                f"the response of {self._name} contains {found:,} values; its limit allows {most:,}", REMEDY
            )
        return self._whole

    def _add(self, text: bytes) -> None:
        if len(self._whole) + len(text) > self._limit:
            size = f"{self._limit >> 20} MiB" if self._limit >> 20 else f"{self._limit} bytes"
            if self._failed:
                raise ProtocolError(
                    f"{self._name} responded with {self._failed} and an error message larger than {size}"
                )
            raise ProtocolError(f"{self._name} sent a response larger than {size}", REMEDY)
        self._whole += text


REMEDY: Final = "set answer_limit in the profile, or SQLSHELL_ANSWER_LIMIT, to a larger number of MiB"


def values_in(body: bytes | bytearray) -> int:
    """How many values a JSON text holds at most, without reading them."""
    return sum(len(body[at : at + STEP].translate(None, _NOT_COUNTED)) for at in range(0, len(body), STEP))
