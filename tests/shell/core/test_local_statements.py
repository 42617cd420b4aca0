"""\\local: every statement that its database gets, which files are there meanwhile, and what is said."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from sqlshell.errors import StatementError
from sqlshell.interface import sqlstate
from sqlshell.origin import Trusted
from sqlshell.result import Batch, Column, HeldBatches, Result, StoredColumn
from sqlshell.shell.connection import Connection
from tests.shell.core.scripted import Answer, Core, ScriptedClient
from tests.shell.sessions import connection

WRONG = StatementError("Conversion Error: wrong\nLINE 1: …")


class Here(ScriptedClient):
    """The database of \\local: `seen` are its statements, with the folder's files at that time. Some fail."""

    def __init__(self, folder: Path, fails: Callable[[str], bool]) -> None:
        super().__init__()
        self.folder = folder
        self.fails = fails
        self.seen: list[str] = []
        self.files: list[list[str]] = []

    async def step(self, what: str) -> None:
        await super().step(what)
        if what != "submit":
            return
        sql = self.ran[-1][0].replace(str(self.folder), "FOLDER")
        self.seen.append(sql)
        self.files.append(sorted(path.name for path in self.folder.iterdir()))
        if self.fails(sql):
            raise WRONG


def run(
    folder: Path,
    script: str,
    client: ScriptedClient | None = None,
    fails: Callable[[str], bool] = lambda sql: False,
) -> tuple[Core, Here, list[str]]:
    """A shell after a script, its database, and what happened to the database's connection."""
    here, events = Here(folder, fails), list[str]()

    async def work() -> Core:
        core = Core(client)
        made = connection(here, label="local", embedded=True, release=lambda: events.append("released"))

        async def local(present: Connection, path: object = None) -> tuple[Connection, Path]:
            events.append("opened")
            return made, folder

        core.environment.local = local  # type: ignore[method-assign]
        await core.shell.run_script([Trusted(script)], "", stop=False)
        await core.shell.aclose()
        return core

    return asyncio.run(work()), here, events


LIMITS = [
    "SET memory_limit = '1GB'",
    "SET temp_directory = 'FOLDER/spilled'",
    "SET max_temp_directory_size = '16GB'",
]


def test_a_result_is_loaded_once_and_dropped_when_it_has_no_name(tmp_path: Path) -> None:
    # The results of \local are results, too: the first one is _1 after it.
    script = "select 1;\n\\local select * from _\n\\local select a from _1 x, _1 y\n" + "select 3;\n" * 8
    core, here, events = run(tmp_path, f"{script}\\local select * from _9\n\\local select 7\n")
    assert core.err == ""
    made = [sql for sql in here.seen if sql.startswith("CREATE TABLE")]
    assert [sql.partition(" AS ")[0] for sql in made] == ["CREATE TABLE result_1", "CREATE TABLE result_2"]
    assert [sql for sql in here.seen if sql not in made] == [
        *LIMITS,
        'CREATE OR REPLACE VIEW "_" AS SELECT * FROM result_1',
        "select * from _",
        'CREATE OR REPLACE VIEW "_1" AS SELECT * FROM result_1',
        "select a from _1 x, _1 y",
        'CREATE OR REPLACE VIEW "_9" AS SELECT * FROM result_2',
        "DROP TABLE IF EXISTS result_1",
        "select * from _9",
        "select 7",
    ]
    assert events == ["opened", "released"]


def test_the_file_of_the_rows_is_there_only_while_they_are_loaded(tmp_path: Path) -> None:
    _, here, _ = run(tmp_path, "select 1;\n\\local select * from _\n")
    loading = next(number for number, sql in enumerate(here.seen) if sql.startswith("CREATE TABLE"))
    assert here.files[loading] == ["result_1.parquet"]
    assert not any(names for number, names in enumerate(here.files) if number != loading)
    assert list(tmp_path.iterdir()) == []


class Typed(ScriptedClient):
    """Results of these columns, without rows, perhaps with a file."""

    def __init__(self, *types: str, whole: Any = None) -> None:
        super().__init__()
        self.types = types
        self.whole = whole

    async def run(self, *given: Any) -> Any:
        async for result in super().run(*given):
            yield self._typed(result)

    async def fetch(self, *given: Any) -> Any:
        async for result in super().fetch(*given):
            yield self._typed(result)

    def _typed(self, result: Result) -> Result:
        result.columns = [Column(name, type_) for name, type_ in zip("abcdef", self.types, strict=False)]
        result.batches = HeldBatches(Batch(len(self.types), rows=[]))
        result.whole = self.whole
        return result


@pytest.mark.parametrize(
    ("types", "failures", "loaded", "said"),
    [
        (["INTEGER", "VARCHAR"], 0, [["INTEGER", "VARCHAR"]], ""),
        (
            ["INTEGER", "DATE"],
            2,
            [["INTEGER", "DATE"]] * 2 + [["VARCHAR", "VARCHAR"]],
            "warning: all columns are loaded as text: Conversion Error: wrong\n",
        ),
        (
            ["ARRAY<INTEGER>", "DATE"],
            1,
            [["INTEGER[]", "DATE"], ["JSON", "DATE"]],
            "warning: nested columns are loaded as JSON: Conversion Error: wrong\n",
        ),
    ],
)
def test_values_that_do_not_fit_their_types(
    tmp_path: Path, types: list[str], failures: int, loaded: list[list[str]], said: str
) -> None:
    tried: list[str] = []

    def fails(sql: str) -> bool:
        if sql.startswith("CREATE TABLE"):
            tried.append(sql)
        return sql.startswith("CREATE TABLE") and len(tried) <= failures

    core, here, _ = run(tmp_path, "select 1;\n\\local select * from _\n", Typed(*types), fails)
    assert [re.findall(r" AS ([A-Z[\]]+)\)", sql) for sql in tried] == loaded
    assert core.err == said
    assert "select * from _" in here.seen
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_cannot_be_made_is_not_remembered(tmp_path: Path) -> None:
    core, here, _ = run(
        tmp_path,
        "select 1;\n\\local select * from _\n\\local select 2\n",
        Typed("INTEGER"),
        lambda sql: "VIEW" in sql,
    )
    assert "Conversion" not in core.err
    assert "select * from _" not in here.seen
    assert here.seen[-1] == "select 2"


