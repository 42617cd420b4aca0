"""The arguments of backslash commands, and the interface's types in DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlshell.errors import UsageError
from sqlshell.origin import Trusted, trusted_text
from sqlshell.shell.commands.lexing import output_of, words
from sqlshell.sql.duckdb_types import duckdb_type

VALUES = {
    name: trusted_text(Trusted(text)) for name, text in {"x": "5", "two": "a b", "quote": "it's", "empty": ""}.items()
}


def message(text: str) -> list[str]:
    return [word.text for word in words(Trusted(text), VALUES)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  a   b ", ["a", "b"]),
        ("'a b' c", ["a b", "c"]),
        ("'it''s'", ["it's"]),
        (r"'a\tb\n\x41\101\\\''", ["a\tb\nAA\\'"]),
        (r"'\xc3\xa9\303\251\x41 \xff'", ["ééA \ufffd"]),
        ('"a b"', ["a b"]),
        ("a'b c'd", ["ab cd"]),
        ("''", [""]),
        (":x :two", ["5", "a b"]),
        (":'two' :\"two\"", ["'a b'", '"a b"']),
        (":'quote'", ["'it''s'"]),
        (":{?x} :{?nope}", ["TRUE", "FALSE"]),
        (":nope ':x' \":x\"", [":nope", ":x", ":x"]),
        (":'nope' a:\"nope\"", [":'nope'", 'a:"nope"']),
        ("a:x:two", ["a5a b"]),
        (":empty", [""]),
        ("http://h:80/p", ["http://h:80/p"]),
        ("::x", [":5"]),
        ("`printf 'a b'` c", ["a b", "c"]),
        ("`printf %s :'quote'`", ["it's"]),
        ("`printf %s:%s :nope :'x'`", [":nope:5"]),
        ("{database}.{schema}>", ["{database}.{schema}>"]),
        ("é 日本", ["é", "日本"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert message(text) == expected


def test_a_command_that_cannot_be_started() -> None:
    with pytest.raises(UsageError, match=r"cannot start the command 'a.x00b': embedded null byte"):
        output_of(Trusted("a\0b"))


@pytest.mark.parametrize("text", ["'a", '"a', "`a", "a 'b"])
def test_quotes_that_are_not_closed(text: str) -> None:
    with pytest.raises(UsageError, match="unterminated quote"):
        message(text)


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"])))
def test_a_quoted_word_comes_back(text: str) -> None:
    quoted = "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
    assert message(quoted) == [text]


@given(st.text(alphabet="ab :'\"\\x{?}", max_size=30))
def test_any_text_is_words_or_an_error(text: str) -> None:
    try:
        assert isinstance(message(text), list)
    except UsageError:
        assert any(quote in text for quote in "'\"")


@pytest.mark.parametrize(
    ("given_type", "expected"),
    [
        ("INTEGER", "INTEGER"),
        ("INTEGER NOT NULL", "INTEGER"),
        ("VARCHAR;nowrap", "VARCHAR"),
        ("DECIMAL(10,2)", "DECIMAL(10,2)"),
        ("DECIMAL(39,0)", "HUGEINT"),
        ("DECIMAL(60,20)", "DOUBLE"),
        ("DECIMAL", "DECIMAL(38,9)"),
        ("TIMESTAMP(3)", "TIMESTAMP"),
        ("TIMESTAMP_LTZ(6)", "TIMESTAMPTZ"),
        ("ARRAY<INTEGER>", "INTEGER[]"),
        ("ARRAY<ARRAY<DECIMAL(4,1)>>", "DECIMAL(4,1)[][]"),
        ("MAP<VARCHAR, ARRAY<BIGINT>>", "MAP(VARCHAR, BIGINT[])"),
        ("STRUCT<a INTEGER, b c ARRAY<VARCHAR>>", 'STRUCT("a" INTEGER, "b c" VARCHAR[])'),
        ("ROW<`a b` INT NOT NULL, `d` DATE>", 'STRUCT("a b" INTEGER, "d" DATE)'),
        ("ARRAY", "JSON"),
        ("STRUCT<", "JSON"),
        ("VARBINARY", "BLOB"),
        ("ARRAY<VARBINARY>", "VARCHAR[]"),
        ("STRUCT<INTEGER, ARRAY<DOUBLE>>", "TUPLE(INTEGER, DOUBLE[])"),
        ("NONSENSE", "VARCHAR"),
        ("", "VARCHAR"),
    ],
)
def test_types(given_type: str, expected: str) -> None:
    found = duckdb_type(given_type)
    assert found == expected
    with duckdb.connect() as database:
        database.execute(f"select cast(null as {found})").fetchall()


@given(st.text(alphabet='ARYSTUCMP<>(),"` ab1', max_size=40))
def test_any_text_is_a_type(text: str) -> None:
    assert duckdb_type(text)


def test_the_output_of_a_command() -> None:
    assert output_of(Trusted("printf 'a\\n\\n'")) == "a\n"
    with pytest.raises(UsageError, match=r"the command 'exit 3' failed with exit code 3"):
        output_of(Trusted("exit 3"))
    with pytest.raises(UsageError, match=r"cannot start the command 'echo \\x00': .*null byte"):
        output_of(Trusted("echo \0"))
