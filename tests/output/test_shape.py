"""The display format of values, and tables that fit the screen."""

from __future__ import annotations

import json
import locale
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.output.changes import ChangedWriter
from sqlshell.output.text.cells import cells
from sqlshell.output.text.display import (
    in_time_zone,
    indented,
    locale_grouping,
    with_digit_groups,
)
from sqlshell.output.text.lines import cut_painted
from sqlshell.output.writer import DisplayFormat, Role, Screen, Summary, Writer, WriterOptions
from sqlshell.output.writers.fitting import AutoWriter, FoldWriter, table_width
from sqlshell.output.writers.formats import format_named
from sqlshell.result import Batch, Column, Rows
from tests.output.writing import drawn


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", "1"),
        ("999", "999"),
        ("1000", "1,000"),
        ("-1234567", "-1,234,567"),
        ("1234567.891", "1,234,567.891"),
        ("12345678901234567890123456789", "12,345,678,901,234,567,890,123,456,789"),
        ("1e30", "1e30"),
        ("1234.5e-3", "1,234.5e-3"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("", ""),
        (".5", ".5"),
        ("123" * 2000, ",".join(["123"] * 2000)),
    ],
)
def test_numbers_are_grouped(value: str, expected: str) -> None:
    assert with_digit_groups(value, ",", ".") == expected


def test_a_locale_s_separators() -> None:
    assert with_digit_groups("1234567.5", ".", ",") == "1.234.567,5"
    assert with_digit_groups("-.5", ".", ",") == "-,5"
    assert with_digit_groups("1234567.5", "\u202f", ",") == "1\u202f234\u202f567,5"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-01-01 00:30:00Z", "2024-01-01 01:30:00+01:00"),
        ("2024-07-01T00:30:00.123456789Z", "2024-07-01T02:30:00.123456789+02:00"),
        ("2023-12-31 23:30:00+00", "2024-01-01 00:30:00+01"),
        ("2024-01-01 00:30:00+05:30", "2023-12-31 20:00:00+01:00"),
        ("2024-01-01 00:30:00", "2024-01-01 00:30:00"),
        ("infinity", "infinity"),
        ("2024-13-01 00:30:00Z", "2024-13-01 00:30:00Z"),
        ("9999-12-31 23:59:59Z", "9999-12-31 23:59:59Z"),
    ],
)
def test_instants_in_a_zone(value: str, expected: str) -> None:
    assert in_time_zone(value, ZoneInfo("Europe/Berlin")) == expected


def test_nested_values_are_laid_out() -> None:
    value = '{"a": 1.50, "b": [1, 2, 3], "long": {"c": "a text that goes on and on", "d": []}, "n": null, "big": 1e400}'
    text = indented(value)
    assert "\n  " in text
    assert '"a": 1.50' in text
    assert "1e400" in text
    assert indented('{"a": 1}') == '{"a": 1}'
    assert indented("[not json" + " " * 60) == "[not json" + " " * 60


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.slow("many generated cases")
@given(JSON)
@settings(deadline=None)
def test_laid_out_values_are_the_same(value: object) -> None:
    assert json.loads(indented(json.dumps(value))) == value


def test_long_cells_are_shortened_and_counted() -> None:
    writer = format_named("table").factory(WriterOptions(display=DisplayFormat(width=6)))
    columns = [Column("t"), Column("n", "BIGINT"), Column("w", display_hint="nowrap"), Column("m")]
    text = drawn(
        writer, columns, [["a long text", "123456789", "a long text", "x\na long line"], [None, None, None, ""]]
    )
    assert "a lon…" in text
    assert "123456789" in text
    assert "a long text |" in text
    assert "a lon…" in text.splitlines()[4]
    assert writer.look.shortened == 2


def test_a_value_that_the_table_cuts_again_is_counted_once() -> None:
    writer = ChangedWriter(
        AutoWriter(WriterOptions(screen=Screen(40, cuts=True)), 40), DisplayFormat(width=60, screen=True), safe=False
    )
    rows: Rows = [["x", "3"] for _ in range(20)]
    rows[:2] = [["long " * 20, "1"], ["long " * 9, "2"]]
    text = drawn(writer, [Column("t"), Column("n", "BIGINT")], rows)
    assert text.count("…") == 2
    assert writer.look.shortened == 2


