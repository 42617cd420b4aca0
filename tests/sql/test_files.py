"""The files that a statement reads, as far as its text shows."""

from __future__ import annotations

import pytest

from sqlshell.sql.analysis.files import read_files


@pytest.mark.parametrize(
    ("sql", "paths"),
    [
        ("select * from 'a.csv'", ("a.csv",)),
        ('select * from "a.csv"', ("a.csv",)),
        ("copy t from 'a.csv'", ("a.csv",)),
        ("from read_csv('a.csv')", ("a.csv",)),
        ("from read_parquet(['a.parquet', 'b.parquet'], union_by_name = true)", ("a.parquet", "b.parquet")),
        ("select * from read_csv('a.csv') where x = 'b'", ("a.csv",)),
        ("select upper('a') from read_json('b')", ("b",)),
        ("select 'a.csv' from t", ()),
        ("select * from t where x = 'a.csv'", ()),
    ],
)
def test_the_files_that_a_statement_reads(sql: str, paths: tuple[str, ...]) -> None:
    assert read_files(sql) == paths
