"""Finds the end of COPY's data within a file: a line `\\.`, after which nothing is read."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import BinaryIO, Final

PIECE: Final = 1 << 20
_END: Final = re.compile(rb"(?<=[\r\n])\\\.(?:\r?\n|\r|\Z)")
_BEGUN: Final = re.compile(rb"(?<=[\r\n])\\(?:\.\r?)?\Z")
"""What may be such a line when more has arrived."""


def cut_at_end(source: Path, target: Path, quote: bytes = b"", escape: bytes = b"") -> bool:
    """Copy the data before a line that is `\\.`; False, and no copy, if there is none. Within quotes it is a value.

    Raises OSError and EOFError.
    """
    with _opened(source) as file:
        length = _length(file, quote, escape)
    if length is None:
        return False
    with _opened(source) as file, target.open("wb") as copy:
        while length and (piece := file.read(min(PIECE, length))):
            copy.write(piece)
            length -= len(piece)
    return True


def _opened(path: Path) -> gzip.GzipFile | BinaryIO:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _length(file: gzip.GzipFile | BinaryIO, quote: bytes, escape: bytes) -> int | None:
    """The bytes before the end; None without an end."""
    unquoted = re.compile(re.escape(escape) + rb"[\s\S]") if quote and escape not in {b"", quote} else None
    # A line begins at the first byte.
    at, kept, quoted = -1, b"\n", False
    while piece := file.read(PIECE):
        data = kept + piece
        begun = _BEGUN.search(data, max(0, len(data) - 3))
        # The byte before shows whether a line begins.
        stop = begun.start() - 1 if begun is not None else len(data) - 1
        if unquoted is not None:
            while data[:stop].endswith(escape):
                stop -= 1
        found, quoted = _search(data, stop, quoted, quote, unquoted)
        if found is not None:
            return at + found
        at, kept = at + stop, data[stop:]
    found, _ = _search(kept, len(kept), quoted, quote, unquoted)
    return None if found is None else at + found


def _search(
    data: bytes, stop: int, quoted: bool, quote: bytes, unquoted: re.Pattern[bytes] | None
) -> tuple[int | None, bool]:
    """Where the line begins, before a position; and whether quotes are open there."""

    def quotes(start: int, end: int) -> int:
        return unquoted.sub(b"", data[start:end]).count(quote) if unquoted else data.count(quote, start, end)

    counted = 0
    # Few files have one: a block without a backslash is not searched by lines.
    for match in _END.finditer(data) if b"\\." in data else ():
        if match.start() >= stop:
            break
        if quote:
            quoted ^= quotes(counted, match.start()) % 2 == 1
            counted = match.start()
        if not quoted:
            return match.start(), False
    if quote:
        quoted ^= quotes(counted, stop) % 2 == 1
    return None, quoted
