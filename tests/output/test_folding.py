"""Prose for a terminal is wrapped between words."""

import pytest

from sqlshell.output.text.lines import folded


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short", ["short"]),
        ("exactly ten", ["exactly", "ten"]),
        ("exactly 10", ["exactly 10"]),
        ("one two three\n\nfour", ["one two", "three", "", "four"]),
        ("  in it all", ["  in it", "  all"]),
        ("a   b c d e f", ["a   b c d", "    e f"]),
        ("very wide  b c", ["very wide", "b c"]),
        ("abc  d e f g", ["abc  d e f", "     g"]),
        ("abcd  e f g", ["abcd  e f", "g"]),
        ("/a/very/long/path x", ["/a/very/long/path", "x"]),
        ("a /a/very/long/path", ["a", "/a/very/long/path"]),
        ("日本 日本 日本", ["日本 日本", "日本"]),
        ("a\tb c d e f g h i", ["a\tb c d e f g h i"]),
        ("\x1b[1;31merror:\x1b[0m a b c", ["\x1b[1;31merror:\x1b[0m a b", "c"]),
        (
            "at \x1b]8;;file:///a/b/c\x1b\\f.csv\x1b]8;;\x1b\\ it",
            ["at \x1b]8;;file:///a/b/c\x1b\\f.csv\x1b]8;;\x1b\\", "it"],
        ),
    ],
)
def test_lines_end_between_words(text: str, lines: list[str]) -> None:
    assert folded(text, 10).split("\n") == lines


def test_without_a_width_nothing_changes() -> None:
    assert folded("word " * 100, 0) == "word " * 100
