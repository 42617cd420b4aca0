"""The journal, written by the shell and read by completion in another thread."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from sqlshell.context import SessionContext
from sqlshell.interface.sqlstate import CANCELED
from sqlshell.shell.records import journal as journals
from sqlshell.shell.records.journal import BATCH_SIZE, KEPT_DAYS, LONGEST_SQL, MAX_PENDING, Journal, JournalEntry

Opened = Callable[..., Journal]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Opens journals, which are closed also where the test fails."""
    with contextlib.ExitStack() as stack:
        yield lambda *given: stack.enter_context(contextlib.closing(Journal(*given)))


@pytest.fixture
def journal(opened: Opened, tmp_path: Path) -> Journal:
    return opened(tmp_path / "deep" / "journal.db", "here", "staging", pytest.fail)


@pytest.mark.parametrize("kept", [True, False])
def test_several_threads(opened: Opened, tmp_path: Path, kept: bool) -> None:
    told: list[str] = []
    journal = opened(tmp_path / "journal.db" if kept else None, "here", "", told.append)

    def write(number: int) -> None:
        journal.record_start(f"id-{number}", f"select {number}", SessionContext(), 0.0)
        journal.record_end(f"id-{number}", "00000", "", 1)

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


def test_changes_share_a_commit(opened: Opened, tmp_path: Path) -> None:
    place, other = tmp_path / "journal.db", opened(tmp_path / "journal.db", "here", "", print)
    journal = opened(place, "here", "", print)
    commits: list[str] = []

    def traced(statement: str) -> None:
        if statement == "COMMIT":
            commits.append(statement)

    journal.record_start("first", "select 0", SessionContext(), 0.0)
    journal.flush()
    assert journal._database is not None
    journal._database.set_trace_callback(traced)
    for number in range(100):
        journal.record_start(f"id-{number}", f"select {number}", SessionContext(), 0.0)
        journal.record_end(f"id-{number}", "00000", "", 1)
    assert (commits, len(other.recent(200))) == ([], 1)
    journal.flush()
    assert (commits, len(other.recent(200))) == (["COMMIT"], 101)
    journal.record_start("last", "select 1", SessionContext(), 0.0)
    journal.close()
    assert [entry.id for entry in other.find("last")] == ["last"]


