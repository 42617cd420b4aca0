"""The journal, written by the shell and read by completion in another thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sqlshell.context import SessionContext
from sqlshell.shell.records.journal import TOGETHER, Journal


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


def test_changes_share_a_commit(tmp_path: Path) -> None:
    place, other = tmp_path / "journal.db", Journal(tmp_path / "journal.db", "here", "", print)
    journal = Journal(place, "here", "", print)
    commits: list[str] = []

    def traced(statement: str) -> None:
        if statement == "COMMIT":
            commits.append(statement)

    journal.began("first", "select 0", SessionContext(), 0.0)
    journal.flush()
    assert journal._database is not None
    journal._database.set_trace_callback(traced)
    for number in range(100):
        journal.began(f"id-{number}", f"select {number}", SessionContext(), 0.0)
        journal.ended(f"id-{number}", "00000", "", 1)
    assert (commits, len(other.recent(200))) == ([], 1)
    journal.flush()
    assert (commits, len(other.recent(200))) == (["COMMIT"], 101)
    journal.began("last", "select 1", SessionContext(), 0.0)
    journal.close()
    assert [entry.id for entry in other.find("last")] == ["last"]
    other.close()


def test_a_message_about_a_secret_is_not_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db", "here", "", print)
    for name, sql in (("plain", "select 1"), ("secret", "create secret s (type s3, secret 'hidden')")):
        journal.began(name, sql, SessionContext(), 0.0)
        journal.ended(name, "42601", "syntax error at \"(type s3, secret 'hidden')\"")
    kept = {entry.id: (entry.sql, entry.message != "") for entry in journal.recent(10)}
    assert kept == {"plain": ("select 1", True), "secret": ("create secret s (***)", False)}
    journal.close()


def test_what_waits_is_bounded(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db", "here", "", print)
    for number in range(TOGETHER):
        journal.began(f"id-{number}", "select 1", SessionContext(), 0.0)
    other = Journal(tmp_path / "journal.db", "here", "", print)
    assert len(other.recent(2 * TOGETHER)) == TOGETHER
    journal.close()
    other.close()
