"""Highlighting while typing: continuation, colors, and words that begin no statement."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.document import Document

from sqlshell.errors import UsageError
from sqlshell.origin import EMPTY, Trusted
from sqlshell.shell.interactive.editing.continuation import Continuations
from sqlshell.shell.interactive.editing.formatter import format_script
from sqlshell.shell.interactive.editor import edit_text
from sqlshell.shell.interactive.history import HistoryEntry, matching
from sqlshell.shell.interactive.look.highlight import LineLexer
from sqlshell.shell.interactive.loop import bare_word, hint
from sqlshell.sql.script.scanner import Scanner, State

TEXT = st.lists(
    st.sampled_from(["select 1;", "select 'a", "b'", "/*", "*/", "-- x", "(", ")", "", "$$", "select $$ ;", '"', "x"]),
    max_size=60,
).map("\n".join)


def states(text: str) -> list[State]:
    scanner = Scanner()
    found = [State.READY]
    for line in text.split("\n"):
        for _ in scanner.items(line + "\n"):
            pass
        found.append(scanner.state)
    return found


@pytest.mark.slow("many generated cases")
@settings(max_examples=100, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4))
def test_states_after_any_change_are_those_of_a_fresh_scan(texts: list[str]) -> None:
    kept = Continuations()
    for text in texts:
        expected = states(text)
        assert [kept.before(text, number) for number in range(len(expected) - 1)] == expected[:-1]


LINES = st.lists(
    st.sampled_from(
        ["select 1;", "select 'a", "b';", "copy t from stdin;", "1", "\\.", "\\x", "/*", "*/ ;", "(", "$$;", ""]
    ),
    max_size=60,
).map("\n".join)


@pytest.mark.slow("many generated cases")
@settings(max_examples=200, deadline=None)
@given(LINES, st.lists(st.tuples(st.integers(0), st.integers(0, 12), LINES.map(lambda t: t[:12])), max_size=6))
def test_states_after_an_edit_anywhere_are_those_of_a_fresh_scan(text: str, edits: list[tuple[int, int, str]]) -> None:
    kept = Continuations()
    kept.before(text, 0)
    for at, gone, new in edits:
        at %= len(text) + 1
        text = text[:at] + new + text[at + gone :]
        expected = states(text)
        assert [kept.before(text, number) for number in range(len(expected) - 1)] == expected[:-1]


def test_what_is_known_behind_a_change_is_kept_for_the_next_one() -> None:
    """Changes far apart in a long text, each with another number of lines and characters."""
    lines = [f"select {number}, '\n{number}';" for number in range(100)]
    kept = Continuations()
    for at, new in (
        (150, []),
        (20, ["select 'x';"] * 7),
        (90, ["a"]),
        (10, []),
        (60, ["select '", "';", "'"]),
        (60, []),
    ):
        lines[at : at + 2] = new
        text = "\n".join(lines)
        fresh = Continuations()
        count = text.count("\n") + 1
        assert [kept.before(text, line) for line in range(count)] == [fresh.before(text, line) for line in range(count)]
        assert kept.parenthesis(text) == fresh.parenthesis(text)
        assert all(text.count("\n", 0, offset) == number for number, offset, _ in kept._marks)
        assert len(kept._marks) >= count // 32


@settings(max_examples=100, deadline=None)
@given(TEXT)
def test_every_character_is_drawn(text: str) -> None:
    line = LineLexer(Continuations()).lex_document(Document(text))
    assert "\n".join("".join(part[1] for part in line(n)) for n in range(text.count("\n") + 1)) == text


def test_an_editor_that_saves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "true")
    with pytest.raises(UsageError, match=r"\Anothing was saved to .*new\.sql\Z"):
        edit_text("", Trusted(str(tmp_path / "new.sql")), sys.stdin)
    tmp_path.joinpath("old.sql").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"old\.sql: invalid UTF-8\Z"):
        edit_text("", Trusted(str(tmp_path / "old.sql")), sys.stdin)


def test_an_editor_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "no-such-editor-anywhere")
    with pytest.raises(
        UsageError, match=r"cannot start the editor 'no-such-editor-anywhere': no such file or directory\Z"
    ):
        edit_text("", EMPTY, sys.stdin)


def drawn(text: str, line: int = 0) -> dict[str, str]:
    return {part[1]: part[0] for part in LineLexer(Continuations()).lex_document(Document(text))(line)}


@pytest.mark.parametrize(
    ("text", "doubted"),
    [
        ("selct 1", True),
        ("  selct 1", True),
        ("/* c */ selct 1", True),
        ("selct", False),
        ("select 1", False),
        ("with a as (select 1)", False),
        ("\\x on", False),
    ],
)
def test_words_that_begin_no_statement_are_marked(text: str, doubted: bool) -> None:
    assert any("underline" in style for style in drawn(text).values()) is doubted


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("select 'a", 0, 7),
        ("select 'a' || 'b", 0, 14),
        ("select 'a\nb' || 'c\nd", 1, 6),
        ('select "a', 0, 7),
        ("select $$ ; \nx", 0, 7),
        ("select 'it''s', 'x''", 0, 16),
        ("select 'a'", None, 0),
        ("select 'a' -- it's", None, 0),
        ("select (a", 0, 7),
        ("select ((a)", 0, 7),
        ("select (\n(a,\n b;", 1, 0),
        ("select (a); select\n f(", 1, 2),
        ("select (')'", 0, 7),
        ("select ('a", 0, 8),
        ("select (a)", None, 0),
        ("select a)", None, 0),
        ("select 1 -- (", None, 0),
        ("\\d t(", None, 0),
    ],
)
def test_the_quote_or_parenthesis_that_is_not_closed_is_marked(text: str, line: int | None, column: int) -> None:
    document = Document(text)
    lines = LineLexer(Continuations()).lex_document(document)
    marked = []
    for number in range(len(document.lines)):
        at = 0
        for style, part, *_ in lines(number):
            if style.endswith("class:error"):
                marked.append((number, at))
            at += len(part)
    assert marked == ([] if line is None else [(line, column)])


def test_lines_inside_a_string_are_strings() -> None:
    assert "string" in drawn("select 'a\nselect 1\nb'", 1)["select 1"]
    assert "comment" in drawn("/* a\nselect 1 */ select", 1)["select 1 "]


def test_a_statement_laid_out() -> None:
    text, why = format_script("select a, b from t where c = 1;")
    assert (text.startswith("SELECT\n"), text.endswith(";"), why) == (True, True, "")
    text, why = format_script("select from where (")
    assert text == "select from where ("
    assert why


@pytest.mark.parametrize(
    "text",
    [
        "select 2 as",
        "select 1; select 2 as",
        "select a,",
        "select a from t group by",
        "select a from t join u on",
        "select a from t left join u using",
        "select a is",
        "select * from t where a in",
        "select a from t as",
        "select 2 as;",
        "insert into t values",
        "select a from t where",
        "with x as (select 1)",
    ],
)
def test_unfinished_text_is_kept(text: str) -> None:
    assert format_script(text)[0] == text
    assert format_script(text)[1]


@pytest.mark.parametrize(
    ("text", "laid_out"),
    [
        ("select a from t order by a asc", "SELECT\n  a\nFROM t\nORDER BY\n  a ASC"),
        ("select x::int", "SELECT\n  CAST(x AS INT)"),
        ("select a from t limit 1", "SELECT\n  a\nFROM t\nLIMIT 1"),
        ("begin; commit;", "BEGIN;\nCOMMIT;"),
        ("select 1;select 2;", "SELECT\n  1;\nSELECT\n  2;"),
        ("", ""),
    ],
)
def test_finished_text_is_laid_out(text: str, laid_out: str) -> None:
    assert format_script(text) == (laid_out, "")


def test_entries_are_found_by_their_letters() -> None:
    entries = [
        HistoryEntry(1.0, "select 'needle'"),
        HistoryEntry(2.0, "drop table x"),
        HistoryEntry(3.0, "select 'needle'"),
    ]
    assert [entry.time for entry in matching(entries, "sndl")] == [3.0]
    assert [entry.text for entry in matching(entries, "")] == ["select 'needle'", "drop table x"]
    assert matching(entries, "zzz") == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("exit", "exit"),
        ("QUIT ;", "exit"),
        ("help; ", "help"),
        (" exit", ""),
        ("exit now", ""),
        ("exit;;", ""),
        ("helped", ""),
        ("", ""),
    ],
)
def test_a_word_that_is_alone_on_a_line(line: str, word: str) -> None:
    assert bare_word(line) == word


def test_a_word_within_a_statement_names_the_command() -> None:
    assert hint("exit", State.STATEMENT) == "Use \\q to quit."
    assert hint("help", State.PARENTHESIS).startswith("Use \\? for help")
    assert "Ctrl-D" in hint("quit", State.SINGLE_QUOTE)
    assert hint("x", State.STATEMENT) == ""
