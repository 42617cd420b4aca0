"""The function call at the cursor."""

from __future__ import annotations

import pytest

from sqlshell.sql.completion.calls import call_at, parameters


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


def test_the_parameter_that_is_typed() -> None:
    signature = "(part, timestamp) -> DATE"
    assert parameters(signature, 0) == ("(", "part", ", timestamp) -> DATE")
    assert parameters(signature, 1) == ("(part, ", "timestamp", ") -> DATE")
    assert parameters(signature, 2) == (signature, "", "")
    assert parameters("variadic", 0) == ("variadic", "", "")
