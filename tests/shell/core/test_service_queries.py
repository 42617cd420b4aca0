"""Statements of the shell itself: how much of their results is read, and what they leave behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import ProtocolError, ShellError
from sqlshell.result import Result
from sqlshell.shell.metadata import service_queries
from sqlshell.shell.metadata.service_queries import fetch_rows, query_service, table_columns
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure


def rows_of(client: ScriptedClient, sql: str) -> list[list[str | None]]:
    _, rows = asyncio.run(fetch_rows(client, sql, SessionContext()))
    return rows


def test_a_result_is_read_until_it_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_queries, "MOST_ROWS", 2)
    for batches, read in (((("1", "2"),), 2), ((("1", "2"), ("3",)), 3), ((("1",), ("2",), ("3",), ("4",)), 3)):
        client = ScriptedClient({"list": Answer(rows=batches)})
        assert len(rows_of(client, "list")) == read
        assert client.open[0].closed is (read > 2)


def test_an_unbounded_result_is_left_at_once() -> None:
    class StreamingResult(ScriptedClient):
        async def run(
            self, submission: Submission, context: SessionContext, observer: Observer | None = None
        ) -> AsyncGenerator[Result, None]:
            async for result in super().run(submission, context, observer):
                result.endless = cast("Any", result.batches)
                yield result
                self.events.append("more")

    client = StreamingResult()
    assert rows_of(client, "select * from stream") == []
    assert client.open[0].closed
    assert "more" not in client.events


def test_the_first_statement_that_the_service_supports_is_used() -> None:
    async def work(client: ScriptedClient, *statements: str) -> list[list[str | None]]:
        core = Core(client)
        _, rows = await query_service(core.session, *statements)
        return rows

    client = ScriptedClient({"a": Answer(rows=(), error=failure()), "b": Answer(rows=(("2",),))})
    assert asyncio.run(work(client, "a", "b", "c")) == [["2"]]
    assert [sql for sql, _ in client.ran] == ["a", "b"]
    client = ScriptedClient(
        {"a": Answer(rows=(), error=failure()), "b": Answer(rows=(), error=failure(message="last"))}
    )
    with pytest.raises(ShellError, match="last"):
        asyncio.run(work(client, "a", "b"))


def test_sql_of_another_engine_is_not_sent() -> None:
    async def work(*statements: str) -> tuple[list[list[str | None]], list[str]]:
        core = Core(ScriptedClient({"LIST TABLES": Answer(rows=(("t",),))}))
        core.session.connection.service.transport.extensions = frozenset({"engine=spark"})
        _, rows = await query_service(core.session, *statements)
        return rows, [sql for sql, _ in core.client.ran]

    assert asyncio.run(work("SELECT * FROM duckdb_tables()", "LIST TABLES", "SELECT 1")) == ([["t"]], ["LIST TABLES"])
    with pytest.raises(ShellError, match="not supported by the engine spark"):
        asyncio.run(work("SELECT * FROM duckdb_tables()"))


def test_the_columns_of_a_table_that_is_not_described_are_those_of_its_rows() -> None:
    describe, select = "DESCRIBE RELATION COLUMNS t", "SELECT * FROM t LIMIT 0"

    async def work(answers: dict[str, Answer]) -> tuple[list[tuple[str, str]], list[str]]:
        core = Core(ScriptedClient(answers))
        found = await table_columns(core.session, "t")
        return list(found), [sql for sql, _ in core.client.ran]

    absent = Answer(rows=(), error=failure(message="no such form"))
    assert asyncio.run(work({describe: absent})) == ([("a", "INTEGER")], [describe, select])
    with pytest.raises(ShellError, match="no such form"):
        asyncio.run(work({describe: absent, select: Answer(rows=(), error=failure(message="no such table"))}))
    with pytest.raises(ProtocolError, match="does not have the names and types of columns"):
        asyncio.run(work({}))
