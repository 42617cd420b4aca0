"""Nested values over several lines, and the tables that have them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.output.text.nesting import DEEPEST, LONGEST, over_lines, spaced
from sqlshell.output.writer import Screen, WriterOptions
from sqlshell.output.writers.fitting import AutoWriter
from sqlshell.output.writers.records import RecordWriter
from sqlshell.result import Column, Rows
from tests.output.writing import drawn

ADDRESS = '{"street":"Main St 1","geo":{"lat":52.5,"lon":13.4}}'
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(['":', "{[,", "漢字", "\\"]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.integers(1, 60), st.booleans())
@settings(deadline=None)
def test_only_whitespace_is_changed(value: object, width: int, escaped: object) -> None:
    text = json.dumps(value, ensure_ascii=bool(escaped), separators=(",", ":"))
    made = over_lines(text, width)
    assert json.loads(made) == value
    assert json.loads(spaced(text)) == value
    assert spaced(spaced(text)) == spaced(text)
    if made is not text:
        assert " ".join(line.lstrip() for line in made.split("\n")) == spaced(text)


@pytest.mark.parametrize(
    ("value", "width", "expected"),
    [
        (ADDRESS, 52, ADDRESS),
        (ADDRESS, 40, '{"street": "Main St 1",\n "geo": {"lat": 52.5, "lon": 13.4}}'),
        (ADDRESS, 24, '{"street": "Main St 1",\n "geo": {"lat": 52.5,\n         "lon": 13.4}}'),
        (ADDRESS, 18, '{"street": "Main St 1",\n "geo":\n   {"lat": 52.5,\n    "lon": 13.4}}'),
        ("[1,2,3,10,20,30,100,200]", 12, "[1, 2, 3,\n 10, 20, 30,\n 100, 200]"),
        ('[ { "a" : 1 } , { "b" : [ ] } ]', 12, '[{"a": 1},\n {"b": []}]'),
    ],
)
def test_the_lines(value: str, width: int, expected: str) -> None:
    assert over_lines(value, width) == expected


@pytest.mark.parametrize(
    "value",
    [
        *("{", "[1,2", '{"a"', "[1]]", "[1] 2", "{]", "[}", '["', "{:1}", "plain text", ""),
        *("[a::b, c]", '["a":]:1', "{: 10}"),
        "[" * DEEPEST * 2 + "]" * DEEPEST * 2,
        f"[{'1,' * LONGEST}1]",
    ],
)
def test_what_is_not_json_or_too_long_is_left_alone(value: str) -> None:
    assert over_lines(value, 4) is value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ADDRESS, '{"street": "Main St 1", "geo": {"lat": 52.5, "lon": 13.4}}'),
        ('["a:b,c","\\",\\":1",{"k":null}]', '["a:b,c", "\\",\\":1", {"k": null}]'),
        ("[10:00:00,11:30:00]", "[10:00:00, 11:30:00]"),
        *((value, value) for value in ('{\n "a": 1,\n "b":\t2}', "a,b", '["', "{a=1, b=2}", "", '"a":1,2')),
    ],
)
def test_spaces_in_a_nested_value(value: str, expected: str) -> None:
    assert spaced(value) == expected


def test_a_nested_value_is_shown_in_full() -> None:
    columns = [Column("id", "INTEGER"), Column("address", "STRUCT<street VARCHAR>"), Column("t", "VARCHAR")]
    rows: Rows = [["1", ADDRESS, "short"], ["2", None, "short"], ["3", "{}", "short"]]
    writer = AutoWriter(WriterOptions(screen=Screen(60, cuts=True)), 60)
    assert drawn(writer, columns, rows) == (
        "╭─────────┬─────────────────────────────────────┬─────────╮\n"
        "│      id │ address                             │ t       │\n"
        "│ integer │ struct<street varchar>              │ varchar │\n"
        "├─────────┼─────────────────────────────────────┼─────────┤\n"
        '│       1 │ {"street": "Main St 1",             │ short   │\n'
        '│         │  "geo": {"lat": 52.5, "lon": 13.4}} │         │\n'
        "├─────────┼─────────────────────────────────────┼─────────┤\n"
        "│       2 │ NULL                                │ short   │\n"
        "│       3 │ {}                                  │ short   │\n"
        "╰─────────┴─────────────────────────────────────┴─────────╯\n"
    )
    assert writer.look.shortened == 0


def test_a_string_that_has_no_room_is_cut_and_counted() -> None:
    columns = [Column("id", "INTEGER"), Column("j", "JSON")]
    rows: Rows = [["2", "[]"] for _ in range(20)]
    rows[0] = ["1", json.dumps({"a": "x" * 300, "b": 1})]
    writer = AutoWriter(WriterOptions(screen=Screen(40, cuts=True)), 40)
    text = drawn(writer, columns, rows)
    assert '"b":1}' in text.replace(" ", "")
    assert "xxx…" in text
    assert writer.look.shortened == 1


def test_a_tall_value_ends_after_some_lines() -> None:
    columns = [Column("id", "INTEGER"), Column("j", "JSON")]
    rows: Rows = [["1", json.dumps({f"key {at}": at for at in range(200)})], ["2", "[]"]]
    writer = AutoWriter(WriterOptions(screen=Screen(40, cuts=True)), 40)
    assert drawn(writer, columns, rows).count("\n") < 60
    assert writer.look.shortened == 1


def test_a_record_has_nested_values_in_full() -> None:
    writer = RecordWriter(WriterOptions(screen=Screen(40)))
    text = drawn(writer, [Column("j", "JSON")], [[ADDRESS]])
    assert 'j │ {"street": "Main St 1",\n  │  "geo": {"lat": 52.5, "lon": 13.4}}\n' in text


def test_a_few_rows_with_many_columns_are_side_by_side() -> None:
    columns = [Column(f"c{at}", "INTEGER" if at % 2 else "VARCHAR") for at in range(12)]
    rows: Rows = [[f"{at}\n2" if at == 2 else str(at) for at in range(12)], [None] * 12]
    writer = AutoWriter(WriterOptions(screen=Screen(40)), 40)
    lines = drawn(writer, columns, rows).split("\n")
    assert lines[:7] == [
        "╭────────┬─────────┬───────┬───────╮",
        "│ column │ type    │ row 1 │ row 2 │",
        "├────────┼─────────┼───────┼───────┤",
        "│ c0     │ varchar │ 0     │ NULL  │",
        "│ c1     │ integer │     1 │  NULL │",
        "│ c2     │ varchar │ 2     │ NULL  │",
        "│        │         │ 2     │       │",
    ]
    assert writer.look.frozen == (3, 10)
    many = drawn(AutoWriter(WriterOptions(screen=Screen(40)), 40), columns, rows * 20)
    assert "RECORD 40" in many
