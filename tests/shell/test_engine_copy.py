"""Which COPY the engine carries out by itself, and the statement that it is sent."""

from __future__ import annotations

import asyncio

import pytest

from sqlshell.shell.loading.spec import copy_for_engine, engine_understands, is_engine_copy
from sqlshell.sql.analysis.copy_statements import CopyStatement, read_copy
from tests.shell.sessions import connection


def copy(text: str) -> CopyStatement:
    return read_copy(f"COPY {text}", command=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t FROM STDIN", True),
        ("t FROM STDIN (FORMAT csv)", True),
        ("t FROM STDIN (FORMAT text)", True),
        ("t FROM STDIN (FORMAT binary)", True),
        ("t FROM STDIN (FORMAT json)", False),
        ("t FROM STDIN (FORMAT parquet)", False),
        ("t FROM STDIN (FORMAT csv, CREATE)", False),
        ("t FROM STDIN (max_errors 5)", False),
        ("t FROM PROGRAM 'x'", True),
        ("t FROM PROGRAM 'x' (FORMAT parquet)", False),
        ("t FROM 'a'", True),
        ("t FROM 'a.dat'", True),
        ("t FROM 'a.csv'", False),
        ("t FROM 'a.csv' (FORMAT csv)", True),
        ("t FROM 'a.csv' (FORMAT text)", True),
        ("t FROM 'a.parquet' (FORMAT csv)", True),
        ("t FROM 'a.csv' (FORMAT parquet)", False),
        ("t FROM 'a.csv.gz' (FORMAT csv)", False),
        ("t FROM 'a.GZ' (FORMAT csv)", False),
        ("t FROM 'a' (FORMAT csv, HEADER, NULL 'x')", True),
    ],
)
def test_what_only_sqlshell_knows_is_its_own(text: str, expected: bool) -> None:
    assert engine_understands(copy(text)) is expected


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("t FROM 'a'", "COPY t FROM STDIN"),
        ('"T" (a, "B") FROM STDIN (FORMAT csv)', 'COPY "T" (a, "B") FROM STDIN (FORMAT csv)'),
        ("t FROM 'a' WITH (FORMAT csv, HEADER)", "COPY t FROM STDIN WITH (FORMAT csv, HEADER)"),
        ("t TO 'a'", "COPY t TO STDOUT"),
        ("(select 1 -- one\n) TO 'a' (FORMAT csv)", "COPY (select 1 -- one\n) TO STDOUT (FORMAT csv)"),
    ],
)
def test_the_engine_is_sent_a_stream(text: str, sent: str) -> None:
    assert " ".join(copy_for_engine(copy(text)).split()) == " ".join(sent.split())
    assert copy_for_engine(copy(text)).count("\n") >= sent.count("\n")


@pytest.mark.parametrize(
    ("engine", "text", "offline", "expected"),
    [
        ("engine=postgresql", "t FROM STDIN", False, True),
        ("engine=postgresql", "t FROM STDIN (CREATE)", False, False),
        ("engine=postgresql", "t FROM STDIN", True, False),
        ("engine=spark", "t FROM STDIN", False, False),
        ("engines", "t FROM STDIN", False, False),
    ],
)
def test_the_engine_reads_data_if_it_can(engine: str, text: str, offline: bool, expected: bool) -> None:
    shown = connection(offline=(lambda *_: None) if offline else None)
    shown.service.transport.extensions = frozenset({engine})
    assert asyncio.run(is_engine_copy(copy(text), shown)) is expected
