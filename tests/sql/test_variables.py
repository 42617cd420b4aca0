"""Variables in statements: psql's own answers, and where SQL's other colons are left alone."""

from __future__ import annotations

import json

import pytest

from sqlshell.sql.variables import substituted
from tests.sql.psql_answers import ANSWERS, SAME, VALUES

PSQL = json.loads(ANSWERS.read_text(encoding="utf-8"))


def test_every_case_was_asked() -> None:
    assert list(PSQL) == list(SAME)
    assert len(PSQL) >= 60


@pytest.mark.parametrize("text", SAME)
def test_what_psql_makes_of_it(text: str) -> None:
    assert substituted(text, VALUES)[0].split(";")[0].strip() == PSQL[text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select l[1:n]", "select l[1:n]"),
        ("select l[1 :n]", "select l[1 :n]"),
        ("select l[x:n]", "select l[x:n]"),
        ("select l[f(1):n]", "select l[f(1):n]"),
        ("select l[m[1]:n]", "select l[m[1]:n]"),
        ("select l[:x]", "select l[5]"),
        ("select l[1::n]", "select l[1::n]"),
        ("select {a:x}", "select {a:x}"),
        ("select {'a':x, 'b': :x}", "select {'a':x, 'b': 5}"),
        ('select {"a":x}', 'select {"a":x}'),
        ("select [not :x, case when :x then :n end]", "select [not 5, case when 5 then 2 end]"),
        ("select {a:(select :x)}", "select {a:(select 5)}"),
        ("select map {:'y': :x}", "select map {'seven': 5}"),
        ("select `:x`, :x", "select `:x`, 5"),
    ],
)
def test_other_colons(text: str, expected: str) -> None:
    assert substituted(text, VALUES)[0] == expected


def test_what_was_used_is_told() -> None:
    assert substituted("select :x, :'y', :unknown, :nested", VALUES)[1] == {"x", "y", "nested"}
    text = "select ':x'"
    assert substituted(text, VALUES) == (text, frozenset())
