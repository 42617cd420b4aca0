"""All ways of writing a format from a response produce the same bytes and the same errors as from decoded rows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sqlshell.client.statements.protocol import count_rows
from sqlshell.errors import ProtocolError
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.csv_from_json import csv_from_json
from sqlshell.output.writers.formats import FORMATS, Format, format_named
from sqlshell.result import Batch, Column, Rows

PIECES = (
    *(
        '"',
        '\\"',
        "\\",
        "\\\\",
        ",",
        '","',
        "],[",
        "[",
        "]",
        "]]}",
        '"data":[[',
        "{",
        "}",
        ":",
        "null",
        "nul",
        "true",
        "1",
    ),
    *(
        "\n",
        "\r",
        "\t",
        " ",
        "\x00",
        "\x01",
        "\x02",
        '"\x01"',
        '"\x02"',
        "\\u0001",
        "\\ud800",
        "\\u0000",
        "é",
        "\ufeff",
        "a",
        "",
    ),
)
TYPES = ("VARCHAR", "INTEGER", "DOUBLE", "BOOLEAN", "ARRAY<INTEGER>")
VALUES = st.one_of(
    st.none(),
    st.sampled_from(["", "1", "-0.5", "true", "[1]", "a,b", '"', "\\.", "\\N", "\n", "null"]),
    st.text(max_size=4),
)
ROWS = st.lists(st.lists(VALUES, min_size=0, max_size=4), min_size=1, max_size=5)
EVEN = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(VALUES, min_size=width, max_size=width), min_size=1, max_size=5)
)
HEADS = (
    "{",
    '{"sqlState":"00000",',
    '{"data":[["x","y"]],',
    '{"metadata":{"data":[["x","y"]]},',
    '{"message":"\\"data\\":[[",',
)
TAILS = ("}", ',"more":[["1","2"]]}', ',"data":[["1","2"]]}', " }", "}\n")


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Answers, some of them cut, torn or with a piece that belongs elsewhere."""
    rows = draw(st.one_of(ROWS, EVEN))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (",", ":"), (" ,", " :")]))
    text = json.dumps(rows, ensure_ascii=draw(st.booleans()), separators=separators)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.sampled_from(PIECES)) + text[place + draw(st.integers(0, 1)) :]
    body = f'{draw(st.sampled_from(HEADS))}"data":{text}{draw(st.sampled_from(TAILS))}'.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        place = draw(st.integers(0, len(body)))
        body = body[:place] + b"\xff" + body[place:]
    return body


def written(form: Format, batch: Batch, options: WriterOptions) -> bytes | str:
    """The bytes of a format, or what the rows were refused with."""
    writer = form.factory(options)
    columns = [Column(f"c{number}", TYPES[number % len(TYPES)]) for number in range(batch.width)]
    try:
        return b"".join([*writer.begin(columns), *writer.write(batch), *writer.end(Summary(1, True))])
    except ProtocolError as error:
        return error.message


def decoded(form: Format, width: int, body: bytes, options: WriterOptions) -> bytes | str:
    """The same of the rows, which are decoded first, one value at a time."""
    try:
        rows = Batch(width, body=body).rows
    except ProtocolError as error:
        return error.message
    if form.name == "csv":
        return plain_csv(rows, width, options.null or "")
    return written(form, Batch(width, rows=rows), options)


def plain_csv(rows: Rows, width: int, null: str) -> bytes:
    def field(value: str | None) -> str:
        if value is None:
            return null
        special = re.search('[",\r\n]', value) or value in {"", null} or (width == 1 and value == "\\.")
        return '"' + value.replace('"', '""') + '"' if special else value

    lines = [",".join(f"c{number}" for number in range(width)), *(",".join(map(field, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


@given(bodies(), st.integers(1, 4), st.sampled_from([None, "NULL"]))
@example(b'{"data":[["1","a","EXTRA"],["2"]]}', 2, None)
@example(b'{"data":[["1","a",null],["2"]]}', 2, None)
@example(b'{"data":[["1"],["a","2","b"],["c","d"]]}', 2, None)
@example(b'{"data":[["1","a\\\\","x"],["2"]]}', 2, None)
@example(b'{"data":[["1,2"],["a","2","b"]]}', 2, None)
@example(b'{"data":[["1","2"],[]]}', 2, None)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_each_way_is_decoding(body: bytes, width: int, null: str | None) -> None:
    options = WriterOptions(null, table="t")
    try:
        count = count_rows(body)
    except ProtocolError:
        # No result is made of such an answer.
        return
    # A workbook holds the time at which it was made.
    for form in (form for form in FORMATS if not form.binary):
        plain = decoded(form, width, body, options)
        for announced in (count, None):
            assert written(form, Batch(width, body=body, count=announced), options) == plain, form.name


def test_the_short_way_is_taken_and_not_only_left() -> None:
    rows: Rows = [["1", "a,b", None], ["2", "\\", "é"], ["", "x", "y"]]
    batch = Batch(3, body=b'{"data":' + json.dumps(rows, separators=(",", ":")).encode() + b"}", count=3)
    assert written(format_named("csv"), batch, WriterOptions()) == plain_csv(rows, 3, "")
    assert batch.body


def test_only_rows_of_another_form_are_written_one_by_one() -> None:
    body = b'{"data":[["1","a"],["2","b,c"],["3",null],["4","\\n"],["5","d"]]}'
    lines: list[object] = []

    def line(row: Sequence[str | None]) -> str:
        lines.append(row)
        return "special"

    assert csv_from_json(body, 2, 5, line) == b"1,a\nspecial\n3,\nspecial\n5,d\n"
    # Those with an escape come first.
    assert lines == [["4", "\n"], ["2", "b,c"]]


@pytest.mark.parametrize(
    "data",
    [
        b'[["1","a"],["2","b"]],"more":1}',
        b'[["1", "a"],["2","b"]]}',
        b'[["1","a"],["2"]]}',
        b'[["1","a"],["2","b","c"]]}',
        b'[["1","a"]]}',
        b'[["1",2],["3","b"]]}',
        b'[["1","\x01"],["2","b"]]}',
        b'[["1","\x02"],["2","b"]]}',
        b'[["1","\x03"],["2","b"]]}',
        b'[["1","\xff"],["2","b"]]}',
        b'[["1","a\\x"],["2","b"]]}',
        b"[]}",
        b"[[]]}",
    ],
)
def test_what_is_left_to_the_general_writer(data: bytes) -> None:
    assert csv_from_json(b'{"data":' + data, 2, 2, lambda row: "special") is None
