"""Which column of a file goes into which column of a table."""

from __future__ import annotations

import pytest

from sqlshell.errors import UsageError
from sqlshell.origin import Trusted
from sqlshell.shell.loading.spec import FileLayout, SourceColumn, TargetColumn, match_columns, request_of
from sqlshell.shell.loading.types import staged_type
from sqlshell.sql.analysis.copy_statements import read_copy

TABLE = [TargetColumn("a", "VARCHAR"), TargetColumn("b", "VARCHAR")]


def test_an_error_names_the_column_that_is_there_twice() -> None:
    looked = FileLayout(
        tuple(SourceColumn(name, "VARCHAR", "VARCHAR") for name in ("a", "b", "B")), True, "csv, header"
    )
    request = request_of(read_copy("COPY t FROM 'x.csv'", command=True), Trusted("x.csv"), "x.csv")
    with pytest.raises(UsageError, match=r"x\.csv: two columns are named 'b'"):
        match_columns(request, looked, TABLE)


@pytest.mark.parametrize(
    ("table", "names", "said"),
    [
        ("t", ("foo", "bar"), " (foo, bar), but none of these is a column of t"),
        ("t (a, b)", ("foo", "bar"), " (foo, bar), but none of these is a column of t"),
        ("t (a, b)", ("a", "zz"), ", but some columns of t are missing: b"),
    ],
)
def test_a_first_line_that_may_be_data_is_not_skipped(table: str, names: tuple[str, ...], said: str) -> None:
    looked = FileLayout(tuple(SourceColumn(name, "VARCHAR", "VARCHAR") for name in names), True, "csv, header")
    request = request_of(read_copy(f"COPY {table} FROM 'x.csv'", command=True), Trusted("x.csv"), "x.csv")
    with pytest.raises(UsageError) as caught:
        match_columns(request, looked, TABLE)
    assert caught.value.message == f"x.csv: the first line looks like a header{said}"
    assert "--with 'HEADER false'" in (caught.value.hint or "")


@pytest.mark.parametrize("declared", ["DECIMAL", "NUMERIC"])
def test_a_decimal_without_precision_is_left_to_the_service(declared: str) -> None:
    assert (staged_type(declared), staged_type("DECIMAL(5,2)")) == ("VARCHAR", "DECIMAL(5,2)")
