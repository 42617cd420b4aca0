"""Excel workbooks: a sheet per file, numbers and dates if Excel holds them exactly, everything else as text."""

from __future__ import annotations

import datetime
import re
import shutil
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlshell.errors import OutputError, UsageError
from sqlshell.interface.types import Kind
from sqlshell.output.text.cells import printable
from sqlshell.output.writer import Summary, Writer, WriterOptions
from sqlshell.result import Batch, Column
from sqlshell.runtime.scratch import scratch
from sqlshell.text import how_to_install

MOST_ROWS = 1_048_576
MOST_COLUMNS = 16_384
LONGEST_TEXT = 32_767
"""The limits of a sheet of Excel: rows with the header, columns, UTF-16 units of a cell."""

PRECISE = 15
"""Significant digits that a number keeps in Excel; with more it is text, so that no digit is lost."""

CHUNK = 1 << 20

SMALLEST, LARGEST = sys.float_info.min, 9.99999999999999e307
"""The limits of a number of Excel other than 0, without its sign."""

_NUMBER = re.compile(r"[-+]?+(?=\.?[0-9])0*+([0-9]*+)(?:\.([0-9]*+))?+(?:[eE][-+]?+[0-9]++)?+")
_EARLIEST = datetime.datetime(1900, 3, 1)
"""Excel counts a 29 February 1900, so that the days before this one are not those of the calendar."""


Cell = Callable[[int, int, str], None]
"""Writes a value into a row and a column, both from 0."""


class XlsxWriter(Writer):
    """Rows go into a temporary file as they come, so that memory stays flat; the workbook follows at the end.

    No cell is a formula or a link. Raises UsageError where XlsxWriter is not installed, and OutputError for more than
    a sheet holds.
    """

    def __init__(self, options: WriterOptions) -> None:
        try:
            import xlsxwriter
        except ImportError:
            raise UsageError(
                "the xlsx format requires the package XlsxWriter (extra: xlsx)", how_to_install("XlsxWriter")
            ) from None
        self._make = xlsxwriter.Workbook
        self._header = options.header
        self._null = options.null
        self._row = 0
        self._book: Any = None

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        if not columns:
            return []
        if len(columns) > MOST_COLUMNS:
            raise OutputError(
                f"the result has {len(columns):,} columns; an Excel sheet holds at most {MOST_COLUMNS:,}",
                "select fewer columns",
            )
        folder = scratch().folder("xlsx")
        self._path = folder / f"{id(self):x}.xlsx"
        self._book = self._make(
            str(self._path),
            {"constant_memory": True, "tmpdir": str(folder)},
        )
        self._sheet = self._book.add_worksheet("Result")
        # Also for a result that breaks off, whose temporary file is open.
        self._discard = weakref.finalize(self, _discard, self._sheet, folder)
        formats = {
            Kind.DATE: self._book.add_format({"num_format": "yyyy-mm-dd"}),
            Kind.TIMESTAMP: self._book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"}),
        }
        self._cells = [_cell_of(self._sheet, column.kind, formats.get(column.kind)) for column in columns]
        if self._header:
            bold = self._book.add_format({"bold": True})
            for number, column in enumerate(columns):
                self._sheet.write_string(0, number, _text(column.name), bold)
            self._sheet.freeze_panes(1, 0)
            self._row = 1
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not batch.width:
            return []
        for row in batch.rows:
            if self._row >= MOST_ROWS:
                raise OutputError(
                    f"the result has more than {MOST_ROWS:,} rows, the maximum of an Excel sheet",
                    "select fewer rows, or write csv",
                )
            for number, (value, write) in enumerate(zip(row, self._cells, strict=True)):
                if value is not None:
                    write(self._row, number, value)
                elif self._null:
                    self._sheet.write_string(self._row, number, self._null)
            self._row += 1
        return []

    def end(self, summary: Summary) -> Iterator[bytes]:
        if self._book is None:
            return
        self._book.close()
        try:
            with self._path.open("rb") as file:
                while chunk := file.read(CHUNK):
                    yield chunk
        finally:
            self._discard()


def _cell_of(sheet: Any, kind: Kind, form: Any) -> Cell:
    """The function that writes values of this kind, dates with this format; values that do not fit Excel are text."""

    def text(row: int, number: int, value: str) -> None:
        sheet.write_string(row, number, _text(value))

    def boolean(row: int, number: int, value: str) -> None:
        if value in {"true", "false"}:
            sheet.write_boolean(row, number, value == "true")
        else:
            text(row, number, value)

    def figure(row: int, number: int, value: str) -> None:
        if (parsed := _number(value)) is not None:
            sheet.write_number(row, number, parsed)
        else:
            text(row, number, value)

    def time(row: int, number: int, value: str) -> None:
        moment = _moment(value)
        if moment is not None:
            sheet.write_datetime(row, number, moment, form)
        else:
            text(row, number, value)

    if kind is Kind.BOOLEAN:
        return boolean
    if kind in {Kind.DATE, Kind.TIMESTAMP}:
        return time
    return figure if kind.numeric else text


def _discard(sheet: Any, folder: Path) -> None:
    sheet._opt_close()
    shutil.rmtree(folder, ignore_errors=True)


def _number(text: str) -> float | None:
    """A number that Excel holds with all its digits; None for any other."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    digits = (match[1] + (match[2] or "")).strip("0")
    number = float(text)
    return number if not digits or (len(digits) <= PRECISE and SMALLEST <= abs(number) <= LARGEST) else None


def _moment(text: str) -> datetime.datetime | None:
    """A date or a time without zone, to the millisecond, that Excel has; None for any other."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is not None or moment < _EARLIEST or moment.microsecond % 1000:
        return None
    return moment


def _text(text: str) -> str:
    """The text of a cell. Raises OutputError for a text that is longer than a cell."""
    safe = printable(text, "\n\t")
    if len(safe) * 2 > LONGEST_TEXT and len(safe.encode("utf-16-le", "surrogatepass")) // 2 > LONGEST_TEXT:
        raise OutputError(
            f"a value has {len(safe):,} characters; an Excel cell holds at most {LONGEST_TEXT:,}",
            "shorten it in the query, or write csv",
        )
    return safe
