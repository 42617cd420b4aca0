"""CSV and TSV are lossless: NULL, '', quotes, line breaks, and values that look like NULL."""

from __future__ import annotations

import csv
import io
import json

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.errors import UsageError
from sqlshell.output.writer import Summary, Writer, WriterOptions
from sqlshell.output.writers.csv_from_json import csv_from_json
from sqlshell.output.writers.delimited import CsvWriter, TsvWriter
from sqlshell.result import Batch, Column, Rows

SPECIAL = st.sampled_from(
    ["", "null", "a,b", '"', '""', "\n", "\r\n", "],[", '","', "\\N", "\\.", " ", "\x00", "\t", "\\", '"],["\\']
)
VALUES = st.one_of(st.none(), SPECIAL, st.text(st.characters(exclude_categories=["Cs"]), max_size=8))


def tables(least: int = 1) -> st.SearchStrategy[Rows]:
    return st.integers(least, 4).flatmap(
        lambda width: st.lists(st.lists(VALUES, min_size=width, max_size=width), min_size=1, max_size=8)
    )


def written(writer: Writer, rows: Rows, *, body: bool = False, spaced: bool = False) -> bytes:
    width = len(rows[0])
    columns = [Column(f"c{number}") for number in range(width)]
    if body:
        text = json.dumps(rows, ensure_ascii=False, separators=None if spaced else (",", ":"))
        batch = Batch(width, body=f'{{"sqlState":"00000","data":{text}}}'.encode(), count=len(rows))
    else:
        batch = Batch(width, rows=rows)
    return b"".join([*writer.begin(columns), *writer.write(batch), *writer.end(Summary(len(rows), True))])


def read_back(text: str) -> Rows:
    """A CSV reader that tells NULL from '', which Python's does not."""
    rows: Rows = []
    row: list[str | None] = []
    value, quoted, position = "", False, 0
    while position < len(text):
        char = text[position]
        if char == '"' and not value and not quoted:
            quoted = True
            end = position + 1
            while text[end : end + 2] == '""' or text[end] != '"':
                step = 2 if text[end : end + 2] == '""' else 1
                value += text[end]
                end += step
            position = end
        elif char in ",\n":
            row.append(value if value or quoted else None)
            value, quoted = "", False
            if char == "\n":
                rows.append(row)
                row = []
        else:
            value += char
        position += 1
    return rows


@pytest.mark.parametrize("value", ["a,b", "a\nb", 'a"b', "a\rb", "", None], ids=repr)
def test_a_value_that_needs_care_comes_back(value: str | None) -> None:
    several: list[Rows] = [[[value, "x"]], [["x", value]], [["x", "y"], ["x", value], ["x", "y"]]]
    for rows in several:
        assert read_back(written(CsvWriter(WriterOptions()), rows).decode())[1:] == rows


@pytest.mark.slow("many generated cases")
@given(tables())
@settings(max_examples=300, deadline=None)
def test_csv_comes_back(rows: Rows) -> None:
    text = written(CsvWriter(WriterOptions()), rows).decode("utf-8", "surrogatepass")
    assert read_back(text)[1:] == rows


@pytest.mark.slow("many generated cases")
@given(tables(least=2), st.booleans())
@settings(max_examples=400, deadline=None)
def test_csv_from_the_answers_text_is_the_same(rows: Rows, spaced: bool) -> None:
    decoded = written(CsvWriter(WriterOptions()), rows)
    assert written(CsvWriter(WriterOptions()), rows, body=True, spaced=spaced) == decoded


PLAIN: Rows = [["1", "abc", None], ["2", "", "x"], [None, None, None], ["null", "nulls", "a null"]]


def test_plain_answers_take_the_short_way() -> None:
    body = b'{"data":' + json.dumps(PLAIN, separators=(",", ":")).encode() + b"}"
    assert csv_from_json(body, 3, 4, ",".join) == b'1,abc,\n2,"",x\n,,\nnull,nulls,a null\n'  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [
        b'{"data":[["1","2"],["3"]]}',
        b'{"data":[["1","2"],["3","4","5"]]}',
        b'{"data":[["1","2"],["3,4"]]}',
        b'{"data":[["1","2"],["3",4]]}',
        b'{"data":[["1","2"],["3",true]]}',
        b'{"data":[["1", "2"],["3","4"]]}',
        b'{"data":[["1" ,"2"],["3","4"]]}',
        b'{"data":[["1","2"], ["3","4"]]}',
        b'{"data":[["1","2"]]}',
        b'{"data":[["1","2"],["3","4"]],"more":1}',
        b'{"data":[["1","2"],["\xff","4"]]}',
        b'{"data":[["1","2"],["\\ud800","4"]]}',
        b'{"data":null}',
        b"",
    ],
)
def test_what_is_written_otherwise_is_left_to_the_decoder(body: bytes) -> None:
    assert csv_from_json(body, 2, 2, ",".join) is None  # type: ignore[arg-type]


