"""The loop from a result to bytes: which way is taken, when rows that are held back appear, how a thread ends."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sqlshell.errors import ProtocolError
from sqlshell.output import copy as loop
from sqlshell.output.copy import copy
from sqlshell.output.sinks.sink import OutputClosed, StreamSink
from sqlshell.output.writer import Summary, Writer
from sqlshell.result import Batch, Column, FileUnavailable, HeldBatches, LineSql, Result, Rows, StoredColumn, Table

COLUMNS = [Column("a")]


class Plain(Writer):
    """A writer that says what it is called with."""

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        return [b"begin\n"]

    def write(self, batch: Batch) -> Iterable[bytes]:
        return [b"".join(b"%s\n" % (row[0] or "").encode() for row in batch.rows)]

    def settle(self) -> Iterable[bytes]:
        return [b"settled\n"]

    def end(self, summary: Summary) -> Iterable[bytes]:
        return [f"end {summary.rows} {summary.complete}\n".encode()]


class Lines(Plain):
    by_sql = "lines"

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        return "line"


class WholeResult(Plain):
    """A writer of typed files."""

    by_sql = "table"

    def __init__(self, *, endless: bool = False, failing: bool = False) -> None:
        self.endless, self.failing, self.threads = endless, failing, set[bool]()

    def from_table(self, table: Table) -> Iterator[bytes]:
        assert isinstance(table, Opened)
        self.threads.add(threading.current_thread() is threading.main_thread())
        yield b"from the file\n"
        if self.failing:
            raise FileUnavailable(3)
        if self.endless:
            table.stopped.wait(30)
            raise ProtocolError("interrupted")

    def write(self, batch: Batch) -> Iterable[bytes]:
        self.threads.add(threading.current_thread() is threading.main_thread())
        return super().write(batch)

    def interrupt(self) -> None:
        raise AssertionError


class Opened:
    """The table of a result."""

    size = 5
    columns: Sequence[StoredColumn] = ()
    source = ""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.closed = False

    @property
    def connection(self) -> Any:
        raise AssertionError

    @property
    def place(self) -> Path:
        raise AssertionError

    made = place

    async def query(self, sql: str) -> list[tuple[Any, ...]]:
        raise AssertionError

    async def texts(self, sql: str) -> Rows:
        raise AssertionError

    def interrupt(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        self.closed = True


class File:
    """Batches of a result that the service also has as a file, or not."""

    def __init__(self, *, available: bool = True) -> None:
        self._available, self._held = available, HeldBatches(Batch(1, rows=[["row"]]))
        self.opened = Opened()
        self.chosen: LineSql | None = None
        self.skipped = 0
        self.closed = False

    def choose(self, of: LineSql) -> None:
        self.chosen = of

    async def skip(self, rows: int) -> None:
        self.skipped = rows

    async def table(self, *, typed: bool = False) -> Table | None:
        assert typed
        return self.opened if self._available else None

    def __aiter__(self) -> File:
        return self

    async def __anext__(self) -> Batch:
        return await anext(self._held)

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize("writer", [Plain(), Lines()])
def test_only_lines_are_chosen(writer: Plain) -> None:
    file = File()
    stream = io.BytesIO()
    summary = asyncio.run(copy(Result(COLUMNS, file, whole=file), writer, StreamSink(stream)))
    assert (file.chosen is not None) is isinstance(writer, Lines)
    assert (summary, stream.getvalue()) == (Summary(1, True), b"begin\nrow\nend 1 True\n")
    assert file.closed


@pytest.mark.parametrize("blocking", [False, True])
def test_a_whole_result_is_written_from_its_file(blocking: bool) -> None:
    file, writer = File(), WholeResult()
    sink = Blocking() if blocking else StreamSink(io.BytesIO())
    result = Result(COLUMNS, file, whole=file, row_counts=[3, 4])
    assert asyncio.run(copy(result, writer, sink)) == Summary(7, True, 5)
    assert sink._stream.getvalue() == b"begin\nfrom the file\n"  # type: ignore[attr-defined]
    assert not isinstance(sink, Blocking) or sink.finished == 1
    # It takes time: never in the event loop's thread.
    assert writer.threads == {False}
    assert file.opened.closed
    assert file.closed


@pytest.mark.parametrize("reason", ["not available", "no file", "batches of another"])
def test_without_the_file_rows_are_written(reason: str) -> None:
    file, writer, stream = File(available=reason != "not available"), WholeResult(), io.BytesIO()
    whole = None if reason == "no file" else File() if reason == "batches of another" else file
    assert asyncio.run(copy(Result(COLUMNS, file, whole=whole), writer, StreamSink(stream))) == Summary(1, True)
    assert stream.getvalue() == b"begin\nrow\nend 1 True\n"


def test_the_rows_that_are_missing_in_the_file_are_written() -> None:
    file, writer, stream = File(), WholeResult(failing=True), io.BytesIO()
    assert asyncio.run(copy(Result(COLUMNS, file, whole=file), writer, StreamSink(stream))) == Summary(4, True)
    assert stream.getvalue() == b"begin\nfrom the file\nrow\nend 4 True\n"
    assert file.skipped == 3
    assert file.opened.closed


def test_a_canceled_writer_is_interrupted() -> None:
    file, writer, stream = File(), WholeResult(endless=True), io.BytesIO()

    async def work() -> None:
        task = asyncio.ensure_future(copy(Result(COLUMNS, file, whole=file), writer, StreamSink(stream)))
        while not writer.threads:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert file.opened.stopped.is_set()
    assert file.opened.closed
    assert file.closed


class Blocking(StreamSink):
    """A sink whose writes may take time."""

    blocking = True

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.finished = 0

    def finish(self) -> None:
        self.finished += 1


class Paced:
    """Batches of which each waits until it is let through."""

    def __init__(self, count: int) -> None:
        self.gates = [asyncio.Event() for _ in range(count)]
        self.number, self.canceled, self.closed = 0, False, False

    def __aiter__(self) -> Paced:
        return self

    async def __anext__(self) -> Batch:
        if self.number == len(self.gates):
            raise StopAsyncIteration
        try:
            await self.gates[self.number].wait()
        except asyncio.CancelledError:
            self.canceled = True
            raise
        self.number += 1
        return Batch(1, body=b'{"data":[["%d"]]}' % self.number, count=1)

    async def aclose(self) -> None:
        self.closed = True


class Buffering(Plain):
    """Holds its rows back until it is asked for them."""

    def __init__(self) -> None:
        self.held: list[bytes] = []

    @property
    def buffering(self) -> bool:
        return bool(self.held)

    def write(self, batch: Batch) -> Iterable[bytes]:
        self.held += super().write(batch)
        return []

    def settle(self) -> Iterable[bytes]:
        held, self.held = self.held, []
        return held

    def end(self, summary: Summary) -> Iterable[bytes]:
        return [*self.settle(), b"end\n"]


@pytest.mark.parametrize("blocking", [False, True])
def test_rows_that_are_held_back_appear_while_nothing_arrives(monkeypatch: pytest.MonkeyPatch, blocking: bool) -> None:
    monkeypatch.setattr(loop, "SETTLE_SECONDS", 0.0)
    sink = Blocking() if blocking else StreamSink(io.BytesIO())
    seen: list[bytes] = []

    async def shows(text: bytes) -> None:
        while text not in sink._stream.getvalue():  # type: ignore[attr-defined] # noqa: ASYNC110
            await asyncio.sleep(0.001)
        seen.append(sink._stream.getvalue())  # type: ignore[attr-defined]

    async def work() -> Summary:
        batches = Paced(2)
        received: list[tuple[int, int]] = []
        task = asyncio.ensure_future(
            copy(Result(COLUMNS, batches), Buffering(), sink, lambda rows, size: received.append((rows, size)))
        )
        for number, gate in enumerate(batches.gates, 1):
            gate.set()
            await shows(b"%d\n" % number)
        summary = await task
        assert received == [(1, 16), (1, 16)]
        return summary

    assert asyncio.run(asyncio.wait_for(work(), 60)) == Summary(2, True, 32)
    assert seen[0] == b"begin\n1\n"


class ReaderLeft(Blocking):
    """A sink whose reader has left."""

    def write(self, data: bytes) -> None:
        raise OutputClosed


def test_rows_that_are_copied_are_read_to_the_end_after_the_reader_has_left() -> None:
    async def read(*, to_end: bool) -> int:
        batches = Paced(3)
        for gate in batches.gates:
            gate.set()
        summary = await copy(Result(COLUMNS, batches), Plain(), ReaderLeft(), to_end=to_end)
        assert not summary.complete
        assert batches.closed
        return batches.number

    assert asyncio.run(read(to_end=True)) == 3
    assert asyncio.run(read(to_end=False)) == 0


def test_a_canceled_wait_is_canceled_at_its_source() -> None:
    async def work() -> None:
        batches = Paced(1)
        task = asyncio.ensure_future(copy(Result(COLUMNS, batches), Plain(), Blocking()))
        while not task.done() and len(asyncio.all_tasks()) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert batches.canceled
        assert batches.closed

    asyncio.run(work())


@pytest.mark.parametrize("endless", [False, True])
def test_rows_of_an_endless_result_are_written_in_a_thread(endless: bool) -> None:
    threads: list[bool] = []

    class Noting(StreamSink):
        def write(self, data: bytes) -> None:
            threads.append(threading.current_thread() is threading.main_thread())

    held = HeldBatches(Batch(1, rows=[["row"]]))
    result = Result(COLUMNS, held, endless=EndlessNow() if endless else None)
    asyncio.run(copy(result, Plain(), Noting(io.BytesIO())))
    assert threads == [True, not endless, True]


class EndlessNow:
    rows, gaps, end_reason, query_id = 0, 0, "", ""

    def stop(self) -> None:
        return


@pytest.mark.parametrize(
    ("lines", "expected"),
    [([], b""), ([b"x"], b"x\n"), ([b"x\n"], b"x\n"), ([b"x", b""], b"x\n"), ([b"x\n", b""], b"x\n")],
)
@pytest.mark.parametrize("blocking", [False, True])
def test_what_breaks_off_ends_its_line(lines: list[bytes], expected: bytes, blocking: bool) -> None:
    class Given(Plain):
        def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
            return []

        def write(self, batch: Batch) -> Iterable[bytes]:
            return [(batch.rows[0][0] or "").encode()]

    class Failing:
        def __init__(self) -> None:
            self.left = [*lines]

        def __aiter__(self) -> Failing:
            return self

        async def __anext__(self) -> Batch:
            if not self.left:
                raise ProtocolError("broken")
            return Batch(1, rows=[[self.left.pop(0).decode()]])

        async def aclose(self) -> None:
            return

    sink = Blocking() if blocking else StreamSink(io.BytesIO())
    with pytest.raises(ProtocolError):
        asyncio.run(copy(Result(COLUMNS, Failing()), Given(), sink))
    # A pager is not a screen on which lines follow each other.
    assert sink._stream.getvalue() == (b"".join(lines) if blocking else expected)  # type: ignore[attr-defined]


def test_the_reader_may_leave_at_the_end() -> None:
    class Leaving(StreamSink):
        def write(self, data: bytes) -> None:
            super().write(data)
            if data.startswith(b"end"):
                raise OutputClosed

    held = HeldBatches(Batch(1, body=b'{"data":[["row"]]}', count=1))
    assert asyncio.run(copy(Result(COLUMNS, held), Plain(), Leaving(io.BytesIO()))) == Summary(1, False, 18)
