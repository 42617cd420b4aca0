"""The history files: whole entries, truncated to the latest, private; their failures never affect input."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sqlshell.shell.interactive import history
from sqlshell.shell.interactive.history import FileHistory, HistoryEntry, matching


def texts(entries: list[HistoryEntry]) -> list[str]:
    return [entry.text for entry in entries]


@pytest.fixture
def told() -> list[str]:
    return []


def test_entries_come_back_whole(tmp_path: Path, told: list[str]) -> None:
    path, shared = tmp_path / "made" / "own", tmp_path / "made" / "shared"
    written = ["select 1", "select\n  2", "# 5", "+\n+", "\\echo \ud800"]
    kept = FileHistory(path, told.append, shared)
    for text in [*written, " kept out", "", "  ", "\tkept out"]:
        kept.store_string(text)
    read = FileHistory(path, told.append, shared)
    assert texts(read.entries()) == [*written[:-1], "\\echo ?"]
    assert texts(read.all_entries()) == texts(read.entries())
    assert list(read.load_history_strings()) == texts(read.entries())[::-1]
    assert [entry.time for entry in read.entries()] == sorted(entry.time for entry in read.entries())
    assert read.entries()[0].time > 1_700_000_000
    assert {stat.S_IMODE(file.stat().st_mode) for file in (path, shared)} == {0o600}
    assert told == []


def test_an_entry_that_failed_is_known_as_one(tmp_path: Path, told: list[str]) -> None:
    path, shared = tmp_path / "own", tmp_path / "shared"
    kept, other = FileHistory(path, told.append, shared), FileHistory(tmp_path / "other", told.append, shared)
    kept.store_string("selekt 1")
    other.store_string("# failed 7.5\nselect 2")
    kept.note_failure()
    kept.store_string(" select 'not stored'")
    kept.note_failure()
    assert [(entry.text, entry.failed) for entry in kept.all_entries()] == [
        ("selekt 1", True),
        ("# failed 7.5\nselect 2", False),
    ]
    other.clear()
    assert [(entry.text, entry.failed) for entry in other.all_entries()] == [("selekt 1", True)]
    assert [(entry.text, entry.failed) for entry in kept.entries()] == [("selekt 1", True)]


def test_entries_of_other_targets_come_before_the_first_of_this_one(tmp_path: Path, told: list[str]) -> None:
    shared = tmp_path / "shared"
    FileHistory(tmp_path / "a", told.append, shared).store_string("of a, early")
    own = FileHistory(tmp_path / "b", told.append, shared)
    assert texts(own.entries()) == ["of a, early"]
    own.store_string("of b")
    FileHistory(tmp_path / "a", told.append, shared).store_string("of a, late")
    assert texts(own.entries()) == ["of a, early", "of b"]
    assert texts(own.all_entries()) == ["of a, early", "of b", "of a, late"]
    own.use_file(tmp_path / "a")
    assert texts(own.entries()) == ["of a, early", "of a, late"]
    assert own.get_strings() == ["of a, early", "of a, late"]
    own.clear()
    assert (texts(own.entries()), own.get_strings()) == (["of b"], [])
    assert texts(own.all_entries()) == ["of b"]
    assert not tmp_path.joinpath("a").exists()


def test_a_target_with_entries_enough_shows_its_own(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "LONGEST", 20)
    shared = tmp_path / "shared"
    FileHistory(tmp_path / "a", told.append, shared).store_string("of a")
    own = FileHistory(tmp_path / "b", told.append, shared)
    for number in range(2):
        own.store_string(str(number))
    assert texts(own.entries()) == ["of a", "0", "1"]
    own.store_string("2")
    assert texts(own.entries()) == ["0", "1", "2"]


def test_a_file_is_cut_when_it_has_twice_as_many(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "LONGEST", 3)
    path = tmp_path / "own"
    kept = FileHistory(path, told.append)
    for number in range(6):
        kept.store_string(str(number))
    assert texts(kept.entries()) == ["3", "4", "5"]
    assert path.read_text().count("+") == 6
    kept.store_string("6")
    times = [entry.time for entry in kept.entries()]
    assert path.read_text().count("+") == 3
    assert (texts(kept.entries()), [entry.time for entry in kept.entries()]) == (["4", "5", "6"], times)
    assert [file.name for file in tmp_path.iterdir()] == ["own"]


def test_a_file_of_others_hands_is_read_as_far_as_it_goes(tmp_path: Path, told: list[str]) -> None:
    path = tmp_path / "own"
    path.write_bytes(b"+no time\n# nonsense\n+a\xff\n# 7.5\n+b\n+c\nanything\n+d")
    entries = FileHistory(path, told.append).entries()
    assert [(entry.time, entry.text) for entry in entries] == [
        (0.0, "no time"),
        (0.0, "a\ufffd"),
        (7.5, "b\nc"),
        (7.5, "d"),
    ]


def test_a_file_that_cannot_be_used_is_told_once(tmp_path: Path, told: list[str]) -> None:
    kept = FileHistory(tmp_path, told.append)
    assert kept.entries() == []
    kept.store_string("select 1")
    kept.store_string("select 2")
    assert told == [f"cannot use the history {tmp_path}: is a directory"]
    below = FileHistory(tmp_path / "file" / "own", told.append)
    tmp_path.joinpath("file").write_text("")
    assert below.entries() == []
    below.store_string("select 1")
    below.store_string("select 2")
    assert len(told) == 2
    assert told[1].startswith(f"cannot use the history {tmp_path / 'file' / 'own'}: ")


def test_a_secret_is_known_by_what_was_entered_before(tmp_path: Path, told: list[str]) -> None:
    before = ["create secret s with ('secret_string' ="]
    kept = FileHistory(tmp_path / "own", told.append, unfinished=lambda: before[0])
    kept.store_string("'hunter2');")
    assert not tmp_path.joinpath("own").exists()
    before[0] = "select 1;"
    kept.store_string("create secret s with ('secret_string' = 'hunter2');")
    kept.store_string("select 2;")
    assert texts(kept.entries()) == ["create secret s with (***);", "select 2;"]
    # Where the beginning cannot be told from the entry, none of it is kept.
    torn = FileHistory(
        tmp_path / "torn",
        told.append,
        redact=lambda text: text.upper() if "\n" in text else text,
        unfinished=lambda: "select",
    )
    torn.store_string("1")
    assert not tmp_path.joinpath("torn").exists()


def test_what_continues_a_statement_that_is_not_kept_is_not_kept(tmp_path: Path, told: list[str]) -> None:
    before = [""]
    history = FileHistory(tmp_path / "history", told.append, unfinished=lambda: before[0])
    for before[0], line in (
        ("", " select 'a'"),
        ("select 'a'\n", ", 'b'"),
        ("select 'a'\n, 'b'\n", ";"),
        ("", "select 1;"),
    ):
        history.store_string(line)
    assert [entry.text for entry in history.entries()] == ["select 1;"]


def test_entries_are_matched_by_their_letters() -> None:
    entries = [HistoryEntry(float(number), text) for number, text in enumerate(["xaxb", "AB", "ab c", "ba", "AB"])]
    assert [entry.text for entry in matching(entries, "Ab")] == ["AB", "ab c", "xaxb"]
    assert matching(entries, "ab")[0].time == 4.0
