"""JSON with numbers as texts: DuckDB's reader makes a DOUBLE of every number that has a fraction or 20 digits."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import BinaryIO, Final

from sqlshell.sql.identifiers import literal

PIECE: Final = 1 << 20
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_WHOLE: Final = re.compile(rb'(?:[^"0-9-]++|' + _STRING + rb"|-?+\d[\d.eE+-]*+(?=[^\d.eE+-])|-(?=[^\d]))*+", re.DOTALL)
"""What ends before the piece does."""
_INEXACT: Final = re.compile(
    rb'((?:[^"0-9-]++|' + _STRING + rb"|-?+\d{1,18}+(?![\d.eE])|-(?!\d))*+)(?:(-?+\d[\d.eE+-]*+)|\Z)", re.DOTALL
)
"""Text without numbers that a DOUBLE may change, then such a number or the end. Strings are matched whole, so that no
search continues within one."""
_SUSPECT: Final = re.compile(rb"\d[.eE]|\d{19}")


def keep_digits(source: str, path: Path, mark: str) -> bool:
    """Copy a JSON file, with numbers that a DOUBLE may change as strings that begin with `mark`. False if it has none.

    Raises OSError and EOFError.
    """
    opened = gzip.open if source.endswith(".gz") else open
    found, rest = False, b""
    with opened(source, "rb") as file, path.open("wb") as target:
        while piece := _read(file, len(rest)):
            rest += piece
            matched = _WHOLE.match(rest)
            end = matched.end() if matched else 0
            found |= _write(target, rest[:end], mark.encode())
            rest = rest[end:]
        found |= _write(target, rest, mark.encode())
    return found


def _read(file: BinaryIO | gzip.GzipFile, kept: int) -> bytes:
    # A long value is searched a few times only.
    return file.read(max(PIECE, kept))


def _write(target: BinaryIO, data: bytes, mark: bytes) -> bool:
    found = False

    def marked(match: re.Match[bytes]) -> bytes:
        nonlocal found
        if match[2] is None:
            return match[0]
        found = True
        return b'%b"%b%b"' % (match[1], mark, match[2])

    target.write(_INEXACT.sub(marked, data) if _SUSPECT.search(data) else data)
    return found


def unmarked(text: str, mark: str) -> str:
    """SQL for a text without marks: of a number, and of those in JSON, which are numbers again."""
    quoted_number = literal(f'"{mark}([^"]*)"')
    numbers = f"regexp_replace({text}, {quoted_number}, '\\1', 'g')"
    return f"CASE WHEN contains({text}, {literal(mark)}) THEN replace({numbers}, {literal(mark)}, '') ELSE {text} END"