def test_a_message_about_a_secret_is_not_kept(opened: Opened, tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal.db", "here", "", print)
    for name, sql in (("plain", "select 1"), ("secret", "create secret s (type s3, secret 'hidden')")):
        journal.record_start(name, sql, SessionContext(), 0.0)
        journal.record_end(name, "42601", "syntax error at \"(type s3, secret 'hidden')\"")
    kept = {entry.id: (entry.sql, entry.message != "") for entry in journal.recent(10)}
    assert kept == {"plain": ("select 1", True), "secret": ("create secret s (***)", False)}


def test_a_message_about_a_secret_behind_what_is_kept_is_not_kept(opened: Opened, tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal.db", "here", "", print)
    sql = f"create user u in role {'x' * LONGEST_SQL} password 'hunter2'"
    journal.record_start("id", sql, SessionContext(), 0.0)
    journal.record_end("id", "42601", 'syntax error at or near "hunter2"')
    (entry,) = journal.recent(1)
    assert (entry.message, len(entry.sql)) == ("", LONGEST_SQL)


def test_what_waits_is_bounded(opened: Opened, tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal.db", "here", "", print)
    for number in range(BATCH_SIZE):
        journal.record_start(f"id-{number}", "select 1", SessionContext(), 0.0)
    other = opened(tmp_path / "journal.db", "here", "", print)
    assert len(other.recent(2 * BATCH_SIZE)) == BATCH_SIZE


@pytest.mark.parametrize("used", [True, False])
def test_what_another_shell_keeps_from_being_written_is_written_later(
    opened: Opened, tmp_path: Path, used: bool
) -> None:
    told: list[str] = []
    place = tmp_path / "journal.db"
    reader = opened(place, "here", "", pytest.fail)
    reader.recent(1)
    journal = opened(place, "here", "", told.append)
    if used:
        journal.recent(1)
    with contextlib.closing(sqlite3.connect(place)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        for number in range(3):
            journal.record_start(f"id-{number}", "select 1", SessionContext(), 0.0)
            journal.flush()
        assert (journal.recent(9), reader.recent(9)) == ([], [])
    assert [entry.id for entry in journal.find("id")] == ["id-2", "id-1", "id-0"]
    assert len(reader.recent(9)) == 3
    assert told == []


def test_a_journal_that_stays_locked_is_reported_at_the_end(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "LAST_WAIT", 1)
    told: list[str] = []
    journal = opened(tmp_path / "journal.db", "here", "", told.append)
    journal.recent(1)
    with contextlib.closing(sqlite3.connect(tmp_path / "journal.db")) as writer:
        writer.execute("BEGIN IMMEDIATE")
        journal.record_start("id", "select 1", SessionContext(), 0.0)
        journal.flush()
        assert told == []
        journal.close()
    (warning,) = told
    assert warning.endswith("statements are not recorded: database is locked")


def only(journal: Journal) -> JournalEntry:
    (entry,) = journal.recent(10)
    return entry


@pytest.mark.parametrize(
    ("state", "word"),
    [("03000", "running"), ("00000", "finished"), ("02000", "finished"), (CANCELED, "canceled"), ("42601", "failed")],
)
def test_how_a_statement_stands(journal: Journal, state: str, word: str) -> None:
    journal.record_start("id", "select 1", SessionContext(database="d", timezone="UTC"), 5.0)
    begun = only(journal)
    assert (begun.state, begun.running, begun.ended, begun.rows) == ("running", True, None, None)
    assert (begun.target, begun.profile, begun.sql, begun.query_id) == ("here", "staging", "select 1", "")
    assert json.loads(begun.context) == {"database": "d", "timezone": "UTC"}
    journal.record_end("id", state, "said", 7)
    ended = only(journal)
    assert (ended.state, ended.sql_state, ended.message, ended.rows) == (word, state, "said", 7)
    assert (ended.ended is None) == ended.running == (word == "running")


def test_the_time_of_an_end_and_rows_that_are_known_stay(journal: Journal) -> None:
    journal.record_start("id", "select 1", SessionContext(), 0.0)
    journal.record_end("id", "00000", "", 7)
    first = only(journal)
    assert (first.message, first.rows) == ("", 7)
    journal.record_end("id", "00000")
    assert only(journal) == first
    journal.record_end("id", CANCELED, "canceled")
    assert only(journal) == replace(first, sql_state=CANCELED, message="canceled")


def test_each_statement_has_its_context(journal: Journal, tmp_path: Path) -> None:
    contexts = [SessionContext(database=name) for name in ("a", "b", "b", "a")]
    for number, context in enumerate(contexts):
        journal.record_start(f"id-{number}", "select 1", context, -float(number))
    assert [json.loads(entry.context)["database"] for entry in reversed(journal.recent(9))] == ["a", "b", "b", "a"]
    assert (tmp_path / "deep").stat().st_mode & 0o777 == 0o700


def test_a_state_without_its_time(journal: Journal) -> None:
    journal.record_start("id", "select 1", SessionContext(), 0.0)
    journal.record_state("id", "42601", "said")
    assert (only(journal).state, only(journal).message, only(journal).ended) == ("failed", "said", None)
    journal.record_end("id", "00000")
    assert only(journal).ended is not None


def test_the_start_is_when_it_was_sent(journal: Journal) -> None:
    journal.record_start("late", "select 1", SessionContext(), 0.0)
    journal.record_start("early", "select 2", SessionContext(), 1000.0)
    journal.record_start("early", "select 3", SessionContext(), 0.0)
    late, early = journal.recent(10)
    assert (late.id, early.id, early.sql) == ("late", "early", "select 2")
    assert late.began - early.began > 900


def test_other_shells_see_a_query_at_once(opened: Opened, journal: Journal, tmp_path: Path) -> None:
    other = opened(tmp_path / "deep" / "journal.db", "elsewhere", "", pytest.fail)
    for at in (journal, other):
        at.record_start("id", "create stream s", SessionContext(), 0.0)
    journal.record_query("id", "q-1")
    other.flush()
    found = {entry.target: entry.query_id for entry in journal.find("ID")}
    assert found == {"here": "q-1", "elsewhere": ""}
    assert [journal.is_here(entry) for entry in journal.find("i")] == [True, False]
    assert [other.is_here(entry) for entry in other.find("i")] == [True, False]
    assert journal.find("idx") == []


def test_those_that_run_come_first_unless_only_this_target_is_asked_for(
    opened: Opened, journal: Journal, tmp_path: Path
) -> None:
    other = opened(tmp_path / "deep" / "journal.db", "elsewhere", "", pytest.fail)
    for at, name, ago in ((journal, "old", 30.0), (journal, "new", 10.0), (other, "other", 0.0)):
        at.record_start(name, f"select '{name}'", SessionContext(), ago)
        at.flush()
    journal.record_end("new", "00000")
    other.record_end("other", "00000")
    other.flush()
    assert [entry.id for entry in journal.recent(10)] == ["old", "other", "new"]
    assert [entry.id for entry in journal.recent(10, here=True)] == ["new", "old"]
    assert [entry.id for entry in journal.recent(1, here=True)] == ["new"]


def test_secrets_are_taken_out_of_what_is_written_and_old_statements_are_dropped(
    opened: Opened, tmp_path: Path
) -> None:
    path = tmp_path / "journal.db"
    journal = opened(path, "here", "", pytest.fail, lambda text: str(text).replace("hush", "***"))
    journal.record_start("id", "select 'hush'" + " " * LONGEST_SQL, SessionContext(), 0.0)
    journal.record_start("plain", "select 1", SessionContext(), KEPT_DAYS * 86_400 - 3_600)
    journal.record_end("plain", "42601", "near hush" + "!" * 3_000)
    journal.record_start("old", "select 2", SessionContext(), KEPT_DAYS * 86_400 + 3_600)
    journal.close()
    assert path.stat().st_mode & 0o777 == 0o600
    again = opened(path, "here", "", pytest.fail)
    secret, plain = again.recent(10)
    assert (secret.sql[:12], len(secret.sql)) == ("select '***'", LONGEST_SQL)
    assert plain.message == ("near ***" + "!" * 3_000)[:2_000]


def test_a_journal_in_memory_keeps_what_was_written(opened: Opened, tmp_path: Path) -> None:
    journal = opened(None, "here", "", pytest.fail, lambda text: str(text).replace("hush", "***"))
    journal.record_start("id", "select 'hush'", SessionContext(), 0.0)
    journal.flush()
    assert only(journal).sql == "select 'hush'"
    for number in range(BATCH_SIZE - 1):
        journal.record_start(f"id-{number}", "select 1", SessionContext(), 0.0)
    assert len(journal._pending) == BATCH_SIZE - 1
    journal.record_start("last", "select 1", SessionContext(), 0.0)
    assert not journal._pending
    journal.close()
    for number in range(MAX_PENDING + 5):
        journal.record_start(f"id-{number}", "select 1", SessionContext(), 0.0)
    assert len(journal.recent(MAX_PENDING * 2)) == MAX_PENDING


@pytest.mark.parametrize("broken", ["folder", "no database"])
def test_a_journal_that_cannot_be_used_is_told_once(opened: Opened, tmp_path: Path, broken: str) -> None:
    path = tmp_path / "journal.db"
    if broken == "folder":
        path.mkdir()
    else:
        path.write_text("this is no database" * 100)
    told: list[str] = []
    journal = opened(path, "here", "", told.append)
    journal.record_start("id", "select 1", SessionContext(), 0.0)
    assert only(journal).id == "id"
    journal.close()
    assert len(journal.recent(10)) == 0
    assert len(told) == 1
    assert str(path) in told[0]


def test_a_journal_that_breaks_while_it_is_used_is_told_once(tmp_path: Path) -> None:
    path, told = tmp_path / "journal.sqlite", list[str]()
    with contextlib.closing(Journal(path, "here", "", told.append)) as journal:
        journal.record_start("id1", "select 1", SessionContext(), 0)
        assert [entry.id for entry in journal.recent(9)] == ["id1"]
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("DROP TABLE statements")
            other.commit()
        assert journal.recent(9) == []
        assert journal.find("id1") == []
        journal.record_end("id1", "00000")
    assert told == [f"cannot use the journal {path}; statements are not recorded: no such table: statements"]


def test_a_file_with_another_table_of_that_name_is_left_alone(tmp_path: Path) -> None:
    path, told = tmp_path / "journal.sqlite", list[str]()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE statements (x)")
        other.commit()
    with contextlib.closing(Journal(path, "here", "", told.append)) as journal:
        journal.record_start("id1", "select 1", SessionContext(), 0)
        assert [entry.id for entry in journal.recent(9)] == ["id1"]
    assert len(told) == 1
    assert told[0].startswith(f"cannot use the journal {path}; statements are not recorded: ")
    with contextlib.closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT * FROM statements").fetchall() == []


def test_the_time_for_which_a_user_read_a_result_is_no_time_of_the_statement(opened: Opened) -> None:
    journal = opened(None, "here", "", print)
    journal.record_start("one", "select 1", SessionContext(), 10_000.0)
    journal.record_end("one", "00000", waited=9_000.0)
    (entry,) = journal.recent(1)
    assert entry.ended is not None
    assert 1_000 <= entry.ended - entry.began < 10_000
