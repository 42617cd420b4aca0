"""Syntax highlighting: every character is in a token of the right kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.sql.lexer import SqlshellLexer
from tests.sql.test_scanner import scripts

EXAMPLES = Path(__file__).parent.parent / "data" / "splits" / "deltastream-examples.jsonl"


def tokens(text: str) -> list[tuple[str, str]]:
    """Each token's kind, without `Token.`, and its text; blanks left out."""
    found = SqlshellLexer().get_tokens_unprocessed(text)
    return [(str(kind).removeprefix("Token."), value) for _, kind, value in found if value.strip()]


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.one_of(scripts, st.text()))
def test_tokens_join_to_the_text(text: str) -> None:
    found = [*SqlshellLexer().get_tokens_unprocessed(text)]
    assert "".join(value for _, _, value in found) == text
    places = [place for place, _, _ in found]
    assert places == sorted(places)


@pytest.mark.parametrize("text", ["", "\n\nselect 1", "select 1\n\n", "  x  "])
def test_nothing_is_stripped_or_added(text: str) -> None:
    assert "".join(value for _, value in SqlshellLexer().get_tokens(text)) == text


def test_the_examples_of_the_dialect_hold_no_errors() -> None:
    examples = [json.loads(line)["text"] for line in EXAMPLES.read_text(encoding="utf-8").splitlines()]
    assert len(examples) == 13
    for text in examples:
        assert [value for kind, value in tokens(text) if kind == "Error"] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a", [("Keyword", "SELECT"), ("Name", "a")]),
        ("list compute_pools;", [("Keyword", "list"), ("Keyword", "compute_pools"), ("Punctuation", ";")]),
        ("TIMESTAMP_LTZ null", [("Keyword.Type", "TIMESTAMP_LTZ"), ("Keyword.Constant", "null")]),
        ("count (", [("Name.Builtin", "count"), ("Punctuation", "(")]),
        ("count own(", [("Name", "count"), ("Name.Function", "own"), ("Punctuation", "(")]),
        ("'a''b'E'c\\'d'", [("Literal.String.Single", "'a''b'"), ("Literal.String.Escape", "E'c\\'d'")]),
        ("'@a.json' '\\'", [("Literal.String.Single", "'@a.json'"), ("Literal.String.Single", "'\\'")]),
        ('"a""b" `c`', [("Literal.String.Symbol", '"a""b"'), ("Literal.String.Symbol", "`c`")]),
        ("$$a'$$ $b$ $$ $b$", [("Literal.String.Heredoc", "$$a'$$"), ("Literal.String.Heredoc", "$b$ $$ $b$")]),
        ("a$b$ $1", [("Name", "a$b$"), ("Name.Variable", "$1")]),
        ("0x1F 1_000", [("Literal.Number.Hex", "0x1F"), ("Literal.Number.Integer", "1_000")]),
        ("1e5 .5", [("Literal.Number.Float", "1e5"), ("Literal.Number.Float", ".5")]),
        ("1.5E-3 12", [("Literal.Number.Float", "1.5E-3"), ("Literal.Number.Integer", "12")]),
        ("a::int :b", [("Name", "a"), ("Operator", "::"), ("Keyword.Type", "int"), ("Name.Variable", ":b")]),
        ("-- a ;", [("Comment.Single", "-- a ;")]),
        (
            "/*/**/*/1",
            [("Comment.Multiline", mark) for mark in ("/*", "/*", "*/", "*/")] + [("Literal.Number.Integer", "1")],
        ),
        (
            "\\o 'a\\x' b \\x",
            [("Name.Decorator", "\\o"), ("Literal.String.Other", "'a\\x'"), ("Text", "b"), ("Name.Decorator", "\\x")],
        ),
        ("\\x on\nselect", [("Name.Decorator", "\\x"), ("Text", "on"), ("Keyword", "select")]),
        ("\\x \\\\ select", [("Name.Decorator", "\\x"), ("Punctuation", "\\\\"), ("Keyword", "select")]),
        ("\\! ls \\x", [("Name.Decorator", "\\!"), ("Literal.String.Other", " ls \\x")]),
        ("'never closed", [("Literal.String.Single", "'never closed")]),
        ("1 \\ 2", [("Literal.Number.Integer", "1"), ("Error", "\\"), ("Literal.Number.Integer", "2")]),
    ],
)
def test_kinds(text: str, expected: list[tuple[str, str]]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    "text", ["(" * 50_000, "/*" * 50_000, "'" * 50_001, "$a$b$c" * 20_000, "$" * 50_001, "e'" * 50_000]
)
def test_hostile_text_is_joined_too(text: str) -> None:
    assert "".join(value for _, _, value in SqlshellLexer().get_tokens_unprocessed(text)) == text
