"""The function call at the cursor."""

from __future__ import annotations

import pytest

from sqlshell.sql.completion.signatures import call_at, parameters


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("select date_trunc(", ("date_trunc", 0)),
        ("select date_trunc('day, (', ", ("date_trunc", 1)),
        ("select lpad(upper(a), [1, 2], ", ("lpad", 2)),
        ("select lpad(a, upper (b", ("upper", 0)),
        ("select date_trunc('mon", ("date_trunc", 0)),
        ("select f('it''s', ", ("f", 1)),
        ('select f("a, b", ', ("f", 1)),
        ("select round(x)", None),
        ("select (1, ", ("select", 1)),
        ("select f(1); select ", None),
        ("select [a, ", None),
        ('"', None),
        ("'", None),
        ("", None),
    ],
)
def test_the_call_at_the_cursor(before: str, expected: tuple[str, int] | None) -> None:
    assert call_at(before) == expected


@pytest.mark.parametrize(
    ("signature", "argument", "parts"),
    [
        ("(part, timestamp) -> DATE", 0, ("(", "part", ", timestamp) -> DATE")),
        ("(part, timestamp) -> DATE", 1, ("(part, ", "timestamp", ") -> DATE")),
        ("(part, timestamp) -> DATE", 2, ("(part, timestamp) -> DATE", "", "")),
        ("(s, start[, n[, m]]) -> T", 1, ("(s, ", "start", "[, n[, m]]) -> T")),
        ("(s, start[, n[, m]]) -> T", 2, ("(s, start[, ", "n", "[, m]]) -> T")),
        ("(s, start[, n[, m]]) -> T", 3, ("(s, start[, n[, ", "m", "]]) -> T")),
        ("([arg]) -> T", 0, ("([", "arg", "]) -> T")),
        ("(x BIGINT[][, y MAP(K, V)]) -> T", 0, ("(", "x BIGINT[]", "[, y MAP(K, V)]) -> T")),
        ("(x BIGINT[][, y MAP(K, V)]) -> T", 1, ("(x BIGINT[][, ", "y MAP(K, V)", "]) -> T")),
        ("(value, ...) -> T", 7, ("(value, ", "...", ") -> T")),
        ("() -> T", 0, ("(", "", ") -> T")),
        ("(never closed, ", 1, ("(never closed, ", "", "")),
        ("variadic", 0, ("variadic", "", "")),
    ],
)
def test_the_parameter_that_is_typed(signature: str, argument: int, parts: tuple[str, str, str]) -> None:
    assert parameters(signature, argument) == parts
