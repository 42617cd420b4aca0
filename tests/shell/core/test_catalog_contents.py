"""What the catalog for completion is made of, from whatever a service supports, and what is stored of it."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import msgspec
import pytest

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import ConnectionFailed
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Batch, Column, Result, Rows
from sqlshell.shell.metadata import catalog_loader
from sqlshell.shell.metadata.catalog_loader import CatalogLoader
from sqlshell.sql.completion.catalog import CachedCatalog, Catalog, ForeignKey, Function, Relation
from sqlshell.sql.completion.catalog import Column as Known
from tests.shell.core.scripted import ECHO, ScriptedClient, failure

CONTEXT = SessionContext(organization="o", role="r", session_id="mine")
Table = tuple[list[str], Rows]


class Service(ScriptedClient):
    """Answers a statement that contains one of the texts with its table, and fails for any other."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        super().__init__()
        self.tables = tables
        self.gate = asyncio.Event()
        self.gate.set()

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        self.ran.append((submission.sql, context))
        await self.gate.wait()
        assert observer is not None
        observer.context(ECHO)
        found = next((table for text, table in self.tables.items() if text in submission.sql), None)
        if found is None:
            raise failure()
        names, rows = found

        async def batches() -> AsyncGenerator[Batch, None]:
            yield Batch(len(names), rows=rows)

        yield Result(columns=[Column(name) for name in names], batches=batches(), statement_id="x", sql_state="00000")

    @property
    def sqls(self) -> list[str]:
        return [sql for sql, _ in self.ran]


def loaded(tables: Mapping[str, Table], **given: object) -> tuple[CachedCatalog, Service]:
    async def work() -> tuple[CachedCatalog, Service]:
        changed = asyncio.Event()
        client = Service(tables)
        loader = CatalogLoader(client, lambda: CONTEXT, "target", None, changed=changed.set, **given)  # type: ignore[arg-type]
        loader.begin()
        await asyncio.wait_for(changed.wait(), 60)
        await loader.aclose()
        assert [context.session_id for _, context in client.ran] == client.left * len(client.ran)
        assert client.left != ["mine"]
        return loader.catalog.contents, client

    return asyncio.run(work())


FIVE = ["a", "b", "c", "d", "e"]
SEVEN = [*FIVE, "f", "g"]


def test_columns_and_relations_of_an_engine() -> None:
    columns: Rows = [
        ["d", "s", "t", "x", "INTEGER"],
        ["d", "s", "t", "y", None],
        ["d", "s", "t", None, "INTEGER"],
        ["d", "s", "t", "short"],
        ["deltastream", "sys", "relations", "name", "VARCHAR"],
    ]
    relations: Rows = [["d", "s", "v", "view"], ["d", "s", "q", "a sequence"], ["d", "s", "i", "index"]]
    found, client = loaded(
        {
            "LIST ENGINE COLUMNS IN SCHEMA": (FIVE, []),
            "LIST ENGINE COLUMNS": (FIVE, columns),
            "LIST ENGINE RELATIONS": (["Database", "Schema", "Name", "Type"], relations),
        }
    )
    assert found.relations == [Relation("d", "s", "t", "table"), Relation("d", "s", "v", "view")]
    assert found.columns["d.s.t"] == [Known("x", "INTEGER"), Known("y", "")]
    assert (found.names["sequence"], found.names["index"]) == (["q"], ["i"])
    assert not any(sql.startswith(("LIST RELATIONS", "DESCRIBE", "SELECT")) for sql in client.sqls)


def test_relations_of_the_system_tables_of_another_service() -> None:
    relations: Rows = [["d", "s", "v", "view"], ["deltastream", "sys", "relations", "view"]]
    found, client = loaded({'sys."relations"': (["Database_Name", "schema_name", "name", "type"], relations)})
    assert found.relations == [Relation("d", "s", "v", "view")]
    assert "LIST RELATIONS" not in client.sqls


@pytest.mark.parametrize("names", [["name", "kind"], ["Relation_Name", "relation_type"], ["table_name", "type"]])
def test_relations_that_are_listed_are_described(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_loader, "DESCRIBED", 2)
    described: Rows = [["x", "INTEGER"], ["y"], [None, "z"], []]
    found, client = loaded(
        {
            "LIST RELATIONS": (names, [["t", "table"], ["u", None], ["w", "table"]]),
            "DESCRIBE": (["name", "type"], described),
        }
    )
    assert found.relations == [
        Relation("", "", "t", "table"),
        Relation("", "", "u", ""),
        Relation("", "", "w", "table"),
    ]
    assert list(found.columns.values()) == [[Known("x", "INTEGER"), Known("y", "")]] * 2
    assert [sql for sql in client.sqls if sql.startswith("DESCRIBE")] == [
        'DESCRIBE RELATION COLUMNS "t"',
        'DESCRIBE RELATION COLUMNS "u"',
    ]


