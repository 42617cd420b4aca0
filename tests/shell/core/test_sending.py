"""Rows that are sent as INSERT statements: several at a time, in their order, and what became of each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sqlshell.errors import ConnectionBroken, Interrupted, ShellError, StatementError, Where
from sqlshell.origin import Trusted
from sqlshell.shell.loading import send
from sqlshell.shell.loading.convert import ConvertedRows
from sqlshell.shell.loading.send import AttachmentSender, InsertSender, Range, SentBatch
from sqlshell.shell.loading.spec import ColumnMatch, LoadRequest, SourceColumn, TargetColumn
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure, until

REQUEST = LoadRequest("t", (), Trusted("a.csv"), "a.csv", "csv")
MATCH = ColumnMatch(((SourceColumn("a", "VARCHAR", "VARCHAR"), TargetColumn("a", "VARCHAR")),))


class Source:
    """Rows whose values are their numbers."""

    def literals(self, staged: ConvertedRows, targets: Sequence[TargetColumn], start: int) -> Iterator[str]:
        assert [target.name for target in targets] == ["a"]
        yield from (f"({number})" for number in range(start, staged.rows))

    def interrupt(self) -> None:
        return


class Gated(ScriptedClient):
    """A service that has a statement at once and confirms it when its gate opens."""

    def __init__(self, answers: dict[str, Answer] | None = None) -> None:
        super().__init__(answers)
        self.gate = asyncio.Event()
        self.arrived = self.confirmed = 0

    async def step(self, what: str) -> None:
        await super().step(what)
        if what == "wait":
            self.arrived += 1
            await self.gate.wait()
            self.confirmed += 1


def insert(*rows: int) -> str:
    return "INSERT INTO t (a) VALUES\n" + ",\n".join(f"({row})" for row in rows)


def staged(rows: int) -> ConvertedRows:
    return ConvertedRows(Path("rows"), rows)


@pytest.fixture(autouse=True)
def _two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement has two rows."""
    monkeypatch.setattr(send, "STATEMENT", 6)
    monkeypatch.setattr(send, "literals", lambda source, *arguments: source.literals(*arguments))


def sender_of(core: Core) -> InsertSender:
    return InsertSender(REQUEST, MATCH, Source(), core.session)  # type: ignore[arg-type]


def test_each_row_is_sent_once_in_order_and_recorded() -> None:
    begun: list[Range] = []

    async def work() -> None:
        core = Core()
        found = [batch async for batch in sender_of(core).send(staged(9), [(2, 4)], begun.append)]
        assert [sql for sql, _ in core.client.ran] == [insert(0, 1), insert(4, 5), insert(6, 7), insert(8)]
        assert found == [SentBatch(rows) for rows in begun]
        assert begun == [(0, 2), (4, 6), (6, 8), (8, 9)]
        assert [entry.state for entry in core.journal.recent(9)] == ["finished"] * 4
        assert {entry.sql for entry in core.journal.recent(9)} == {
            "INSERT INTO t (a) VALUES\n… 2 rows",
            "INSERT INTO t (a) VALUES\n… 1 row",
        }
        assert core.session.context.database == "d"
        assert all(rows.closed for rows in core.client.open)

    asyncio.run(work())


def test_some_are_on_their_way_at_once() -> None:
    async def work() -> None:
        client = Gated()
        core = Core(client)
        begun: list[Range] = []
        found: list[SentBatch] = []
        on_their_way: list[int] = []

        def begin(rows: Range) -> None:
            begun.append(rows)
            on_their_way.append(len(begun) - client.confirmed)

        async def collect() -> None:
            async for batch in sender_of(core).send(staged(20), [], begin):
                found.append(batch)

        collecting = asyncio.ensure_future(collect())
        await until(lambda: client.arrived == send.IN_FLIGHT)
        assert found == []
        client.gate.set()
        await collecting
        assert [batch.rows for batch in found] == begun
        assert len(begun) == 10
        assert max(on_their_way) == send.IN_FLIGHT

    asyncio.run(work())


def test_nothing_is_sent_after_a_failure() -> None:
    bad = StatementError("wrong", where=Where("22012"))

    async def work() -> None:
        core = Core(ScriptedClient({insert(2, 3): Answer(rows=(), error=bad)}))
        begun: list[Range] = []
        found = [batch async for batch in sender_of(core).send(staged(40), [], begun.append)]
        assert found[0] == SentBatch((0, 2))
        assert found[1] == SentBatch((2, 4), bad, arrived=True)
        assert not found[1].unknown
        assert [batch.rows for batch in found] == begun
        assert len(begun) < 8
        assert {entry.state for entry in core.journal.recent(99) if entry.message == "wrong"} == {"failed"}

    asyncio.run(work())


