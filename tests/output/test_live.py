"""The view of rows that keep arriving: what is drawn and redrawn, and when."""

from __future__ import annotations

import re

import pytest

from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers import fitting
from sqlshell.output.writers.fitting import FRAME_LINES, LiveTableWriter
from sqlshell.result import Batch, Column

COLUMNS = [Column("n")]
LINES = 12


@pytest.fixture(autouse=True)
def _screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", str(LINES))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(fitting, "STEP_SECONDS", 0.0)


def drawn(chunks: object) -> tuple[int, list[str]]:
    """How many lines up it begins, and the lines."""
    text = b"".join(chunks).decode()  # type: ignore[arg-type]
    found = re.fullmatch(r"\x1b\[\?7l(?:\x1b\[(\d+)A)?\r\x1b\[J(.*)\r\n\x1b\[\?7h", text, re.S)
    assert found is not None, text
    return int(found[1] or 0), found[2].split("\r\n")


def batch(first: int, last: int) -> Batch:
    return Batch(1, rows=[[f"row {number:,}"] for number in range(first, last + 1)])


def shown(lines: list[str]) -> list[str]:
    return re.findall(r"row [\d,]+(?! rows)", "\n".join(lines[:-1]))


def test_the_last_rows_are_drawn_over_those_before() -> None:
    writer = LiveTableWriter(WriterOptions())
    assert writer.buffering
    up, empty = drawn(writer.begin(COLUMNS))
    assert up == 0
    assert empty[-1].startswith("\x1b[7m 0 rows │ 0 rows/s │ 0:00:0")
    up, two = drawn(writer.write(batch(1, 2)))
    assert (up, shown(two)) == (len(empty), ["row 1", "row 2"])
    assert two[-1].startswith("\x1b[7m 2 rows │ ")
    up, many = drawn(writer.write(batch(3, 1_000)))
    assert (up, shown(many)) == (len(two), [f"row {n:,}" for n in range(1_001 - (LINES - FRAME_LINES), 1_001)])
    assert many[-1].startswith("\x1b[7m 1,000 rows │ ")
    assert len(many) <= LINES - 1
    up, again = drawn(writer.settle())
    assert (up, again[:-1]) == (len(many), many[:-1])
    up, last = drawn(writer.end(Summary(1_000, True)))
    assert up == len(again)
    assert shown([*last, ""]) == shown(many)
    assert "rows/s" not in "".join(last)
    assert not writer.buffering


def test_it_is_not_drawn_for_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "STEP_SECONDS", 1e9)
    writer = LiveTableWriter(WriterOptions())
    drawn(writer.begin(COLUMNS))
    assert list(writer.write(batch(1, 2))) == []
    assert shown(drawn(writer.settle())[1]) == ["row 1", "row 2"]


def test_the_rate_is_that_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("sqlshell.output.writers.fitting.time.monotonic", lambda: now[0])
    writer = LiveTableWriter(WriterOptions())
    drawn(writer.begin(COLUMNS))
    status = []
    for seconds, rows in ((1.0, 10), (1.0, 10), (1.0, 40), (3_598.0, 0)):
        now[0] += seconds
        status.append(drawn(writer.write(batch(1, rows)))[1][-1])
    assert [re.findall(r"[\d,:]+(?= rows/s)|\d+:\d\d:\d\d", line) for line in status] == [
        ["10", "0:00:01"],
        ["10", "0:00:02"],
        ["25", "0:00:03"],
        ["0", "1:00:01"],
    ]