def test_relations_without_names_are_left_out() -> None:
    found, _ = loaded({"LIST RELATIONS": (["x", "type"], [["t", "table"]]), "LIST STORES": (["name"], [["s"], [None]])})
    assert found.relations == []
    assert found.names["store"] == ["s"]
    assert found.names["role"] == []


def test_names_of_each_kind() -> None:
    tables: dict[str, Table] = {
        f"LIST {plural}": (["name", "other"], [[kind, "x"], [None, "x"], []])
        for kind, plural in catalog_loader.LISTED_KINDS.items()
    }
    found, _ = loaded(tables)
    assert found.names == {kind: [kind] for kind in catalog_loader.LISTED_KINDS}


EACH: Rows = [
    ["k", "d", "s", "orders", "customers", "c1", "id1"],
    ["k", "d", "s", "orders", "customers", "c2", "id2"],
]
KEY = ForeignKey("d.s.orders", ["c1", "c2"], "d.s.customers", ["id1", "id2"])


def test_objects_of_an_engine_of_its_own() -> None:
    found, client = loaded(
        {
            "LIST ENGINE RELATIONS": (["database", "schema", "name", "type"], [["d", "s", "t", "table"]]),
            "LIST ENGINE COLUMNS IN SCHEMA system": (FIVE, []),
            "LIST ENGINE COLUMNS IN SCHEMA pg_catalog": (FIVE, [["d", "pg_catalog", "pg_class", "relname", "name"]]),
            "LIST ENGINE COLUMNS IN SCHEMA information_schema": (FIVE, []),
            "LIST ENGINE COLUMNS": (FIVE, [["d", "s", "t", "x", "integer"]]),
            "LIST ENGINE FUNCTIONS": (
                ["Name", "visible", "arguments", "result", "internal", "own"],
                [
                    ["f", "true", "a int", "text", "false", "true"],
                    ["f", "true", "", "", "false", "true"],
                    ["g", "true", None, "text", "false", "false"],
                    ["g", "true", "x", "", "false", "false"],
                    ["g", "true", "y", "SETOF text", "false", "false"],
                    ["date_cmp", "true", "date, date", "integer", "true", "false"],
                    ["abs", "true", "integer", "integer", "true", "false"],
                    ["hidden", "false", "", "", "false", "true"],
                    ["Odd", "true", "", "", "false", "true"],
                ],
            ),
            "LIST ENGINE TYPES": (["schema", "name"], [["s", "mood"], ["s", None], ["s"]]),
            "LIST ENGINE FOREIGN_KEYS": (SEVEN, EACH),
        }
    )
    assert found.relations == [Relation("d", "s", "t", "table")]
    assert found.columns == {"d.s.t": [Known("x", "integer")], "d.pg_catalog.pg_class": [Known("relname", "name")]}
    assert found.system == [Relation("d", "pg_catalog", "pg_class", "table")]
    assert found.functions == [
        Function("f", "(a int) -> text (+1 overload)"),
        Function("g", "() -> text (+2 overloads)", rows=True),
        # It also implements an operator, but is usual in SQL.
        Function("abs", "(integer) -> integer"),
    ]
    assert not found.has_interface
    assert found.names["macro"] == ["f"]
    assert found.names["user type"] == ["mood"]
    assert found.keys == [KEY]
    # An error in SQL for another engine would be in its log.
    assert not any("duckdb_" in sql or "FROM information_schema" in sql for sql in client.sqls)


def test_functions_of_an_engine_without_their_arguments() -> None:
    found, _ = loaded(
        {
            "LIST ENGINE RELATIONS": (["name"], [["t"]]),
            "LIST ENGINE FUNCTIONS": (["name"], [["f"], ["f"]]),
        }
    )
    assert [(item.name, item.signature) for item in found.functions] == [("f", " (+1 overload)")]


def test_a_service_that_says_nothing_leaves_what_is_known() -> None:
    known = Catalog()
    known.replace(CachedCatalog([Relation("d", "s", "t")]))
    found, client = loaded({}, catalog=known)
    assert found.relations == [Relation("d", "s", "t")]
    assert "SELECT 1" not in client.sqls


def test_the_context_is_asked_for_first() -> None:
    echoes: list[ContextEcho | None] = []
    _, client = loaded({"SELECT 1": (["1"], [["1"]])}, request_echo=True, adopt=echoes.append)
    assert client.sqls[0] == "SELECT 1"
    assert client.sqls.count("SELECT 1") == 1
    assert set(map(id, echoes)) == {id(ECHO)}


