"""Objects of JSON files in columns of structs: keys may be missing, and what would be lost is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    [reject] = Loaded(tmp_path, "a.json", f'{{"m":{value}}}', m=TYPE).staged.rejects
    assert reject.error.startswith(f"cannot convert '{value}' to STRUCT<")


def test_a_new_table_takes_all_objects_that_its_types_were_found_in(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, "a.json", '{"m":{"a":1}}\n{"m":{}}\n{"m":{"b":"x"}}\n')
    assert loaded.rows == [("{'a': 1, 'b': NULL}",), ("{'a': NULL, 'b': NULL}",), ("{'a': NULL, 'b': x}",)]
