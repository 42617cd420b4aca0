"""Where an error is, and what an unknown name may have meant."""

from __future__ import annotations

import pytest

from sqlshell.errors import StatementError, Where
from sqlshell.shell.running.excerpt import excerpt, suggested


@pytest.mark.parametrize(
    ("sql", "message", "expected"),
    [
        ("selec 1", 'syntax error at or near "selec"', ["  1 | selec 1", "      ^^^^^"]),
        ("select 1\nfrom\nwhere x", 'syntax error at or near "where"', ["  3 | where x", "      ^^^^^"]),
        ("select a\n  from nope", "Table with name nope does not exist!", ["  2 |   from nope", "             ^^^^"]),
        ("select 'ü', bad from t", 'column "bad" not found', ["  1 | select 'ü', bad from t", " " * 18 + "^^^"]),
        ("select '日本', bad from t", 'column "bad" not found', ["  1 | select '日本', bad from t", " " * 21 + "^^^"]),
        ("select a.b from t", "unknown column t.b", ["  1 | select a.b from t", " " * 15 + "^"]),
        ("select 1\n+ x", "error at line 2, column 3: what", ["  2 | + x", "        ^"]),
        ("select x", "wrong at position 8", ["  1 | select x", " " * 13 + "^"]),
        ("select 1", "something else went wrong", []),
        ("select 1", "error at line 99, column 3", []),
        ("select\t\tbad", 'column "bad" not found', ["  1 | select  bad", " " * 14 + "^^^"]),
    ],
)
def test_the_line_and_the_mark(sql: str, message: str, expected: list[str]) -> None:
    assert excerpt(sql, StatementError(message)) == expected


def test_an_offset_that_the_service_gives() -> None:
    error = StatementError("wrong", where=Where(offset=9))
    assert excerpt("select 1, wrong", error)[1].endswith("^")
    assert excerpt("x", StatementError("wrong", where=Where(offset=99)))


def test_long_lines_are_cut_around_the_mark() -> None:
    sql = "select " + ", ".join(f"column{number}" for number in range(500)) + ", bad, more from t"
    line, mark = excerpt(sql, StatementError('column "bad" not found'))
    assert len(line) < 120
    assert line[mark.index("^") : mark.index("^") + 3] == "bad"


@pytest.mark.parametrize(
    ("message", "known", "expected"),
    [
        ("Table with name ordrs does not exist!", ["orders", "customers"], "did you mean orders?"),
        ('column "custmer_id" not found', ["customer_id", "id"], "did you mean customer_id?"),
        ("unknown relation sales.ordes", ["Orders"], "did you mean Orders?"),
        ('column "zzz" not found', ["customer_id"], ""),
        ('relation "x" does not exist. Did you mean "y"?', ["xx", "y"], ""),
        ("division by zero", ["zero"], ""),
    ],
)
def test_the_nearest_names(message: str, known: list[str], expected: str) -> None:
    assert suggested(StatementError(message), known) == expected
