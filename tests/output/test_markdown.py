"""Markdown shows each value as it is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sqlshell.output.text.cells import distinct_from_null, printable
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.markdown import MarkdownWriter
from sqlshell.result import Batch, Column, Rows

SPECIAL = st.sampled_from(
    [
        *["|", "a|b", "\\", "\\|", "`x`", "*x*", "_x_", "a_b_c", "__", "<b>", "&amp;", "&", "[x](y)", "![x](y)"],
        *["~~x~~", "NULL", "'NULL'", "", " ", "  x  y ", "a\nb", "\n", "# x", "- x", "1. x", "> x", "---", "$x$"],
        *["\x1b[31m", "<br>"],
    ]
)
VALUES = st.one_of(st.none(), SPECIAL, st.text(max_size=6))


def written(names: list[str], rows: Rows, types: list[str] | None = None) -> str:
    columns = [Column(name, kind) for name, kind in zip(names, types or ["VARCHAR"] * len(names), strict=True)]
    writer = MarkdownWriter(WriterOptions())
    chunks = [*writer.begin(columns), *writer.write(Batch(len(names), rows=rows))]
    return b"".join([*chunks, *writer.end(Summary(len(rows), True))]).decode("utf-8", "surrogatepass")


def rendered(text: str) -> list[list[str]]:
    """The cells that a renderer shows, the names first."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            shown = ""
            for child in token.children or []:
                assert child.type in {"text", "text_special", "html_inline"}, child
                if child.type == "html_inline":
                    assert child.content == "<br>"
                shown += "\n" if child.type == "html_inline" else child.content
            rows[-1].append(shown)
    return rows


def test_a_table() -> None:
    assert written(["id", "a|b"], [["1", None], ["-2", "x_y"]], ["INTEGER", "VARCHAR"]) == (
        "| id | a\\|b |\n| ---: | --- |\n| 1 | NULL |\n| -2 | x_y |\n\n"
    )


def test_a_chosen_null_and_text_like_it() -> None:
    for null, shown in (("-|-", "-\\|-"), ("", "")):
        writer = MarkdownWriter(WriterOptions(null=null))
        chunks = [*writer.begin([Column("a")]), *writer.write(Batch(1, rows=[[None], ["x"]])), *writer.settle()]
        assert b"".join(chunks).decode() == f"| a |\n| --- |\n| {shown} |\n| x |\n"
    assert written(["a"], [["NULL"], ["'NULL'"]]) == "| a |\n| --- |\n| 'NULL' |\n| ''NULL'' |\n\n"


def test_letters_of_other_scripts_and_what_is_written_without_a_need() -> None:
    # Escapes stand where the text would be markup, and nowhere else.
    assert written(["é"], [["a_b é"], ["_a"], ["a_ b"], ["a\r"], ["a-b.c!"]]) == (
        "| é |\n| --- |\n| a_b é |\n| \\_a |\n| a\\_ b |\n| a\\\\r |\n| a-b.c! |\n\n"
    )
    assert written(["a"], []) == "| a |\n| --- |\n\n"


def test_a_statement_without_columns_gives_nothing() -> None:
    writer = MarkdownWriter(WriterOptions())
    assert not writer.buffering
    assert list(writer.write(Batch(0, rows=[[]]))) == []
    assert b"".join([*writer.begin([]), *writer.end(Summary(0, True))]) == b""


@pytest.mark.slow("many generated cases")
@given(st.lists(st.lists(VALUES, min_size=2, max_size=2), min_size=1, max_size=5))
@settings(max_examples=300, deadline=None)
def test_a_renderer_shows_the_values(rows: Rows) -> None:
    expected = [
        ["NULL" if value is None else printable(distinct_from_null(value, "NULL"), "\n") for value in row]
        for row in rows
    ]
    shown = rendered(written(["a", "b"], rows))
    assert shown[0] == ["a", "b"]
    assert shown[1:] == expected
