"""With spreadsheet_safe no value and no name is a formula where a spreadsheet opens the file; all else is as before."""

from __future__ import annotations

import pytest

from sqlshell.output.changes import ChangedWriter
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.formats import format_named
from sqlshell.output.writers.table import TableWriter
from sqlshell.result import Batch, Column, Rows
from tests.output.writing import drawn


def kept(name: str, columns: list[Column], rows: Rows, *, safe: bool = True) -> str:
    return drawn(format_named(name).factory(WriterOptions(spreadsheet_safe=safe)), columns, rows)


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+A1",
        "-A1",
        "@SUM(A1)",
        "\uff1d1",
        "\uff0bA1",
        "\uff0dA1",
        "\uff20A1",
        "=",
        "-",
        "-1x",
        "+1+1",
        "-.e1",
        "-\N{ARABIC-INDIC DIGIT ONE}",
    ],
)
def test_what_begins_like_a_formula(text: str) -> None:
    for name in ("csv", "tsv"):
        assert kept(name, [Column(text)], [[text]]) == f"'{text}\n'{text}\n"
        assert kept(name, [Column(text)], [[text]], safe=False) == f"{text}\n{text}\n"


def test_blanks_before_a_formula_are_none() -> None:
    assert kept("csv", [Column("a")], [["\t=1"], ["\r=1"], ["\n=1"]]) == 'a\n\'\t=1\n"\'\r=1"\n"\'\n=1"\n'


@pytest.mark.parametrize("text", ["-1", "+1", "-1.5", "-.5", "-1.", "-1e9", "+1.5E-10", "a=1", "1-1", " =1", "'=1"])
def test_numbers_and_other_texts_are_not_changed(text: str) -> None:
    assert kept("csv", [Column(text)], [[text]]) == f"{text}\n{text}\n"


def test_null_is_no_text_and_other_formats_are_not_changed() -> None:
    columns = [Column("a", "BYTES"), Column("b")]
    assert kept("csv", columns, [[None, None], ["PQ==", ""]]) == 'a,b\n,\n\\x3d,""\n'
    assert kept("json", [Column("a")], [["=1"]]).strip() == '[{"a":"=1"}]'


def test_rows_that_a_writer_holds_back_are_asked_for() -> None:
    writer = ChangedWriter(TableWriter(WriterOptions()), None, safe=True)
    begun = [*writer.begin([Column("a")]), *writer.write(Batch(1, rows=[["=1"]]))]
    assert (begun, writer.buffering) == ([], True)
    shown = b"".join(writer.settle())
    assert b"| '=1 |" in shown
    assert not writer.buffering
    assert b"+" in b"".join(writer.end(Summary(1, True)))
