"""Numbers of files in the types of a new table: exact where a type holds them, and never infinite without a word."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sqlshell.errors import UsageError
from sqlshell.origin import Own
from sqlshell.shell.loading.file_layout import FileLayout
from sqlshell.shell.loading.matching import match_columns, new_columns
from sqlshell.shell.loading.request import request_of
from sqlshell.shell.loading.source import ConvertedRows, DataFile
from sqlshell.sql.analysis.copy_statements import read_copy


def read(folder: Path, name: str, data: str, most: int = 0) -> tuple[FileLayout, ConvertedRows, list[str]]:
    """What a file is found to contain, and its values as the SQL that a new table is filled with."""
    path = folder / name
    path.write_bytes(gzip.compress(data.encode()) if name.endswith(".gz") else data.encode())
    request = request_of(read_copy("COPY t FROM 'x' WITH (CREATE)", command=True), Own(str(path)), name)
    file = DataFile(request, folder)
    try:
        looked = file.look(())
        found = match_columns(request, looked, new_columns(looked))
        staged = file.stage(looked, found.pairs, most)
        return looked, staged, list(file.literals(staged, found.targets, 0)) if not staged.rejects else []
    finally:
        file.close()


@pytest.mark.parametrize(
    ("name", "data", "type_", "values"),
    [
        ("a.csv", "n\n99999999.999999999\n1\n", "DECIMAL(38,9)", ["99999999.999999999", "1.000000000"]),
        ("a.csv", "n\n-0.1234567890123456789\n", "DECIMAL(38,19)", ["-0.1234567890123456789"]),
        ("a.json", '{"n":12345678901234567890123}\n{"n":2}\n', "DECIMAL(38,0)", ["12345678901234567890123", "2"]),
        ("a.json.gz", '[{"n":12345678901234567890123}]', "DECIMAL(38,0)", ["12345678901234567890123"]),
        ("a.json", '{"n":0.12345678901234567891}', "DECIMAL(38,20)", ["0.12345678901234567891"]),
        # Every digit of a DOUBLE, as C and R write it, needs no other type.
        ("a.csv", "n\n0.10000000000000001\n1e300\n-inf\n", "DOUBLE", ["0.1", "1e+300", "CAST('-inf' AS DOUBLE)"]),
        ("a.json", '{"n":0.30000000000000004}\n{"n":2.5}', "DOUBLE", ["0.30000000000000004", "2.5"]),
    ],
)
def test_new_columns_hold_all_digits(tmp_path: Path, name: str, data: str, type_: str, values: list[str]) -> None:
    looked, _, found = read(tmp_path, name, data)
    assert [column.table_type for column in looked.columns] == [type_]
    assert found == [f"({value})" for value in values]
    assert looked.warnings == ()


@pytest.mark.parametrize("numbers", [("1e5", "0.1234567890123456789"), ("1.5", "0." + "1234567890" * 4)])
@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_digits_that_no_type_keeps_are_reported(tmp_path: Path, numbers: tuple[str, str], name: str) -> None:
    data = "\n".join(("n", *numbers) if name == "a.csv" else [f'{{"n":{number}}}' for number in numbers])
    looked, _, _ = read(tmp_path, name, data)
    assert looked.columns[0].table_type == "DOUBLE"
    assert looked.warnings == (
        f"{name}, column n: some numbers have more digits than a DOUBLE can store; "
        "create the table with a VARCHAR column to keep all digits",
    )


def test_numbers_that_are_too_large_are_not_infinite(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\.csv, line 2, column n: '1e400' is out of range for DOUBLE"):
        read(tmp_path, "a.csv", "n\n1e400\n2.5\n")
    _, staged, _ = read(tmp_path, "a.json", '{"n":1e400}\n{"n":2.5}', most=1)
    assert [(item.line, item.error) for item in staged.rejects] == [(1, "cannot convert '1e400' to DOUBLE")]
    assert staged.rows == 1


def test_what_is_no_number_is_a_bad_row_still(tmp_path: Path) -> None:
    rows = ["0.12345678901234567"] * 30_000
    _, staged, _ = read(tmp_path, "a.csv", "\n".join(["n", *rows, "x12345678901234567890"]), most=1)
    assert [item.line for item in staged.rejects] == [30_002]


def test_whole_numbers_in_every_spelling_are_read_as_such(tmp_path: Path) -> None:
    spelled = {"007": 7, "+5": 5, " 6 ": 6, "1_000": 1000, "0x1F": 31, "8.0": 8, "1e3": 1000, "-0": 0, "": "NULL"}
    data = "n,text\n" + "1,a\n" * 30_000 + "".join(f"{text},b\n" for text in spelled)
    looked, _, found = read(tmp_path, "a.csv", data)
    assert looked.columns[0].table_type == "BIGINT"
    assert found[30_000:] == [f"({value}, 'b')" for value in spelled.values()]


@pytest.mark.parametrize("last", ["2.5,b", "2.5,b\nwrong,c", "wrong,c\n25e-1,b"])
def test_a_fraction_among_whole_numbers_is_an_error_with_its_line(tmp_path: Path, last: str) -> None:
    line = 30_002 + last.startswith("wrong")
    with pytest.raises(UsageError, match=rf"a.csv, line {line}, column n: '2.*' has a fraction"):
        read(tmp_path, "a.csv", "n,text\n" + "1,a\n" * 30_000 + f"{last}\n", most=5)
