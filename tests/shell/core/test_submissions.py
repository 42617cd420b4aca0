"""What is sent with a statement: its row limit, whether it may be repeated, and its ending; and what is not sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import Exit, UsageError
from sqlshell.origin import Trusted
from sqlshell.result import Column, Result
from sqlshell.shell.records.result_history import ResultHistory
from sqlshell.shell.results.crosstab import crosstab, place
from sqlshell.shell.results.rows import table_of
from tests.shell.core.scripted import Core, ScriptedClient


class Recording(ScriptedClient):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Submission] = []

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        self.sent.append(submission)
        async for result in super().run(submission, context, observer):
            yield result


def run(
    script: str, *, interactive: bool = False, embedded: bool = False, rowlimit: int = 500
) -> tuple[Core, Recording]:
    client = Recording()

    async def work() -> Core:
        core = Core(client, interactive=interactive)
        core.session.state.connection = replace(core.session.connection, embedded=embedded)
        core.session.options.rowlimit = rowlimit
        await core.shell.run_script([Trusted(f"{script}\n")], "", stop=False)
        await core.shell.aclose()
        return core

    return asyncio.run(work()), client


@pytest.mark.parametrize(
    ("script", "interactive", "embedded", "rowlimit", "limit"),
    [
        ("select 1;", True, True, 500, 500),
        ("select 1 \\gx", True, True, 500, 500),
        ("select 1;", True, True, 0, None),
        ("select 1;", False, True, 500, None),
        ("select 1;", True, False, 500, None),
        ("select 1;&", True, True, 500, None),
        ("select 1 \\g {}/a.csv", True, True, 500, None),
        ("\\o {}/a.csv\nselect 1;", True, True, 500, None),
        ("select 1 \\gset", True, True, 500, None),
    ],
)
def test_only_what_is_shown_at_the_prompt_has_a_row_limit(
    tmp_path: Path, script: str, interactive: bool, embedded: bool, rowlimit: int, limit: int | None
) -> None:
    core, client = run(script.format(tmp_path), interactive=interactive, embedded=embedded, rowlimit=rowlimit)
    core.outlet.close()
    assert [submission.row_limit for submission in client.sent] == [limit]


@pytest.mark.parametrize(
    ("script", "embedded", "repeatable", "ending"),
    [
        ("select 1;", False, True, ";"),
        ("select 1", False, True, ""),
        ("delete from t;", False, False, ";"),
        ("select 1;", True, False, ";"),
        ("select 1 \\g", False, True, ""),
    ],
)
def test_only_reads_of_a_service_elsewhere_are_repeated(
    script: str, embedded: bool, repeatable: bool, ending: str
) -> None:
    _, client = run(script, embedded=embedded)
    assert [(each.repeatable, each.ending) for each in client.sent] == [(repeatable, ending)]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "delete from t where a \\gdesc",
            "error: \\gdesc has to run the statement, but DELETE may write\nhelp: use \\g to run it\n",
        ),
        (
            "create table t (i int) \\export a.csv",
            "error: \\export: CREATE TABLE returns no rows\n"
            "help: use a query, or INSERT, UPDATE or DELETE with RETURNING\n",
        ),
        (
            "copy t from stdin \\g",
            "<command>:1: error[0A000]: COPY … FROM STDIN has no data here\n"
            "help: write it in a script with its data after it, or use \\copy t FROM 'file'\n",
        ),
    ],
)
def test_statements_that_are_not_sent(script: str, said: str) -> None:
    core, client = run(script)
    assert client.sent == []
    assert core.err.startswith(said), core.err


def test_a_value_of_a_service_names_no_file_of_the_embedded_one() -> None:
    script = "select 1 \\gset\nfrom :'a';\n"
    core, client = run(script, embedded=True)
    assert [each.sql for each in client.sent] == ["select 1"]
    assert core.shell.exit == Exit.USAGE
    assert [each.sql for each in run(script)[1].sent] == ["select 1", "from '1'"]


def test_a_variable_that_is_several_statements_is_sent_as_several() -> None:
    _, client = run("\\set two 'select 1; select 2'\n:two;\nselect 3;")
    assert [(each.sql, each.ending) for each in client.sent] == [
        ("select 1", ";"),
        ("select 2", ";"),
        ("select 3", ";"),
    ]
    _, client = run("\\set none ''\n:none;\nselect 3;")
    assert [each.sql for each in client.sent] == ["select 3"]


def test_a_background_statement_is_announced_with_its_number() -> None:
    core, _ = run("select 1;&\n\\wait 1", interactive=True)
    assert core.err.startswith("[1] is running in the background; \\jobs lists it\n")


def test_echo_shows_the_text_that_is_sent() -> None:
    client = Recording()

    async def work() -> Core:
        core = Core(client)
        core.session.options.echo = True
        await core.run("\\set n 7\nselect :n,\n  2;\n")
        return core

    assert asyncio.run(work()).err == "select 7,\n  2\n"


def test_names_of_results_that_are_not_there() -> None:
    history = ResultHistory()
    for name, said, hint in (
        ("_", "no statement has returned rows yet", "run a statement first: select …;"),
        ("_10", "unknown result _10", "expected _, _1, … or _9"),
        ("x", "unknown result x", "expected _, _1, … or _9"),
    ):
        with pytest.raises(UsageError) as told:
            history.entry(name)
        assert (told.value.message, told.value.hint) == (said, hint)
    assert not history


class Empty(Recording):
    """Its results cannot be fetched again with their rows."""

    async def fetch(
        self, statement_id: str, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        yield table_of([], [])


def test_a_result_that_has_no_rows_any_more() -> None:
    async def work() -> Core:
        core = Core(Empty())
        await core.shell.run_script([Trusted("select 1;\n\\crosstab\n")], "")
        return core

    core = asyncio.run(work())
    assert core.err == "error: result _ has no rows\n"
    assert core.shell.exit == Exit.USAGE


COLUMNS = [Column("A", "INTEGER"), Column("b"), Column("B"), Column("2", "DATE")]


@pytest.mark.parametrize(
    ("name", "at"), [("A", 0), ("a", 0), ("b", 1), ("B", 2), ("2", 3), ("1", 0), ("4", 3), ("3", 2)]
)
def test_the_column_with_a_name_or_a_number(name: str, at: int) -> None:
    assert place(COLUMNS, name) == at


@pytest.mark.parametrize("name", ["", "0", "5", "c", "٣"])
def test_a_column_that_is_not_there(name: str) -> None:
    with pytest.raises(UsageError) as told:
        place(COLUMNS, name)
    assert (told.value.message, told.value.hint) == (f'the result has no column "{name}"', "columns: A, b, B, 2")


def test_a_crosstab_of_other_columns() -> None:
    rows = [["1", "x", "p", "d1"], ["2", "y", None, "d2"], ["1", "z", None, "d3"]]
    made = crosstab(COLUMNS, rows, ["B", "A", "2"])  # type: ignore[arg-type]
    assert [(column.name, column.type) for column in made.columns] == [("B", "VARCHAR"), ("1", "DATE"), ("2", "DATE")]
    assert made.row_counts == [2]
    made = crosstab(COLUMNS, rows, ["2"])  # type: ignore[arg-type]
    assert [column.name for column in made.columns] == ["2", "1", "2"]
    made = crosstab(COLUMNS[:3], [["1", None, "p"], ["1", "NULL", "q"]], [], "∅")
    assert [column.name for column in made.columns] == ["A", "∅", "NULL"]
    for names, said in ((["A", "a"], "three different columns"), (["A", "A", "b"], "three different columns")):
        with pytest.raises(UsageError, match=said):
            crosstab(COLUMNS, rows, names)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^there are several values for A '1' and b 'x'$"):
        crosstab(COLUMNS, [["1", "x", "p", "q"], ["1", "x", "r", "s"]], [])
    with pytest.raises(UsageError, match=r"^\\crosstab requires three columns, but the result has 2$"):
        crosstab(COLUMNS[:2], [], [])
    with pytest.raises(UsageError, match=r"^b has more than 1,600 distinct values$"):
        crosstab(COLUMNS, [["1", str(number), "p", "q"] for number in range(1_601)], [])
    assert len(crosstab(COLUMNS, [["1", str(number), "p", "q"] for number in range(1_600)], []).columns) == 1_601