class File:
    """The file of a result, with columns of these stored types; None if the service has none."""

    own = True

    def __init__(self, *stored: StoredColumn, missing: bool = False) -> None:
        self.stored = None if missing else list(stored)

    def choose(self, of: object) -> None:
        return None

    async def table(self, *, typed: bool = False) -> Downloaded | None:
        return None if self.stored is None else Downloaded(self.stored)


class Downloaded:
    """The downloaded file, which \\local takes."""

    def __init__(self, columns: list[StoredColumn]) -> None:
        self.columns = columns
        self._folder = TemporaryDirectory()
        self.place = Path(self._folder.name, "result.parquet")
        self.place.touch()

    def close(self) -> None:
        self._folder.cleanup()


def stored(name: str, type_: str, type_id: str) -> StoredColumn:
    return StoredColumn(Column(name, type_), f"c{name}", type_id, "")


def test_the_file_of_a_result_is_read_where_it_is(tmp_path: Path) -> None:
    whole = File(stored("a", "INTEGER", "integer"), stored("b", "VARCHAR", "varchar"))
    _, here, _ = run(
        tmp_path,
        "select 1;\n\\local select * from _\n" + "select 2;\n" * 10 + "\\local select 3\n",
        Typed("INTEGER", "VARCHAR", whole=whole),
    )
    assert here.seen[3] == (
        'CREATE VIEW result_1 AS SELECT CAST(ca AS INTEGER) AS "a", CAST(cb AS VARCHAR) AS "b" '
        "FROM read_parquet('FOLDER/result_1.parquet')"
    )
    assert here.seen[-2:] == ["DROP VIEW IF EXISTS result_1", "select 3"]
    assert here.files[-3:] == [["result_1.parquet"]] * 2 + [[]]


def test_the_file_of_a_result_whose_types_are_others(tmp_path: Path) -> None:
    whole = File(
        stored("a", "ARRAY<INTEGER>", "varchar"),
        stored("b", "VARBINARY", "varchar"),
        stored("c", "DATE", "varchar"),
        stored("a", "VARBINARY", "blob"),
    )
    _, here, _ = run(
        tmp_path,
        "select 1;\n\\local select * from _\n" + "select 2;\n" * 10 + "\\local select 3\n",
        Typed("ARRAY<INTEGER>", "VARBINARY", "DATE", "VARBINARY", whole=whole),
    )
    assert here.seen[3] == (
        'CREATE TABLE result_1 AS SELECT CAST(json(ca) AS INTEGER[]) AS "a", from_base64(cb) AS "b", '
        "CAST(CASE WHEN suffix(cc, ' BC') THEN '?' || cc ELSE cc END AS DATE) AS \"c\", CAST(ca AS BLOB) AS \"a_1\" "
        "FROM read_parquet('FOLDER/result_1.parquet')"
    )
    assert here.seen[-2:] == ["DROP TABLE IF EXISTS result_1", "select 3"]
    assert here.files[4:] == [[]] * (len(here.files) - 4)


@pytest.mark.parametrize("missing", [True, False])
def test_a_file_that_is_missing_or_does_not_fit_is_not_used(tmp_path: Path, missing: bool) -> None:
    whole = File(stored("a", "INTEGER", "integer"), missing=missing)
    core, here, _ = run(
        tmp_path,
        "select 1;\n\\local select * from _\n",
        Typed("INTEGER", whole=whole),
        lambda sql: "CREATE VIEW" in sql,
    )
    assert [sql.partition(" AS ")[0] for sql in here.seen[3:5]] == (
        ["CREATE TABLE result_1", 'CREATE OR REPLACE VIEW "_"']
        if missing
        else ["CREATE VIEW result_1", "CREATE TABLE result_1"]
    )
    assert core.err == ""
    assert list(tmp_path.iterdir()) == []


def test_a_result_that_was_stopped_at_the_row_limit(tmp_path: Path) -> None:
    class Limited(ScriptedClient):
        async def run(self, *given: Any) -> Any:
            async for result in super().run(*given):
                result.sql_state = sqlstate.ROW_LIMIT
                yield result

    core, here, _ = run(tmp_path, "select 1;\n\\local select * from _\n", Limited())
    assert core.err.endswith(
        "_ contains only the first 1 row; to get all, use \\pset rowlimit 0 and run the statement again\n"
    )
    assert here.seen[-1] == "select * from _"


def test_what_is_no_name_of_a_result(tmp_path: Path) -> None:
    _, here, _ = run(
        tmp_path, "select 1;\n\\local select '_', \"_\" as _2 -- _3\n", ScriptedClient({"select 1": Answer()})
    )
    assert here.seen[:3] == LIMITS
