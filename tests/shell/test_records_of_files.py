"""The records of text files as they are quoted in errors, the lines that they are in, and quotes that stay open."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from sqlshell.errors import StatementError, UsageError
from sqlshell.origin import Own
from sqlshell.shell.loading.column_types import TargetColumn
from sqlshell.shell.loading.file_layout import FileLayout, SourceColumn
from sqlshell.shell.loading.rejects import Reject, reject_message, write_rejects
from sqlshell.shell.loading.request import LoadRequest
from sqlshell.shell.loading.sniffing import compression_of, format_of_data
from sqlshell.shell.loading.text_checks import check_date_order, lines_at, quote_is_open, records
from tests.shell.test_reading_files import Loaded

COMMAS = {"delim": "','", "quote": "'\"'", "escape": "'\"'"}


def found(path: Path, **reader: str) -> list[tuple[int, str, list[str]]]:
    return [(each.line, each.text, list(each.fields)) for each in records(str(path), COMMAS | reader)]


@pytest.mark.parametrize(
    ("data", "reader", "expected"),
    [
        (b"a,b\n1,2\n", {}, [(1, "a,b", ["a", "b"]), (2, "1,2", ["1", "2"])]),
        (b"\xef\xbb\xbfa\r\nb", {}, [(1, "a", ["a"]), (2, "b", ["b"])]),
        (b'"x\n""y""",z\n1,2\n', {}, [(1, '"x\n""y""",z', ['x\n"y"', "z"]), (3, "1,2", ["1", "2"])]),
        (
            b"a;'b'';'\nc\n",
            {"delim": "';'", "quote": "''''", "escape": "''"},
            [(1, "a;'b'';'", ["a", "b';"]), (2, "c", ["c"])],
        ),
        (b'"a\\"b",c\n', {"escape": "'\\'"}, [(1, '"a\\"b",c', ['a"b', "c"])]),
        (b'"a,b\n', {"quote": "''", "escape": "''"}, [(1, '"a,b', ['"a', "b"])]),
        (
            b'# one\na,b\n# two\n# three\n"1\n# no",2\n',
            {"comment": "'#'"},
            [(2, "a,b", ["a", "b"]), (5, '"1\n# no",2', ["1\n# no", "2"])],
        ),
        (b"\xe9,1\n", {"encoding": "'latin-1'"}, [(1, "é,1", ["é", "1"])]),
        (b"\xe9,1\n", {}, [(1, "\ufffd,1", ["\ufffd", "1"])]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_records(
    tmp_path: Path, data: bytes, reader: dict[str, str], expected: list[tuple[int, str, list[str]]], packed: bool
) -> None:
    path = tmp_path / ("a.csv.GZ" if packed else "a.csv")
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    limit = csv.field_size_limit()
    assert found(path, **reader) == expected
    assert csv.field_size_limit() == limit


def test_a_field_of_several_megabytes_is_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{'x' * 5_000_000},1\n")
    [(_, _, fields)] = found(path)
    assert [len(field) for field in fields] == [5_000_000, 1]


@pytest.mark.parametrize(
    ("data", "position", "reader", "is_open"),
    [
        ('1,"a\n2,b\n', 0, {}, True),
        ('1,"a\n2,b"\n', 0, {}, False),
        ('1,a\n2,"b\n', 0, {}, False),
        ('1,a\n2,"b\n', 4, {}, True),
        ('1,"a""\n', 0, {}, True),
        ('1,"a"""\n', 0, {}, False),
        ('1,"a""\n', 0, {"escape": "''"}, True),
        ('1,"a\\"\n', 0, {"escape": "'\\'"}, True),
        ('1,"a\\""\n', 0, {"escape": "'\\'"}, False),
        ('1,"a\n', 0, {"quote": "''"}, False),
        ("1;'a\n", 0, {"delim": "';'", "quote": "''''", "escape": "''''"}, True),
        # Another error of the reader is not about a quote that stays open.
        ('1,"a"b\n', 0, {}, False),
        ("", 0, {}, False),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_quotes_that_stay_open(
    tmp_path: Path, data: str, position: int, reader: dict[str, str], is_open: bool, packed: bool
) -> None:
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(data.encode()) if packed else data.encode())
    limit = csv.field_size_limit()
    assert quote_is_open(str(path), position, COMMAS | reader) is is_open
    assert csv.field_size_limit() == limit


def test_a_quote_that_stays_open_after_bytes_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xe9,"a\n')
    assert quote_is_open(str(path), 0, COMMAS)
    assert quote_is_open(str(path), 0, COMMAS | {"encoding": "'latin-1'"})


def test_the_lines_at_positions(tmp_path: Path) -> None:
    data = b'a\n"b\nc"\n' + b"x" * (3 << 20) + b"\nend\n"
    plain, packed, unknown = (tmp_path / name for name in ("a.csv", "a.csv.gz", "a.csv.zst"))
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data, 1, mtime=0))
    unknown.write_bytes(b"")
    positions = [0, 2, 8, len(data) - 4, len(data) + 10]
    assert lines_at(str(plain), positions) == [1, 2, 4, 5, 6]
    assert lines_at(str(packed), positions) == [1, 2, 4, 5, 6]
    assert lines_at(str(unknown), positions) == [0, 0, 0, 0, 0]
    assert lines_at("/nowhere", []) == []


