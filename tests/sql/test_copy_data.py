"""The data of COPY … FROM STDIN is never read as SQL, wherever the pieces of a script end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.sql.script.scanner import BackslashCommand, Item, Scanner, State, Statement, copies_from_stdin
from sqlshell.sql.script.splitting import complete, split

HOSTILE = (
    "1\tx;delete from t;",
    "\\g",
    "\\q",
    "'",
    "$$",
    "/*",
    "(",
    "--",
    "\\.x",
    " \\.",
    "\\\\.",
    "",
    "begin application a",
)
SCRIPTS = (
    "copy t from stdin;\n{data}\\.\nselect 1;",
    'COPY s.t (a, "b;c") FROM -- here\n STDIN WITH (format csv);\n{data}\\.\r\nselect 1;',
    "create function f() begin atomic; select 2; end; copy t\nfrom /* ; */ stdin ;\n{data}\\.\nselect 1;",
    "copy t from stdin;&\n{data}\\.\nselect 1;",
    "\\copy t from stdin\n{data}\\.\nselect 1;",
    "copy t from stdin\\; copy t from stdin;\n{data}\\.\n{data}\\.\nselect 1;",
    "select 0\\; copy t from stdin\\; select 2;\n{data}\\.\nselect 1;",
)


def last(script: str) -> object:
    return split(script)[-1]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("line", HOSTILE)
def test_data_lines_are_skipped(script: str, line: str) -> None:
    found = split(script.format(data=f"{line}\n"))
    assert isinstance(found[-1], Statement)
    assert found[-1].text == "select 1"
    assert [item for item in found if isinstance(item, Statement) and "delete" in item.text] == []
    assert [item.name for item in found if isinstance(item, BackslashCommand)] in ([], ["copy"])


@pytest.mark.slow("many generated cases")
@settings(deadline=None, max_examples=150, derandomize=True)
@given(
    st.sampled_from(SCRIPTS),
    st.lists(st.sampled_from(HOSTILE), max_size=4),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
def test_the_ends_of_pieces_do_not_matter(script: str, lines: list[str], sizes: list[int]) -> None:
    text = script.format(data="".join(f"{line}\n" for line in lines))
    scanner, position, turn = Scanner(), 0, 0
    items: list[Item] = []
    while position < len(text):
        size = sizes[turn % len(sizes)]
        items += scanner.items(text[position : position + size])
        position, turn = position + size, turn + 1
    items += scanner.items(None)
    assert items == split(text)
    for item in items:
        assert item.line == text.count("\n", 0, item.offset) + 1


def test_what_stands_behind_on_the_line_comes_after_the_data() -> None:
    found = split("copy a from stdin; copy b from stdin; select '1\n1;\n\\.\n2;\n\\.\n2' as x;")
    assert [item.text for item in found if isinstance(item, Statement)] == [
        "copy a from stdin",
        "copy b from stdin",
        "select '1\n2' as x",
    ]


def test_data_end_with_the_input() -> None:
    assert [item.text for item in split("copy t from stdin;\ndrop table t;") if isinstance(item, Statement)] == [
        "copy t from stdin"
    ]


def test_commands_make_no_difference() -> None:
    found = split("copy t from stdin;\n1;delete from t;\n\\.\nselect 1", commands=False)
    assert [item.text for item in found if isinstance(item, Statement)] == ["copy t from stdin", "select 1"]


def test_a_prompt_waits_for_the_end_of_the_data() -> None:
    scanner = Scanner()
    assert len([*scanner.items("copy t from stdin;\n1\n")]) == 1
    assert scanner.state is State.COPY_DATA
    assert not complete("copy t from stdin;")
    assert not complete("copy t from stdin;\n1;")
    assert complete("copy t from stdin;\n1;\n\\.")


@pytest.mark.parametrize(
    "statement",
    (
        "copy t from 'stdin'",
        'copy t from "stdin"',
        "copy (select * from stdin) to 'x'",
        "copy (select 1) from stdin",
        "copy/* */( table t ) from stdin",
        "copy stdin to 'x'",
        "copy t (stdin) from 'x' -- from stdin",
        "copy t from 'x' /* from stdin */",
        "copy t from $$ from stdin $$",
        "select 1 from stdin",
        "insert into t select copy from stdin",
        'copy t "from" stdin',
        "copy t from , stdin",
    ),
)
def test_what_has_no_data(statement: str) -> None:
    assert not copies_from_stdin(statement)
    found = split(f"{statement}\n;\nselect 1;")
    assert [item.text for item in found if isinstance(item, Statement)][-1] == "select 1"
    assert complete(f"{statement}\n;")


@pytest.mark.parametrize(
    "statement",
    (
        'copy"t"(a)from stdin',
        "copy t(a) from stdin",
        "copy t from stdin",
        'Copy "a;b" ( a )From\n/*x*/ StdIn csv',
        "COPY from FROM STDIN",
    ),
)
def test_what_has_data(statement: str) -> None:
    assert copies_from_stdin(statement)
