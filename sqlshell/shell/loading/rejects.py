"""Rows of a file that cannot be converted: the messages about them, and the file that lists them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from msgspec import Struct

from sqlshell.origin import Own
from sqlshell.output.sinks.file import FileSink
from sqlshell.shell.loading.request import LoadRequest


class Reject(Struct, frozen=True):
    """A row that cannot be converted; `line` is its number from 1, `column` "" where none is to blame."""

    line: int
    column: str
    error: str
    row: str
    encoded: bool = False
    """Whether it is not text in the encoding of the file."""
    quoted: bool = False
    """Whether the value may be an empty text within quotes."""


def reject_message(request: LoadRequest, item: Reject) -> str:
    """The place of a bad row and what is wrong with it, indented."""
    column = f", column {item.column}" if item.column else ""
    line = f", {request.one} {item.line:,}" if item.line else ""
    return f"  {request.name}{line}{column}: {item.error}"


def write_rejects(path: Own, name: str, rejects: Sequence[Reject]) -> None:
    """Write bad rows to a CSV file. Raises OutputError."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("file", "line", "column", "error", "row"))
    sink = FileSink(path)
    try:
        for item in rejects:
            writer.writerow((name, item.line, item.column, item.error, item.row))
            sink.write(text.getvalue().encode("utf-8", "replace"))
            text.seek(0)
            text.truncate()
        sink.close()
    except BaseException:
        sink.abort()
        raise
