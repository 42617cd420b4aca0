"""Numbers of files in the types of a new table: exact where a type holds them, and never infinite without a word."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import pytest

from tests.shell.test_reading_files import Loaded


def read(folder: Path, name: str, data: str, most: int = 0, options: str = "") -> Loaded:
    """A file for which a table is created."""
    packed = gzip.compress(data.encode()) if name.endswith(".gz") else data
    return Loaded(folder, name, packed, options=", ".join(filter(None, [f"MAX_ERRORS {most}", options])))


@pytest.mark.parametrize(
    ("name", "data", "type_", "values"),
    [
        ("a.csv", "n\n99999999.999999999\n1\n", "DECIMAL(38,9)", ["99999999.999999999", "1.000000000"]),
        ("a.csv", "n\n-0.1234567890123456789\n", "DECIMAL(38,19)", ["-0.1234567890123456789"]),
        ("a.csv", "n\n100000000000000000000\n2\n", "DECIMAL(38,0)", ["100000000000000000000", "2"]),
        ("a.json", '{"n":12345678901234567890123}\n{"n":2}\n', "DECIMAL(38,0)", ["12345678901234567890123", "2"]),
        ("a.json.gz", '[{"n":12345678901234567890123}]', "DECIMAL(38,0)", ["12345678901234567890123"]),
        ("a.json", '{"n":0.12345678901234567891}', "DECIMAL(38,20)", ["0.12345678901234567891"]),
        # Every digit of a DOUBLE, as C and R write it, needs no other type.
        ("a.csv", "n\n0.10000000000000001\n1e300\n-inf\n", "DOUBLE", ["0.1", "1e+300", "CAST('-inf' AS DOUBLE)"]),
        ("a.json", '{"n":0.30000000000000004}\n{"n":2.5}', "DOUBLE", ["0.30000000000000004", "2.5"]),
    ],
)
def test_new_columns_hold_all_digits(tmp_path: Path, name: str, data: str, type_: str, values: list[str]) -> None:
    loaded = read(tmp_path, name, data)
    assert loaded.types == [type_]
    assert loaded.literals == [f"({value})" for value in values]
    assert loaded.warnings == []


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("a.csv", ("1e5", "0.1234567890123456789")),
        ("a.csv", ("1.5", "0." + "1234567890" * 4)),
        ("a.json", ("1.5", "0." + "1234567890" * 4)),
        ("a.csv", ("1", "123456789" * 4 + "123")),
        ("a.csv", ("1", "1" + "0" * 38)),
        ("a.json", ("1", "123456789" * 4 + "123")),
    ],
)
def test_digits_that_no_type_keeps_are_reported(tmp_path: Path, numbers: tuple[str, str], name: str) -> None:
    data = "\n".join(("n", *numbers) if name == "a.csv" else [f'{{"n":{number}}}' for number in numbers])
    loaded = read(tmp_path, name, data)
    assert loaded.types == ["DOUBLE"]
    assert loaded.warnings == [
        f'{name}, column "n": some numbers have more digits than a DOUBLE can store; '
        "create the table with a VARCHAR column to keep all digits"
    ]


@pytest.mark.parametrize(
    ("header", "changed"),
    [("a,A,b", "A to A_1"), ("a,b,a", "a to a_1"), ("a_1,b,c", "")],
)
def test_names_that_a_table_cannot_have_twice_are_reported(tmp_path: Path, header: str, changed: str) -> None:
    loaded = read(tmp_path, "a.csv", f"{header}\n1,2,3\n")
    assert loaded.warnings == ([f"a.csv: duplicate column names were changed: {changed}"] if changed else [])


def test_a_row_of_another_width_is_described(tmp_path: Path) -> None:
    loaded = read(tmp_path, "a.csv", "a,b,c\n1,2,3\n4,5\n6,7,8,9\n", most=2)
    assert [reject.error for reject in loaded.rejects] == ["expected 3 columns, found 2", "expected 3 columns, found 4"]


@pytest.mark.parametrize(("name", "data"), [("a.csv", "n\n1e400\n2.5\n"), ("a.json", '{"n":1e400}\n{"n":2.5}')])
def test_numbers_that_are_too_large_are_not_infinite(tmp_path: Path, name: str, data: str) -> None:
    loaded = read(tmp_path, name, data, most=1)
    assert loaded.errors == [(1 + name.endswith("csv"), "cannot convert '1e400' to DOUBLE")]
    assert loaded.rows == [("2.5",)]


def test_what_is_no_number_is_a_bad_row_still(tmp_path: Path) -> None:
    rows = ["0.12345678901234567"] * 30_000
    loaded = read(tmp_path, "a.csv", "\n".join(["n", *rows, "x12345678901234567890"]), most=1)
    assert [item.line for item in loaded.rejects] == [30_002]


def test_whole_numbers_in_every_spelling_are_read_as_such(tmp_path: Path) -> None:
    spelled = {
        "007": 7,
        "+5": 5,
        " 6 ": 6,
        "1_000": 1000,
        "0x1F": 31,
        "8.0": 8,
        "9.": 9,
        "1e3": 1000,
        "15E-1e": None,
        "-0": 0,
        "": "NULL",
    }
    data = "n,text\n" + "1,a\n" * 30_000 + "".join(f"{text},b\n" for text in spelled)
    loaded = read(tmp_path, "a.csv", data, most=1)
    assert loaded.types[0] == "BIGINT"
    assert loaded.literals[30_000:] == [f"({value}, 'b')" for value in spelled.values() if value is not None]


@pytest.mark.parametrize(
    ("text", "becomes"), [("2.5", 3), ("25e-1", 3), ("1_000.5", 1001), ("0x1.5", None), ("inf", None)]
)
def test_what_is_no_whole_number_is_a_bad_row(tmp_path: Path, text: str, becomes: int | None) -> None:
    data = "n,text\n" + "1,a\n" * 30_000 + f"{text},b\n"
    loaded = read(tmp_path, "a.csv", data, most=5)
    would = "" if becomes is None else f": it would become {becomes}"
    assert loaded.errors == [(30_002, f"cannot convert '{text}' to BIGINT{would}")]
    assert len(loaded.rows) == 30_000
    loaded = read(tmp_path, "a.csv", data, most=5, options="ROUND")
    assert loaded.literals[30_000:] == ([] if becomes is None else [f"({becomes}, 'b')"])


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize(
    ("type_", "text", "becomes"),
    [
        ("DECIMAL(10,2)", "1.005", "1.01"),
        ("DECIMAL(10,2)", "1.500", ""),
        ("DECIMAL(10,2)", "1.5e1", ""),
        ("DECIMAL(10,2)", "1e-3", "0.00"),
        ("TIMESTAMP(6)", "2024-01-02 03:04:05.1234567", "2024-01-02 03:04:05.123457"),
        ("TIMESTAMP(6)", "2024-01-02 03:04:05.1234560", ""),
        ("TIMESTAMP(3)", "2024-01-02 03:04:05.1234", "2024-01-02 03:04:05.1234"),
        ("TIMESTAMP(3)", "2024-01-02 03:04:05.123", ""),
        ("TIMESTAMP(6)", "2024-01-02 03:04:05+02", "2024-01-02 03:04:05"),
        ("TIMESTAMP(6)", "2024-01-02T03:04:05Z", ""),
        ("TIMESTAMP_LTZ(6)", "2024-01-02 03:04:05.1234567+02", "2024-01-02 01:04:05.123457+00"),
        ("TIMESTAMP(9)", "2024-01-02 03:04:05.123456789", ""),
        ("DATE", "2024-01-02 00:00:00", ""),
        ("DATE", "2024-01-02 03:04:05", "2024-01-02"),
        ("TIME(6)", "03:04:05.1234567", "03:04:05.123457"),
        ("TIME(6)", "03:04", ""),
        ("DECIMAL(39,0)", "123456789012345678901234567890123456789", ""),
        ("DECIMAL(39,0)", "1.5", "2"),
    ],
)
def test_what_a_column_does_not_keep_is_a_bad_row_unless_it_may_be_left_out(
    tmp_path: Path, name: str, type_: str, text: str, becomes: str
) -> None:
    if name == "a.parquet":
        duckdb.sql(f"copy (select '{text}' as v) to '{tmp_path}/a.parquet'")
    data = {"a.csv": f"v\n{text}\n", "a.jsonl": f'{{"v": "{text}"}}\n'}.get(name) or (tmp_path / name).read_bytes()
    loaded = Loaded(tmp_path, name, data, v=type_)
    if not becomes:
        assert (len(loaded.rows), loaded.rejects) == (1, [])
        return
    [reject] = loaded.rejects
    assert reject.error == f"cannot convert '{text}' to {type_}: it would become {becomes}"
    assert reject.rounded
    [[value]] = Loaded(tmp_path, name, data, options="ROUND", v=type_).rows
    assert value == becomes


@pytest.mark.parametrize(
    ("source", "type_", "becomes"),
    [
        ("1.005::DECIMAL(10,3)", "DECIMAL(10,2)", "1.01"),
        ("1.5::DOUBLE", "BIGINT", "2"),
        ("timestamp '2024-01-02 03:04:05'", "DATE", "2024-01-02"),
        ("timestamp_ns '2024-01-02 03:04:05.123456789'", "TIMESTAMP(6)", "2024-01-02 03:04:05.123457"),
        ("{'a': 1.5::DOUBLE}", "STRUCT<a INTEGER>", ""),
        ("[1::BIGINT, 99999999999]", "ARRAY<INTEGER>", ""),
    ],
)
def test_a_value_of_parquet_that_its_column_does_not_keep(
    tmp_path: Path, source: str, type_: str, becomes: str
) -> None:
    duckdb.sql(f"copy (select {source} as v) to '{tmp_path}/a.parquet'")
    data = (tmp_path / "a.parquet").read_bytes()
    [reject] = Loaded(tmp_path, "a.parquet", data, v=type_).rejects
    assert reject.error.endswith(f" to {type_}{f': it would become {becomes}' if becomes else ''}")
    if becomes:
        assert Loaded(tmp_path, "a.parquet", data, options="ROUND", v=type_).rows == [(becomes,)]


@pytest.mark.parametrize(
    ("source", "type_", "value"),
    [
        ("0.1::DOUBLE", "FLOAT", "0.1"),
        ("0.1::DOUBLE", "DECIMAL(10,2)", "0.10"),
        ("'nan'::DOUBLE", "FLOAT", "nan"),
        ("1::TINYINT", "BIGINT", "1"),
        ("date '2024-01-02'", "TIMESTAMP(6)", "2024-01-02 00:00:00"),
        ("1::UTINYINT", "VARCHAR", "1"),
        ("'ab'::BLOB", "VARCHAR", "YWI="),
        ("'ab'::BLOB", "VARBINARY", "ab"),
        ("'\\x6162'", "VARBINARY", "ab"),
        ("'[1, 2]'", "ARRAY<INTEGER>", "[1, 2]"),
        ("{'a': 1::TINYINT}", "STRUCT<a INTEGER>", "{'a': 1}"),
        ("'a'::ENUM('a', 'b')", "VARCHAR", "a"),
        ("true", "INTEGER", "1"),
    ],
)
def test_a_value_of_parquet_in_another_type(tmp_path: Path, source: str, type_: str, value: str) -> None:
    duckdb.sql(f"copy (select {source} as v) to '{tmp_path}/a.parquet'")
    loaded = Loaded(tmp_path, "a.parquet", (tmp_path / "a.parquet").read_bytes(), v=type_)
    assert (loaded.rows, loaded.rejects) == ([(value,)], [])
