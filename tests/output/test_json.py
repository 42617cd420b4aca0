"""JSON keeps the digits of numbers, nested values stay JSON, and everything else is a string."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.output.writer import WriterOptions
from sqlshell.output.writers.json import JsonlWriter, JsonWriter, integer, nested, number
from sqlshell.result import Column, Rows
from tests.output.writing import drawn

COLUMNS = [Column("i", "BIGINT"), Column("d", "DECIMAL(38,10)"), Column("f", "DOUBLE"), Column("b", "BOOLEAN")]


def test_numbers_and_booleans() -> None:
    rows: Rows = [["1", "12345678901234567890.1234567890", "1e300", "true"], [None, None, "NaN", "false"]]
    assert drawn(JsonlWriter(WriterOptions()), COLUMNS, rows) == (
        '{"i":1,"d":12345678901234567890.1234567890,"f":1e300,"b":true}\n{"i":null,"d":null,"f":"NaN","b":false}\n'
    )


@pytest.mark.parametrize("kind", ["BIGINT", "DECIMAL(38,10)", "DOUBLE"])
@pytest.mark.parametrize("text", ["1\n2", "\n1", "1\n", "\n", ""])
def test_a_text_that_is_no_number_is_a_string_among_numbers(kind: str, text: str) -> None:
    lines = drawn(JsonlWriter(WriterOptions()), [Column("n", kind)], [["1"], [text], ["2"]]).splitlines()
    assert [json.loads(line)["n"] for line in lines] == [1, text, 2]


def test_an_array_over_batches() -> None:
    columns = [Column("a%s", "VARCHAR"), Column("a%s")]
    text = drawn(JsonWriter(WriterOptions()), columns, [["x", None]], [], [["y\n", '"']])
    assert json.loads(text) == [{"a%s": "x", "a%s_1": None}, {"a%s": "y\n", "a%s_1": '"'}]
    assert drawn(JsonWriter(WriterOptions()), columns) == "[]\n"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1", "1"),
        ("-0", "-0"),
        ("+1", "1"),
        ("007", "7"),
        ("007.50E+5", "7.50e+5"),
        (".5", "0.5"),
        ("1.", "1"),
        ("1E5", "1E5"),
        ("NaN", '"NaN"'),
        ("-Infinity", '"-Infinity"'),
        ("", '""'),
        (".", '"."'),
        (".E5", '".E5"'),
        ("00", "0"),
        ("-", '"-"'),
        ("1_0", '"1_0"'),
        ("0x10", '"0x10"'),
        ("1 ", '"1 "'),
    ],
)
def test_numbers_keep_their_value(text: str, same: str) -> None:
    assert number(text) == same


def test_integers_with_an_exponent_are_exact() -> None:
    assert integer("9.223372036854775807E+18") == "9223372036854775807"
    assert integer("1.5") == "1.5"
    assert integer("1e399") == f"1{'0' * 399}"
    assert integer("1e400") == "1e400"
    assert integer("1e999999") == "1e999999"


@pytest.mark.parametrize(
    ("text", "same"),
    [("[1,2]", "[1,2]"), ('{"a":\n1.10}', '{"a":1.10}'), ("[1,", '"[1,"'), ("NaN", '"NaN"'), ("[" * 5000, None)],
)
def test_nested_values_stay_json(text: str, same: str | None) -> None:
    assert nested(text) == (json.dumps(text) if same is None else same)


@given(st.lists(st.tuples(st.none() | st.text(st.characters(exclude_categories=["Cs"]))), min_size=1, max_size=5))
@settings(max_examples=100, deadline=None)
def test_texts_come_back(rows: list[tuple[str | None]]) -> None:
    text = drawn(JsonlWriter(WriterOptions()), [Column("t")], [list(row) for row in rows])
    assert [json.loads(line)["t"] for line in text.split("\n")[:-1]] == [row[0] for row in rows]


@pytest.mark.slow("many generated cases")
@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
@settings(max_examples=100, deadline=None)
def test_decimals_come_back(values: list[Decimal]) -> None:
    rows: Rows = [[str(value)] for value in values]
    text = drawn(JsonlWriter(WriterOptions()), [Column("d", "DECIMAL(38,10)")], rows)
    assert [json.loads(line, parse_float=Decimal, parse_int=Decimal)["d"] for line in text.split("\n")[:-1]] == values
