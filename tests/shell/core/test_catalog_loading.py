"""The catalog for completion, loaded while tables are created."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.result import Batch, Column, Result, Rows
from sqlshell.shell.metadata.catalog_loader import CatalogLoader
from sqlshell.sql.completion.catalog import key
from tests.shell.core.scripted import ScriptedClient

NAMED = ["database_name", "schema_name", "name", "type"]


class Growing(ScriptedClient):
    """A service with one more table after each statement up to a number; it knows `information_schema` or LIST."""

    def __init__(self, tables: int, *, lists: bool) -> None:
        super().__init__()
        self._tables = tables
        self._lists = lists

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        made = [f"t{number}" for number in range(min(len(self.ran), self._tables) + 1)]
        self.ran.append((submission.sql, context))
        await self.step("submit")
        columns: list[Column] = []
        rows: Rows = []
        sql = submission.sql
        if "information_schema.columns" in sql and not self._lists:
            columns = [Column(name) for name in ("a", "b", "c", "d", "e")]
            rows = [["d", "s", name, "a", "INTEGER"] for name in made]
        elif "LIST RELATIONS" in sql if self._lists else 'sys."relations"' in sql:
            columns = [Column(name) for name in NAMED]
            rows = [["d", "s", name, "view"] for name in made]
        elif "DESCRIBE RELATION COLUMNS" in sql:
            columns = [Column("name"), Column("type")]
            rows = [["a", "INTEGER"]]

        async def batches() -> AsyncGenerator[Batch, None]:
            yield Batch(1, rows=rows)

        yield Result(columns=columns, batches=batches(), statement_id="x", sql_state="00000", row_counts=[len(rows)])


@pytest.mark.parametrize("tables", range(4))
@pytest.mark.parametrize("lists", [False, True])
def test_a_relation_that_is_created_meanwhile_has_its_columns(tables: int, lists: bool) -> None:
    async def run() -> None:
        loaded = asyncio.Event()
        client = Growing(tables, lists=lists)
        loader = CatalogLoader(client, SessionContext, "target", None, changed=loaded.set)
        loader.begin()
        await loaded.wait()
        await loader.aclose()
        contents = loader.catalog.contents
        assert contents.relations[0].kind == "view"
        assert {key(relation) for relation in contents.relations} == set(contents.columns)

    asyncio.run(run())
