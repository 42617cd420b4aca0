"""The analysis of a statement equals that of its text, and reads the text only once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from sqlshell.errors import UsageError
from sqlshell.origin import Text, Trusted, joined, service_text, trusted_text
from sqlshell.sql.analysis import lexed as module
from sqlshell.sql.analysis.effects import effects
from sqlshell.sql.analysis.files import named_files, names_file, read_files, refuse_files
from sqlshell.sql.analysis.kinds import is_repeatable, replaced_parts, verb
from sqlshell.sql.analysis.lexed import SHORT_LENGTH, Lexed, Sql, lexed
from sqlshell.sql.analysis.secrets import redacted
from sqlshell.sql.analysis.tokens import Token, tokens
from sqlshell.sql.script.scanner import copies_from_stdin
from sqlshell.sql.variables import references

QUESTIONS: Sequence[Callable[[Sql], Any]] = (
    *(
        copies_from_stdin,
        effects,
        read_files,
        is_repeatable,
        redacted,
        references,
        replaced_parts,
        verb,
    ),
)
TEXTS = (
    "",
    "select 1",
    "(select 1)",
    "/* a /* b */ c */ select x from t where a = 'it\\'s' -- '",
    "with a as (select 1) insert into t select * from a",
    "explain analyze select 1; drop table t",
    "use schema s",
    "copy t from stdin",
    "copy t from '/dev/stdin' (format csv)",
    "create secret s (type s3, key_id 'a', secret 'b')",
    "select :x, 'https://user:password@host/?token=abc' from read_csv('a.csv')",
    "insert into t values " + ", ".join(f"({number}, 'it''s')" for number in range(20)),
)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each text was lexed by the plain rules."""
    found: Counter[str] = Counter()

    def counted(sql: str, *, backslash: bool = False, nested: bool = True) -> Iterator[Token]:
        found[sql] += not backslash and nested
        return tokens(sql, backslash=backslash, nested=nested)

    monkeypatch.setattr(module, "tokens", counted)
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_known_changes_no_answer(text: str) -> None:
    statement = lexed(text)
    for question in (*QUESTIONS, *reversed(QUESTIONS)):
        assert question(statement) == question(text), question
    assert list(statement.tokens) == list(statement) == list(tokens(text))


@pytest.mark.parametrize("text", TEXTS[1:])
def test_a_text_is_lexed_once_whatever_is_asked(text: str, runs: Counter[str]) -> None:
    statement = Lexed(trusted_text(Trusted(text)))
    assert statement.first(1)
    for question in QUESTIONS:
        question(statement)
    named_files(statement)
    names_file(statement, "a")
    refuse_files(statement)
    assert runs[text] == 1


def test_the_first_tokens_are_read_without_the_rest(runs: Counter[str]) -> None:
    statement = lexed("insert into t values (" + "1, " * SHORT_LENGTH + "1)")
    assert [token.text for token in statement.first(3)] == ["insert", "into", "t"]
    assert not is_repeatable(statement)
    assert verb(statement) == "INSERT"
    assert replaced_parts(statement) == ()
    assert len(statement.first(3)) == 3
    assert runs[statement.text] == 1


@pytest.mark.slow("a long text")
def test_of_a_long_text_answers_are_kept_but_no_tokens(runs: Counter[str]) -> None:
    short, long = lexed("select " + "1, " * 10 + "1"), lexed("select " + "1, " * SHORT_LENGTH + "1")
    assert short.tokens is short.tokens
    assert len(long.tokens) == 2 * SHORT_LENGTH + 2
    assert long.tokens is not long.tokens
    before = runs[long.text]
    assert effects(long) is effects(long)
    assert is_repeatable(long)
    assert is_repeatable(long)
    # Once for each of the two questions, and once more for the first token.
    assert runs[long.text] == before + 3
    assert redacted(long) == long.text


def test_whose_a_text_is_stays_known() -> None:
    whole = joined([trusted_text(Trusted("copy t from ")), service_text("'a.csv'", ":x")])
    with pytest.raises(UsageError, match=":x"):
        refuse_files(Lexed(whole))
    with pytest.raises(UsageError, match=":x"):
        refuse_files(whole)
    refuse_files(Lexed(trusted_text(Trusted(whole.text))))


def test_a_plain_text_names_no_files_of_the_person() -> None:
    """Nobody said where it came from."""
    sql = "create function_source f with ('file' = '@f.jar')"
    assert named_files(Lexed(trusted_text(Trusted(sql)))).files
    with pytest.raises(UsageError):
        named_files(lexed(sql))
    assert isinstance(lexed(Text("x")).whole, Text)


def test_the_readings_of_engines() -> None:
    def read(text: str) -> list[list[str]]:
        return [[token.text for token in reading] for reading in Lexed(trusted_text(Trusted(text))).readings]

    assert read("a 'b' /* c */ d") == [["a", "'b'", "d"]]
    assert read("'a\\' b '") == [["'a\\'", "b", "'"], ["'a\\' b '"]]
    assert read('"a\\" b "') == [['"a\\"', "b", '"'], ['"a\\" b "']]
    assert read("a /* b /* c */ d */ e") == [["a", "e"], ["a", "d", "e"]]
    # An engine with both habits reads what no other does.
    assert read("'\\' /* a /* b */ ' c */ d") == [
        ["'\\'", "d"],
        ["'\\' /* a /* b */ '", "c", "*", "/", "d"],
        ["'\\'", "' c */ d"],
        ["'\\' /* a /* b */ '", "c", "d"],
    ]
