"""Rows of a file that cannot be converted: the messages about them, and the file that lists them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from sqlshell.errors import OutputError
from sqlshell.origin import Own
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
    try:
        with Path(path).expanduser().open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("file", "line", "column", "error", "row"))
            writer.writerows((name, item.line, item.column, item.error, item.row) for item in rejects)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None
