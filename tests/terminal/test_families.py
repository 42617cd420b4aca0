"""A session for each group of commands, whose screen is compared with a file (see test_screens)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal.test_screens import compare, opened

pytestmark = pytest.mark.slow("a terminal")

FAMILIES: dict[str, tuple[str, ...]] = {
    "looking": (
        "create table orders (id integer, total decimal(9,2)); create view big as select 1 as x;",
        "\\dt",
        "\\d orders",
        "\\dv",
        "\\d ordres",
    ),
    "running": (
        "select 1 as a, 'x' as b \\gdesc",
        "select 5 as five, 'it''s' as s \\gset",
        "\\echo :five :'s'",
        "select 'select ' || i || ' as v' from range(2) t(i) \\gexec",
        "select 1 as a \\gx",
    ),
    "display": (
        "\\x auto",
        "select repeat('wide ', 12) as one, repeat('wider ', 12) as two;",
        "\\pset maxwidth 12",
        "select repeat('long ', 12) as text, 1234567 as n;",
        "\\pset numericlocale on",
        "select 1234567 as n;",
        "\\pset wide sideways",
    ),
    "results": (
        "select 'c' || (i % 2) as c, 'q' || (i % 3) as q, sum(i) as n from range(12) t(i) group by all order by all;",
        "\\crosstab",
        "\\local select c, sum(n) as n from _ group by c order by c",
        "\\chart bar",
    ),
    "variables": (
        "\\set who 'a person'",
        "select :'who' as who, :{?nobody} as nobody;",
        "\\if :{?who}",
        "\\echo hello :who",
        "\\else",
        "\\echo nobody",
        "\\endif",
        "\\set done 'select 42 as answer;'",
        ":done",
        "\\if maybe",
        "\\endif",
    ),
    "records": (
        "\\transcript t.jsonl",
        "select 1 as a;",
        "\\transcript",
        "\\replay t.jsonl",
        "\\n+ lucky select 7 as seven",
        "\\n",
        "\\n lucky",
    ),
    "help": ("\\? gset", "\\h use", "\\nonsense", ".tables", "!help q"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family(tmp_path: Path, family: str) -> None:
    terminal = opened(tmp_path, "200x60" if family in {"help", "results"} else "80x24", {"TERM": "xterm-256color"})
    terminal.prompt()
    terminal.type("\x1bOQ")
    terminal.enter("\\timing off")
    terminal.wait("Timing is off")
    for step in FAMILIES[family]:
        terminal.prompt()
        terminal.enter(step)
        terminal.wait(step[:20])
    terminal.prompt()
    compare(f"family-{family}", terminal)
    terminal.close()
