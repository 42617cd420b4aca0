"""Workbooks hold the values, and no formula is made of any."""

from __future__ import annotations

import datetime
import io
import re
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import pytest

from sqlshell.errors import OutputError, UsageError
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers import xlsx
from sqlshell.output.writers.xlsx import XlsxWriter
from sqlshell.result import Batch, Column, Rows
from sqlshell.runtime.scratch import scratch
from tests.output.writing import written

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import openpyxl


def workbook(columns: list[Column], rows: Rows, **options: object) -> bytes:
    return written(XlsxWriter(WriterOptions(**options)), columns, rows)  # type: ignore[arg-type]


def read_back(data: bytes) -> list[list[object]]:
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    assert sheet is not None
    for row in sheet.iter_rows():
        assert all(cell.data_type != "f" and cell.hyperlink is None for cell in row)
    return [list(row) for row in sheet.iter_rows(values_only=True)]


def test_values() -> None:
    columns = [
        Column("i", "BIGINT"),
        Column("d", "DECIMAL(38,2)"),
        Column("b", "BOOLEAN"),
        Column("day", "DATE"),
        Column("at", "TIMESTAMP"),
        Column("s"),
    ]
    rows: Rows = [
        ["1", "1.50", "true", "2024-02-29", "2024-02-29 01:02:03.004", "x"],
        ["9223372036854775807", "12345678901234567.89", "false", "0001-01-01", "2024-01-01 00:00:00.000001", ""],
        ["NaN", None, None, "infinity", "2024-01-01 00:00:00+02", "a\x1b[31m"],
    ]
    found = read_back(workbook(columns, rows))
    assert found[0] == ["i", "d", "b", "day", "at", "s"]
    day = datetime.datetime(2024, 2, 29)
    assert found[1] == [1, 1.5, True, day, datetime.datetime(2024, 2, 29, 1, 2, 3, 4000), "x"]
    assert found[2][:5] == [
        "9223372036854775807",
        "12345678901234567.89",
        False,
        "0001-01-01",
        "2024-01-01 00:00:00.000001",
    ]
    assert found[3] == ["NaN", None, None, "infinity", "2024-01-01 00:00:00+02", "a\\x1b[31m"]


@pytest.mark.parametrize(
    "text", ["=1+1", "@SUM(A1)", "+1", "-1", "http://example.com", "mailto:a@b", "internal:x", "1"]
)
def test_text_stays_text(text: str) -> None:
    assert read_back(workbook([Column("=a")], [[text]])) == [["=a"], [text]]


def test_what_a_sheet_cannot_hold_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutputError, match=r"40,000 characters"):
        workbook([Column("a")], [["x" * 40_000]])
    with pytest.raises(OutputError, match=r"20,000 columns"):
        workbook([Column(str(number)) for number in range(20_000)], [])
    monkeypatch.setattr(xlsx, "MOST_ROWS", 3)
    assert len(read_back(workbook([Column("a")], [["1"], ["2"]]))) == 3
    with pytest.raises(OutputError, match="has more than 3 rows"):
        workbook([Column("a")], [["1"], ["2"], ["3"]])


def part(data: bytes, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        return book.read(name).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("123456789012345", 123456789012345),
        ("1234567890123456", "1234567890123456"),
        ("1234567890123450", 1234567890123450),
        ("-0.000123456789012345", -0.000123456789012345),
        ("+0.12345678901234567", "+0.12345678901234567"),
        ("1.50", 1.5),
        ("5.", 5),
        (".5", 0.5),
        ("0", 0),
        ("-0.00", 0),
        ("1e5", 1e5),
        ("1E+20", 1e20),
        ("-1.5e-07", -1.5e-7),
        ("0e-400", 0),
        ("1.234567890123456e20", "1.234567890123456e20"),
        ("9.99999999999999e307", 9.99999999999999e307),
        ("1e308", "1e308"),
        ("-1" + "0" * 400, "-1" + "0" * 400),
        ("1e-307", 1e-307),
        ("1e-308", "1e-308"),
        ("1e-999", "1e-999"),
        ("-Infinity", "-Infinity"),
        ("\N{ARABIC-INDIC DIGIT ONE}", "\N{ARABIC-INDIC DIGIT ONE}"),
        ("", ""),
        ("-", "-"),
        (".", "."),
        (".e5", ".e5"),
        ("1e", "1e"),
        ("1\n2", "1\n2"),
    ],
)
@pytest.mark.parametrize("kind", ["DECIMAL(38,9)", "DOUBLE", "BIGINT"])
def test_a_number_is_one_where_no_digit_is_lost(text: str, expected: object, kind: str) -> None:
    (_, (value,)) = read_back(workbook([Column("n", kind)], [[text]]))
    assert (value, isinstance(value, str)) == (expected, isinstance(expected, str))


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("1900-03-01", "DATE", datetime.datetime(1900, 3, 1)),
        ("1900-02-28", "DATE", "1900-02-28"),
        ("9999-12-31 23:59:59.999", "TIMESTAMP", datetime.datetime(9999, 12, 31, 23, 59, 59, 999_000)),
        ("2024-01-01 00:00:00.0005", "TIMESTAMP", "2024-01-01 00:00:00.0005"),
        ("2024-01-01 00:00:00+00:00", "TIMESTAMP", "2024-01-01 00:00:00+00:00"),
        ("2024-01-01", "VARCHAR", "2024-01-01"),
        ("TRUE", "BOOLEAN", "TRUE"),
        ("true", "VARCHAR", "true"),
    ],
)
def test_dates_are_those_of_the_calendar(text: str, kind: str, expected: object) -> None:
    assert read_back(workbook([Column("v", kind)], [[text]])) == [["v"], [expected]]


