"""What \\d, \\d+, \\dt and \\schema print of the relations of a service that is none of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from sqlshell.context import SessionContext
from sqlshell.origin import Trusted
from sqlshell.shell.commands import relations
from tests.goldens import run_sessions
from tests.shell.core.scripted import Core
from tests.shell.core.test_catalog_contents import Service, Table

LISTED: Table = (
    ["Database_Name", "Schema_Name", "Name", "Type"],
    [
        ["d", "s", "orders", "TABLE"],
        ["d", "s", "big", "VIEW"],
        ["d", "other", "far", "table"],
        ["e", "s", "away", "table"],
        ["d", "temp", "t1", "temporary_table"],
        ["d", "s", "Feed", "stream"],
        ["d", "s", "numbers", "sequence"],
    ],
)


def run(script: str, tables: Mapping[str, Table], form: str = "csv") -> Core:
    async def work() -> Core:
        core = Core(Service({"LIST RELATIONS": LISTED, **tables}), context=SessionContext(database="d", schema="s"))
        core.session.connection.service.transport.extensions = frozenset({"batch"})
        core.session.options.format, core.session.options.table_style = form, "simple"
        core.session.options.on_error = "continue"
        await core.shell.run_script([Trusted(f"{script}\n")], "")
        await core.shell.aclose()
        return core

    return asyncio.run(work())


DESCRIBED: dict[str, Table] = {
    "DESCRIBE RELATION COLUMNS": (["name", "type", "nullable"], [["id", "INTEGER", "FALSE"], ["city", "VARCHAR"]]),
}


@pytest.mark.parametrize(
    ("tables", "name", "form"),
    [
        ({}, "relations", "csv"),
        ({}, "relations", "table"),
        (DESCRIBED, "described", "csv"),
        (DESCRIBED, "described", "table"),
    ],
    ids=["relations in csv", "relations in a table", "columns in csv", "columns in a table"],
)
def test_what_is_printed(tables: Mapping[str, Table], name: str, form: str) -> None:
    def printed(script: str) -> tuple[str, str]:
        core = run(script.removesuffix("\n"), tables, form)
        return core.out, core.err

    run_sessions(f"sessions/{name} {form}.txt", printed)


@pytest.mark.parametrize(("most", "err"), [(3, ""), (2, "error: o* matches 3 relations; \\d describes at most 2")])
def test_few_relations_are_described(monkeypatch: pytest.MonkeyPatch, most: int, err: str) -> None:
    monkeypatch.setattr(relations, "MOST_DESCRIBED", most)
    listed: Table = (["name", "type"], [["o1", "table"], ["o2", "table"], ["o3", "table"], ["x", "table"]])
    core = run("\\d o*", {"LIST RELATIONS": listed, **DESCRIBED})
    assert core.err.partition("\n")[0] == err
    assert core.err.endswith("help: use a narrower pattern\n" if err else "")
    assert core.out.count("name,type,nullable\n") == (0 if err else 3)
