"""The signature of a function with several forms."""

from __future__ import annotations

import duckdb
import pytest

from sqlshell.result import Rows
from sqlshell.shell.metadata.catalog_loader import FUNCTIONS, functions_of
from sqlshell.sql.completion.signatures import Form, signature_of


def form(parameters: str, types: str, result: str = "", *, variadic: bool = False) -> Form:
    return Form(tuple(parameters.split()), tuple(types.split("|")) if types else (), result, variadic)


@pytest.mark.parametrize(
    ("forms", "shown"),
    [
        ([], ""),
        ([form("", "", "DOUBLE")], "() -> DOUBLE"),
        ([form("a b", "|")], "(a, b)"),
        # The most usual types.
        (
            [form("part when", "VARCHAR|INTERVAL", "INTERVAL"), form("part when", "VARCHAR|TIMESTAMP", "TIMESTAMP")],
            "(part, when) -> TIMESTAMP (+1 overload)",
        ),
        # A type where the name says nothing.
        ([form("x", "SMALLINT", "SMALLINT"), form("x", "DOUBLE", "DOUBLE")], "(x DOUBLE) -> DOUBLE (+1 overload)"),
        ([form("arg", "ANY", "BIGINT"), form("", "", "BIGINT")], "([arg]) -> BIGINT"),
        ([form("ts", "TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE")], "(ts TIMESTAMPTZ) -> TIMETZ"),
        # Optional parameters, but not if the result is another.
        (
            [form("s at n", "VARCHAR|BIGINT|BIGINT", "VARCHAR"), form("s at", "VARCHAR|BIGINT", "VARCHAR")],
            "(s VARCHAR, at[, n BIGINT]) -> VARCHAR",
        ),
        ([form("arg", "ANY", "ANY"), form("arg n", "ANY|BIGINT", "ANY[]")], "(arg) -> ANY (+1 overload)"),
        # Further arguments, and the named parameters of a table function.
        ([form("value", "ANY", "VARCHAR", variadic=True)], "(value, ...) -> VARCHAR"),
        ([form("", "", "STRUCT", variadic=True)], "(...) -> STRUCT"),
        ([form("path a b c d e f", "VARCHAR|||||||".removesuffix("|"))], "(path, ...)"),
        # A table function and a scalar one are one form.
        ([form("stop", "BIGINT"), form("stop", "BIGINT", "BIGINT[]")], "(stop) -> BIGINT[]"),
    ],
)
def test_the_form_that_a_signature_shows(forms: list[Form], shown: str) -> None:
    assert signature_of(forms) == shown
    assert signature_of(forms[::-1]) == shown


def test_common_functions_of_the_engine() -> None:
    rows: Rows = [
        [value if value is None else str(value).lower() if isinstance(value, bool) else value for value in row]
        for row in duckdb.connect().execute(FUNCTIONS).fetchall()
    ]
    shown = {item.name: item.signature for item in functions_of(rows)}
    for name, signature in {
        "date_trunc": "(part, timestamp) -> TIMESTAMP (+",
        "substring": "(string, start[, length]) -> VARCHAR",
        "coalesce": "(value, ...)",
        "sum": "(arg DOUBLE) -> DOUBLE (+",
        "count": "([arg]) -> BIGINT",
        "regexp_replace": "(string, regex, replacement[, options]) -> VARCHAR",
        "strftime": "(data TIMESTAMP, format) -> VARCHAR (+",
        "round": "(x DOUBLE[, precision]) -> DOUBLE (+",
        "lag": "(col[, offset[, default]]) -> T",
        "read_csv": "(path, ...)",
        "generate_series": "(start, stop[, step]) -> BIGINT[] (+",
        "json_extract": "(json, path) -> JSON (+",
        "length": "(string) -> BIGINT (+",
        "map": "(keys, values) -> MAP(K, V) (+",
    }.items():
        assert shown[name].startswith(signature), (name, shown[name])


def test_rows_that_are_no_functions_are_left_out() -> None:
    rows: Rows = [[], ["f"], [None, "[]", "[]", None, "false"], ["f", "{", "[]", None, "false"]]
    assert functions_of(rows) == []
    (found, *_) = functions_of([["f", '["a","b"]', '["DATE"]', None, "false"], *rows])
    assert (found.name, found.signature) == ("f", "(a DATE, b)")
