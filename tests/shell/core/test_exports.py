"""\\export: what is kept of a result that breaks off, what a later export fetches of it, and all that is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sqlshell.client.results.partitions import PartitionReader
from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import ConnectionFailed, Exit, OutputError, ShellError, UnknownStatement, Where
from sqlshell.origin import Own
from sqlshell.result import Batch, Column, HeldBatches, Result, StoredColumn
from sqlshell.runtime.download_file import DownloadFile
from sqlshell.shell.front_end import NoProgress
from sqlshell.shell.session import Running
from tests.shell.core.scripted import Core, ScriptedClient
from tests.shell.core.test_waiting import Stream, nothing

AGAIN = "start again without --resume (in \\export: resume)"


class File:
    """The file of a result, which arrives completely or not at all."""

    own = False

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.kept = b""

    def choose(self, of: object) -> None:
        return None

    def choose_values(self) -> None:
        return None

    async def fetch(self, place: Path) -> list[StoredColumn] | None:
        return None

    async def keep(self, opened: Callable[[], DownloadFile]) -> bool:
        with opened() as file:
            file.tag = "tag"
            file.write(b"x" * (3 << 19))
            if self.error is not None:
                raise self.error
        return True


class Parts(ScriptedClient):
    """Each result has `count` partitions of one row; those from `breaks` on cannot be fetched."""

    def __init__(self, count: int = 3, breaks: int | None = None, error: ShellError | None = None) -> None:
        super().__init__()
        self.count = count
        self.breaks = breaks
        self.error = error or ConnectionFailed("gone")
        self.asked: list[int] = []
        self.fetched: list[str] = []
        self.whole: Any = None
        self.names = ["a"]

    async def partition(self, number: int) -> Batch:
        self.asked.append(number)
        if self.breaks is not None and number >= self.breaks:
            raise self.error
        return Batch(1, body=json.dumps({"data": [[str(number)]]}).encode(), number=number, count=1)

    async def result(self, statement_id: str) -> Result:
        # Without reading ahead, so that it is known what was asked for.
        first = await self.partition(0)
        self.asked.clear()
        return Result(
            [Column(name, "INTEGER") for name in self.names],
            PartitionReader(self.partition, first, self.count, 0),
            statement_id=statement_id,
            row_counts=[1] * self.count,
            partition=self.partition if self.count > 1 else None,
            elapsed=0.5,
            whole=self.whole,
        )

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        self.ran.append((submission.sql, context))
        (observer or Observer()).statement_id("id1")
        yield await self.result("id1")

    async def fetch(
        self, statement_id: str, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        self.fetched.append(statement_id)
        if isinstance(self.error, UnknownStatement):
            raise self.error
        yield await self.result(statement_id)


class Shown(NoProgress):
    live = True

    def __init__(self) -> None:
        self.waits: list[Running] = []

    def show(self, running: Running) -> None:
        self.waits.append(running)


def run(client: ScriptedClient, script: str, *, storage: str = "here", embedded: bool = False) -> Core:
    async def work() -> Core:
        core = Core(client)
        state = core.session.state
        state.connection = replace(state.connection, storage_name=storage, embedded=embedded)
        await core.shell.run_script([Own(f"{script}\n")], "")
        await core.shell.aclose()
        return core

    return asyncio.run(work())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def broken(folder: Path) -> None:
    """An export of `select 1` that has kept two of three partitions."""
    core = run(Parts(breaks=2), "select 1 \\export o.csv")
    assert core.shell.exit == Exit.SERVICE
    assert core.err == (
        f"error: gone\nhelp: 2 of 3 partitions are kept in {Path('o.csv.parts')}; "
        "continue with --resume (in \\export: resume)\n"
    )
    assert names(folder) == ["o.csv.parts/0", "o.csv.parts/1", "o.csv.parts/manifest.jsonl"]


def test_an_export(folder: Path) -> None:
    for count in (1, 3):
        core = run(Parts(count), "select 1 \\export o.csv")
        rows = "3 rows" if count == 3 else "1 row"
        assert (core.shell.exit, core.out, core.err) == (Exit.DONE, "", f"{rows} written to o.csv\n")
        assert (folder / "o.csv").read_text() == "a\n" + "".join(f"{number}\n" for number in range(count))
        assert names(folder) == ["o.csv"]


def test_an_export_that_continues(folder: Path) -> None:
    broken(folder)
    client = Parts()
    core = run(client, "select 1 \\export o.csv resume")
    assert core.err == "2 of 3 partitions have already been fetched\n3 rows written to o.csv\n"
    assert (client.ran, client.fetched, client.asked) == ([], ["id1"], [2])
    assert (folder / "o.csv").read_text() == "a\n0\n1\n2\n"
    assert names(folder) == ["o.csv"]


def test_an_export_that_breaks_off_again(folder: Path) -> None:
    broken(folder)
    error = ConnectionFailed("gone")
    error.hint = "try later"
    core = run(Parts(breaks=2, error=error), "select 1 \\export o.csv resume")
    assert core.err == (
        "2 of 3 partitions have already been fetched\n"
        "error: gone\n"
        "help: try later; 2 of 3 partitions are kept in o.csv.parts; continue with --resume (in \\export: resume)\n"
    )
    assert names(folder) == ["o.csv.parts/0", "o.csv.parts/1", "o.csv.parts/manifest.jsonl"]


def test_an_export_that_begins_again_forgets_the_former_one(folder: Path) -> None:
    broken(folder)
    core = run(Parts(1), "select 1 \\export o.csv")
    assert core.err == "1 row written to o.csv\n"
    assert names(folder) == ["o.csv"]


@pytest.mark.parametrize(
    ("script", "storage", "embedded", "error", "hint"),
    [
        (
            "select 2 \\export o.csv resume",
            "here",
            False,
            "o.csv.parts contains the result of another statement",
            AGAIN,
        ),
        ("select 1 \\export o.csv resume", "there", False, "o.csv.parts contains the result of another service", AGAIN),
        (
            "select 1 \\export p.csv resume",
            "here",
            False,
            "there is no interrupted export to p.csv",
            "omit --resume (in \\export: resume)",
        ),
        (
            "select 1 \\export p.csv resume",
            "here",
            True,
            "the embedded service does not keep results after it exits",
            "omit --resume (in \\export: resume)",
        ),
        (
            "select 1 \\export p.csv resume",
            "",
            False,
            "the embedded service does not keep results after it exits",
            "omit --resume (in \\export: resume)",
        ),
        (
            "select 1 \\export |cat",
            "here",
            False,
            "\\export writes to a file, not to |cat",
            "use \\g for other outputs",
        ),
        (
            "select 1 \\export /dev/fd/1",
            "here",
            False,
            "\\export writes to a file, not to /dev/fd/1",
            "use \\g for other outputs",
        ),
        (
            "insert 1 \\export p.csv",
            "here",
            False,
            "\\export: INSERT is not a query",
            "use a query, or INSERT, UPDATE or DELETE with RETURNING",
        ),
    ],
)
def test_what_is_refused(folder: Path, script: str, storage: str, embedded: bool, error: str, hint: str) -> None:
    broken(folder)
    client = Parts()
    core = run(client, script, storage=storage, embedded=embedded)
    assert core.err.splitlines()[:2] == [f"error: {error}", f"help: {hint}"]
    assert core.shell.exit == Exit.USAGE
    assert (client.ran, client.fetched) == ([], [])
    assert names(folder) == ["o.csv.parts/0", "o.csv.parts/1", "o.csv.parts/manifest.jsonl"]


@pytest.mark.parametrize("storage", ["", "here"])
@pytest.mark.parametrize("embedded", [True, False])
def test_only_a_service_that_keeps_results_can_continue(folder: Path, storage: str, embedded: bool) -> None:
    core = run(Parts(breaks=2), "select 1 \\export o.csv", storage=storage, embedded=embedded)
    keeps = bool(storage) and not embedded
    assert ("kept in" in core.err) is keeps
    assert bool(names(folder)) is keeps


def test_a_result_that_is_another_one_now(folder: Path) -> None:
    broken(folder)
    client = Parts()
    client.names = ["b"]
    core = run(client, "select 1 \\export o.csv resume")
    kept = "2 of 3 partitions are kept in o.csv.parts; continue with --resume (in \\export: resume)"
    assert core.err == (
        "2 of 3 partitions have already been fetched\n"
        f"error: the result on the service has changed since this export began\nhelp: {AGAIN}; {kept}\n"
    )
    assert core.shell.exit == Exit.USAGE


def test_a_result_that_has_expired(folder: Path) -> None:
    broken(folder)
    gone = UnknownStatement("no statement id1", where=Where(statement_id="id1"))
    core = run(Parts(error=gone), "select 1 \\export o.csv resume")
    assert core.err == (
        "2 of 3 partitions have already been fetched\n"
        "error: the result of statement id1 has expired on the service\n"
        f"help: {AGAIN}, which runs the statement again\n"
    )


class Other(ScriptedClient):
    """Answers with this result."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.result = result

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        (observer or Observer()).statement_id("id1")
        yield self.result


