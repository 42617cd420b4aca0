"""Tables equal those of tabulate for small results, are safe to print, and are never truncated."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from unicodedata import east_asian_width

import pytest
import tabulate
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.errors import UsageError
from sqlshell.output.text.cells import cells, printable
from sqlshell.output.writer import Summary, Writer, WriterOptions, written
from sqlshell.output.writers.fitting import AutoWriter, FoldWriter
from sqlshell.output.writers.formats import FORMATS
from sqlshell.output.writers.records import RecordWriter
from sqlshell.output.writers.styles import style_names
from sqlshell.output.writers.table import SAMPLE, TableWriter
from sqlshell.result import Batch, Column, Rows
from tests.output.writing import drawn

DATA = Path(__file__).parents[1] / "data"
MULTILINE = ["psql", "simple", "plain", "grid", "rounded_grid", "fancy_grid", "heavy_grid", "double_grid", "pretty"]


def by_tabulate(style: str, columns: list[Column], rows: Rows) -> str:
    aligns = ["right" if column.kind.numeric else "left" for column in columns]
    return tabulate.tabulate(
        [["NULL" if value is None else value for value in row] for row in rows],
        [column.name for column in columns],
        tablefmt=style,
        disable_numparse=True,
        preserve_whitespace=True,
        colalign=aligns,
    )


COLUMNS = [Column("id", "INTEGER"), Column("a longer name"), Column("x", "DOUBLE")]
ROWS: Rows = [["1", "abc", "1e5"], ["20", None, "-2.5"], ["300", "", None], ["4", "漢字 é", "0"]]


@pytest.mark.parametrize("style", style_names())
def test_each_style_is_tabulates(style: str) -> None:
    ours = drawn(TableWriter(WriterOptions(table_style=style)), COLUMNS, ROWS)
    assert ours.rstrip("\n") == by_tabulate(style, COLUMNS, ROWS)


TEXT = st.text(st.sampled_from("ab 1漢é😀"), max_size=6)


@given(st.sampled_from(MULTILINE), st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_any_small_table_is_tabulates(style: str, rows: list[tuple[str, str]]) -> None:
    columns = [Column("n", "INTEGER"), Column("t")]
    table: Rows = [list(row) for row in rows]
    ours = drawn(TableWriter(WriterOptions(table_style=style)), columns, table)
    assert ours.rstrip("\n") == by_tabulate(style, columns, table).rstrip("\n")


def test_line_breaks_make_a_row_taller() -> None:
    rows: Rows = [["a\nbcd", "1"], ["x", "2"]]
    columns = [Column("t"), Column("n", "INTEGER")]
    assert drawn(TableWriter(WriterOptions()), columns, rows).rstrip("\n") == by_tabulate("psql", columns, rows)


def test_later_rows_are_never_cut() -> None:
    many: Rows = [["x"]] * SAMPLE
    long = "y" * 500
    text = drawn(TableWriter(WriterOptions()), [Column("t")], many, [[long]], [["z"]])
    assert long in text
    assert text.count("\n") == SAMPLE + 6


def test_an_empty_result_has_its_header() -> None:
    text = drawn(TableWriter(WriterOptions()), [Column("a")])
    assert text == "+-----+\n| a   |\n|-----|\n+-----+\n"


def test_rows_alone_have_no_frame_unless_a_style_was_chosen() -> None:
    columns = [Column("n", "INTEGER"), Column("word")]
    rows: Rows = [["1", "a"], ["12", None]]
    assert written(TableWriter(WriterOptions(header=False)), columns, rows) == b"  1 | a\n 12 | NULL\n"
    assert written(TableWriter(WriterOptions(header=False, table_style="psql")), columns, rows).count(b"+") == 6


def test_an_unknown_style_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        TableWriter(WriterOptions(table_style="rounded"))
    assert "rounded" in caught.value.hint


def is_unsafe() -> list[str]:
    codes = [json.loads(line) for line in DATA.joinpath("strings/terminal-codes.jsonl").read_text().splitlines()]
    bodies = [code["body"] for code in codes]
    naughty = json.loads(DATA.joinpath("strings/blns.json").read_text())
    return [*(f"\x1b{body}" for body in bodies), *(f"\x9b{body}" for body in bodies), *naughty]


STEERING = {*map(chr, range(32)), "\x7f", *map(chr, range(0x80, 0xA0)), "\u202e", "\u2066", "\u2028", "\ufeff"} - {"\n"}


def test_nothing_that_steers_a_terminal_is_drawn() -> None:
    texts = is_unsafe()
    rows: Rows = [[text] for text in texts]
    for writer in (TableWriter(WriterOptions()), RecordWriter(WriterOptions())):
        text = drawn(writer, [Column(texts[0])], rows)
        assert not STEERING & set(text)


def test_programs_get_every_character() -> None:
    texts = is_unsafe()
    for item in FORMATS:
        if not item.for_terminal and not item.binary:
            text = drawn(item.factory(WriterOptions(table="t")), [Column("t")], [[value] for value in texts])
            assert len(text) >= sum(map(len, texts))


@pytest.mark.parametrize("line", DATA.joinpath("strings/widths.jsonl").read_text().splitlines())
def test_widths(line: str) -> None:
    case = json.loads(line)
    text = case["text"][: len(case["each"])] if "substr" in case["test"] else case["text"]
    safe = printable(text)
    # What is no width of the text itself (control characters) is drawn by its escape.
    expected = case["cells"] if safe == text else len(safe) + sum(east_asian_width(one) == "W" for one in safe)
    assert cells(safe) == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("a\tb", "a\\tb"),
        ("\u202eabc", "\\u202eabc"),
        ("a\u115fb\u034f", "a\\u115fb\\u034f"),
        ("é漢한글", "é漢한글"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_vertical() -> None:
    rows: Rows = [["1", "a\nb"], [None, ""]]
    assert drawn(RecordWriter(WriterOptions()), [Column("id", "INTEGER"), Column("text")], rows) == (
        "-[ RECORD 1 ]+----------\nid   | 1\ntext | a\n     | b\n-[ RECORD 2 ]+----------\nid   | NULL\ntext | \n"
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [(WriterOptions(), "(0 rows)\n"), (WriterOptions(header=False), ""), (WriterOptions(footer=False), "")],
)
def test_vertical_says_that_there_are_no_rows(options: WriterOptions, text: str) -> None:
    assert drawn(RecordWriter(options), [Column("id", "INTEGER")], []) == text


@pytest.mark.parametrize(
    "writer",
    [TableWriter(WriterOptions()), AutoWriter(WriterOptions(), 10_000_000), FoldWriter(WriterOptions(), 10_000_000)],
    ids=["table", "auto", "fold"],
)
def test_a_few_enormous_rows_are_a_sample(writer: Writer) -> None:
    list(writer.begin([Column("a")]))
    written = [b"".join(writer.write(Batch(1, rows=[["x" * (1 << 20)]]))) for _ in range(8)]
    assert [bool(chunk) for chunk in written[:4]] == [False, False, False, True]
    assert sum(map(len, written)) > 4 << 20


def test_an_enormous_value_is_held_few_times() -> None:
    value = "x" * (8 << 20)
    writer = TableWriter(WriterOptions())
    tracemalloc.start()
    try:
        assert not [*writer.begin([Column("a")])]
        for _ in writer.write(Batch(1, rows=[[value]])):
            pass
        for _ in writer.end(Summary(1, True)):
            pass
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The frame, the line below the header, and the header or the row while it is drawn.
    assert most < 5.5 * len(value)