def test_only_records_may_be_wrapped() -> None:
    rows: Rows = [["x" * 60, "1"]]
    columns = [Column("t"), Column("n", "BIGINT")]
    for width, wraps in ((40, True), (80, False)):
        for screen in (Screen(width), None):
            writer = AutoWriter(WriterOptions(screen=screen), width)
            drawn(writer, columns, rows)
            assert writer.look.wraps is wraps


def test_changed_cells_of_records_are_marked() -> None:
    def paint(text: str, role: Role) -> str:
        return f"\x1b[7m{text}\x1b[0m" if role == "changed" else text

    columns = [Column(f"c{at}") for at in range(3)]
    options = WriterOptions(paint=paint, changed=frozenset({(0, 1)}), screen=Screen(40))
    one = drawn(AutoWriter(options, 40), columns, [["x" * 20, "y" * 20, "z" * 20]])
    assert "RECORD 1" in one
    assert one.count("\x1b[7m") == 1
    assert f"c1 │ \x1b[7m{'y' * 20}\x1b[0m\n" in one
    two = drawn(AutoWriter(options, 40), columns, [[each * 8 for each in row] for row in ("xyz", "uvw")])
    assert "\x1b[7myyyyyyyy" in two
    assert two.count("\x1b[7m") == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("abcdef", "abcdef"),
        ("abcdefg", "abcde…"),
        ("\x1b[1mabc\x1b[0mdef", "\x1b[1mabc\x1b[0mdef"),
        ("\x1b[1mabc\x1b[0mdefg", "\x1b[1mabc\x1b[0mde\x1b[0m…"),
        ("\x1b[1mabcdef\x1b[0mg", "\x1b[1mabcde\x1b[0m…"),
        ("日本語日", "日本…"),
    ],
)
def test_a_line_with_colors_is_cut_at_the_edge(line: str, expected: str) -> None:
    assert cut_painted(line, 6) == expected


@pytest.mark.parametrize(
    "text", ["日本語日本語日本語", "e\u0301" * 20, "👩‍👩‍👧‍👦" * 6, "שלום עולם שלום עולם", "a\u0300\u0301b" * 9]
)
def test_shortened_cells_stay_aligned(text: str) -> None:
    writer = format_named("table").factory(WriterOptions(display=DisplayFormat(width=8)))
    lines = drawn(writer, [Column("t"), Column("u")], [[text, "x"], ["short", "y"]]).splitlines()
    assert len({cells(line) for line in lines}) == 1
    assert cells(lines[3].split("|")[1].strip()) <= 8


def test_records_where_a_table_is_too_wide() -> None:
    columns = [Column("a"), Column("b")]
    narrow = drawn(AutoWriter(WriterOptions(), 80), columns, [["x", "y"]])
    wide = drawn(AutoWriter(WriterOptions(), 20), columns, [["x" * 20, "y"], [None, "z"]])
    assert narrow == drawn(format_named("table").factory(WriterOptions()), columns, [["x", "y"]])
    assert wide == drawn(format_named("vertical").factory(WriterOptions()), columns, [["x" * 20, "y"], [None, "z"]])
    assert drawn(AutoWriter(WriterOptions(), 20), columns) == drawn(
        format_named("table").factory(WriterOptions()), columns
    )


