"""Statements and commands in any text, in any pieces."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.errors import UsageError
from sqlshell.origin import TaintedPart, Trusted, joined, service_text, trusted_text
from sqlshell.sql.script.scanner import BackslashCommand, Item, Scanner, State, Statement
from sqlshell.sql.script.splitting import complete, split, statements

pytestmark = pytest.mark.usefixtures("both_ways")

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
BLANKS = " \t\n\r\f\v"
any_examples = settings(deadline=None, max_examples=150, derandomize=True)


def texts(script: str) -> list[str]:
    """The statements alone."""
    return [item.text for item in split(script) if isinstance(item, Statement)]


def commands(script: str) -> list[tuple[str, str]]:
    return [(item.name, item.args) for item in split(script) if isinstance(item, BackslashCommand)]


def fed(pieces: list[str]) -> list[Item]:
    scanner = Scanner()
    return [item for piece in (*pieces, None) for item in scanner.items(piece)]


def drain(scanner: Scanner, piece: str) -> None:
    for _ in scanner.items(piece):
        pass


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


def end_of(statement: Statement, script: str, commands: list[BackslashCommand]) -> int:
    """Where the statement ends in the script; fails when it is not what stands there, the commands in it left out."""
    written = [rf"\\?{re.escape(c)}" if c in ";:\\" else re.escape(c) for c in statement.text if c not in BLANKS]
    found = re.compile(f"[{BLANKS}]*".join(written)).match(blanked(script, commands), statement.offset)
    assert found, statement
    return found.end()


def blanked(script: str, commands: list[BackslashCommand]) -> str:
    for item in commands:
        end = script.index(item.args, item.offset + 1 + len(item.name)) + len(item.args)
        rest = end + len(script[end:]) - len(script[end:].lstrip(" \t\r\f\v"))
        end = rest + 2 if script.startswith("\\\\", rest) else end
        script = script[: item.offset] + " " * (end - item.offset) + script[end:]
    return script


@pytest.mark.slow("many generated cases")
@any_examples
@given(scripts)
def test_between_items_there_are_only_blanks_comments_and_semicolons(script: str) -> None:
    items, end, gaps = split(script), 0, []
    commands = [item for item in items if isinstance(item, BackslashCommand)]
    for item in items:
        assert item.line == script.count("\n", 0, item.offset) + 1
        if isinstance(item, Statement):
            assert item.text
            gaps.append(blanked(script, commands)[end : item.offset])
            end = end_of(item, script, commands)
        else:
            assert isinstance(item, BackslashCommand)
            assert script.startswith("\\" + item.name, item.offset)
    gaps.append(blanked(script, commands)[end:])
    for gap in gaps:
        assert not without_comments(gap).lstrip("\ufeff").strip(f"{BLANKS};"), (gap, items)


@pytest.mark.slow("many generated cases")
@any_examples
@given(scripts, st.lists(st.integers(min_value=0, max_value=400), max_size=8))
def test_pieces_give_the_same_items_as_the_whole(script: str, cuts: list[int]) -> None:
    places = [0, *sorted(cut % (len(script) + 1) for cut in cuts), len(script)]
    pieces = [script[start:end] for start, end in itertools.pairwise(places)]
    whole = split(script)
    assert fed(pieces) == whole
    assert fed(list(script)) == whole


@pytest.mark.slow("many generated cases")
@any_examples
@given(scripts)
def test_pieces_leave_the_same_state_and_the_same_text(script: str) -> None:
    at_once, by_character = Scanner(), Scanner()
    drain(at_once, script)
    for character in script:
        drain(by_character, character)
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
        ("select e'a' x\n'\\'; y", ["select e'a' x\n'\\'", "y"]),
        ("select e'a'\n'\\'; y'; z", ["select e'a'\n'\\'; y'", "z"]),
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
    assert texts(f"x\\; {body} ; y;") == [f"x; {body}", "y"]
    assert texts(f"{body}\\; copy\\; {body}; y;") == [f"{body}; copy; {body}", "y"]


def test_words_that_only_look_like_a_body() -> None:
    assert texts("create table begin (a int); end; x") == ["create table begin (a int)", "end", "x"]
    assert texts("begin applications a; b") == ["begin applications a", "b"]
    assert texts("create function f() as 'begin'; x") == ["create function f() as 'begin'", "x"]
    assert texts("select (x\\; begin application a); y") == ["select (x; begin application a)", "y"]
    assert texts("create function f() begin atomic a\\; create function; end; y")[1:] == ["y"]


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


def test_a_command_is_no_part_of_the_statement_that_it_stands_in() -> None:
    items = split("-- one\nselect 1,\r\n  2 \\gx out.csv\n\\x\n  + 3;select 3")
    assert items == [
        BackslashCommand("gx", "out.csv", 3, 22),
        BackslashCommand("x", "", 4, 34),
        Statement("select 1,\r\n  2\n  + 3", 2, 7, True, ending=";"),
        Statement("select 3", 5, 43, False, column=7),
    ]


def test_a_command_may_send_the_statement_that_it_stands_in() -> None:
    scanner = Scanner()
    scanner.feed("select (\n1 \\g\nselect 2")
    assert scanner.read() == [BackslashCommand("g", "", 2, 11)]
    assert (scanner.pending, scanner.state) == ("select (\n1 ", State.PARENTHESIS)
    assert scanner.take() == Statement("select (\n1", 1, 0, True, column=1)
    assert (scanner.pending, scanner.state) == ("", State.READY)
    assert scanner.take() is None
    scanner.close()
    assert scanner.read() == [Statement("select 2", 3, 14, False, column=1)]
    assert scanner.read() == []


def test_text_since_a_mark_is_forgotten() -> None:
    scanner = Scanner()
    scanner.feed("select (\n\\if\n1); x (\n\\else\n2);\n")
    assert scanner.read() == [BackslashCommand("if", "", 2, 9)]
    mark = scanner.unfinished.copy()
    assert scanner.read() == [Statement("select (\n1)", 1, 0, True, ending=";"), BackslashCommand("else", "", 4, 21)]
    scanner.return_to(mark)
    assert scanner.read() == [Statement("select (\n2)", 1, 0, True, ending=";")]


def test_a_text_with_values_is_no_longer_as_it_was_typed() -> None:
    scanner = Scanner()
    drain(scanner, "select :a \\p\n")
    assert scanner.unfinished.rewritable
    scanner.unfinished.replace_substituted(service_text("select 'one'\n", ":a"))
    assert not scanner.unfinished.rewritable
    assert [*scanner.items(", :b;")] == []
    last = Statement("select 'one'\n, :b", 1, 0, True, False, 13, (TaintedPart(0, 13, ":a"),), ending=";")
    assert [*scanner.items(None)] == [last]
    escaped = Scanner()
    drain(escaped, "select 1\\; \\x\n")
    assert not escaped.unfinished.rewritable


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("select 1\n\\x\n+ 2;", "select 1\n+ 2"),
        ("select 1\n \t\\x\n\\x\n\n+ 2;", "select 1\n\n+ 2"),
        ("select 1 \\x\n+ 2;", "select 1 \n+ 2"),
        ("select 1 \\x \\\\ + 2;", "select 1  + 2"),
        ("select 1 -- a\n\\x \\\\ + 2;", "select 1 -- a\n + 2"),
        ("select 1 -- a\n\\x\n+ 2;", "select 1 -- a\n+ 2"),
        ("select e'a'\n\\x\n'\\';';", "select e'a'\n'\\';'"),
        ("begin\n\\x\napplication a b; end application;", "begin\napplication a b; end application"),
    ],
)
def test_what_is_left_of_a_statement_without_its_commands(script: str, text: str) -> None:
    assert texts(script) == [text]
    assert [item.text for item in fed(list(script)) if isinstance(item, Statement)] == [text]


@pytest.mark.parametrize(
    ("script", "endings"),
    [
        ("select 1; select 2 ;select 3\n;\n", [";", " ;", "\n;"]),
        ("select 1 -- c\n;select 2 /* ; */;", ["\n;", ";"]),
        ("select 1;& select 2", [";", ""]),
        ("select (1\\; 2);", [";"]),
        ("select (\n1) ;", [" ;"]),
    ],
)
def test_a_statement_knows_how_it_ended(script: str, endings: list[str]) -> None:
    for items in (split(script), fed(list(script))):
        assert [item.ending for item in items if isinstance(item, Statement)] == endings


@pytest.mark.parametrize(
    ("script", "columns"),
    [
        ("select 1; select 2;\n  select (\n3);select 4", [1, 11, 3, 4]),
        ("\ufeffselect 1; select 2", [1, 11]),
        ("/* a\n */ select 1;", [5]),
        ("copy t from stdin;\n1\n2\n\\.\n select 1; select (2);", [1, 2, 12]),
        ("\\x\n\\echo a\n select 1;", [2]),
        ("select 1\\; select 2;", [0]),
        ("select 1\n\\x\n+ 2;", [0]),
        (" select 1 \\x + 2;", [0]),
    ],
)
def test_the_column_at_which_a_statement_begins(script: str, columns: list[int]) -> None:
    for items in (split(script), fed([script]), fed(list(script))):
        assert [item.column for item in items if isinstance(item, Statement)] == columns


def test_items_come_with_the_line_that_completes_them() -> None:
    scanner = Scanner()
    assert [*scanner.items("select 1")] == []
    assert [*scanner.items(" + 1; sel\n")] == [Statement("select 1 + 1", 1, 0, True, ending=";", column=1)]
    assert scanner.pending == "sel\n"
    assert [*scanner.items("ect 2 \\g")] == []
    assert [*scanner.items("x\n")] == [BackslashCommand("gx", "", 2, 24)]
    assert scanner.pending == "sel\nect 2 \n"
    assert [*scanner.items(None)] == [Statement("sel\nect 2", 1, 14, False)]


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
    ],
)
def test_states(script: str, state: State) -> None:
    scanner = Scanner()
    drain(scanner, f"{script}\n")
    assert scanner.state is state
    for _ in scanner.items(None):
        pass
    assert scanner.state is State.READY


@pytest.mark.parametrize(
    "text", ["", " \n", "-- a", "select 1;", "select 1; -- a", "\\x", "select 1 \\gx", "a; b;", "a\n\\x\n"]
)
def test_complete(text: str) -> None:
    assert complete(text)


@pytest.mark.parametrize(
    "text",
    ["select 1", "select ';", "select (1;", "$$;", "/* ;", "begin application a b;", "a; b", "a \\x\n b", "'\n\\x"],
)
def test_incomplete(text: str) -> None:
    assert not complete(text)


def test_comments_alone_are_gone_over_once() -> None:
    block = ("/* filler; ' \" */ -- more; 'x'\n" * 2000).replace("\n", "\r\n")
    scanner = Scanner()
    assert [item for piece in [*[block] * 100, "select 1"] for item in scanner.items(piece)] == []
    assert [(item.text, item.line) for item in scanner.items(None) if isinstance(item, Statement)] == [
        ("select 1", 200_001)
    ]


def test_no_backslash_in_a_value_is_a_command() -> None:
    made = statements(trusted_text(Trusted("select 1 \\echo a\n; select 2 \\g b.csv\n\\! touch c\n; select 3")))
    assert [item.text for item in made] == ["select 1 \\echo a", "select 2 \\g b.csv\n\\! touch c", "select 3"]


def test_a_value_of_a_service_makes_no_further_statement() -> None:
    written = trusted_text(Trusted("select 1; select "))
    for value, allowed in (("2", True), ("2; drop table t", False), ("2;", True), ("'2; 3'", True)):
        text = joined([written, service_text(value, ":x")])
        if allowed:
            first, second = statements(text)
            assert (first.foreign, [part.source for part in second.foreign]) == ((), [":x"])
            assert second.text[second.foreign[0].start : second.foreign[0].stop] == value.rstrip(";")
        else:
            with pytest.raises(UsageError, match=":x came from the service and contains several statements"):
                statements(text)
    assert [item.text for item in statements(service_text("select 1", ":x"))] == ["select 1"]
    with pytest.raises(UsageError, match="several statements"):
        statements(service_text("select 1; select 2", ":x"))
