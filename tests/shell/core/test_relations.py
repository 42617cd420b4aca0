"""What \\d, \\d+, \\dt and \\schema print of the relations of a service that is none of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from sqlshell.context import SessionContext
from sqlshell.origin import Own
from sqlshell.shell.commands import relations
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
        await core.shell.run_script([Own(f"{script}\n")], "")
        await core.shell.aclose()
        return core

    return asyncio.run(work())


DESCRIBED: dict[str, Table] = {
    "DESCRIBE RELATION COLUMNS": (["name", "type", "nullable"], [["id", "INTEGER", "FALSE"], ["city", "VARCHAR"]]),
}


def cut(text: str) -> str:
    """A text without the blanks at the ends of its lines, which no source file keeps."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("tables", "script", "form", "out", "err"),
    [
        pytest.param(
            {},
            "\\d e.s.away",
            "csv",
            "",
            """\
error[42601]: wrong
""",
            id="d e.s.away csv",
        ),
        pytest.param(
            {},
            "\\d e.s.away",
            "table",
            "",
            """\
error[42601]: wrong
""",
            id="d e.s.away table",
        ),
        pytest.param(
            {},
            "\\d",
            "csv",
            """\
schema,name,type
s,Feed,stream
s,big,view
s,numbers,sequence
s,orders,table
temp,t1,temporary table
""",
            "",
            id="d csv",
        ),
        pytest.param(
            {},
            "\\dt",
            "csv",
            """\
schema,name,type
s,orders,table
temp,t1,temporary table
""",
            "",
            id="dt csv",
        ),
        pytest.param(
            {},
            ".tables",
            "csv",
            """\
schema,name,type
s,Feed,stream
s,big,view
s,numbers,sequence
s,orders,table
temp,t1,temporary table
""",
            "",
            id=".tables csv",
        ),
        pytest.param(
            {},
            "\\dt big",
            "csv",
            "schema,name,type\ns,big,view\n",
            "",
            id="dt without a table",
        ),
        pytest.param(
            {},
            "\\dt+",
            "csv",
            """\
database,schema,name,type
d,s,orders,table
d,temp,t1,temporary table
""",
            "",
            id="dt+ csv",
        ),
        pytest.param(
            {},
            "\\dt *.*",
            "csv",
            """\
schema,name,type
other,far,table
s,orders,table
temp,t1,temporary table
s,away,table
""",
            "",
            id="dt *.* csv",
        ),
        pytest.param(
            {},
            "\\dtv",
            "csv",
            """\
schema,name,type
s,big,view
s,orders,table
temp,t1,temporary table
""",
            "",
            id="dtv csv",
        ),
        pytest.param(
            {},
            "\\dm",
            "csv",
            """\
schema,name,type
s,Feed,stream
""",
            "",
            id="dm csv",
        ),
        pytest.param(
            {},
            "\\dv BIG",
            "csv",
            """\
schema,name,type
s,big,view
""",
            "",
            id="dv BIG csv",
        ),
        pytest.param(
            {},
            "\\d zzz",
            "csv",
            "",
            """\
error[3D020]: no relation matches zzz
help: \\d lists the relations of this schema, \\d *.* all
""",
            id="d zzz csv",
        ),
        pytest.param(
            {},
            "\\d fa",
            "csv",
            "",
            """\
error[3D020]: no relation matches fa
help: did you mean other.far?
""",
            id="d fa csv",
        ),
        pytest.param(
            {},
            "\\d z*",
            "csv",
            "",
            """\
error[3D020]: no relation matches z*
help: \\d lists the relations of this schema, \\d *.* all
""",
            id="d z* csv",
        ),
        pytest.param(
            {},
            "\\d order",
            "csv",
            "",
            """\
error[3D020]: no relation matches order
help: did you mean orders?
""",
            id="d order csv",
        ),
        pytest.param(
            {},
            "\\dv x",
            "table",
            "",
            """\
nothing matches x; \\d *.* lists the relations of all schemas
""",
            id="dv x table",
        ),
        pytest.param(
            {},
            "\\dm+ other.*",
            "table",
            "",
            """\
nothing matches other.*; \\d *.* lists the relations of all schemas
""",
            id="dm+ other.* table",
        ),
        pytest.param(
            {},
            "\\d other.*x",
            "table",
            "",
            """\
error[3D020]: no relation matches other.*x
help: \\d lists the relations of this schema, \\d *.* all
""",
            id="d other.*x table",
        ),
        pytest.param(
            DESCRIBED,
            "\\d orders",
            "table",
            """\
Table s.orders
name    type     nullable
------  -------  ----------
id      integer  not null
city    varchar
""",
            "",
            id="described d orders table",
        ),
        pytest.param(
            DESCRIBED,
            "\\d+ orders",
            "table",
            """\
Table s.orders
name    type     nullable
------  -------  ----------
id      integer  not null
city    varchar
""",
            "",
            id="described d+ orders table",
        ),
        pytest.param(
            DESCRIBED,
            "\\schema orders",
            "table",
            """\
CREATE TABLE s.orders (
  id INTEGER NOT NULL,
  city VARCHAR
);
""",
            "",
            id="described schema orders table",
        ),
        pytest.param(
            DESCRIBED,
            "\\schema big",
            "table",
            """\
CREATE VIEW s.big (
  id INTEGER NOT NULL,
  city VARCHAR
);
""",
            "",
            id="described schema big table",
        ),
        pytest.param(
            DESCRIBED,
            "\\d+ orders",
            "csv",
            """\
name,type,nullable
id,INTEGER,false
city,VARCHAR,
""",
            "",
            id="described d+ orders csv",
        ),
    ],
)
def test_what_is_printed(tables: Mapping[str, Table], script: str, form: str, out: str, err: str) -> None:
    core = run(script, tables, form)
    assert (cut(core.out), cut(core.err)) == (out, err)


@pytest.mark.parametrize(("most", "err"), [(3, ""), (2, "error: o* matches 3 relations; \\d describes at most 2")])
def test_few_relations_are_described(monkeypatch: pytest.MonkeyPatch, most: int, err: str) -> None:
    monkeypatch.setattr(relations, "MOST_DESCRIBED", most)
    listed: Table = (["name", "type"], [["o1", "table"], ["o2", "table"], ["o3", "table"], ["x", "table"]])
    core = run("\\d o*", {"LIST RELATIONS": listed, **DESCRIBED})
    assert core.err.partition("\n")[0] == err
    assert core.err.endswith("help: use a narrower pattern\n" if err else "")
    assert core.out.count("name,type,nullable\n") == (0 if err else 3)
