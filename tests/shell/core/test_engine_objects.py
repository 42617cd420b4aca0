"""Commands about the objects of an engine that is a server elsewhere, with a service that lists them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

import pytest

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import Exit
from sqlshell.interface import sqlstate
from sqlshell.origin import Own
from sqlshell.result import Result
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
        await core.shell.run_script([Own(f"{command}\n")], "", stop=False)
        assert (core.shell.exit != Exit.DONE) == core.err.startswith("error")
        await core.shell.aclose()
        return core.out, core.err, client.sqls

    return asyncio.run(work())


HEAD = "schema,name,type,owner\n"


@pytest.mark.parametrize(
    ("command", "sent", "shown"),
    [
        ("\\d", "RELATIONS", f"{HEAD}public,t,table,me\npublic,v,view,me\npublic,q,sequence,\n"),
        ("\\dt", "RELATIONS", f"{HEAD}public,t,table,me\n"),
        ("\\dt+", "RELATIONS WITH DETAILS", f"{HEAD}public,t,table,me\n"),
        ("\\dtv", "RELATIONS", f"{HEAD}public,t,table,me\npublic,v,view,me\n"),
        ("\\dt *.*", "RELATIONS", f"{HEAD}public,t,table,me\nother,u,table,me\n"),
        ("\\dt other.*", "RELATIONS IN SCHEMA other", f"{HEAD}other,u,table,me\n"),
        ('\\dt "Other".u', 'RELATIONS IN SCHEMA "Other"', HEAD),
        ("\\dt nope", "RELATIONS", HEAD),
        ("\\ds", "RELATIONS", f"{HEAD}public,q,sequence,\n"),
        ("\\l", "DATABASES", "name,owner,current\nd,me,*\ne,,\n"),
        ("\\l+ d", "DATABASES WITH DETAILS", "name,owner,current\nd,me,*\n"),
        ("\\df", "FUNCTIONS", "schema,name,result\npublic,f,int\n"),
        ("\\df *", "FUNCTIONS", "schema,name,result\npublic,f,int\npg_catalog,abs,int\n"),
        ("\\dp", "PRIVILEGES", "schema,name,privileges\npublic,t,me=r\n"),
        ("\\du", "ROLES", "name\nme\n"),
        ("\\dg", "ROLES", "name\nme\n"),
        ("\\dn", "SCHEMAS", "name,is_default\npublic,true\n"),
        ("\\di+ x", "INDEXES WITH DETAILS", "schema,name\n"),
    ],
)
def test_objects_are_listed_as_the_engine_has_them(command: str, sent: str, shown: str) -> None:
    assert run(command) == (shown, "", [f"LIST ENGINE {sent}"])


def test_roles_of_the_service_are_listed_by_another_command() -> None:
    assert run("\\dr") == ("name\nrole of the service\n", "", ["LIST ROLES"])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("\\dt nope", "nothing matches nope; \\d *.* lists the relations of all schemas"),
        ("\\di", "no indexes found; \\di *.* lists them in all schemas"),
        ("\\di x", "nothing matches x"),
        ("\\l nope", "nothing matches nope"),
    ],
)
def test_people_are_told_that_a_list_is_empty(command: str, said: str) -> None:
    assert run(command, people=True)[:2] == ("", f"{said}\n")


def test_people_are_told_where_the_functions_are() -> None:
    server = Server({"LIST ENGINE FUNCTIONS": (["name", "own"], [["abs", "false"]])})
    assert run("\\df", server, people=True)[:2] == ("", "no user-defined functions; \\df * lists all functions\n")
    assert run("\\df", server)[:2] == ("name\n", "")


def test_a_null_is_nothing_to_people_and_null_to_programs() -> None:
    assert "| e      |         |           |" in run("\\l", people=True)[0]


def test_a_relation_is_described_for_programs() -> None:
    columns = "name,type,nullable,default\na,integer,false,\nb,text,true,'x'\n"
    assert run("\\d t") == (
        columns,
        "",
        ["DESCRIBE ENGINE RELATION t", "DESCRIBE ENGINE RELATION COLUMNS t"],
    )
    out, err, sent = run("\\d+ t")
    assert (out, err) == (
        f'{columns}what,name,definition\nIndexes,i,btree (a)\nIndexes,j,"btree (b)\nWHERE b"\n'
        'Comment,"",why\nView definition,"","SELECT 1\n  FROM x"\n',
        "",
    )
    assert sent == ["DESCRIBE ENGINE RELATION t WITH DETAILS", "DESCRIBE ENGINE RELATION COLUMNS t WITH DETAILS"]


def test_a_relation_is_described_for_people() -> None:
    out, _, _ = run("\\d t", people=True)
    assert out == (
        "Table public.t\n"
        "+--------+---------+------------+-----------+\n"
        "| name   | type    | nullable   | default   |\n"
        "|--------+---------+------------+-----------|\n"
        "| a      | integer | not null   |           |\n"
        "| b      | text    |            | 'x'       |\n"
        "+--------+---------+------------+-----------+\n"
        "Indexes:\n    i btree (a)\n    j btree (b)\n    WHERE b\n"
        "Comment: why\n"
        "View definition:\n    SELECT 1\n      FROM x\n"
    )
    out, _, _ = run("\\d i", people=True)
    assert out.startswith("Relation i\n")
    assert "| column   | definition   |\n" in out
    assert out.endswith("+\n")


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


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("\\d nope", "no relation matches nope\nhelp: \\d lists the relations of this schema, \\d *.* all"),
        ("\\d vv", "no relation matches vv\nhelp: did you mean v?"),
        ("\\d nope*", "no relation matches nope*\nhelp: \\d lists the relations of this schema, \\d *.* all"),
        ("\\d i*", "no relation matches i*\nhelp: "),
        ("\\d uu", "no relation matches uu\nhelp: did you mean other.u?"),
        ("\\d a;b", "no relation matches a;b\nhelp: "),
        ("\\sf nope(", "no function matches nope(\nhelp: \\df * lists the functions"),
    ],
)
def test_names_that_do_not_exist(command: str, said: str) -> None:
    out, err, sent = run(command)
    assert out == ""
    assert said in err
    # What is no name is not part of a statement.
    assert not any(";" in sql or "(" in sql for sql in sent)


@pytest.mark.parametrize("command", ["\\d nope", "\\schema nope"])
def test_another_error_than_a_missing_relation_is_the_engines(command: str) -> None:
    missing = {text: table for text, table in TABLES.items() if "SQL" not in text}
    out, err, sent = run(command, Server(missing, "42501"))
    assert (out, len(sent)) == ("", 1)
    assert "there is none" in err


def test_the_sql_that_creates_relations_is_in_an_order_that_can_be_run() -> None:
    created = "CREATE TYPE m;\nCREATE TABLE u;\nCREATE TABLE t;\nCREATE VIEW v;\n"
    out, err, sent = run("\\schema")
    assert (out, err) == (created, "")
    assert sent[1:] == [f'DESCRIBE ENGINE RELATION SQL "public"."{name}"' for name in "tvq"]
    assert run("\\schema t")[2] == ["DESCRIBE ENGINE RELATION SQL t"]
    nothing = Server({"DESCRIBE ENGINE RELATION SQL": (["phase", "age", "sql"], [])})
    assert "i is created by the statement of its table" in run("\\schema i", nothing)[1]
    missing = Server({"LIST ENGINE RELATIONS": RELATIONS})
    assert "no relation matches nope" in run("\\schema nope", missing)[1]


def test_the_sql_that_creates_functions() -> None:
    assert run("\\sf f") == (
        "CREATE FUNCTION f();\nCREATE FUNCTION f(int);\n",
        "",
        ["DESCRIBE ENGINE FUNCTION SQL f"],
    )


def test_the_sample_data_is_not_made_by_another_engine() -> None:
    out, err, sent = run("\\demo")
    assert (out, sent) == ("", [])
    assert err.startswith("error: \\demo needs DuckDB; this is postgresql\n")
