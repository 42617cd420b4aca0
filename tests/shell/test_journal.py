"""The journal, written by the shell and read by completion in another thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sqlshell.context import SessionContext
from sqlshell.shell.journal import Journal


@pytest.mark.parametrize("kept", [True, False])
def test_several_threads(tmp_path: Path, kept: bool) -> None:
    told: list[str] = []
    journal = Journal(tmp_path / "journal.db" if kept else None, "here", "", told.append)

    def write(number: int) -> None:
        journal.began(f"id-{number}", f"select {number}", SessionContext(), 0.0)
        journal.ended(f"id-{number}", "00000", "", 1)

    def read(number: int) -> int:
        return len(journal.recent(50)) + len(journal.find(f"id-{number}"))

    with ThreadPoolExecutor(8) as threads:
        done = [threads.submit(write, number) for number in range(100)]
        done += [threads.submit(read, number) for number in range(100)]  # type: ignore[arg-type]
        for each in done:
            each.result()
    assert told == []
    entries = journal.recent(200)
    assert len(entries) == 100
    assert {(entry.state, entry.rows) for entry in entries} == {("finished", 1)}
    journal.close()
