"""Sinks: files that appear when they are complete, streams whose readers exit, full disks, pagers."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from sqlshell.errors import OutputError, ProtocolError, UsageError
from sqlshell.origin import Trusted
from sqlshell.output.copy import LARGE, copy
from sqlshell.output.sinks.command import CommandSink, command_in
from sqlshell.output.sinks.file import AppendSink, FileSink
from sqlshell.output.sinks.pager import ScreenSink, screen_lines
from sqlshell.output.sinks.sink import OutputClosed, Sink, StreamSink
from sqlshell.output.writer import Look, Summary, Writer, WriterOptions
from sqlshell.output.writers.column_names import distinct_names, warn_of_names
from sqlshell.output.writers.formats import format_for_path, format_named
from sqlshell.result import Batch, Column, Result
from sqlshell.sql.duckdb_types import distinct_for_duckdb


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_text("old")
    place.chmod(0o640)
    sink = FileSink(Trusted(str(place)))
    sink.write(b"new")
    assert place.read_text() == "old"
    sink.close()
    assert place.read_text() == "new"
    assert place.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_an_aborted_file_leaves_nothing(tmp_path: Path) -> None:
    sink = FileSink(Trusted(str(tmp_path / "x.csv")))
    sink.write(b"new")
    sink.abort()
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    sink = FileSink(Trusted(str(link)))
    sink.write(b"new")
    sink.close()
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.mark.parametrize("path", ["no/where", "."])
def test_what_cannot_be_opened(tmp_path: Path, path: str) -> None:
    with pytest.raises(OutputError):
        FileSink(Trusted(str(tmp_path / path)))


def test_a_full_disk() -> None:
    sink = FileSink(Trusted("/dev/full"))
    with pytest.raises(OutputError, match="no space"):
        sink.write(b"x")
    sink.abort()


def test_a_reader_that_left() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as stream, pytest.raises(OutputClosed):
        StreamSink(stream).write(b"x")


def test_a_command(tmp_path: Path) -> None:
    sink = CommandSink(Trusted(f"cat > '{tmp_path}/out'"))
    sink.write(b"text")
    sink.close()
    assert tmp_path.joinpath("out").read_text() == "text"
    failing = CommandSink(Trusted("exit 3"))
    with pytest.raises(OutputError, match="3"):
        failing.close()
    with pytest.raises(OutputError):
        command_in(Trusted("|"))


def test_short_results_need_no_pager() -> None:
    stream = io.BytesIO()
    sink = ScreenSink(stream, "exit 1", sys.stdin)
    sink.write(b"one\ntwo\n")
    sink.close()
    assert stream.getvalue() == b"one\ntwo\n"


def test_tall_results_go_through_the_pager(tmp_path: Path) -> None:
    stream = io.BytesIO()
    sink = ScreenSink(stream, f"cat > '{tmp_path}/paged'", sys.stdin)
    for _ in range(100):
        sink.write(b"line\n" * 10)
    sink.close()
    assert stream.getvalue() == b""
    assert tmp_path.joinpath("paged").read_text() == "line\n" * 1000


@pytest.mark.parametrize(("sideways", "width", "paged"), [(True, 81, True), (True, 80, False), (False, 81, False)])
def test_a_table_wider_than_the_screen_goes_through_the_pager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sideways: bool, width: int, paged: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    stream = io.BytesIO()
    sink = ScreenSink(stream, f"cat > '{tmp_path}/paged'", sys.stdin, sideways=sideways)
    sink.write(b"a")
    sink.write(b"b\n" + b"c" * width + b"\n")
    sink.close()
    assert tmp_path.joinpath("paged").exists() is paged
    assert (stream.getvalue() == b"") is paged


@pytest.mark.parametrize(("width", "paged"), [(80 * 21, False), (80 * 21 + 1, True)])
def test_records_with_long_values_are_wrapped_if_they_fit_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int, paged: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    stream = io.BytesIO()
    sink = ScreenSink(stream, f"cat > '{tmp_path}/paged'", sys.stdin, sideways=True)
    sink.freeze(lambda: Look(wraps=True))
    sink.write(b"-[ RECORD 1 ]\n" + b"c" * width + b"\n")
    sink.close()
    assert tmp_path.joinpath("paged").exists() is paged
    assert (stream.getvalue() == b"") is paged


def test_a_pager_that_is_quit() -> None:
    sink = ScreenSink(io.BytesIO(), "head -n 1 > /dev/null", sys.stdin)
    with pytest.raises(OutputClosed):
        for _ in range(10_000):
            sink.write(b"line\n" * 1000)
    sink.close()


class Batches:
    """Batches that fail once in between."""

    def __init__(self, count: int, failing: int = -1) -> None:
        self.count, self.failing, self.next, self.closed = count, failing, 0, False

    def __aiter__(self) -> Batches:
        return self

    async def __anext__(self) -> Batch:
        if self.next == self.failing:
            raise ProtocolError("broken")
        if self.next >= self.count:
            raise StopAsyncIteration
        self.next += 1
        return Batch(1, rows=[[str(self.next)]])

    async def aclose(self) -> None:
        self.closed = True


class Leaving(StreamSink):
    def write(self, data: bytes) -> None:
        raise OutputClosed


def test_the_loop_counts_and_closes() -> None:
    batches = Batches(3)
    stream = io.BytesIO()
    writer = format_named("csv").factory(WriterOptions())
    summary = asyncio.run(copy(Result([Column("a")], batches), writer, StreamSink(stream)))
    assert (summary, batches.closed, stream.getvalue()) == (Summary(3, True), True, b"a\n1\n2\n3\n")


def test_the_loop_stops_when_the_reader_leaves_or_a_batch_fails() -> None:
    gone, failing = Batches(1000), Batches(3, failing=1)
    writer = format_named("csv").factory(WriterOptions())
    summary = asyncio.run(copy(Result([Column("a")], gone), writer, Leaving(io.BytesIO())))
    assert (summary.complete, gone.closed, gone.next) == (False, True, 0)
    with pytest.raises(ProtocolError):
        asyncio.run(copy(Result([Column("a")], failing), writer, StreamSink(io.BytesIO())))
    assert failing.closed


def test_what_breaks_off_ends_its_line() -> None:
    for count, failing, text in ((3, 2, b'[{"a":1},\n {"a":2}\n'), (3, 0, b""), (2, -1, b'[{"a":1},\n {"a":2}]\n')):
        stream = io.BytesIO()
        writer = format_named("json").factory(WriterOptions())
        with contextlib.suppress(ProtocolError):
            columns = [Column("a", "INTEGER")]
            asyncio.run(copy(Result(columns, Batches(count, failing)), writer, StreamSink(stream)))
        assert stream.getvalue() == text


def test_formats_by_ending() -> None:
    found = {
        path: format_for_path(path)
        for path in ("a.csv", "b.JSONL", "c.ndjson", "d.tsv", "e.json", "f", "g.parquet", "h.xyz")
    }
    assert [item.name if item else None for item in found.values()] == [
        "csv",
        "jsonl",
        "jsonl",
        "tsv",
        "json",
        None,
        "parquet",
        None,
    ]


def test_a_pager_that_is_missing_is_plain_output() -> None:
    stream = io.BytesIO()
    sink = ScreenSink(stream, "no-such-pager-anywhere", sys.stdin)
    for _ in range(10):
        sink.write(b"line\n" * 50)
    sink.close()
    assert stream.getvalue() == b"line\n" * 500


def test_a_reader_that_has_left_is_noticed_at_the_next_write() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "wb") as stream:
        sink = StreamSink(stream)
        sink.write(b"one\n")
        os.close(read)
        for _ in range(2):
            with pytest.raises(OutputClosed):
                sink.write(b"two\n")


class Left(StreamSink):
    """A reader that has left, which no write has found out yet."""

    blocking = True
    closed = True


class Never(Batches):
    async def __anext__(self) -> Batch:
        await asyncio.sleep(3600)
        return Batch(1, rows=[])


def test_a_reader_that_leaves_while_no_rows_come() -> None:
    batches = Never(1)
    writer = format_named("csv").factory(WriterOptions())
    summary = asyncio.run(copy(Result([Column("a")], batches), writer, Left(io.BytesIO())))
    assert (summary.complete, batches.closed) == (False, True)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("table aligned column box TABLE", "table"),
        ("vertical line expanded", "vertical"),
        ("csv CSV", "csv"),
        ("tsv tabs", "tsv"),
        ("json", "json"),
        ("jsonl ndjson", "jsonl"),
    ],
)
def test_formats_by_their_names_elsewhere(names: str, expected: str) -> None:
    for name in names.split():
        assert format_named(name).name == expected


def test_a_format_that_is_none() -> None:
    with pytest.raises(UsageError, match="unknown format 'cvs'") as caught:
        format_named("cvs")
    assert "csv" in caught.value.hint
    with pytest.raises(UsageError, match="unknown format 'nothing like it'") as caught:
        format_named("nothing like it")
    assert "table, vertical, csv, tsv, json, jsonl" in caught.value.hint


def test_a_reader_that_left_leaves_no_descriptor_open() -> None:
    before = len([*Path("/dev/fd").iterdir()])
    for _ in range(3):
        end, other = os.pipe()
        os.close(end)
        with os.fdopen(other, "wb", buffering=0) as stream:
            with pytest.raises(OutputClosed):
                StreamSink(stream).write(b"x" * 10)
            StreamSink(stream).write(b"nobody reads it")
    assert len([*Path("/dev/fd").iterdir()]) == before


def test_a_file_that_is_a_pipe_whose_reader_left(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    end = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    sink = FileSink(Trusted(str(tmp_path / "pipe")))
    os.close(end)
    with pytest.raises(OutputClosed):
        sink.write(b"x" * (1 << 20))
    sink.abort()


@pytest.mark.parametrize(("lines", "paged"), [(8, False), (9, True), (10, True)])
@pytest.mark.parametrize("wrapped", [False, True])
def test_what_fills_the_screen_is_paged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: int, paged: bool, wrapped: bool
) -> None:
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("COLUMNS", "20")
    given = b"x" * 30 + b"\n" + b"y\n" * (lines - 2) if wrapped else b"y\n" * lines
    stream = io.BytesIO()
    sink = ScreenSink(stream, f"cat > '{tmp_path}/paged'", sys.stdin)
    sink.write(given)
    assert sink.blocking is paged
    sink.close()
    assert stream.getvalue() == (b"" if paged else given)
    assert (tmp_path / "paged").exists() is paged


def test_what_a_command_cannot_be() -> None:
    with pytest.raises(OutputError, match="cannot start the command "):
        CommandSink(Trusted("cat \0"))


def test_what_is_known_of_a_sink_that_begins(tmp_path: Path) -> None:
    sinks: dict[Sink, bool] = {
        StreamSink(io.BytesIO()): False,
        FileSink(Trusted(str(tmp_path / "x"))): False,
        AppendSink(Trusted(str(tmp_path / "y"))): False,
        ScreenSink(io.BytesIO(), "cat", sys.stdin): False,
        CommandSink(Trusted("cat")): True,
    }
    for sink, blocking in sinks.items():
        assert (sink.blocking, sink.closed, sink.terminal) == (blocking, False, False)
        sink.abort()


class Watched(StreamSink):
    """Notes in which threads it is written to, and what it is told of results."""

    blocking = True

    def __init__(self, *, blocking: bool = True, left: bool = False) -> None:
        super().__init__(io.BytesIO())
        self.blocking = blocking
        self.left = left
        self.calls: list[str] = []

    def write(self, data: bytes) -> None:
        self._note("write")
        if self.left:
            raise OutputClosed

    def finish(self) -> None:
        self._note("finish")

    def _note(self, call: str) -> None:
        self.calls.append(call if threading.current_thread() is threading.main_thread() else f"{call} in a thread")


@pytest.mark.parametrize(
    ("failing", "left", "calls"),
    [
        (-1, False, ["write", "write", "write", "finish"]),
        (0, False, ["write", "finish"]),
        (-1, True, ["write", "finish"]),
    ],
)
def test_a_reader_that_takes_time_is_told_of_the_end(failing: int, left: bool, calls: list[str]) -> None:
    for blocking in (True, False):
        sink = Watched(blocking=blocking, left=left)
        result = Result([Column("a")], Batches(2, failing))
        with contextlib.suppress(ProtocolError):
            asyncio.run(copy(result, format_named("csv").factory(WriterOptions()), sink))
        if blocking:
            assert sink.calls == [f"{call} in a thread" for call in calls]
        else:
            assert sink.calls == [call for call in calls if call != "finish"]


def test_many_columns_of_one_name() -> None:
    columns = [Column("c"), Column("c_2"), *[Column("c")] * 50_000]
    assert distinct_names(columns) == ["c", "c_2", "c_1", *(f"c_{number}" for number in range(3, 50_002))]
    assert distinct_for_duckdb(["C"] + ["c"] * 50_000) == ["C", *(f"c_{number}" for number in range(1, 50_001))]


@pytest.mark.parametrize("sizes", [[3, LARGE, 2], [LARGE, LARGE], [LARGE - 1, 1, 5], [0, 0], [LARGE // 2] * 5])
def test_chunks_are_written_once_and_in_order(sizes: list[int]) -> None:
    class Chunks(Writer):
        def begin(self, columns: object) -> list[bytes]:
            return [bytes([65 + number]) * size for number, size in enumerate(sizes)]

        def write(self, batch: object) -> list[bytes]:
            return []

    stream = io.BytesIO()
    result = Result([Column("a")], Batches(0))
    asyncio.run(copy(result, Chunks(), StreamSink(stream)))
    assert stream.getvalue() == b"".join(Chunks().begin(None))


def test_names_that_a_format_changes_are_named() -> None:
    told: list[str] = []
    warn_of_names([Column("a"), Column("b")], told.append)
    assert told == []
    warn_of_names([Column(name) for name in ("a", "b", "a", "a_1")], told.append)
    warn_of_names([Column("a")] * 6, told.append)
    warn_of_names([Column("a")] * 7, told.append)
    five = ", ".join(f"a to a_{number}" for number in range(1, 6))
    assert told == [
        "duplicate column names were changed: a to a_2",
        f"duplicate column names were changed: {five}",
        f"duplicate column names were changed: {five}, …",
    ]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", 1),
        (b"a", 1),
        (b"a\n", 1),
        (b"a\n\nb\n", 3),
        (b"x" * 20 + b"\n", 1),
        (b"x" * 21 + b"\n", 2),
        (b"x" * 41, 3),
        (b"\x1b[1;31m" + b"x" * 20 + b"\x1b[0m\n", 1),
        ("漢".encode() * 10, 1),
        ("漢".encode() * 11, 2),
        (b"a\n" * 5, 5),
        (b"a\n" * 100, 5),
        (b"a\n" + b"x" * 200 + b"\nb", 11),
    ],
)
def test_lines_of_the_screen(data: bytes, lines: int) -> None:
    assert screen_lines(data, 20, 5) == lines


def test_without_a_pager_output_is_shown_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    stream = io.BytesIO()
    sink = ScreenSink(stream, " ", sys.stdin)
    sink.write(b"one\n")
    assert stream.getvalue() == b"one\n"
    sink.write(b"two\n" * 1000)
    assert (stream.getvalue(), sink.blocking) == (b"one\n" + b"two\n" * 1000, False)
    sink.close()


def test_a_pager_that_cannot_be_started_is_not_tried_again() -> None:
    stream = io.BytesIO()
    sink = ScreenSink(stream, "cat \0", sys.stdin)
    for _ in range(2):
        sink.write(b"line\n" * 500)
    assert (stream.getvalue(), sink.blocking) == (b"line\n" * 1000, False)
    sink.close()