def test_the_choice_is_made_once() -> None:
    writer = AutoWriter(WriterOptions(), 30)
    columns = [Column("a")]
    first: Rows = [["x"]] * 1_200
    text = drawn(writer, columns, first, [["y" * 100]])
    assert "RECORD" not in text
    assert text.count("\n") == 3 + 1_201 + 1


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(12, 60), st.integers(0, 3))
def test_blocks_fit_and_lose_nothing(widths: list[int], screen: int, count: int) -> None:
    columns = [Column(f"c{number}") for number in range(len(widths))]
    rows: Rows = [["x" * width for width in widths] for _ in range(count)]
    text = drawn(FoldWriter(WriterOptions(), screen), columns, rows)
    alone = [table_width(WriterOptions(), [column], [[row[at]] for row in rows]) for at, column in enumerate(columns)]
    for line in text.splitlines():
        assert len(line) <= max(screen, *alone)
    for column in columns:
        assert f" {column.name} " in text
    assert text.count("x") == sum(widths) * count


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"thousands_sep": ".", "decimal_point": ","}, (".", ",")),
        ({"thousands_sep": "", "decimal_point": ","}, (",", ".")),
        (None, (",", ".")),
    ],
)
def test_the_users_locale_is_only_asked(
    monkeypatch: pytest.MonkeyPatch, known: dict[str, str] | None, expected: tuple[str, str]
) -> None:
    chosen: list[str] = []

    def setlocale(category: int, name: str | None = None) -> str:
        assert category == locale.LC_NUMERIC
        if name is not None:
            if known is None:
                raise locale.Error
            chosen.append(name)
        return "before"

    monkeypatch.setattr("locale.setlocale", setlocale)
    monkeypatch.setattr("locale.localeconv", lambda: known)
    assert locale_grouping() == expected
    assert chosen == ([] if known is None else ["", "before"])


@pytest.mark.parametrize(
    ("column", "shape", "value", "expected"),
    [
        (Column("a", "BIGINT"), DisplayFormat(grouping=(",", ".")), "1234", "1,234"),
        (Column("a"), DisplayFormat(grouping=(",", ".")), "1234", "1234"),
        (Column("a", "TIMESTAMP_LTZ(3)"), DisplayFormat(zone="Europe/Berlin"), "2024-01-01 00:00:00Z",
         "2024-01-01 01:00:00+01:00"),
        (Column("a", "TIMESTAMP"), DisplayFormat(zone="Europe/Berlin"), "2024-01-01 00:00:00", "2024-01-01 00:00:00"),
        (Column("a", "TIMESTAMP_LTZ"), DisplayFormat(zone="No/Where"), "2024-01-01 00:00:00Z", "2024-01-01 00:00:00Z"),
        (Column("a"), DisplayFormat(zone="Europe/Berlin"), "2024-01-01 00:00:00Z", "2024-01-01 00:00:00Z"),
        (Column("a", "JSON"), DisplayFormat(indent=True), '{"a": "%s"}' % ("x" * 40), '{\n  "a": "%s"\n}' % ("x" * 40)),
        (Column("a"), DisplayFormat(indent=True), '{"a": "%s"}' % ("x" * 40), '{"a": "%s"}' % ("x" * 40)),
        (Column("a"), DisplayFormat(width=9), "a text of words", "a text o…"),
        (Column("a"), DisplayFormat(width=9, screen=True), "a text of words", "a text…"),
        (Column("a"), DisplayFormat(width=9, screen=True, ellipsis="..."), "a text of words", "a text..."),
        (Column("a", "BIGINT"), DisplayFormat(width=3), "123456", "123456"),
        (Column("a", display_hint="nowrap"), DisplayFormat(width=3), "123456", "123456"),
        (Column("a", "JSON"), DisplayFormat(width=12, indent=True), '{"a": "%s"}' % ("x" * 40), '{\n  "a": "xxx…\n}'),
    ],
)  # fmt: skip
def test_what_is_changed_for_people(column: Column, shape: DisplayFormat, value: str, expected: str) -> None:
    class Noting(Writer):
        buffering = True

        def __init__(self) -> None:
            self.rows: Rows = []

        def write(self, batch: Batch) -> list[bytes]:
            self.rows += batch.rows
            return []

        def begin(self, columns: object) -> list[bytes]:
            return [b"begin"]

        def settle(self) -> list[bytes]:
            return [b"settle"]

        def end(self, summary: object) -> list[bytes]:
            return [b"end"]

    noting = Noting()
    writer = ChangedWriter(noting, shape, safe=False)
    assert [*writer.begin([column, Column("b")]), *writer.settle(), *writer.end(Summary(0, True))] == [
        *(b"begin", b"settle", b"end")
    ]
    assert writer.buffering
    list(writer.write(Batch(2, rows=[[value, "b"], [None, None]])))
    list(writer.write(Batch(2, rows=[])))
    assert noting.rows == [[expected, "b"], [None, None]]
    assert writer.look.shortened == (expected.endswith(("…", "...")) or "…" in expected)
