"""Decompression of response bodies within limits: a small body may expand to gigabytes."""

from __future__ import annotations

import zlib
from typing import Final

from sqlshell.errors import ConnectionBroken, ProtocolError, TooLarge
from sqlshell.text import format_count

STEP: Final = 1 << 20

UNANNOUNCED_BYTES: Final = 64 << 20
"""Maximum bytes of a response whose number of rows has not been announced."""

MOST_BYTES: Final = 256 << 20
"""Maximum bytes of any response, whatever number of rows is announced."""

BYTES_PER_ROW: Final = 4 << 10
"""Bytes that each announced row adds to the limit."""

ERROR_BYTES: Final = 1 << 20
"""Maximum bytes of an error response."""

BYTES_PER_VALUE: Final = 16
"""Bytes of the limit for each JSON value: a value may be two bytes long, and needs many times that in memory."""

UNCOUNTED_BYTES: Final = 2 << 20
"""Values are not counted in a body of at most this many bytes."""

_NOT_COUNTED: Final = bytes(code for code in range(256) if code not in b",[{")


def size_limit(limit: int, rows: int | None) -> int:
    """Maximum bytes of a decompressed response: `limit`, or, if that is 0, a number derived from the announced rows."""
    return limit or min(MOST_BYTES, UNANNOUNCED_BYTES + BYTES_PER_ROW * max(0, rows or 0))


class BodyReader:
    """Collects the raw pieces of a response. `encoding` is its Content-Encoding; `name` names the service in errors."""

    def __init__(self, encoding: str, limit: int, name: str, *, failed: int = 0) -> None:
        """`failed` is the status of an error response, 0 for any other."""
        self._limit = min(limit, ERROR_BYTES) if failed else limit
        self._failed = failed
        self._name = name
        self._whole = bytearray()
        self._inflater = None
        match encoding.strip().lower():
            case "" | "identity":
                pass
            case "gzip" | "x-gzip" | "deflate":
                # Adding 32 makes zlib detect whether the header is gzip's or zlib's.
                self._inflater = zlib.decompressobj(zlib.MAX_WBITS + 32)
            case other:
                raise ProtocolError(f"{name} sent a response with the unsupported Content-Encoding {other[:40]!r}")

    def take(self, piece: bytes) -> None:
        """Add a piece. Raises TooLarge, and ProtocolError if it is not valid gzip."""
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
        """The whole body. Raises ConnectionBroken if the gzip data is incomplete, TooLarge if it has too many
        values.
        """
        if self._inflater is not None and not self._inflater.eof:
            raise ConnectionBroken(f"{self._name} closed the connection in the middle of the response")
        most = max(UNCOUNTED_BYTES, self._limit // BYTES_PER_VALUE)
        if len(self._whole) > UNCOUNTED_BYTES and (count := count_values(self._whole)) > most:
            raise TooLarge(
                f"the response from {self._name} contains {format_count(count, 'value')}; answer_limit allows {most:,}",
                REMEDY,
            )
        return self._whole

    def _add(self, text: bytes) -> None:
        if len(self._whole) + len(text) > self._limit:
            size = f"{self._limit >> 20} MiB" if self._limit >> 20 else f"{self._limit} bytes"
            if self._failed:
                raise ProtocolError(
                    f"{self._name} responded with {self._failed} and an error message larger than {size}"
                )
            raise TooLarge(f"{self._name} sent a response larger than {size}, the answer_limit", REMEDY)
        self._whole += text


REMEDY: Final = "to raise the limit, set answer_limit (in MiB) in the profile, in SQLSHELL_ANSWER_LIMIT or in connect()"


def count_values(body: bytes | bytearray) -> int:
    """An upper bound of the number of values in a JSON text, without parsing it."""
    return sum(len(body[at : at + STEP].translate(None, _NOT_COUNTED)) for at in range(0, len(body), STEP))
