"""The signature of a function with several forms."""

from __future__ import annotations

import duckdb
import pytest

from sqlshell.result import Rows
from sqlshell.service.engines.duckdb.catalog import LISTS
from sqlshell.service.engines.duckdb.translation import functions
from sqlshell.shell.interactive.look.toolbar import call_text
from sqlshell.shell.metadata.catalog_loader import functions_of
from sqlshell.sql.completion.catalog import CachedCatalog, Catalog, Function
from sqlshell.sql.completion.signatures import Form, signature_of
from sqlshell.sql.completion.suggestions import Place, suggestions
from sqlshell.sql.keywords import SIGNATURES


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
    query = LISTS["functions"]
    rows: Rows = [
        [value if value is None else str(value).lower() if isinstance(value, bool) else value for value in row]
        for row in duckdb.connect().execute(query.source).fetchall()
    ]
    found, own = functions_of([name for name, _ in query.columns], rows)
    assert own == []
    assert {"read_csv", "generate_series"} <= {item.name for item in found if item.rows}
    assert not {"table_info", "show_tables"} & {item.name for item in found}
    shown = {item.name: item.signature for item in found}
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
    columns = ["Name", "Parameters", "ParameterTypes"]
    rows: Rows = [[], [None, "[]", "[]"], ["F", "[]", "[]"]]
    assert functions_of(columns, rows) == ([], [])
    found, _ = functions_of(columns, [["f", '["a","b"]', '["DATE"]'], ["g", "{", "[]"], *rows])
    assert [(item.name, item.signature) for item in found[:2]] == [("f", "(a DATE, b)"), ("g", "")]


def counts(signature: str) -> set[int]:
    """The numbers of arguments that a signature allows."""
    listed = signature[1 : signature.index(") ->")]
    required, *optional = listed.split("[")
    first = len([name for name in required.split(",") if name.strip()])
    return set(range(first, first + len(optional) + 1))


def test_the_functions_of_the_interface_have_signatures_that_the_local_service_accepts() -> None:
    accepted = {name: set(forms) for name, forms in functions.MADE.items()}
    # DuckDB has a function of this name, and lists it.
    del accepted["to_timestamp"]
    assert {name: counts(signature) for name, signature in SIGNATURES.items()} == accepted


def test_completion_shows_the_signatures_of_the_interface_before_the_names_of_a_service_are_loaded() -> None:
    found = suggestions("select to_da", 12, Place(Catalog(), "", ""))[1]
    assert [item.detail for item in found if item.text == "to_date("] == [SIGNATURES["to_date"]]
    assert call_text("select convert_tz(a, ", Catalog())[1] == ("bold", "from_zone")


def test_a_macro_of_the_user_precedes_a_function_of_the_interface() -> None:
    catalog = Catalog(CachedCatalog(functions=[Function("nvl", "(a, b, c)")]))
    assert catalog.signature("NVL") == catalog.signatures()["nvl"] == "(a, b, c)"


def test_a_service_that_lists_its_functions_has_no_others() -> None:
    def proposed(catalog: Catalog, typed: str) -> list[str]:
        return [item.text for item in suggestions(f"select {typed}", 7 + len(typed), Place(catalog, "", ""))[1]]

    listed = Catalog(CachedCatalog(functions=[Function("to_days", "(integer) -> INTERVAL")]))
    assert "to_char(" in proposed(Catalog(), "to_")
    assert "to_char(" not in proposed(listed, "to_")
    assert {"to_days(", "to_date("} <= set(proposed(listed, "to_"))
    assert "coalesce(" in proposed(listed, "coal")
    assert "convert_timezone(" not in proposed(listed, "conv")