def test_nothing_is_sent_after_the_failure_of_a_statement_on_its_way() -> None:
    async def work() -> None:
        client = Gated({insert(0, 1): Answer(rows=(), error=failure("22012"))})
        core = Core(client)
        begun: list[Range] = []
        found: list[SentBatch] = []

        async def collect() -> None:
            async for batch in sender_of(core).send(staged(40), [], begun.append):
                found.append(batch)

        collecting = asyncio.ensure_future(collect())
        await until(lambda: client.arrived == send.IN_FLIGHT)
        client.gate.set()
        await collecting
        assert begun == [(0, 2), (2, 4), (4, 6), (6, 8)]
        assert [(batch.rows, batch.error is None) for batch in found] == [
            (rows, number > 0) for number, rows in enumerate(begun)
        ]

    asyncio.run(work())


def test_a_failure_before_the_service_has_the_statement() -> None:
    class Gone(ScriptedClient):
        async def step(self, what: str) -> None:
            if len(self.ran) > 1:
                raise ConnectionBroken("gone")
            await super().step(what)

    async def work() -> None:
        client = Gone()
        core = Core(client)
        found = [batch async for batch in sender_of(core).send(staged(10), [], lambda rows: None)]
        assert [batch.error is None for batch in found] == [True, False]
        assert not found[1].arrived
        assert len(client.ran) == 2
        assert [entry.state for entry in core.journal.recent(9)] == ["finished"]
        await until(lambda: len(asyncio.all_tasks()) == 1)

    asyncio.run(work())


@pytest.mark.parametrize("ends", [True, False])
def test_statements_on_their_way_are_waited_for_at_an_interruption(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        client = Gated()
        core = Core(client)
        sender = sender_of(core)
        coming = sender.send(staged(8), [], lambda rows: None)
        first = asyncio.ensure_future(anext(coming, None))
        await until(lambda: client.arrived == 4)
        first.cancel()
        if ends:
            client.gate.set()
        else:
            monkeypatch.setattr(send, "SETTLING_SECONDS", 0.001)
        found = await sender.settled()
        assert [batch.rows for batch in found] == [(0, 2), (2, 4), (4, 6), (6, 8)]
        assert all((batch.error is None) is ends for batch in found)
        assert ends or all(isinstance(batch.error, Interrupted) for batch in found)
        assert await sender.settled() == []
        await until(lambda: len(asyncio.all_tasks()) == 1)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("error", "outcomes"),
    [
        (Interrupted("stop", where=Where("00000")), [((0, 2), False), ((2, 2), True)]),
        (Interrupted("stop", where=Where("03000")), [((0, 2), True)]),
        (Interrupted("stop", where=Where("57014")), [((0, 2), True)]),
        (Interrupted("stop"), [((0, 2), True)]),
        (failure(), [((0, 2), True)]),
    ],
)
def test_an_attachment_whose_load_is_interrupted(
    tmp_path: Path, error: ShellError, outcomes: list[tuple[Range, bool]]
) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(bytes(100))
    sent: list[str] = []

    async def submit(sql: str, attachment: Any) -> None:
        sent.append(sql)
        raise error

    async def work() -> list[SentBatch]:
        async def batch(rows: Range) -> Path:
            return path

        sender = AttachmentSender(REQUEST, MATCH, batch, submit, lambda: True, 20)
        found = [batch async for batch in sender.send(ConvertedRows(path, 10), [], lambda rows: None)]
        assert await sender.settled() == []
        return found

    found = asyncio.run(work())
    assert [(batch.rows, batch.error is not None) for batch in found] == outcomes
    assert sent == ["COPY t (a) FROM '@rows.parquet' (FORMAT parquet)"]
    assert [batch.arrived for batch in found] == [False] * (len(found) - 1) + [not isinstance(error, Interrupted)]


@pytest.mark.parametrize(
    ("rows", "most", "taken"),
    [
        (["aaa", "bbb", "ccc"], 9, 2),
        (["aa", "bb", "cc", "dd"], 9, 3),
        (["a", "b", "c"], 2, 2),
        (["a" * 99, "b"], 9, 1),
        (["é", "é", "é", "é"], 9, 3),
        # Half of a surrogate pair has three bytes.
        (["\ud800", "\ud800", "x"], 9, 2),
        ([], 9, 0),
    ],
)
def test_a_statement_has_rows_up_to_its_bytes_or_their_number(rows: list[str], most: int, taken: int) -> None:
    assert send._some(iter(rows), most) == rows[:taken]
