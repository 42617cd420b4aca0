"""The bad rows of files: their lines, columns and texts in messages and in the file of rejects."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import duckdb
import pytest

from sqlshell.errors import StatementError, UsageError
from sqlshell.origin import Trusted
from sqlshell.shell.loading.convert import Reject
from sqlshell.shell.loading.load import reject_message, write_rejects
from sqlshell.shell.loading.spec import LoadRequest, compression_of, format_of_data
from tests.shell.test_reading_files import Loaded


def mixed(generator: random.Random, end: str) -> tuple[str, list[tuple[int, str]], int]:
    """A file with rows of many forms, the lines and texts of the bad ones, and the number of good ones."""
    forms = [
        ("{n},a,2024-01-02", True),
        ("{n},a b,", True),
        (f'{{n}},"x{end}y",2024-01-02', True),
        (f'{{n}},"say ""hi"", {end}{end}you",2024-01-02', True),
        ('"{n}",a"b,"2024-01-02"', True),
        ("{n},a,2024-01-02,", True),
        ("x{n},a,2024-01-02", False),
        (f'{{n}},"p{end}q",2024-02-30', False),
        ("{n}.5,a,2024-01-02", False),
        ("{n}", False),
        ("{n},a,2024-01-02,more,fields", False),
        ('{n},"a"b,2024-01-02', False),
        ("{n},,2024-01-02 10:00:00", False),
    ]
    bad: list[tuple[int, str]] = []
    text, line, good = f"n,t,d{end}", 2, 0
    for number in range(400):
        form, fits = generator.choices(forms, [20, 5, 3, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1])[0]
        row = form.format(n=number)
        good += fits
        if not fits:
            bad.append((line, row))
        blank = generator.random() < 0.05
        text += row + end + end * blank
        line += row.count("\n") + 1 + blank
    return text, bad, good


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_the_places_of_bad_rows(tmp_path: Path, seed: int, end: str, packed: bool) -> None:
    text, bad, good = mixed(random.Random(seed), end)
    data = gzip.compress(text.encode(), mtime=0) if packed else text.encode()
    name = "a.csv.gz" if packed else "a.csv"
    loaded = Loaded(tmp_path, name, data, n="INTEGER", t="VARCHAR", d="DATE")
    assert [(reject.line, reject.row) for reject in loaded.rejects] == bad
    assert len(loaded.rows) == good


def test_the_places_of_bad_rows_in_a_file_that_only_duckdb_unpacks(tmp_path: Path) -> None:
    text, bad, good = mixed(random.Random(1), "\n")
    (tmp_path / "x.csv").write_text(text)
    with duckdb.connect() as connection:
        lines = "delim = '', quote = '', escape = '', header = false, columns = {'l': 'VARCHAR'}, auto_detect = false"
        connection.execute(
            f"COPY (SELECT coalesce(l, '') FROM read_csv('{tmp_path}/x.csv', {lines})) TO '{tmp_path}/a.csv.zst' "
            "(FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\\x01')"
        )
    data = (tmp_path / "a.csv.zst").read_bytes()
    loaded = Loaded(tmp_path, "a.csv.zst", data, n="INTEGER", t="VARCHAR", d="DATE")
    assert [reject.line for reject in loaded.rejects] == [line for line, _ in bad]
    assert len(loaded.rows) == good


@pytest.mark.parametrize(
    ("data", "options", "line", "row"),
    [
        (b"\xef\xbb\xbfn,t\r\n1,a\r\nx,b\r\n", "", 3, "x,b"),
        (b"n;t\n1;'a'';'\nx;'b\nc'\n", "FORMAT csv, HEADER, DELIMITER ';', QUOTE ''''", 3, "x;'b\nc'"),
        (b'n,t\n1,"a\\"b"\nx,"b\\""\n', "FORMAT csv, HEADER, ESCAPE '\\'", 3, 'x,"b\\""'),
        (b'n,t\n1,"a\nx,"b\n', "FORMAT csv, HEADER, QUOTE '', ESCAPE ''", 3, 'x,"b'),
        (b"# one\nn,t\n1,a\nx,b\n", "", 4, "x,b"),
        (b"# one\n\nn,t\n1,a # y\nx,b\n", "", 5, "x,b"),
        (b"n,t\n1,\xe9\nx,\xe9\n", "ENCODING latin1, SNIFF", 3, "x,\xe9"),
        (b"1,a\n2,b\nx,c\n", "FORMAT csv", 3, "x,c"),
        (b"x,c\n2,b\n", "FORMAT csv", 1, "x,c"),
    ],
)
def test_the_place_of_a_bad_row_in_a_file_of_another_form(
    tmp_path: Path, data: bytes, options: str, line: int, row: str
) -> None:
    [reject] = Loaded(tmp_path, "a.csv", data, options=options, n="INTEGER", t="VARCHAR").rejects
    assert (reject.line, reject.row) == (line, row)


@pytest.mark.parametrize("options", ["", "FORMAT csv, HEADER"])
@pytest.mark.parametrize("before", ["# one\n", "# one\n# two, three\n\n"])
def test_only_lines_before_the_header_are_comments(tmp_path: Path, before: str, options: str) -> None:
    data = f"{before}n,t\n1,a # x\n2,#\n# 3,c\n".encode()
    loaded = Loaded(tmp_path, "a.csv", data, options=options, n="INTEGER", t="VARCHAR")
    assert (loaded.rows, [reject.row for reject in loaded.rejects]) == ([("1", "a # x"), ("2", "#")], ["# 3,c"])


def test_the_place_of_a_bad_row_in_a_file_of_one_column(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, "a.csv", "n\n1\n\nx\n\n2\ny\n", n="INTEGER")
    assert [reject.line for reject in loaded.rejects] == [4, 7]
    assert loaded.rows == [("1",), (None,), (None,), ("2",)]


def test_the_place_of_a_bad_row_in_text(tmp_path: Path) -> None:
    data = "1\ta\\nb\nx\t\\N\n2\n3\t\\N\n"
    loaded = Loaded(tmp_path, "a.tsv", data, options="FORMAT text", n="INTEGER", t="VARCHAR")
    assert [(reject.line, reject.row) for reject in loaded.rejects] == [(2, "x\t\\N"), (3, "2")]
    assert loaded.rows == [("1", "a\nb"), ("3", None)]


def test_malformed_lines_of_json_are_bad_rows(tmp_path: Path) -> None:
    lines = ['{"a":1}', '{"a":', "", "nonsense", "[1]", "null", '{"a":2,"a":3}', '{"a":"x\\ud800"}', '{"a":"y"}', "{}"]
    loaded = Loaded(tmp_path, "a.jsonl", "\n".join([*lines, ""]), a="INTEGER")
    assert [(item.line, item.column, item.error, item.row) for item in loaded.rejects] == [
        (2, "", "malformed JSON at byte 6: unexpected end of data", lines[1]),
        (4, "", "malformed JSON at byte 1: invalid literal", lines[3]),
        (5, "", "expected an object, found array", lines[4]),
        (6, "", "expected an object, found null", lines[5]),
        (7, "", 'the key "a" appears twice in an object', lines[6]),
        (8, "", "malformed JSON at byte 14: no low surrogate in string", lines[7]),
        (9, "a", "cannot convert 'y' to INTEGER", lines[8]),
    ]
    assert loaded.rows == [("1",), (None,)]


def test_lines_of_json_that_are_not_text_are_bad_rows(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, "a.jsonl", b'{"a":1}\n{"a":"\xe9"}\n\n{"a":"x"}\n{"a":3}\n', a="INTEGER")
    assert [(reject.line, reject.encoded) for reject in loaded.rejects] == [(2, True), (4, False)]
    assert loaded.rows == [("1",), ("3",)]


@pytest.mark.parametrize(("before", "between", "after"), [("[", ",", "]"), ("", "", "")])
def test_malformed_json_that_is_no_line_is_an_error(tmp_path: Path, before: str, between: str, after: str) -> None:
    data = f'{before}{{\n"a": 1}}{between}\n{{"a": 2x}}{after}'
    with pytest.raises(UsageError, match=r"cannot read a\.json, record 2, byte"):
        Loaded(tmp_path, "a.json", data, a="INTEGER")


def test_a_line_that_is_longer_than_the_buffer_is_a_bad_row(tmp_path: Path) -> None:
    text = "x" * (36 << 20)
    loaded = Loaded(tmp_path, "a.csv", "n,t\n" + "1,a\n" * 30_000 + f"2,{text}\n3,c\n", n="INTEGER", t="VARCHAR")
    assert [reject.line for reject in loaded.rejects] == [30_002]
    assert [row[0] for row in loaded.rows[29_999:]] == ["1", "3"]
    loaded = Loaded(tmp_path, "a.jsonl", f'{{"n": 1}}\n{{"n": "{text}"}}\n{{"n": 3}}\n', n="INTEGER")
    assert [reject.line for reject in loaded.rejects] == [2]
    assert [row[0] for row in loaded.rows] == ["1", "3"]


@pytest.mark.parametrize(
    ("data", "options", "line"),
    [
        ('n,t\n1,"a\n2,b\n', "", 2),
        ('n,t\n1,a\n2,"b\n', "", 3),
        ('n,t\n1,a\n2,"b""\n', "", 3),
        ('n,t\n1,a\n2,"b\\"\n', "FORMAT csv, HEADER, ESCAPE '\\'", 3),
        ("n;t\n1;a\n2;'b\n", "FORMAT csv, HEADER, DELIMITER ';', QUOTE ''''", 3),
        ('n,t\n1,a\n2,"' + "b\n" * 2_000_000, "", 3),
    ],
)
def test_a_quote_that_stays_open_is_no_bad_row(tmp_path: Path, data: str, options: str, line: int) -> None:
    with pytest.raises(StatementError, match=rf"a\.csv, line {line}: unterminated quoted field"):
        Loaded(tmp_path, "a.csv", data, options=options, n="INTEGER", t="VARCHAR")


def test_a_quote_within_a_value_is_a_bad_row(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, "a.csv", 'n,t\n1,a\n2,"a"b\n', n="INTEGER", t="VARCHAR")
    assert [reject.line for reject in loaded.rejects] == [3]


def request(**parts: object) -> LoadRequest:
    return LoadRequest("t", (), Trusted("a.csv"), "a.csv", "csv", **parts)  # type: ignore[arg-type]


def test_the_message_about_a_row() -> None:
    assert reject_message(request(), Reject(1_234, "id", "wrong", "x")) == '  a.csv, line 1,234, column "id": wrong'
    assert reject_message(request(), Reject(0, "", "wrong", "x")) == "  a.csv: wrong"


def test_the_file_of_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    write_rejects(Trusted(str(path)), "a.csv", [Reject(2, "id", 'it\'s "x"', "x,\ud800\ny"), Reject(3, "", "e", "")])
    assert path.read_text() == 'file,line,column,error,row\na.csv,2,id,"it\'s ""x""","x,?\ny"\na.csv,3,,e,\n'


def test_a_file_of_bad_rows_that_cannot_be_written_is_left(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("kept\n")
    with pytest.raises(AttributeError):
        write_rejects(Trusted(str(path)), "a.csv", [Reject(2, "id", "wrong", "x"), None])  # type: ignore[list-item]
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
    with pytest.raises(UsageError, match=rf"^cannot read {tmp_path}: is a directory$"):
        format_of_data(tmp_path)
