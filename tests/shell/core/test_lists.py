"""Objects of a service whose engine is no server: what of them is marked, filtered, grouped and left out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from sqlshell.context import SessionContext
from sqlshell.errors import Exit
from sqlshell.origin import Trusted
from tests.shell.core.scripted import Core
from tests.shell.core.test_catalog_contents import Service, Table

DATABASES: Table = (
    ["Name", "Owner", "comment"],
    [["d", "ann", None], ["e", "", "of e"], ["deep", "bob", ""]],
)
ORGANIZATIONS: Table = (["id", "name"], [["7", "acme"], ["8", "d"]])


def run(command: str, tables: Mapping[str, Table], form: str = "csv") -> str:
    async def work() -> str:
        core = Core(Service(tables), context=SessionContext(database="d", organization="7"))
        core.session.options.format = form
        await core.shell.run_script([Trusted(f"{command}\n")], "", stop=False)
        assert core.shell.exit == Exit.DONE, core.err
        await core.shell.aclose()
        return core.out

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (
            "\\l",
            'name,kind,current\nd,database,*\ne,database,""\ndeep,database,""\nacme,organization,*\nd,organization,""\n',
        ),
        ("\\l d*", 'name,kind,current\nd,database,*\ndeep,database,""\nd,organization,""\n'),
        (
            "\\l+ ?",
            'name,kind,current,details\nd,database,*,Owner ann\ne,database,"",comment of e\nd,organization,"",id 8\n',
        ),
    ],
)
def test_databases_and_organizations(command: str, shown: str) -> None:
    assert run(command, {"LIST DATABASES": DATABASES, "LIST ORGANIZATIONS": ORGANIZATIONS}) == shown


def test_databases_of_a_service_without_organizations() -> None:
    assert run("\\l", {"LIST DATABASES": (["name"], [["d"]])}) == "name,kind,current\nd,database,*\n"
