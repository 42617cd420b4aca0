"""Objects of JSON files in columns of structs: keys may be missing, and what would be lost is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlshell.errors import UsageError
from tests.shell.test_reading_files import Loaded

TYPE = (
    'STRUCT<"k" DECIMAL(38,23), "i" INTEGER, "s" STRUCT<"x" VARCHAR, "l" ARRAY<STRUCT<"d" DATE, "two words" BIGINT>>>>'
)
EXACT = "0.12345678901234567890123"


@pytest.mark.parametrize(
    ("value", "row"),
    [
        ("{}", "{'k': NULL, 'i': NULL, 's': NULL}"),
        (f'{{"k":{EXACT}}}', f"{{'k': {EXACT}, 'i': NULL, 's': NULL}}"),
        ('{"i":2,"s":{"x":"a"}}', "{'k': NULL, 'i': 2, 's': {'x': a, 'l': NULL}}"),
        (
            '{"s":{"l":[{"d":"2024-01-31"},{"two words":5},null]}}',
            "{'k': NULL, 'i': NULL, 's': {'x': NULL, 'l': [{'d': 2024-01-31, 'two words': NULL}, "
            "{'d': NULL, 'two words': 5}, NULL]}}",
        ),
        ("null", None),
    ],
)
def test_missing_keys_are_null(tmp_path: Path, value: str, row: str | None) -> None:
    assert Loaded(tmp_path, "a.json", f'{{"m":{value}}}', m=TYPE).rows == [(row,)]
    quoted = value.replace('"', '""')
    assert Loaded(tmp_path, "a.csv", f'n,m\n1,"{quoted}"', n="INTEGER", m=TYPE).rows == [("1", row)]


@pytest.mark.parametrize(
    "value",
    [
        '{"z":1}',
        "[]",
        '{"i":1.5}',
        '{"i":"x"}',
        '{"k":{}}',
        '{"s":{"l":[{"z":1}]}}',
        '{"s":{"l":[{"d":"2024-02-30"}]}}',
    ],
)
def test_objects_that_do_not_fit_are_bad_rows(tmp_path: Path, value: str) -> None:
    [reject] = Loaded(tmp_path, "a.json", f'{{"m":{value}}}', m=TYPE).rejects
    assert reject.error.startswith(f"cannot convert '{value}' to STRUCT<")


def test_a_new_table_takes_all_objects_that_its_types_were_found_in(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, "a.json", '{"m":{"a":1}}\n{"m":{}}\n{"m":{"b":"x"}}\n')
    assert loaded.rows == [("{'a': 1, 'b': NULL}",), ("{'a': NULL, 'b': NULL}",), ("{'a': NULL, 'b': x}",)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
@pytest.mark.parametrize("type_", ["VARCHAR", "JSON"])
@pytest.mark.parametrize(
    "value",
    [
        '{"k":12345678901234567890.123456,"s":"1.10 \\" 5","e":"","n":null,"d":[1,1.10,1e5,-0.0,"x\\\\"]}',
        "[0.30000000000000001]",
        "1.10",
        "1e400",
    ],
)
def test_numbers_keep_all_digits_where_a_text_is_wanted(tmp_path: Path, name: str, type_: str, value: str) -> None:
    data = f'{{"a": {value}}}\n'
    assert Loaded(tmp_path, name, data if name.endswith("l") else f"[{data}]", a=type_).rows == [(value,)]


def test_a_number_of_another_object_with_the_same_key_is_not_taken(tmp_path: Path) -> None:
    data = '{"b": {"a": 0.1000}, "a": 0.10}\n'
    assert Loaded(tmp_path, "a.jsonl", data, a="VARCHAR", b="VARCHAR").rows == [('{"a":0.1000}', "0.10")]


@pytest.mark.parametrize(
    ("name", "data", "rows"),
    [
        ("a.json", '[1,\n[2,\n3], "x\\n"]', ["1", "[2,3]", "x\n"]),
        ("a.jsonl", "1\n\n2.5\n", ["1.0", "2.5"]),
    ],
)
def test_values_that_are_no_objects_are_a_column(tmp_path: Path, name: str, data: str, rows: list[str]) -> None:
    assert Loaded(tmp_path, name, data).rows == [(row,) for row in rows]


def test_values_among_objects_are_bad_rows(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, "a.json", '[1, {"a": 2}, "x"]', a="INTEGER")
    assert loaded.errors == [(1, "expected an object, found number"), (3, "expected an object, found string")]
    assert loaded.rows == [("2",)]


def test_records_that_are_all_malformed_have_their_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read a\.jsonl, line 1, byte 6: unexpected character"):
        Loaded(tmp_path, "a.jsonl", '{"a"\n{"b"\n', a="INTEGER")


def test_keys_that_differ_only_in_case_are_no_keys_of_the_table(tmp_path: Path) -> None:
    for between in (", ", "}\n{"):
        with pytest.raises(UsageError, match="the keys 'a' and 'A' differ only in case"):
            Loaded(tmp_path, "a.jsonl", f'{{"a": 1{between}"A": 2}}\n', a="INTEGER")
    assert Loaded(tmp_path, "b.jsonl", '{"a": 1, "A_1": 2}\n', a="INTEGER", a_1="INTEGER").rows == [("1", "2")]
