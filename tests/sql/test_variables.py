"""Variables in statements: as in psql, except for other colons of SQL."""

from __future__ import annotations

import json

import pytest

from sqlshell.origin import Trusted, service_text, trusted_text
from sqlshell.sql.variables import substituted
from tests.sql.psql_answers import ANSWERS, SAME, VALUES

KNOWN = {name: trusted_text(Trusted(value)) for name, value in VALUES.items()}
PSQL = json.loads(ANSWERS.read_text(encoding="utf-8"))


def filled(text: str) -> str:
    return substituted(trusted_text(Trusted(text)), KNOWN).text


def test_every_case_was_asked() -> None:
    assert list(PSQL) == list(SAME)
    assert len(PSQL) >= 60


@pytest.mark.parametrize("text", SAME)
def test_what_psql_makes_of_it(text: str) -> None:
    assert filled(text).split(";")[0].strip() == PSQL[text]


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
    assert filled(text) == expected


def test_what_came_from_a_service_is_known_in_the_statement() -> None:
    values = {
        "a": service_text("x';", ":a"),
        "b": trusted_text(Trusted("two :a")),
        "c": service_text(":d", ":c"),
        "d": trusted_text(Trusted("secret")),
    }

    def foreign(text: str) -> list[str]:
        made = substituted(trusted_text(Trusted(text)), values)
        return [made.text[part.start : part.stop] for part in made.foreign]

    assert foreign("select :'a', 1") == ["'x'';'"]
    assert foreign("select :b, :{?a}") == ["x';"]
    assert foreign("select :c, :d") == [":d"]
    assert foreign("select ':a', :d") == []
    made = substituted(trusted_text(Trusted("select :'a', :\"a\" -- :a")), values)
    assert made.blanked == "select " + " " * 6 + ", " + " " * 5 + " -- :a"