def test_how_cells_are_shown() -> None:
    columns = [Column("a", "DATE"), Column("b", "TIMESTAMP"), Column("c", "INTEGER")]
    rows: Rows = [["2024-02-29", "2024-02-29 01:02:03", "1"]]
    sheet = openpyxl.load_workbook(io.BytesIO(workbook(columns, rows))).active
    assert sheet is not None
    assert sheet.title == "Result"
    assert sheet.freeze_panes == "A2"
    assert [cell.font.bold for cell in sheet[1]] == [True] * 3
    assert [cell.number_format for cell in sheet[2]] == ["yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss.000", "General"]
    assert not any(cell.font.bold for cell in sheet[2])


def test_without_names_the_rows_begin_at_the_top() -> None:
    data = workbook([Column("a", "INTEGER"), Column("b")], [["1", None]], header=False, null="-")
    assert read_back(data) == [[1, "-"]]
    assert openpyxl.load_workbook(io.BytesIO(data)).active.freeze_panes is None  # type: ignore[union-attr]


def test_rows_are_not_held_in_memory_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = scratch().folder("test").parent
    # Whatever does not go into the folder of this process fails.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    monkeypatch.setattr(xlsx, "CHUNK", 100)
    writer = XlsxWriter(WriterOptions())
    assert not writer.buffering
    assert list(writer.begin([Column("a")])) == []
    assert list(writer.write(Batch(1, rows=[["first"], ["second"]]))) == []
    assert list(writer.settle()) == []
    chunks = list(writer.end(Summary(2, True)))
    assert {len(chunk) for chunk in chunks[:-1]} == {100}
    # What is written at once is in the cells; what waits for the end would be in a table of strings.
    assert re.findall("<t>(.*?)</t>", part(b"".join(chunks), "xl/worksheets/sheet1.xml")) == ["a", "first", "second"]
    assert list(root.glob("xlsx-*")) == []


def test_a_reader_that_leaves_takes_the_file_along() -> None:
    root = scratch().folder("test").parent
    writer = XlsxWriter(WriterOptions())
    [*writer.begin([Column("a")])]
    chunks = writer.end(Summary(0, True))
    assert next(chunks)
    assert len(list(root.glob("xlsx-*/*.xlsx"))) == 1
    chunks.close()  # type: ignore[attr-defined]
    assert list(root.glob("xlsx-*")) == []


def test_a_result_that_breaks_off_leaves_nothing() -> None:
    root = scratch().folder("test").parent
    writer = XlsxWriter(WriterOptions())
    [*writer.begin([Column("a")]), *writer.write(Batch(1, rows=[["x"]] * 10))]
    assert len(list(root.glob("xlsx-*/*"))) == 1
    del writer
    assert list(root.glob("xlsx-*")) == []


def test_limits_are_excels() -> None:
    assert (xlsx.MOST_ROWS, xlsx.MOST_COLUMNS, xlsx.LONGEST_TEXT) == (2**20, 2**14, 2**15 - 1)
    widest = [Column(str(number)) for number in range(xlsx.MOST_COLUMNS)]
    assert len(read_back(workbook(widest, []))[0]) == xlsx.MOST_COLUMNS
    with pytest.raises(OutputError, match="has 16,385 columns"):
        workbook([*widest, Column("a")], [])
    longest = "x" * xlsx.LONGEST_TEXT
    assert read_back(workbook([Column("a")], [[longest]])) == [["a"], [longest]]
    with pytest.raises(OutputError, match="32,768 characters"):
        workbook([Column("a")], [[longest + "x"]])
    # Excel counts UTF-16 units.
    twice = "\U0001f600" * (xlsx.LONGEST_TEXT // 2)
    assert read_back(workbook([Column("a")], [[twice]])) == [["a"], [twice]]
    with pytest.raises(OutputError, match="16,384 characters"):
        workbook([Column("a")], [[twice + "\U0001f600"]])


def test_a_statement_without_columns_gives_nothing() -> None:
    assert workbook([], []) == b""


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(UsageError, match="the xlsx format requires the package XlsxWriter") as caught:
        XlsxWriter(WriterOptions())
    assert caught.value.hint == "run: pip install XlsxWriter (with pipx: pipx inject sqlshell XlsxWriter)"
