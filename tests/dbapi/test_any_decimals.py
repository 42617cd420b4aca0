"""Decimals of any size, and dates before Christ: Arrow has their values, or there is an error."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sqlshell.result import Column, StoredColumn
from sqlshell.runtime.isolated_duckdb import isolated_duckdb
from sqlshell.sql.duckdb_types import TEXT, UNSIZED, digits, exact_type, sized, value_of


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["0.33333333333333333333", "-12.5", None], "DECIMAL(38,20)"),
        (["123456789012345678901234567890"], "DECIMAL(38,0)"),
        (["1" * 30 + ".12345678901"], TEXT),
        ([], "DECIMAL(38,0)"),
    ],
)
def test_a_decimal_of_any_size_keeps_its_digits(values: list[str | None], kind: str) -> None:
    assert exact_type("DECIMAL") == UNSIZED
    with isolated_duckdb("100MB") as connection:
        connection.execute("CREATE TABLE t (c VARCHAR)")
        for value in values:
            connection.execute("INSERT INTO t VALUES ($1)", [value])
        assert sized(connection.execute(digits(["c"], "t")).fetchall()[0]) == [kind]
        if kind != TEXT:
            read = connection.execute(f"SELECT {value_of('c', kind, is_text=True)} FROM t").fetchall()
            assert [row[0] for row in read] == [None if value is None else Decimal(value) for value in values]


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ"])
def test_a_date_before_christ_does_not_become_another(kind: str) -> None:
    import duckdb

    stored = StoredColumn(Column("c", "TIMESTAMP"), "c", "varchar", "c")
    with isolated_duckdb("100MB") as connection, pytest.raises(duckdb.ConversionException):
        value = value_of(stored.name, kind, is_text=stored.is_text)
        connection.execute(f"SELECT {value} FROM (SELECT '0044-03-15 12:00:00 BC' AS c)").fetchall()
