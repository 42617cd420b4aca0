"""PostgreSQL's rows as lines of COPY's text format, and these as rows of the interface: JSON arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.postgresql.failures import decoded
from sqlshell.service.engines.postgresql.types import reader
from sqlshell.service.failure import Failure

_ESCAPED: Final = re.compile(rb"\\(.)", re.S)
_SIGNS: Final = re.compile(rb"[\\\t\n\r]")
_ESCAPES: Final = {b"\\": b"\\\\", b"\t": b"\\t", b"\n": b"\\n", b"\r": b"\\r"}
_RAW: Final = re.compile(rb"[\x00-\x09\x0b-\x1f]")
_CONTROLS: Final = bytes(number for number in range(32) if number != 10)


def lines_of(result: Any) -> bytes:
    """The rows of a PGresult as lines."""
    value, readers = result.get_value, [reader(result.ftype(number)) or bytes for number in range(result.nfields)]
    lines = bytearray()
    for row in range(result.ntuples):
        values = [
            b"\\N" if (raw := value(row, number)) is None else _line(read(raw)) for number, read in enumerate(readers)
        ]
        lines += b"\t".join(values) + b"\n"
    return bytes(lines)


def lines_of_values(values: bytes) -> bytes:
    """The lines of a COPY … TO STDOUT as lines of one value. Raises Failure if they are not UTF-8."""
    try:
        values.decode()
    except UnicodeDecodeError:
        # To replace a part of them would damage the data.
        raise Failure("22021", "the data of COPY … TO STDOUT are not UTF-8; omit the option ENCODING") from None
    return b"\n".join(map(_line, values.split(b"\n")))


def rows_of_copy(block: bytes) -> list[str]:
    """The rows of whole lines in COPY's text format.

    COPY and JSON escape a backslash, a backspace, a form feed, a line feed, a carriage return and a tab alike. So only
    what separates values is replaced, quotes are escaped, and NULL, vertical tabs and other control characters are
    written as JSON does. No value contains an unescaped backslash, therefore `"\\N"` is always a NULL.
    """
    # One byte is found ten times as fast as two.
    escapes = b"\\" in block
    if b'"' in block:
        block = block.replace(b'"', b'\\"')
    if escapes and b"\\v" in block:
        block = _ESCAPED.sub(lambda match: b"\\u000b" if match[1] == b"v" else match[0], block)
    encoded = b'["' + block[:-1].replace(b"\t", b'","').replace(b"\n", b'"]\n["') + b'"]'
    if escapes:
        encoded = encoded.replace(b'"\\N"', b"null")
    # The regular expression alone would take ten times as long.
    if len(encoded.translate(None, _CONTROLS)) != len(encoded):
        encoded = _RAW.sub(lambda match: b"\\u%04x" % ord(match[0]), encoded)
    return decoded(encoded).split("\n")


class CopiedLines:
    """Makes rows of blocks of whole lines in COPY's text format."""

    zoned: Sequence[int] = ()

    def __init__(self, columns: Sequence[ColumnInfo]) -> None:
        self.columns = columns

    def texts(self, pieces: Sequence[bytes]) -> list[str]:
        block = b"".join(pieces)
        return rows_of_copy(block) if self.columns else ["[]"] * block.count(b"\n")

    def table(self, pieces: Sequence[bytes]) -> Any:
        # It needs pyarrow, which small results do without.
        from sqlshell.service.engines.postgresql.copied_table import table_of

        return table_of(pieces, self.columns)


def _line(value: bytes) -> bytes:
    return _SIGNS.sub(lambda match: _ESCAPES[match[0]], value)
