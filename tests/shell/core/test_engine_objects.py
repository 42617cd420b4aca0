"""Commands about the objects of an engine that is a server elsewhere, with a service that lists them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

import pytest

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import Exit
from sqlshell.interface import sqlstate
from sqlshell.origin import Trusted
from sqlshell.result import Result
from tests.goldens import run_sessions
from tests.shell.core.scripted import Core, failure
from tests.shell.core.test_catalog_contents import Service, Table

RELATIONS: Table = (
    ["Database", "schema", "name", "type", "owner", "visible"],
    [
        ["d", "public", "t", "table", "me", "true"],
        ["d", "public", "v", "view", "me", "true"],
        ["d", "other", "u", "table", "me", "false"],
        ["d", "public", "i", "index", "me", "true"],
        ["d", "public", "q", "sequence", None, "true"],
    ],
)
TABLES: Mapping[str, Table] = {
    "LIST ENGINE RELATIONS": RELATIONS,
    "DESCRIBE ENGINE RELATION COLUMNS t": (
        ["name", "type", "nullable", "default"],
        [["a", "integer", "false", None], ["b", "text", "true", "'x'"]],
    ),
    "DESCRIBE ENGINE RELATION SQL": (
        ["phase", "age", "sql"],
        [
            ["2", "1", "CREATE VIEW v"],
            ["1", "7", "CREATE TABLE t"],
            ["1", "3", "CREATE TABLE u"],
            ["x", None, "CREATE TYPE m"],
        ],
    ),
    "DESCRIBE ENGINE RELATION t": (
        ["head", "name", "text"],
        [
            ["table", "public.t", None],
            ["Indexes", "i", "btree (a)"],
            ["Indexes", "j", "btree (b)\nWHERE b"],
            ["Comment", None, "why"],
            ["View definition", "", "SELECT 1\n  FROM x"],
        ],
    ),
    "DESCRIBE ENGINE RELATION COLUMNS i": (["column", "definition"], [["a", None]]),
    "DESCRIBE ENGINE RELATION i": (["head", "name", "text"], []),
    "LIST ENGINE DATABASES": (["name", "owner", "current"], [["d", "me", "true"], ["e", None, "false"]]),
    "LIST ENGINE FUNCTIONS": (
        ["schema", "name", "result", "own", "visible"],
        [["public", "f", "int", "true", "true"], ["pg_catalog", "abs", "int", "false", "true"]],
    ),
    "DESCRIBE ENGINE FUNCTION SQL f": (["sql"], [["CREATE FUNCTION f()\n"], ["CREATE FUNCTION f(int)"]]),
    "LIST ENGINE PRIVILEGES": (["schema", "name", "visible", "privileges"], [["public", "t", "true", "me=r"]]),
    "LIST ENGINE ROLES": (["name"], [["me"]]),
    "LIST ROLES": (["name"], [["role of the service"]]),
    "LIST ENGINE SCHEMAS": (["name", "IsDefault"], [["public", "true"]]),
    "LIST ENGINE INDEXES": (["schema", "name", "visible"], []),
}


class Server(Service):
    """A service whose engine has no other objects: others fail with `state`."""

    def __init__(self, tables: Mapping[str, Table] = TABLES, state: str = sqlstate.NO_RELATION) -> None:
        super().__init__(tables)
        self.sql_state = state

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        if not any(text in submission.sql for text in self.tables):
            self.ran.append((submission.sql, context))
            raise failure(self.sql_state, "there is none")
        async for result in super().run(submission, context, observer):
            yield result


def run(command: str, server: Server | None = None, *, people: bool = False) -> tuple[str, str, list[str]]:
    """What a command prints to stdout and stderr, and what it sends."""

    async def work() -> tuple[str, str, list[str]]:
        client = server or Server()
        core = Core(client)
        core.session.connection.service.transport.extensions = frozenset({"engine=postgresql"})
        core.session.options.format = "table" if people else "csv"
        await core.shell.run_script([Trusted(f"{command}\n")], "", stop=False)
        assert (core.shell.exit != Exit.DONE) == core.err.startswith("error")
        await core.shell.aclose()
        return core.out, core.err, client.sqls

    return asyncio.run(work())


@pytest.mark.parametrize("form", ["csv", "table"])
def test_objects_are_listed_and_described_as_the_engine_has_them(form: str) -> None:
    def printed(command: str) -> tuple[str, str, str]:
        """What is printed, and the statements that are sent."""
        out, err, sent = run(command.removesuffix("\n"), people=form == "table")
        # What is no name is not part of a statement.
        assert not any(";" in sql or "(" in sql for sql in sent)
        return out, err, "".join(f"{sql}\n" for sql in sent)

    run_sessions(f"sessions/engine {form}.txt", printed)


def test_people_are_told_where_the_functions_are() -> None:
    server = Server({"LIST ENGINE FUNCTIONS": (["name", "own"], [["abs", "false"]])})
    assert run("\\df", server, people=True)[:2] == ("", "no user-defined functions; \\df * lists all functions\n")
    assert run("\\df", server)[:2] == ("name\n", "")


def test_a_pattern_stands_for_the_relations_that_it_matches() -> None:
    tables = dict(TABLES) | {
        'DESCRIBE ENGINE RELATION COLUMNS "public"': (["name", "type"], [["a", "int"]]),
        'DESCRIBE ENGINE RELATION "public"': (["head", "name", "text"], [["table", "x", None]]),
    }
    _, err, sent = run("\\d *", Server(tables))
    assert err == ""
    assert [sql for sql in sent if "COLUMNS" not in sql] == [
        "LIST ENGINE RELATIONS",
        *(f'DESCRIBE ENGINE RELATION "public"."{name}"' for name in "tvq"),
    ]
    without_schema: dict[str, Table] = {
        "LIST ENGINE RELATIONS": (["name", "type"], [["t", "table"]]),
        "DESCRIBE": (["name"], []),
    }
    assert run("\\d *", Server(without_schema))[2][1] == 'DESCRIBE ENGINE RELATION "t"'
    many: Table = (["schema", "name", "type"], [["s", f"t{number}", "table"] for number in range(21)])
    out, err, sent = run("\\d *", Server({"LIST ENGINE RELATIONS": many}))
    assert (out, sent) == ("", ["LIST ENGINE RELATIONS"])
    assert err.startswith("error: * matches 21 relations; \\d describes at most 20\n")


@pytest.mark.parametrize("command", ["\\d nope", "\\schema nope"])
def test_another_error_than_a_missing_relation_is_the_engines(command: str) -> None:
    missing = {text: table for text, table in TABLES.items() if "SQL" not in text}
    out, err, sent = run(command, Server(missing, "42501"))
    assert (out, len(sent)) == ("", 1)
    assert "there is none" in err


def test_the_sql_that_creates_relations_is_in_an_order_that_can_be_run() -> None:
    assert run("\\schema")[0] == "CREATE TYPE m;\nCREATE TABLE u;\nCREATE TABLE t;\nCREATE VIEW v;\n"
    nothing = Server({"DESCRIBE ENGINE RELATION SQL": (["phase", "age", "sql"], [])})
    assert "i is created by the statement of its table" in run("\\schema i", nothing)[1]
    missing = Server({"LIST ENGINE RELATIONS": RELATIONS})
    assert 'no relation matches "nope"' in run("\\schema nope", missing)[1]