TABLES: dict[str, Table] = {"LIST RELATIONS": (["name"], [["t"]])}


def test_what_is_stored_is_known_at_the_next_start(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "catalogs"

    async def work(client: Service, context: SessionContext, target: str) -> list[str]:
        changed = asyncio.Event()
        loader = CatalogLoader(client, lambda: context, target, folder, changed=changed.set)
        client.gate.clear()
        loader.begin()
        known = [relation.name for relation in loader.catalog.contents.relations]
        client.gate.set()
        await asyncio.wait_for(changed.wait(), 60)
        await loader.aclose()
        return known

    assert asyncio.run(work(Service(TABLES), CONTEXT, "target")) == []
    (stored,) = folder.iterdir()
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for _ in range(2):
        assert asyncio.run(work(Service({}), CONTEXT, "target")) == ["t"]
    for context, target in (
        (CONTEXT, "other"),
        (msgspec.structs.replace(CONTEXT, role="x"), "target"),
        (msgspec.structs.replace(CONTEXT, organization="x"), "target"),
    ):
        assert asyncio.run(work(Service({}), context, target)) == []
    stored.write_bytes(b"{")
    assert asyncio.run(work(Service(TABLES), CONTEXT, "target")) == []
    assert asyncio.run(work(Service({}), CONTEXT, "target")) == ["t"]


def test_names_are_loaded_again_for_another_organization_or_role() -> None:
    async def work() -> None:
        context = [CONTEXT]
        changed = asyncio.Event()
        client = Service(TABLES)
        loader = CatalogLoader(client, lambda: context[0], "target", None, changed=changed.set)
        # Before the names have been loaded for any context, another one changes nothing.
        loader.context_changed()
        assert client.ran == []
        for given in (CONTEXT, msgspec.structs.replace(CONTEXT, role="x"), msgspec.structs.replace(CONTEXT, role="y")):
            context[0] = given
            changed.clear()
            if given is CONTEXT:
                loader.begin()
            else:
                loader.context_changed()
            await asyncio.wait_for(changed.wait(), 60)
        count = len(client.ran)
        context[0] = msgspec.structs.replace(context[0], database="other")
        loader.context_changed()
        await asyncio.sleep(0)
        assert len(client.ran) == count
        await loader.aclose()

    asyncio.run(work())


def test_a_load_that_was_asked_for_meanwhile_follows() -> None:
    async def work() -> None:
        times = []
        client = Service(TABLES)
        loader = CatalogLoader(client, lambda: CONTEXT, "target", None, changed=lambda: times.append(1))
        client.gate.clear()
        loader.begin()
        await asyncio.sleep(0)
        loader.refresh()
        loader.refresh()
        client.gate.set()
        assert loader._task is not None
        await asyncio.wait_for(loader._task, 60)
        assert times == [1, 1]
        assert len(client.left) == 2
        loader.refresh()
        await asyncio.wait_for(loader._task, 60)
        assert times == [1, 1, 1]

    asyncio.run(work())


def test_another_connection_has_other_names() -> None:
    async def work() -> None:
        changed = asyncio.Event()
        first, second = Service(TABLES), Service({"LIST STORES": (["name"], [["s"]])})
        loader = CatalogLoader(first, lambda: CONTEXT, "target", None, changed=changed.set)
        loader.begin()
        await asyncio.wait_for(changed.wait(), 60)
        first.gate.clear()
        loader.refresh()
        await asyncio.sleep(0)
        changed.clear()
        loader.use_connection(second, "other", None)
        assert loader.catalog.contents.relations == []
        await loader.wait_for_echo(60)
        await asyncio.wait_for(changed.wait(), 60)
        assert loader.catalog.contents.names["store"] == ["s"]
        assert loader.catalog.contents.relations == []
        await loader.aclose()

    asyncio.run(work())


def test_who_waits_for_the_context_does_not_wait_for_a_service_that_is_gone() -> None:
    class Gone(Service):
        async def run(
            self, submission: Submission, context: SessionContext, observer: Observer | None = None
        ) -> AsyncGenerator[Result, None]:
            raise ConnectionFailed("refused")
            yield

    async def work() -> None:
        loader = CatalogLoader(Gone({}), lambda: CONTEXT, "target", None)
        loader.begin()
        await asyncio.wait_for(loader.wait_for_echo(1e9), 60)
        await loader.aclose()
        silent = Service({})
        silent.gate.clear()
        loader = CatalogLoader(silent, lambda: CONTEXT, "target", None)
        loader.begin()
        await asyncio.wait_for(loader.wait_for_echo(0.001), 60)
        await asyncio.wait_for(loader.aclose(), 60)
        assert len(silent.left) == 1

    asyncio.run(work())
