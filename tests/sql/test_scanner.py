"""Statements and commands out of any text, in any pieces."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.sql.scanner import Command, Item, Scanner, State, Statement, complete, split

FRAGMENTS = (
    *("'", '"', "`", "$", "$$", "$a$", "$1", "a$b$", ";", "(", ")", "--", "/*", "*/", "-", "/", "*", "E'", "e", "U&'"),
    *(
        "\\",
        "\\g",
        "\\;",
        "\\:",
        "\\\\",
        "\\!",
        "\\'",
        "\\x a",
        "\n",
        "\r",
        "\r\n",
        " ",
        "\t",
        "\0",
        "\ufeff",
        "é",
        "1",
    ),
    *("begin", "BEGIN application x", "create function", "create or replace procedure", "create", "end", "case"),
    *("application", "atomic", "select", "x", ",", "\N{NO-BREAK SPACE}", "\N{PILE OF POO}"),
)
scripts = st.lists(st.sampled_from(FRAGMENTS), max_size=40).flatmap(
    lambda parts: st.sampled_from(("", " ", "\n")).map(lambda joint: joint.join(parts))
)
any_examples = settings(deadline=None, max_examples=150, derandomize=True)


def texts(script: str) -> list[str]:
    """The statements alone, those that commands end among them."""
    return [statement.text for statement in statements(split(script))]


def statements(items: list[Item]) -> Iterator[Statement]:
    for item in items:
        if isinstance(item, Statement):
            yield item
        elif item.statement:
            yield item.statement


def commands(script: str) -> list[tuple[str, str]]:
    return [(item.name, item.args) for item in split(script) if isinstance(item, Command)]


def fed(pieces: list[str]) -> list[Item]:
    scanner = Scanner()
    return [*(item for piece in pieces for item in scanner.feed(piece)), *scanner.close()]


def without_comments(text: str) -> str:
    """What is left of the text between two items when comments are taken out of it."""
    left, position = [], 0
    while position < len(text):
        if text.startswith("--", position):
            position = next((at for at in range(position, len(text)) if text[at] in "\r\n"), len(text))
        elif text.startswith("/*", position):
            depth, position = 1, position + 2
            while depth and position < len(text):
                mark = text[position : position + 2]
                depth += (mark == "/*") - (mark == "*/")
                position += 2 if mark in ("/*", "*/") else 1
        else:
            left.append(text[position])
            position += 1
    return "".join(left)


def end_of(statement: Statement, script: str) -> int:
    """Where the statement ends in the script; fails when it is not what stands there."""
    written = "".join(rf"\\?{re.escape(c)}" if c in ";:\\" else re.escape(c) for c in statement.text)
    found = re.compile(written).match(script, statement.offset)
    assert found, statement
    return found.end()


@any_examples
@given(scripts)
def test_between_items_there_are_only_blanks_comments_and_semicolons(script: str) -> None:
    items, end, gaps = split(script), 0, []
    for item in items:
        statement = item if isinstance(item, Statement) else item.statement
        if statement:
            assert statement.text
            assert statement.line == script.count("\n", 0, statement.offset) + 1
            gaps.append(script[end : statement.offset])
            end = end_of(statement, script)
        if isinstance(item, Command):
            assert item.line == script.count("\n", 0, item.offset) + 1
            gaps.append(script[end : item.offset])
            assert script.startswith("\\" + item.name, item.offset)
            end = script.index(item.args, item.offset + 1 + len(item.name)) + len(item.args)
    gaps.append(script[end:])
    for gap in gaps:
        assert not without_comments(gap).lstrip("\ufeff").replace("\\\\", "").strip(" \t\n\r\f\v;"), (gap, items)


@any_examples
@given(scripts, st.lists(st.integers(min_value=0, max_value=400), max_size=8))
def test_pieces_give_the_same_items_as_the_whole(script: str, cuts: list[int]) -> None:
    places = [0, *sorted(cut % (len(script) + 1) for cut in cuts), len(script)]
    pieces = [script[start:end] for start, end in itertools.pairwise(places)]
    whole = split(script)
    assert fed(pieces) == whole
    assert fed(list(script)) == whole


@any_examples
@given(scripts)
def test_pieces_leave_the_same_state_and_the_same_text(script: str) -> None:
    at_once, by_character = Scanner(), Scanner()
    at_once.feed(script)
    for character in script:
        by_character.feed(character)
    assert by_character.state is at_once.state
    assert by_character.pending == at_once.pending


@any_examples
@given(st.text())
def test_any_text_is_taken(script: str) -> None:
    assert fed(list(script)) == split(script)
    assert isinstance(complete(script), bool)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        (" ;; \n; -- nothing; here\n/* nor; here */", []),
        ("select 1; select 2", ["select 1", "select 2"]),
        ("\ufeffselect 1;", ["select 1"]),
        ("-- a\n/* b */ select 1 /* c; */ -- d;\n;", ["select 1 /* c; */ -- d;"]),
        ("select 'a;''b', \"c;\"\"d\", `e;f`; x", ["select 'a;''b', \"c;\"\"d\", `e;f`", "x"]),
        (r"select '\'; x", [r"select '\'", "x"]),
        (r"select E'\';', e'\\'; x", [r"select E'\';', e'\\'", "x"]),
        (r"select e'a''\';'; x", [r"select e'a''\';'", "x"]),
        ("select E'a'\n  -- on\n'\\';'; x", ["select E'a'\n  -- on\n'\\';'", "x"]),
        ("select E'a' '\\'; x", ["select E'a' '\\'", "x"]),
        (r"select date'\'; x", [r"select date'\'", "x"]),
        ("do $$ a; $b$ b; $$; x", ["do $$ a; $b$ b; $$", "x"]),
        ("do $b$ a; $$ $c$ $bb$ b; $b$; x", ["do $b$ a; $$ $c$ $bb$ b; $b$", "x"]),
        ("select a$b$; select $1; select c$b$", ["select a$b$", "select $1", "select c$b$"]),
        ("select $1$$;$$; x", ["select $1$$;$$", "x"]),
        ("/* a /* b; */ c; */ x /* ; /* ; */ ; */; y", ["x /* ; /* ; */ ; */", "y"]),
        ("create rule r as do (delete a; delete b); x", ["create rule r as do (delete a; delete b)", "x"]),
        ("select 1)); x", ["select 1))", "x"]),
        ("select 1 -- a\r; x", ["select 1 -- a", "x"]),
        ("select\N{NO-BREAK SPACE}1;\0;", ["select\N{NO-BREAK SPACE}1", "\0"]),
        ("select 'never closed; x", ["select 'never closed; x"]),
        (r"select 1\; select \:a \\ b; x", [r"select 1; select :a \ b", "x"]),
        (r"select 1 \ 2; x", [r"select 1 \ 2", "x"]),
        ("begin; end; begin transaction; x", ["begin", "end", "begin transaction", "x"]),
    ],
)
def test_statements(script: str, expected: list[str]) -> None:
    assert texts(script) == expected


APPLICATION = """begin/* a */Application -- the ; name
 app
