"""Bytes are base64 on the wire and in JSON, `\\x…` for people and in delimited files."""

from __future__ import annotations

import json

import pytest

from sqlshell.output.changes import hexadecimal
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.formats import format_named
from sqlshell.result import Batch, Column, StoredColumn

COLUMNS = [Column("b", "VARBINARY"), Column("t", "VARCHAR"), Column("w", "BYTES")]
ROWS: list[list[str | None]] = [["YWL/", "YWL/", None], ["", "no base64", "not base64!"]]


def written(name: str, body: bytes = b"", rows: list[list[str | None]] | None = None) -> str:
    writer = format_named(name).factory(WriterOptions())
    batch = Batch(len(COLUMNS), body=body, count=2) if body else Batch(len(COLUMNS), rows=rows or ROWS)
    chunks = [*writer.begin(COLUMNS), *writer.write(batch), *writer.end(Summary(2, True))]
    return b"".join(chunks).decode()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("csv", "b,t,w\n\\x6162ff,YWL/,\n\\x,no base64,not base64!\n"),
        ("tsv", "b\tt\tw\n\\\\x6162ff\tYWL/\t\\N\n\\\\x\tno base64\tnot base64!\n"),
    ],
)
def test_delimited_formats_have_hexadecimal_digits(name: str, text: str) -> None:
    assert written(name) == text
    body = json.dumps({"data": ROWS}).encode()
    assert written(name, body) == text


@pytest.mark.parametrize("name", ["table", "vertical"])
def test_people_see_hexadecimal_digits(name: str) -> None:
    shown = written(name)
    assert "\\x6162ff" in shown
    assert "YWL/" in shown
    assert "not base64!" in shown


def test_json_keeps_base64() -> None:
    assert json.loads(written("json"))[0] == {"b": "YWL/", "t": "YWL/", "w": None}
    assert json.loads(written("jsonl").splitlines()[0])["b"] == "YWL/"


@pytest.mark.parametrize("text", ["\\x6162", "YWL", "a b", "é"])
def test_a_text_that_is_no_base64_stays(text: str) -> None:
    assert hexadecimal(text) == text


@pytest.mark.parametrize("name", ["csv", "tsv"])
def test_lines_of_a_file_have_hexadecimal_digits_unless_it_has_base64(name: str) -> None:
    writer = format_named(name).factory(WriterOptions())
    assert writer.by_sql == "lines"
    text = StoredColumn(COLUMNS[1], "t", "varchar", "t")
    assert "lower(hex(b))" in (writer.line([StoredColumn(COLUMNS[0], "b", "blob", "base64(b)"), text]) or "")
    assert writer.line([text, StoredColumn(COLUMNS[2], "w", "varchar", "w")]) is None
