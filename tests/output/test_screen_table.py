"""Tables and records at a terminal: copied text is that of the values, and the theme has the colors."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.output.text.cells import cells
from sqlshell.output.text.lines import cut, wrapped
from sqlshell.output.writer import Screen, WriterOptions
from sqlshell.output.writers.fitting import AutoWriter, FoldWriter
from sqlshell.output.writers.formats import format_named
from sqlshell.output.writers.records import RecordWriter
from sqlshell.output.writers.table import SAMPLE, TableWriter
from sqlshell.result import Column, Rows
from sqlshell.shell.front_end import Paint
from sqlshell.shell.interactive.look.paint import painter
from sqlshell.shell.interactive.look.themes import load, names
from tests.goldens import agree
from tests.output.test_table import STEERING, is_unsafe
from tests.output.writing import drawn

SGR = re.compile(r"\x1b\[([0-9;]*)m")
PAINT: Paint | None = painter(load("default"), 1 << 24)
COLUMNS = [
    Column("id", "BIGINT"),
    Column("customer"),
    Column("total", "DOUBLE"),
    Column("paid", "BOOLEAN"),
    Column("placed", "DATE"),
    Column("key"),
    Column("tags", "ARRAY<VARCHAR>"),
]
ROWS: Rows = [
    ["1234567", "Ada", "-1250.5", "true", "2026-01-31", "0b26d1f8-5d0c-4a52-9f3a-0f1c2d3e4f50", '["a","b"]'],
    ["89", "張偉", "99999.125", "false", "2026-02-01", "0b26d1f8-5d0c-4a52-9f3a-0f1c2d3e4f51", "[]"],
    ["-4321", "", "7", None, None, None, None],
    [None, "NULL", None, "true", "2026-02-03", "0b26d1f8-5d0c-4a52-9f3a-0f1c2d3e4f53", '["two\nlines"]'],
    ["1000", None, "1e+20", "true", "2026-02-04", "0b26d1f8-5d0c-4a52-9f3a-0f1c2d3e4f54", "[]"],
]
MOMENTS: dict[str, tuple[list[Column], Rows]] = {
    "table": (COLUMNS, ROWS),
    "wide": ([Column(f"column_{at}") for at in range(12)], [["some value"] * 12, ["another", *[None] * 11]]),
    "nested": (
        [Column("id", "INTEGER"), Column("doc", "STRUCT<name VARCHAR, at ARRAY<INTEGER>>")],
        [["1", '{"name":"Ada","at":[1,2,3]}'], ["2", None]],
    ),
    "empty": (COLUMNS, []),
}


def agree_on_look(name: str, text: str) -> None:
    agree(f"looks/{name}.txt", text.replace("\x1b", "␛"))


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("kind", ["unicode", "ascii"])
def test_the_look_without_colors(moment: str, width: int, kind: str) -> None:
    options = WriterOptions(screen=Screen(width, kind == "unicode", cuts=True))
    text = drawn(AutoWriter(options, width), *MOMENTS[moment])
    assert max(map(cells, text.split("\n"))) <= width
    assert text.isascii() == (kind == "ascii") or "張" in text
    agree_on_look(f"{moment} {width} {kind}", text)


@pytest.mark.parametrize("theme", ["default", "paper"])
@pytest.mark.parametrize("colors", [16, 256, 1 << 24])
def test_the_colors(theme: str, colors: int) -> None:
    options = WriterOptions(paint=painter(load(theme), colors), screen=Screen(120))
    text = drawn(TableWriter(options), COLUMNS, ROWS)
    text += drawn(RecordWriter(options), COLUMNS, ROWS)
    agree_on_look(f"colors {theme} {colors}", text)


@pytest.mark.parametrize(
    ("name", "grouped"),
    [
        *((name, False) for name in ("id", "ID", "customer_id", "customerId", "year", "zip", "zip_code", "barcode")),
        *((name, False) for name in ("order_no", "account.key", "birth year", "orderNo", "port", "item_uuid")),
        *((name, True) for name in ("total", "paid", "valid", "humid", "monkey", "casino", "report", "keys", "years")),
    ],
)
def test_the_digits_of_identifiers_are_not_grouped(name: str, grouped: bool) -> None:
    options = WriterOptions(paint=PAINT, screen=Screen(80))
    columns = [Column(name, "BIGINT")]
    rows: Rows = [["1234567"], ["-7654321"]]
    for writer in (TableWriter(options), RecordWriter(options)):
        text = drawn(writer, columns, rows)
        assert ("1234567" in text, "7654321" in text) == (not grouped, not grouped)
        assert "7654321" in SGR.sub("", text)


VALUES = st.one_of(
    st.none(),
    st.text(st.sampled_from("ab 1漢é😀\x1b\x01\x0e\x1f\n\u202e'NUL%s"), max_size=12),
    st.integers(-(10**12), 10**12).map(str),
    st.floats().map(str),
    st.decimals(allow_nan=False, places=3, min_value=-(10**9), max_value=10**9).map(str),
    st.sampled_from(["true", "false", "2026-01-01", "NULL", "'NULL'", "", "0b26d1f8-5d0c-4a52-9f3a-0f1c2d3e4f53"]),
)
TYPES = ["BIGINT", "DOUBLE", "DECIMAL(12,3)", "VARCHAR", "BOOLEAN", "DATE", "ARRAY<INTEGER>"]


@pytest.mark.slow("many generated cases")
@given(
    st.lists(st.sampled_from(TYPES), min_size=1, max_size=4).flatmap(
        lambda types: st.tuples(
            st.just(types), st.lists(st.lists(VALUES, min_size=len(types), max_size=len(types)), max_size=6)
        )
    ),
    st.sampled_from(names()),
)
@settings(max_examples=200, deadline=None)
def test_colors_change_no_text_and_values_steer_nothing(made: tuple[list[str], Rows], theme: str) -> None:
    """What is copied is what would be there without colors, so that digits stay digits."""
    types, rows = made
    columns = [Column(f"c{at}\x1b[2J", type_name) for at, type_name in enumerate(types)]
    paint = painter(load(theme), 1 << 24)
    for writer in (TableWriter, RecordWriter):
        plain = drawn(writer(WriterOptions(screen=Screen(80))), columns, rows)
        colored = drawn(writer(WriterOptions(paint=paint, screen=Screen(80))), columns, rows)
        assert SGR.sub("", colored) == plain
        assert not STEERING & set(plain)
        # The terminal's own dimming is hardly legible on many of them.
        codes = SGR.findall(re.sub(r"[34]8;2;\d+;\d+;\d+", "", colored))
        assert "2" not in {code for found in codes for code in found.split(";")}
    table = drawn(TableWriter(WriterOptions(screen=Screen(80))), columns, rows)
    assert len({cells(line) for line in table.split("\n")[:-1]}) == 1


def test_hostile_texts() -> None:
    texts = is_unsafe()
    for writer in (TableWriter, RecordWriter):
        text = drawn(
            writer(WriterOptions(paint=PAINT, screen=Screen(80))),
            [Column(texts[0], texts[1])],
            [[each] for each in texts],
        )
        assert not STEERING & set(SGR.sub("", text))


def test_decimals_are_aligned_on_their_point() -> None:
    rows: Rows = [["1.5"], ["-22.25"], ["333"], ["1e+20"], [None], ["NaN"]]
    text = drawn(TableWriter(WriterOptions(screen=Screen(80, types=False))), [Column("n", "DOUBLE")], rows)
    lines = text.split("\n")[3:-2]
    assert lines == [
        "│   1.5  │",
        "│ -22.25 │",
        "│ 333    │",
        "│  1e+20 │",
        "│   NULL │",
        "│ NaN    │",
    ]


def test_groups_of_digits_are_at_the_same_places() -> None:
    assert PAINT is not None
    rows: Rows = [["1234567.25"], ["12345.5"], ["999.0"]]
    text = drawn(TableWriter(WriterOptions(paint=PAINT, screen=Screen(80))), [Column("n", "DOUBLE")], rows)
    dim, off = PAINT("\0", "digits").split("\0")
    assert f" 1{dim}234{off}567.25 " in text
    # The leading group of a number is never dim.
    assert "   12345.5  " in text
    thousands = drawn(
        TableWriter(WriterOptions(paint=PAINT, screen=Screen(80))), [Column("n", "INTEGER")], [["12345"], ["999"]]
    )
    assert f" 12{dim}345{off} " in thousands
    assert "   999 " in thousands
    assert "     999.0  " in text
    years = drawn(TableWriter(WriterOptions(paint=PAINT, screen=Screen(80))), [Column("n", "INTEGER")], [["2026"]])
    assert dim not in years


def test_null_the_text_null_and_the_empty_text_differ() -> None:
    assert PAINT is not None
    text = drawn(TableWriter(WriterOptions(paint=PAINT, screen=Screen(80))), [Column("t")], [[None], ["NULL"], [""]])
    assert PAINT("NULL   ", "null") in text
    assert " 'NULL' " in text


def test_later_rows_are_never_cut() -> None:
    many: Rows = [["x", "1.5"]] * SAMPLE
    rows: Rows = [["y" * 500, "1" * 30 + ".12345"]]
    writer = TableWriter(WriterOptions(screen=Screen(80)))
    text = drawn(writer, [Column("t"), Column("n", "DOUBLE")], many, rows)
    assert "y" * 500 in text
    assert "1" * 30 + ".12345" in text
    assert text.count("\n") == SAMPLE + 6


def test_texts_are_cut_so_that_a_table_fits() -> None:
    words = "several words that are much too long for this screen, which is narrow"
    columns = [Column("id", "INTEGER"), Column("text")]
    writer = AutoWriter(WriterOptions(screen=Screen(50, cuts=True)), 50)
    text = drawn(writer, columns, [["1", words if at == 7 else "short"] for at in range(20)])
    assert "several words that are much too long… " in text
    assert writer.look.shortened == 1
    # Rows for which the screen has enough lines are shown whole.
    writer = AutoWriter(WriterOptions(screen=Screen(50, cuts=True)), 50)
    lines = [
        line.strip() for line in re.findall(r"│([^│\n]*)│\n", drawn(writer, columns, [["1", words], ["2", "short"]]))
    ]
    assert lines[-3:] == ["several words that are much too long for", "this screen, which is narrow", "short"]
    assert writer.look.shortened == 0
    # One row has more room as a record, in which long values have several lines below each other.
    record = drawn(AutoWriter(WriterOptions(screen=Screen(50, cuts=True)), 50), columns, [["1", words]])
    assert record.splitlines()[1:] == [
        "id   │ 1",
        "text │ several words that are much too long for",
        "     │ this screen, which is narrow",
    ]
    # Nothing may be cut: \pset maxwidth 0.
    writer = AutoWriter(WriterOptions(screen=Screen(50)), 50)
    assert "     │ this screen, which is narrow" in drawn(writer, columns, [["1", words], ["2", "short"]])
    assert (writer.look.shortened, writer.look.turned) == (0, True)


def test_records_are_for_columns_that_are_no_texts() -> None:
    """Texts get as narrow as twelve cells before a table becomes records."""
    options = WriterOptions(screen=Screen(60, cuts=True))
    texts = [Column("id", "INTEGER"), *(Column(name) for name in "abc")]
    rows: Rows = [[str(number), *["several words here and there"] * 3] for number in range(20)]
    writer = AutoWriter(options, 60)
    assert "│   0 │ several words… │ several words… │ several words… │" in drawn(writer, texts, rows).replace("\n", "│")
    assert (writer.look.shortened, writer.look.turned) == (60, False)
    times = [Column("id", "INTEGER"), *(Column(name, "TIMESTAMP") for name in "abc")]
    assert "RECORD 1" in drawn(AutoWriter(options, 60), times, [["1", *["2026-01-02 03:04:05.123456"] * 3]] * 2)


def test_a_plan_has_neither_frame_nor_names() -> None:
    options = WriterOptions(screen=Screen(60), layout="plan", width=60)
    one: Rows = [["physical_plan", "╭─ Scan ─╮\n╰────────╯\n"]]
    assert drawn(format_named("table").factory(options), [Column("key"), Column("value")], one) == "Scan\n"
    lines: Rows = [["Seq Scan on t"], ["  Filter: (a > 1)\x1b"]]
    shown = drawn(format_named("table").factory(options), [Column("QUERY PLAN")], lines)
    assert shown == "Seq Scan on t\n  Filter: (a > 1)\\x1b\n"


@settings(max_examples=100, deadline=None)
@given(st.text("ab 漢\n"), st.integers(4, 20))
def test_wrapped_lines_fit_and_are_the_text(text: str, width: int) -> None:
    lines = wrapped(text, width).split("\n")
    assert all(cells(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "").replace("\n", "")


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("two words", 9, "two words"),
        ("several words", 10, "several…"),
        ("several words", 8, "several…"),
        ("unbreakable_word", 8, "unbreak…"),
        ("a unbreakable_word", 8, "a unbre…"),
        ("漢字漢字漢字", 7, "漢字漢…"),
        ("one\ntwo three four", 11, "one\ntwo three…"),
    ],
)
def test_where_a_text_is_cut(text: str, width: int, expected: str) -> None:
    assert cut(text, width) == expected


def test_a_fold_fits_its_screen() -> None:
    columns, rows = MOMENTS["wide"]
    text = drawn(FoldWriter(WriterOptions(screen=Screen(80)), 80), columns, rows)
    assert max(map(cells, text.split("\n"))) <= 80
    assert text.count("╭") > 1


def test_files_have_the_table_of_psql() -> None:
    """Only a terminal gets the look: what a file has by default is what the style psql draws."""
    for name in ("auto", "psql"):
        text = drawn(format_named("table").factory(WriterOptions(table_style=name)), COLUMNS, ROWS)
        assert text == drawn(TableWriter(WriterOptions(table_style="psql")), COLUMNS, ROWS)
        assert text.startswith("+-------")


def test_columns_that_do_not_fit_are_left_out_of_long_results() -> None:
    columns = [Column(f"c{number}", "INTEGER") for number in range(20)] + [Column("note", "VARCHAR")]
    rows: Rows = [[*[str(number)] * 20, "x" * 40] for number in range(60)]
    writer = AutoWriter(WriterOptions(screen=Screen(60, cuts=True)), 60)
    lines = drawn(writer, columns, rows).split("\n")
    assert lines[1] == "│  c0 │  c1 │  c2 │ … │ c18 │ c19 │ note                   │"
    assert lines[4] == "│   0 │   0 │   0 │ … │   0 │   0 │ xxxxxxxxxxxxxxxxxxxxx… │"
    assert (len(lines), writer.look.left_out, writer.look.shortened) == (66, 15, 60)
    # Where nothing may be cut, and where a person sees all of them, there are records.
    whole = AutoWriter(WriterOptions(screen=Screen(60)), 60)
    assert drawn(whole, columns, rows).startswith("─[ RECORD 1 ]")
    few = AutoWriter(WriterOptions(screen=Screen(60, cuts=True)), 60)
    assert drawn(few, columns, rows[:1]).startswith("─[ RECORD 1 ]")
