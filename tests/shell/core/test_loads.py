"""\\copy and COPY: what is sent for a file, what is refused before, and what variables and messages tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from sqlshell.client.http.upload import Attachment
from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import Exit, StatementError, UsageError, Where
from sqlshell.origin import Trusted
from sqlshell.result import Result
from sqlshell.shell.components import ScriptModes
from sqlshell.shell.loading.send import Fingerprint, LoadProgress, ProgressFile
from sqlshell.shell.records.checkpoint import Checkpoint
from sqlshell.sql.analysis.policy import Policy
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure
from tests.shell.core.test_catalog_contents import Service
from tests.shell.sessions import connection

INSERT = "INSERT INTO t (a) VALUES\n(1),\n(2)"
ONE = [["a", "INTEGER"]]
POSTGRESQL = frozenset({"engine=postgresql"})
OTHER = frozenset({"attachments"})
EVERYTHING = Policy()


class Tables(ScriptedClient):
    """A service whose tables have these columns."""

    def __init__(self, columns: list[list[str]], answers: dict[str, Answer] | None = None) -> None:
        super().__init__(answers)
        self.columns: list[list[str | None]] = [[*column] for column in columns]
        self.sent: list[Submission] = []

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        if submission.sql.startswith("DESCRIBE RELATION COLUMNS"):
            async for result in Service({"DESCRIBE": (["name", "type"], self.columns)}).run(
                submission, context, observer
            ):
                yield result
            return
        self.sent.append(submission)
        async for result in super().run(submission, context, observer):
            yield result

    @property
    def sqls(self) -> list[str]:
        return [submission.sql for submission in self.sent]


def run(
    script: str,
    client: Tables,
    extensions: frozenset[str] = OTHER,
    modes: Callable[[], ScriptModes] = ScriptModes,
    policy: Policy = EVERYTHING,
) -> Core:
    async def work() -> Core:
        core = Core(client, modes=lambda _: modes())
        core.session.state.connection = connection(client, journal=core.journal, policy=policy)
        core.session.connection.service.transport.extensions = extensions
        await core.shell.run_script([Trusted(script)], "x.sql", stop=False)
        await core.shell.finish()
        await core.shell.aclose()
        return core

    return asyncio.run(work())


def content(data: Attachment) -> tuple[str, bytes]:
    return data.name, data.path.read_bytes()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n2\n")
    return path


def test_the_rows_of_a_file_are_sent_and_counted(file: Path) -> None:
    client = Tables(ONE)
    core = run(f"select 1;\n\\copy t from '{file}'\n\\echo :ERROR :ROW_COUNT\n", client)
    assert client.sqls == ["select 1", INSERT]
    assert core.err == "2 rows loaded into t\n"
    assert core.out == "a\n1\nfalse 2\n"


def test_a_load_that_fails_sets_the_variables_of_an_error(file: Path) -> None:
    client = Tables(ONE, {INSERT: Answer(rows=(), error=failure("23505", "twice"))})
    core = run(f"\\copy t from '{file}'\n\\echo :ERROR :SQLSTATE\n", client)
    assert core.err.startswith("x.sql:1: error[23505]: twice; ")
    assert core.out == "true 23505\n"
    assert core.shell.exit == Exit.STATEMENT


def test_a_load_whose_progress_is_not_stored_cannot_be_resumed(file: Path) -> None:
    client = Tables(ONE)
    core = run(f"\\copy t from '{file}' (resume)\n", client)
    assert "cannot resume the load of a.csv: the progress of loads from stdin" in core.err
    assert client.sqls == []


@pytest.mark.parametrize(
    ("data", "columns", "said"),
    [
        ("1,2\n3,4\n", ONE, "a.csv has 2 columns, but t has 1 column to fill"),
        ("1\n3\n", [*ONE, ["b", "INTEGER"]], "a.csv has 1 column, but t has 2 columns to fill"),
    ],
)
def test_a_file_with_another_number_of_columns(file: Path, data: str, columns: list[list[str]], said: str) -> None:
    file.write_text(data)
    client = Tables(columns)
    assert said in run(f"\\copy t from '{file}'\n", client).err
    assert client.sqls == []


@pytest.mark.parametrize(
    ("data", "type_", "refused"),
    [
        ("d\n05/06/2020\n", "DATE", True),
        ("d\n05/06/2020 10:00:00\n", "TIMESTAMP", True),
        ("d\n05/06/2020\n31/12/2020\n", "DATE", False),
        ("d\n2020-12-31\n", "DATE", False),
        ("d\n05/06/2020\n", "VARCHAR", False),
    ],
)
def test_dates_whose_order_depends_on_the_server_are_refused(file: Path, data: str, type_: str, refused: bool) -> None:
    file.write_text(data)
    client = Tables([["d", type_]])
    core = run(f"\\copy t from '{file}'\n", client, POSTGRESQL)
    said = "write dates as YYYY-MM-DD; nothing was sent; to let the server read the dates by its DateStyle"
    assert (said in core.err.replace("\nhelp:", ";")) is refused, core.err
    assert len(client.sqls) == (not refused)
    assert "nothing was sent" not in run(f"\\copy t from '{file}'\n", client).err


@pytest.mark.parametrize(
    ("script", "sql", "data"),
    [
        ("\\copy t from '{}' csv header\n", "COPY t FROM STDIN csv header", "a\n1\n2\n"),
        ("\\copy t (a) from '{}' (format csv)\n", "COPY t (a) FROM STDIN (format csv)", "a\n1\n2\n"),
        ("\\copy t from program 'cat {}'\n", "COPY t FROM STDIN", "a\n1\n2\n"),
        ("copy t from stdin;\n7\n\\.\n", "COPY t FROM STDIN", "7\n"),
    ],
)
def test_an_engine_that_reads_the_data_of_copy_gets_them_as_they_are(
    file: Path, script: str, sql: str, data: str
) -> None:
    found: list[tuple[str, bytes]] = []

    class Reading(Tables):
        async def step(self, what: str) -> None:
            if what == "submit":
                found.extend(map(content, self.sent[-1].attachments))
            await super().step(what)

    client = Reading(ONE, {sql: Answer(rows=())})
    core = run(script.format(file), client, POSTGRESQL)
    assert client.sqls == [sql]
    assert found == [("stdin", data.encode())]
    assert core.err == "0 rows loaded into t\n"
    assert core.shell.exit == Exit.DONE


@pytest.mark.parametrize(
    "script",
    [
        "\\copy t from '{}'\n",
        "\\copy t from '{}' csv\n",
        "\\copy t from program 'cat {}'\n",
        "copy t from stdin;\n7\n\\.\n",
    ],
)
@pytest.mark.parametrize("extensions", [POSTGRESQL, OTHER])
def test_nothing_is_loaded_where_nothing_may_be_written(file: Path, script: str, extensions: frozenset[str]) -> None:
    client = Tables(ONE)
    core = run(script.format(file), client, extensions, policy=Policy(read_only=True))
    assert "cannot run COPY" in core.err
    assert client.sqls == []


@pytest.mark.parametrize(
    ("statement", "extensions", "loaded"),
    [
        ("copy t from '{}'", frozenset({"copy"}), True),
        ("copy t from '{}'", OTHER, False),
        ("copy t from '{}' 1 2 3", OTHER, False),
        ("copy t form '{}'", frozenset({"copy"}), False),
        ("copy t to '{}'", frozenset({"copy"}), False),
    ],
)
def test_the_file_of_a_statement_is_loaded_for_a_service_that_has_no_files(
    file: Path, statement: str, extensions: frozenset[str], loaded: bool
) -> None:
    sql = statement.format(file)
    client = Tables(ONE, {sql: Answer(rows=())})
    core = run(f"{sql};\n", client, extensions)
    assert client.sqls == (["COPY t (a) FROM '@rows.parquet' (FORMAT parquet)"] if loaded else [sql]), core.err


def test_a_table_without_rows_to_write_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    core = run(f"\\copy t to '{path}'\n", Tables(ONE, {"SELECT * FROM t": Answer(rows=())}))
    assert core.err == "x.sql:1: error: \\copy: the statement ran, but did not return a result set\n"
    assert not path.exists()


@pytest.mark.parametrize(
    ("source", "sql", "shown"), [("t", "SELECT * FROM t", False), ("(select 1 from)", "select 1 from", True)]
)
def test_an_error_shows_only_what_was_written(tmp_path: Path, source: str, sql: str, shown: bool) -> None:
    message = f"Parser Error: syntax error\n\nLINE 1: {sql}\n        ^"
    client = Tables(ONE, {sql: Answer(rows=(), error=StatementError(message, where=Where("42601", "id1", 0)))})
    core = run(f"\\copy {source} to '{tmp_path / 'b.csv'}'\n", client)
    assert "error[42601]: syntax error" in core.err
    assert (sql in core.err) is shown, core.err


@pytest.mark.parametrize("load", ["\\copy t from '{}'\n", "copy t from stdin (format csv, header);\na\n1\n2\n\\.\n"])
def test_a_load_that_is_done_is_not_done_again(file: Path, tmp_path: Path, load: str) -> None:
    place = Trusted(str(tmp_path / "checkpoint"))
    script, wrong = f"{load.format(file)}wrong;\n", {"wrong": Answer(rows=(), error=failure())}
    client = Tables(ONE, wrong)

    def modes(resume: bool) -> ScriptModes:
        return ScriptModes(checkpoint=Checkpoint(place, "here", resume=resume, unknown=""))

    run(script, client, modes=lambda: modes(False))
    assert client.sqls == [INSERT, "wrong"]
    changed = run(script.replace("\n2\n", "\n3\n"), Tables(ONE, wrong), modes=lambda: modes(True))
    assert ("differs from the one that the checkpoint recorded" in changed.err) is ("stdin" in load)
    client = Tables(ONE)
    assert run(script, client, modes=lambda: modes(True)).shell.exit == Exit.DONE
    assert client.sqls == ["wrong"]


def test_progress_that_cannot_be_saved_is_an_error(tmp_path: Path) -> None:
    progress = LoadProgress(Fingerprint(1, "", "t", (), ""))
    path = Trusted(str(tmp_path / "a.csv"))
    kept = ProgressFile(tmp_path, "here", "t", path)
    assert kept.read() is None
    kept.write(progress)
    assert kept.read() == progress
    kept.forget()
    assert kept.read() is None
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot save the progress of the load: not a directory"):
        ProgressFile(tmp_path / "file", "here", "t", path).write(progress)
    unstored = ProgressFile(None, "here", "t", path)
    unstored.write(progress)
    assert (unstored.stores, unstored.read()) == (False, None)