CREATE STREAM a AS SELECT 'END APPLICATION;', "end application;", CASE WHEN x THEN 1 END application FROM b; -- END
/* END APPLICATION; */ CREATE STREAM c (d INT);
end -- of
APPLICATION"""

ATOMIC = """create or replace /* a */ function f(begin int) returns int
BEGIN ATOMIC
  select case when a then case b when 1 then 2 end end;
  select "end" from t;
END"""


@pytest.mark.parametrize("body", [APPLICATION, ATOMIC])
def test_bodies_hold_semicolons(body: str) -> None:
    assert texts(f"x; {body} ; y;") == ["x", body, "y"]


def test_words_that_only_look_like_a_body() -> None:
    assert texts("create table begin (a int); end; x") == ["create table begin (a int)", "end", "x"]
    assert texts("begin applications a; b") == ["begin applications a", "b"]
    assert texts("create function f() as 'begin'; x") == ["create function f() as 'begin'", "x"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (r"\x", [("x", "")]),
        (r"\?", [("?", "")]),
        (r"\dt+ a.b ", [("dt+", "a.b")]),
        (r"\x on \pset format csv", [("x", "on"), ("pset", "format csv")]),
        (r"\x \\ select 1 \gx", [("x", ""), ("gx", "")]),
        (r"\i 'C:\new\run.sql' \p", [("i", r"'C:\new\run.sql'"), ("p", "")]),
        (r'\o "a \p" `b \p` \p', [("o", r'"a \p" `b \p`'), ("p", "")]),
        ("\\echo don't \\p\n\\p", [("echo", r"don't \p"), ("p", "")]),
        ("\\! grep '\\d' a \\w\r\n\\p", [("!", r"grep '\d' a \w"), ("p", "")]),
        (r"\echo a \ b -- c", [("echo", r"a \ b -- c")]),
        ("\\echo \N{NO-BREAK SPACE}a", [("echo", "\N{NO-BREAK SPACE}a")]),
        (r"-- \a" + "\n" + r"/* \b */ '\c' " + r'"\d" $$ \e $$;', []),
        ("select (\\q\n", [("q", "")]),
    ],
)
def test_commands(script: str, expected: list[tuple[str, str]]) -> None:
    assert commands(script) == expected


def test_a_command_ends_the_statement_before_it() -> None:
    items = split("-- one\nselect 1,\r\n  2 \\gx out.csv\n\\x\nselect 3")
    assert items == [
        Command("gx", "out.csv", 3, Statement("select 1,\r\n  2", 2, 7, True), 22),
        Command("x", "", 4, None, 34),
        Statement("select 3", 5, 37, False),
    ]


def test_lines_begin_where_they_are_told() -> None:
    scanner = Scanner(line=7)
    assert scanner.feed("\n\nselect 1;\n") == [Statement("select 1", 9, 2, True)]


def test_items_come_with_the_piece_that_completes_them() -> None:
    scanner = Scanner()
    assert scanner.feed("select 1") == []
    assert scanner.pending == "select 1"
    assert scanner.feed(" + 1; sel") == [Statement("select 1 + 1", 1, 0, True)]
    assert scanner.feed("ect 2 \\g") == []
    assert scanner.state is State.COMMAND
    assert scanner.pending == "select 2 "
    assert scanner.feed("x\n") == [Command("gx", "", 1, Statement("select 2", 1, 14, True), 23)]
    assert scanner.pending == ""
    assert scanner.close() == []


@pytest.mark.parametrize(
    ("script", "state"),
    [
        ("", State.READY),
        ("select 1; -- a", State.READY),
        ("select 1 -- a", State.STATEMENT),
        ("select", State.STATEMENT),
        ("'", State.SINGLE_QUOTE),
        ("E'\\'", State.SINGLE_QUOTE),
        ('"', State.DOUBLE_QUOTE),
        ("`", State.BACK_QUOTE),
        ("$a$ b $b$", State.DOLLAR_QUOTE),
        ("/* /* */", State.BLOCK_COMMENT),
        ("(('a')", State.PARENTHESIS),
        ("begin application a b;", State.APPLICATION),
        ("begin application a b; end application ", State.STATEMENT),
        ("create function f() begin atomic a;", State.ATOMIC),
        ("\\x", State.COMMAND),
    ],
)
def test_states(script: str, state: State) -> None:
    scanner = Scanner()
    scanner.feed(script)
    assert scanner.state is state
    scanner.close()
    assert scanner.state is State.READY


@pytest.mark.parametrize("text", ["", " \n", "-- a", "select 1;", "select 1; -- a", "\\x", "select 1 \\gx", "a; b;"])
def test_complete(text: str) -> None:
    assert complete(text)


@pytest.mark.parametrize(
    "text", ["select 1", "select ';", "select (1;", "$$;", "/* ;", "begin application a b;", "a; b"]
)
def test_incomplete(text: str) -> None:
    assert not complete(text)


def test_comments_alone_are_gone_over_once() -> None:
    block = ("/* filler; ' \" */ -- more; 'x'\n" * 2000).replace("\n", "\r\n")
    scanner = Scanner()
    items = [item for _ in range(100) for item in scanner.feed(block)]
    items += scanner.feed("select 1")
    assert items == []
    assert [(item.text, item.line) for item in scanner.close() if isinstance(item, Statement)] == [
        ("select 1", 200_001)
    ]