def test_results_that_cannot_be_exported(folder: Path) -> None:
    core = run(Other(nothing("done")), "select 1 \\export o.csv")
    assert core.err == "error: \\export: the statement ran, but did not return a result set\n"
    endless = Result([Column("a")], HeldBatches(Batch(1, rows=[["1"]])), statement_id="id1", endless=Stream("service"))
    core = run(Other(endless), "select 1 \\export o.csv")
    assert core.err.startswith(
        "error: an unbounded result cannot be exported\nhelp: use -o FILE with --max-rows or --for\n"
    )
    assert names(folder) == []


def test_a_folder_that_cannot_be_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stays(path: Path) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "rmdir", stays)
    core = run(Parts(), "select 1 \\export o.csv")
    assert core.err == (
        "warning: cannot store partitions in o.csv.parts: Device or resource busy\n3 rows written to o.csv\n"
    )
    assert core.shell.exit == Exit.DONE


def test_progress_is_that_of_the_partitions(folder: Path) -> None:
    shown = Shown()

    async def work() -> None:
        core = Core(Parts())
        core.session.state.connection = replace(core.session.connection, storage_name="here")
        core.front_end.progress = shown
        await core.run("select 1 \\export o.csv\n")

    asyncio.run(work())
    assert (shown.waits[-1].share, shown.waits[-1].message) == (1.0, "partition 3 of 3")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConnectionFailed("gone"), Exit.SERVICE, "gone"),
        (OSError(28, "No space left on device"), Exit.STATEMENT, None),
    ],
)
def test_the_file_of_a_result_is_kept(folder: Path, error: Exception, code: Exit, said: str | None) -> None:
    client = Parts()
    client.whole = File(error)
    core = run(client, "select 1 \\export o.csv")
    first = said or "cannot store the result in o.csv.parts: No space left on device"
    assert core.err == (
        f"error: {first}\nhelp: 1.5 MiB are kept in o.csv.parts; continue with --resume (in \\export: resume)\n"
    )
    assert core.shell.exit == code
    assert names(folder) == ["o.csv.parts/manifest.jsonl", "o.csv.parts/result.parquet"]
    manifest = (folder / "o.csv.parts" / "manifest.jsonl").read_text().splitlines()
    assert json.loads(manifest[-1]) | {"sha256": ""} == {"tag": "tag", "bytes": 3 << 19, "sha256": ""}
    # Then the rows are read of that file, and no partition is kept.
    client = Parts()
    client.whole = File()
    core = run(client, "select 1 \\export o.csv resume")
    assert core.err == "1.5 MiB have already been fetched\n3 rows written to o.csv\n"
    assert (client.ran, client.fetched) == ([], ["id1"])
    assert names(folder) == ["o.csv"]


def test_partitions_that_are_kept_come_before_the_file(folder: Path) -> None:
    broken(folder)
    client = Parts()
    client.whole = File(OutputError("not this way"))
    core = run(client, "select 1 \\export o.csv resume")
    assert core.err == "2 of 3 partitions have already been fetched\n3 rows written to o.csv\n"
    # A format that is not made by DuckDB has no use for the file.
    client = Parts()
    client.whole = File(OutputError("not this way"))
    core = run(client, "\\pset format vertical\nselect 1 \\export o.txt")
    assert core.shell.exit == Exit.DONE, core.err