DMY = {"dateformat": "'%d/%m/%Y'"}


@pytest.mark.parametrize(
    ("read", "type_", "reader", "refused"),
    [
        ("DATE", "DATE", DMY, True),
        ("DATE", "TIMESTAMP", DMY, True),
        ("TIMESTAMP", "DATE", {"timestampformat": "'%d/%m/%Y %H:%M'"}, True),
        ("TIMESTAMP", "TIMESTAMP", {"timestampformat": "'%d/%m/%Y %H:%M'"}, True),
        ("DATE", "VARCHAR", DMY, False),
        ("DATE", "DATE", {}, False),
        ("TIMESTAMP", "DATE", DMY, False),
        ("VARCHAR", "DATE", DMY, False),
    ],
)
def test_dates_that_a_server_could_read_otherwise(read: str, type_: str, reader: dict[str, str], refused: bool) -> None:
    layout = FileLayout((SourceColumn("d", read, read),), True, "csv", reader=tuple(reader.items()))
    pairs = [(layout.columns[0], TargetColumn("d", type_))]
    if not refused:
        check_date_order("a.csv", layout, pairs)
        return
    with pytest.raises(UsageError) as told:
        check_date_order("a.csv", layout, pairs)
    assert told.value.message == (
        "a.csv, column d: the dates are not in the form YYYY-MM-DD, so the order of day and month is ambiguous"
    )


@pytest.mark.parametrize(("extra", "more"), [(1, ""), (2, " (and 1 more such line)"), (3, " (and 2 more such lines)")])
def test_empty_fields_at_the_end_of_some_lines(tmp_path: Path, extra: int, more: str) -> None:
    data = "id,v\n1,a\n" + "2,b,\n" * extra
    with pytest.raises(StatementError) as told:
        Loaded(tmp_path, "a.csv", data, id="INTEGER", v="VARCHAR")
    assert told.value.message == f"a.csv, line 3: expected 2 columns, found 3, the last one empty{more}"
    assert told.value.hint == "nothing was sent; remove the delimiter at the end of the line"


def test_the_place_of_a_value_that_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as told:
        Loaded(tmp_path, "a.csv", "v,id\n5.5,1\na,5.5\n", v="VARCHAR", id="INTEGER")
    assert told.value.message == "a.csv, line 3, column id: '5.5' has a fraction, which INTEGER cannot store"
    assert told.value.hint == "nothing was sent; correct the number, or load it into a column of DECIMAL"
    with pytest.raises(UsageError) as told:
        Loaded(tmp_path, "a.csv", f"v,id\na,1\nb,{'9' * 70}e300\n", v="VARCHAR", id="DOUBLE")
    assert told.value.message == f"a.csv, line 3, column id: '{'9' * 59}… is out of range for DOUBLE"
    assert told.value.hint == "correct the number, or load it into a column of VARCHAR"


def request(**parts: object) -> LoadRequest:
    return LoadRequest("t", (), Own("a.csv"), "a.csv", "csv", **parts)  # type: ignore[arg-type]


def test_the_message_about_a_row() -> None:
    assert reject_message(request(), Reject(1_234, "id", "wrong", "x")) == "  a.csv, line 1,234, column id: wrong"
    assert reject_message(request(), Reject(0, "", "wrong", "x")) == "  a.csv: wrong"


def test_the_file_of_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    write_rejects(Own(str(path)), "a.csv", [Reject(2, "id", 'it\'s "x"', "x,\ud800\ny"), Reject(3, "", "e", "")])
    assert path.read_text() == 'file,line,column,error,row\na.csv,2,id,"it\'s ""x""","x,?\ny"\na.csv,3,,e,\n'


def test_a_file_of_bad_rows_that_cannot_be_written_is_left(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("kept\n")
    with pytest.raises(AttributeError):
        write_rejects(Own(str(path)), "a.csv", [Reject(2, "id", "wrong", "x"), None])  # type: ignore[list-item]
    assert path.read_text() == "kept\n"
    assert [each.name for each in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize(
    ("data", "form", "ending"),
    [
        (b"", "csv", ""),
        (b"a,b\n", "csv", ""),
        (b"PAR1x", "parquet", ""),
        (b"\xef\xbb\xbf \n[1]", "json", ""),
        (b'{"a":1}', "json", ""),
        (gzip.compress(b'{"a":1}', mtime=0), "json", ".gz"),
        (gzip.compress(b"a,b\n" * 100_000, mtime=0), "csv", ".gz"),
        (b"\x1f\x8bnot gzip", "csv", ".gz"),
        (b"\x28\xb5\x2f\xfdx", "csv", ".zst"),
    ],
)
def test_the_format_of_data_without_a_name(tmp_path: Path, data: bytes, form: str, ending: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(data)
    assert (format_of_data(path), compression_of(path)) == (form, ending)


def test_data_without_a_name_that_cannot_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError, match=r"^data is a spreadsheet or a zip archive, not a data file$"):
        format_of_data(path)
    with pytest.raises(UsageError, match=rf"^cannot read {tmp_path}: Is a directory$"):
        format_of_data(tmp_path)
