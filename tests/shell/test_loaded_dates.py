"""Dates of files: what DuckDB would read as another date, or a part of, is a bad row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shell.test_loaded_numbers import read
from tests.shell.test_reading_files import Loaded

ROWS = "n,day,at\n" + "1,2024-01-31,2024-01-31 10:00:00\n" * 30_000


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ("2,2024-02-01 or later,", "cannot convert '2024-02-01 or later' to DATE"),
        ("2,2024-02-01BC,", "cannot convert '2024-02-01BC' to DATE"),
        ("2,0044-03-15 BC,", "cannot convert '0044-03-15 BC' to DATE"),
        ("2,2024-02-01 10:00:00 America/New_York,", "cannot convert '2024-02-01 10:00:00 America/New_York' to DATE"),
        ("2,,2024-02-01 10:00 PM", "cannot convert '2024-02-01 10:00 PM' to TIMESTAMP(6)"),
        ("2,,2024-02-01 10:00:00 local", "cannot convert '2024-02-01 10:00:00 local' to TIMESTAMP(6)"),
        ("2,2024-02-30,2024-02-01 10:00 PM", "cannot convert '2024-02-30' to DATE"),
    ],
)
@pytest.mark.parametrize("options", ["", "ROUND"])
def test_words_after_a_date_are_an_error_with_its_line(tmp_path: Path, row: str, error: str, options: str) -> None:
    loaded = read(tmp_path, "a.csv", f"{ROWS}{row}\n", most=1, options=options)
    assert loaded.errors == [(30_002, error)]
    assert len(loaded.rows) == 30_000


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("0044-03-15 (BC)", "0044-03-15 (BC)"),
        (" 2024-02-01 ", "2024-02-01"),
        ("infinity", "infinity"),
        ("99999-12-31", "99999-12-31"),
        ("2024/02/01", "2024-02-01"),
        ("2024-02-01T00:00:00Z", "2024-02-01"),
    ],
)
# A wrong number in another column is skipped.
@pytest.mark.parametrize("wrong", ["", "x,2024-01-31,\n"])
def test_dates_in_other_spellings_are_read_as_such(tmp_path: Path, text: str, day: str, wrong: str) -> None:
    loaded = read(tmp_path, "a.csv", f"{ROWS}2,{text},\n{wrong}", most=1)
    assert [item.line for item in loaded.rejects] == [30_003] * bool(wrong)
    assert len(loaded.rows) == 30_001
    assert loaded.literals[-1] == f"(2, CAST('{day}' AS DATE), NULL)"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2024-02-01T10:00:00Z", "2024-02-01 10:00:00"),
        ("2024-02-01 10:00:00 UTC", "2024-02-01 10:00:00"),
        ("2024-2-1 1:02:03.50", "2024-02-01 01:02:03.5"),
        ("2024-02-01", "2024-02-01 00:00:00"),
        ("-infinity", "-infinity"),
        ("0044-03-15 (BC) 10:00:00", "0044-03-15 (BC) 10:00:00"),
    ],
)
def test_timestamps_in_other_spellings_are_read_as_such(tmp_path: Path, text: str, at: str) -> None:
    assert read(tmp_path, "a.csv", f"{ROWS}2,,{text}\n").literals[-1] == f"(2, NULL, CAST('{at}' AS TIMESTAMP(6)))"
    assert Loaded(tmp_path, "a.json", json([text]), at="TIMESTAMP(6)").rows == [(at,)]


def test_a_time_of_day_among_dates_of_another_format_is_a_bad_row(tmp_path: Path) -> None:
    data = "at\n31/12/2020 00:00:00\n30/12/2020 10:00:00\n"
    loaded = Loaded(tmp_path, "a.csv", data, at="DATE")
    assert loaded.errors == [(3, "cannot convert '30/12/2020 10:00:00' to DATE: it would become 2020-12-30")]
    assert loaded.rows == [("2020-12-31",)]
    assert Loaded(tmp_path, "a.csv", data, options="ROUND", at="DATE").rows == [("2020-12-31",), ("2020-12-30",)]


def test_words_after_a_time_in_json_are_an_error(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, "a.json", json(["2024-01-31 10:00", "2024-02-01 10:00 PM"]), at="TIMESTAMP(6)")
    assert loaded.errors == [(2, "cannot convert '2024-02-01 10:00 PM' to TIMESTAMP(6)")]


def json(texts: list[str]) -> str:
    return "\n".join(f'{{"at": "{text}"}}' for text in texts)
