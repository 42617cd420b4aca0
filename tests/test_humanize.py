"""Times, sizes and texts for people, on both sides of each limit."""

from __future__ import annotations

import pytest

from sqlshell.text import byte_size, duration, one_line


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 ms"),
        (0.0124, "12 ms"),
        (0.9994, "999 ms"),
        (1, "1.000 s"),
        (59.9994, "59.999 s"),
        (60, "1 min 00 s"),
        (123.4, "2 min 03 s"),
        (3599.4, "59 min 59 s"),
        (3600, "1 h 00 min"),
        (3659, "1 h 00 min"),
        (3660, "1 h 01 min"),
        (90_000, "25 h 00 min"),
    ],
)
def test_a_duration(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (2, "2 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_900, "999.9 kB"),
        (1_000_000, "1.0 MB"),
        (10**9 - 1, "1000.0 MB"),
        (10**9, "1.0 GB"),
    ],
)
def test_an_amount(size: int, said: str) -> None:
    assert byte_size(size) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  a\n\tb ", "a b"),
        ("12345", "12345"),
        ("123456", "1234…"),
        (" " * 20 + "a", "…"),
        ("a" + " " * 19, "a"),
        ("a" + " " * 20, "a…"),
    ],
)
def test_a_text_on_one_line(text: str, said: str) -> None:
    assert one_line(text, 5) == said
