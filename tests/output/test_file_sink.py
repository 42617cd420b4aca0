"""A file that is put in place when it is complete: its results one by one, its owner, and what is checked before."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

from sqlshell.errors import OutputError
from sqlshell.origin import Trusted
from sqlshell.output.sinks import file
from sqlshell.output.sinks.file import AppendSink, FileSink, check
from sqlshell.output.sinks.sink import compression, uncompressed, write_error
from sqlshell.runtime.scratch import scratch


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "x.csv"


@pytest.mark.parametrize(
    ("steps", "text", "unused"),
    [
        ("", "", True),
        ("a", "a", False),
        ("a|b", "ab", False),
        ("a|b<", "a", False),
        ("a|b<c", "ac", False),
        ("a<", "", True),
        ("a<b", "b", False),
        ("|<", "", False),
        ("a|b|c<", "ab", False),
    ],
)
def test_results_are_kept_from_mark_to_mark(place: Path, steps: str, text: str, unused: bool) -> None:
    sink = FileSink(Trusted(str(place)))
    for step in steps:
        if step == "|":
            sink.mark()
        elif step == "<":
            sink.rewind()
        else:
            sink.write(step.encode())
    assert sink.unused is unused
    assert not place.exists()
    sink.close()
    assert place.read_text() == text
    assert not sink.unused


def test_what_is_no_file_is_never_unused(tmp_path: Path) -> None:
    sink = FileSink(Trusted("/dev/null"))
    sink.write(b"x")
    sink.mark()
    sink.rewind()
    assert not sink.unused
    sink.close()


@pytest.mark.parametrize("before", ["before", ""])
def test_a_failed_write_keeps_what_was_there(place: Path, monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    if before:
        place.write_text(before)
    sink = FileSink(Trusted(str(place)))

    class Full:
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            raise OSError(28, "No space left on device")

    sink._file.close()
    monkeypatch.setattr(sink, "_file", Full())
    with pytest.raises(OutputError) as failed:
        sink.write(b"x")
    assert str(failed.value) == f"cannot write to {place}: no space left on device"
    assert failed.value.hint == ("the existing file was kept" if before else "")
    sink.rewind()
    sink.close()
    assert {path: path.read_text() for path in place.parent.iterdir()} == ({place: before} if before else {})
    assert not scratch()._beside


def test_a_file_that_cannot_be_closed_or_moved_is_removed(place: Path) -> None:
    sink = FileSink(Trusted(str(place)))
    sink.write(b"x")
    place.mkdir()
    with pytest.raises(OutputError, match="cannot write to"):
        sink.close()
    assert list(place.parent.iterdir()) == [place]
    assert not scratch()._beside


def test_a_file_that_is_complete_is_not_temporary(place: Path) -> None:
    sink = FileSink(Trusted(str(place)))
    [temporary] = scratch()._beside
    assert temporary.parent == place.parent
    assert temporary.name.startswith(".x.csv.")
    sink.close()
    assert not scratch()._beside
    other = FileSink(Trusted(str(place)))
    other.abort()
    assert not scratch()._beside


def test_long_names_have_a_temporary_one(tmp_path: Path) -> None:
    place = tmp_path / ("n" * 255)
    sink = FileSink(Trusted(str(place)))
    assert len(next(tmp_path.iterdir()).name) == file.LONGEST_STEM + 10
    sink.close()
    assert place.exists()


def test_owner_and_mode_are_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owners: list[tuple[int, int]] = []
    monkeypatch.setattr("os.chown", lambda path, user, group: owners.append((user, group)))
    FileSink(Trusted(str(place))).close()
    assert owners == []
    place.chmod(0o604)
    FileSink(Trusted(str(place))).close()
    assert owners == [(place.stat().st_uid, place.stat().st_gid)]
    assert place.stat().st_mode & 0o7777 == 0o604


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("missing/x", "no such file or directory", "create the directory first"),
        ("text/x", "not a directory", "its directory is a file; use another path"),
        ("x\0y", "embedded null", ""),
        ("~no-such-user/x", "no such file or directory", "create the directory first"),
    ],
)
def test_what_cannot_be_opened_is_known_before(tmp_path: Path, path: str, message: str, hint: str) -> None:
    (tmp_path / "text").write_text("")
    given = Trusted(path if path[0] == "~" else str(tmp_path / path))
    for attempt in (check, FileSink):
        with pytest.raises(OutputError) as failed:
            attempt(given)
        assert message in str(failed.value)
        assert failed.value.hint == hint
    with pytest.raises(OutputError):
        AppendSink(given)


@pytest.mark.parametrize("path", ["folder", "folder/", "new/"])
def test_a_directory_is_no_file(tmp_path: Path, path: str) -> None:
    (tmp_path / "folder").mkdir()
    for attempt in (check, FileSink):
        with pytest.raises(OutputError, match="is a directory") as failed:
            attempt(Trusted(f"{tmp_path}/{path}"))
        assert failed.value.hint == "name a file in the directory"


@pytest.mark.parametrize(("kept", "hint"), [(False, "the directory is not writable"), (True, "check its permissions")])
def test_what_may_not_be_written_is_known_before(
    place: Path, monkeypatch: pytest.MonkeyPatch, kept: bool, hint: str
) -> None:
    if kept:
        place.write_text("")
    denied = place if kept else place.parent
    asked: list[int] = []

    def access(path: Path, mode: int) -> bool:
        asked.append(mode)
        return Path(path) != denied

    monkeypatch.setattr("os.access", access)
    with pytest.raises(OutputError, match=r"(?i)permission denied") as failed:
        check(Trusted(str(place)))
    assert failed.value.hint.startswith(hint)
    assert asked == [os.W_OK if kept else os.W_OK | os.X_OK]


def test_what_can_be_written_passes(place: Path) -> None:
    reading, writing = os.pipe()
    for path in (str(place), "/dev/null", "/dev/stdout", f"/dev/fd/{writing}"):
        check(Trusted(path))
    sink = FileSink(Trusted(f"/dev/fd/{writing}"))
    os.close(writing)
    sink.write(b"text")
    sink.close()
    assert os.read(reading, 10) == b"text"
    os.close(reading)
    assert not place.exists()


def test_appended_text(place: Path) -> None:
    for text in (b"a", b"b"):
        sink = AppendSink(Trusted(str(place)))
        sink.write(text)
        (sink.close if text == b"a" else sink.abort)()
        assert sink._file.closed
    assert place.read_text() == "ab"


@pytest.mark.parametrize(
    ("path", "suffix", "plain"),
    [
        ("a.csv.gz", ".gz", "a.csv"),
        ("A.CSV.GZ", ".gz", "A.CSV"),
        ("a.zst", ".zst", "a"),
        ("a.gzip", "", "a.gzip"),
        ("gz", "", "gz"),
        ("a.gz/b", "", "a.gz/b"),
    ],
)
def test_compressed_names(path: str, suffix: str, plain: str) -> None:
    assert (compression(path), uncompressed(path)) == (suffix, plain)


def test_a_closed_descriptor_says_so() -> None:
    assert str(write_error("out", OSError(9, "Bad file descriptor"))) == "cannot write to out: it is closed"
    assert str(write_error("out", OSError(5, "Input/output error"))) == "cannot write to out: input/output error"
    assert str(write_error("out", ValueError("odd"), "hint")) == "cannot write to out: odd"


def test_a_file_that_cannot_be_registered_is_closed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[io.FileIO] = []
    fdopen = os.fdopen

    def remembered(*arguments: Any, **given: Any) -> Any:
        opened.append(fdopen(*arguments, **given))
        return opened[-1]

    def full(path: Path) -> None:
        raise OSError(27, "File too large")

    monkeypatch.setattr("os.fdopen", remembered)
    monkeypatch.setattr(scratch(), "add", full)
    with pytest.raises(OutputError, match="file too large"):
        FileSink(Trusted(str(place)))
    assert [each.closed for each in opened] == [True]
    assert list(place.parent.iterdir()) == []
