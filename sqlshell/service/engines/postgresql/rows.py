"""PostgreSQL's rows as the interface's: JSON arrays of strings and nulls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.postgresql.types import reader
from sqlshell.service.failure import Failure

_ESCAPED: Final = re.compile(rb"\\(.)", re.S)
_RAW: Final = re.compile(rb"[\x00-\x09\x0b-\x1f]")
_CONTROLS: Final = bytes(number for number in range(32) if number != 10)
_encode: Final = msgspec.json.Encoder().encode


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
    return _decoded(encoded).split("\n")


def lines_of_copy(block: bytes) -> list[str]:
    """The lines of a COPY … TO STDOUT as rows of one value. Raises Failure if they are not UTF-8."""
    if not block:
        return []
    try:
        lines = block.decode()
    except UnicodeDecodeError:
        # To replace a part of them would damage the data.
        raise Failure("22021", "the data of COPY … TO STDOUT are not UTF-8; omit the option ENCODING") from None
    return [_encode([line]).decode() for line in lines.removesuffix("\n").split("\n")]


class CopiedLines:
    """Makes rows of blocks of whole lines in COPY's text format."""

    zoned: Sequence[int] = ()

    def __init__(self, columns: Sequence[ColumnInfo]) -> None:
        self.columns = columns

    def texts(self, pieces: Sequence[bytes]) -> list[str]:
        return rows_of_copy(b"".join(pieces))

    def table(self, pieces: Sequence[bytes]) -> Any:
        # It needs pyarrow, which small results do without.
        from sqlshell.service.engines.postgresql.copied_table import table_of

        return table_of(pieces, self.columns)


class RowReader:
    """Makes rows of PGresults with the same columns."""

    def __init__(self, oids: Sequence[int]) -> None:
        self._readers: list[Callable[[bytes], str]] = [reader(oid) or _decoded for oid in oids]

    def rows(self, result: Any) -> list[str]:
        value = result.get_value
        return [
            _encode(
                [
                    None if (raw := value(row, number)) is None else read(raw)
                    for number, read in enumerate(self._readers)
                ]
            ).decode()
            for row in range(result.ntuples)
        ]


def _decoded(value: bytes) -> str:
    # A database whose encoding is SQL_ASCII may contain anything.
    return value.decode("utf-8", "replace")