def test_the_bytes_of_csv() -> None:
    rows: Rows = [["1", None, "", "a,b"], ['say "hi"', "two\nlines", " x ", "\r"]]
    assert written(CsvWriter(WriterOptions()), rows) == (
        b'c0,c1,c2,c3\n1,,"","a,b"\n"say ""hi""","two\nlines", x ,"\r"\n'
    )


def test_a_text_for_null_and_a_value_like_it() -> None:
    rows: Rows = [["NULL", None], ["", "x"]]
    assert written(CsvWriter(WriterOptions(null="NULL")), rows) == b'c0,c1\n"NULL",NULL\n"",x\n'


def test_one_column_of_nulls_survives() -> None:
    text = written(CsvWriter(WriterOptions()), [["a"], [None], [""], ["\\."]]).decode()
    assert text == 'c0\na\n\n""\n"\\."\n'
    assert read_back(text)[1:] == [["a"], [None], [""], ["\\."]]


def test_names_that_are_there_twice() -> None:
    columns = [Column("a"), Column("a"), Column("a_1"), Column("a")]
    assert b"".join(CsvWriter(WriterOptions()).begin(columns)) == b"a,a_2,a_1,a_3\n"


@given(tables(least=2))
@settings(max_examples=60, deadline=None)
def test_python_reads_the_same_texts(rows: Rows) -> None:
    cleaned = [[value.replace("\x00", "") if value else value for value in row] for row in rows]
    text = written(CsvWriter(WriterOptions()), cleaned).decode()
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert found[1:] == [[value or "" for value in row] for row in cleaned]


def test_duckdb_reads_null_and_empty_apart(tmp_path: object) -> None:
    path = f"{tmp_path}/x.csv"
    rows: Rows = [["1", None, ""], ["2", "x", None], ["3", "a,b", 'q"q']]
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(written(CsvWriter(WriterOptions()), rows))
    with duckdb.connect() as connection:
        connection.execute(f"from read_csv('{path}', all_varchar = true, allow_quoted_nulls = false)")
        found = connection.fetchall()
    assert [list(row) for row in found] == rows


@pytest.mark.slow("many generated cases")
@given(tables())
@settings(max_examples=200, deadline=None)
def test_tsv_comes_back(rows: Rows) -> None:
    text = written(TsvWriter(WriterOptions()), rows).decode("utf-8", "surrogatepass")
    back: Rows = []
    for line in text.split("\n")[1:-1]:
        row: list[str | None] = []
        for field in line.split("\t"):
            row.append(None if field == "\\N" else _unescaped(field))
        back.append(row)
    assert back == rows


def _unescaped(field: str) -> str:
    out, chars = "", iter(field)
    for char in chars:
        out += {"t": "\t", "n": "\n", "r": "\r"}.get(following := next(chars), following) if char == "\\" else char
    return out


@pytest.mark.parametrize("null", ["a,b", 'a"', "a\nb", "a\rb"])
def test_a_text_for_null_that_csv_cannot_tell_is_refused(null: str) -> None:
    with pytest.raises(UsageError, match="csv cannot represent NULL as"):
        CsvWriter(WriterOptions(null=null))
    assert written(CsvWriter(WriterOptions(null="-")), [[None, "-", ""]]) == b'c0,c1,c2\n-,"-",""\n'


@pytest.mark.parametrize(("writer", "head"), [(CsvWriter, b'a,"b,c"\n'), (TsvWriter, b"a\tb,c\n")])
def test_the_header_is_written_where_there_are_columns_and_it_is_wanted(
    writer: type[CsvWriter] | type[TsvWriter], head: bytes
) -> None:
    columns = [Column("a"), Column("b,c")]
    assert b"".join(writer(WriterOptions()).begin(columns)) == head
    assert b"".join(writer(WriterOptions(header=False)).begin(columns)) == b""
    assert b"".join(writer(WriterOptions()).begin([])) == b""
    assert b"".join(writer(WriterOptions()).write(Batch(0, rows=[]))) == b""
