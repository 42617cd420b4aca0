"""COPY in scripts: whose the lines behind it are, and that data which are not loaded are never run as statements."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sqlshell.client.statements.client import Submission
from sqlshell.errors import Exit, OutputError, UsageError
from sqlshell.origin import Trusted
from sqlshell.runtime.scratch import scratch
from sqlshell.shell.loading import copying
from sqlshell.shell.loading.copying import Copying
from sqlshell.shell.loading.spec import LoadRequest
from sqlshell.shell.scripts.position import Position
from sqlshell.sql.analysis.copy_statements import CopyStatement, read_copy
from tests.shell.core.scripted import Core, ScriptedClient
from tests.shell.sessions import connection


class Loads:
    """Remembers what is to be loaded."""

    def __init__(self) -> None:
        self.loaded: list[tuple[str, bytes]] = []
        self.ran: list[CopyStatement] = []
        self.paths: list[Path] = []

    async def load(self, copy: CopyStatement, path: Path) -> None:
        self.loaded.append((copy.source, path.read_bytes()))  # noqa: ASYNC240
        self.paths.append(path)

    async def run(self, copy: CopyStatement) -> None:
        self.ran.append(copy)

    async def copy_file(self, item: object) -> bool:
        return False


def run(script: str, name: str = "") -> tuple[Core, Loads]:
    async def work() -> tuple[Core, Loads]:
        core, loads = Core(), Loads()
        core.shell.copying = loads  # type: ignore[assignment]
        assert await core.shell.run_script([Trusted(script)], name)
        return core, loads

    core, loads = asyncio.run(work())
    assert not any(path.exists() for path in loads.paths)
    return core, loads


def ran(core: Core) -> list[str]:
    return [sql for sql, _ in core.client.ran]


@pytest.mark.parametrize("command", ["copy t from stdin;", "\\copy t from stdin"])
def test_data_that_follow_are_loaded_and_not_run(command: str) -> None:
    core, loads = run(f"{command}\n1;\n2;\n\\.\nselect 3;\n", "s.sql")
    assert loads.loaded == [("t", b"1;\n2;\n")]
    assert ran(core) == ["select 3"]


@pytest.mark.parametrize("command", ["copy t from stdin;", "\\copy t from stdin"])
def test_data_in_a_branch_that_is_not_taken_are_discarded(command: str) -> None:
    core, loads = run(f"\\if false\n{command}\n1;\n\\.\n\\endif\nselect 3;\n", "s.sql")
    assert (loads.loaded, ran(core), core.err) == ([], ["select 3"], "")


@pytest.mark.parametrize(
    "others", ["copy t from stdin\\; copy u from stdin", "select 0\\; copy t from stdin", "copy t from stdin\\; x"]
)
def test_a_copy_among_others_is_refused_and_its_data_are_not_run(others: str) -> None:
    data = "drop table t;\n\\.\n" * others.count("from")
    core, loads = run(f"\\set ON_ERROR_STOP off\n{others};\n{data}copy t from stdin;\n1\n\\.\nselect 3;\n", "s.sql")
    assert (loads.loaded, ran(core)) == ([("t", b"1\n")], ["select 3"])
    assert "COPY … FROM STDIN cannot be sent together with others" in core.err


@pytest.mark.parametrize("script", ["copy t from stdin;", "copy t from stdin;  \n", "\\copy t from stdin"])
def test_at_the_end_of_a_command_line_the_data_are_on_stdin(script: str) -> None:
    core, loads = run(script)
    assert [copy.source for copy in loads.ran] == ["t"]
    assert (loads.loaded, ran(core)) == ([], [])


def test_with_more_lines_on_a_command_line_the_data_are_these() -> None:
    _, loads = run("copy t from stdin;\n1\n\\.\n")
    assert (loads.loaded, loads.ran) == ([("t", b"1\n")], [])


def test_a_copy_without_its_semicolon_in_a_file_has_no_data() -> None:
    core, loads = run("copy t from stdin", "s.sql")
    assert core.shell.exit == Exit.USAGE
    assert "COPY … FROM STDIN is not followed by data" in core.err
    assert (loads.loaded, loads.ran) == ([], [])


def test_the_data_of_a_copy_that_cannot_be_read_are_not_run() -> None:
    core, loads = run("\\set ON_ERROR_STOP off\ncopy t (1) from stdin;\ndrop table t;\n\\.\nselect 3;\n", "s.sql")
    assert (loads.loaded, ran(core)) == ([], ["select 3"])


class Loader:
    """Remembers what it is asked to load, with the file's content."""

    def __init__(self) -> None:
        self.loaded: list[tuple[str, bytes, str]] = []

    async def check(self, table: str) -> None:
        assert table == "t"

    async def run(self, request: LoadRequest) -> None:
        path = Path(request.path)
        self.loaded.append((request.name, path.read_bytes(), path.name))  # noqa: ASYNC240

    async def interruptible(self, work: Any) -> None:
        await work


class Engine:
    """Reads the data of COPY itself, and remembers which files it is sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def send(self, submission: Submission) -> None:
        self.sent += [str(each.path) for each in submission.attachments]


def copier(
    loader: Loader, position: Position | None = None, stdin: Any = None, *, engine: Engine | None = None, limit: int = 0
) -> Copying:
    """A copier for a service whose engine reads no data of COPY, unless there is an `engine`."""
    shown = connection(ScriptedClient())
    if engine is not None:
        shown.service.transport.extensions = frozenset({"engine=postgresql"})
    components: Any = SimpleNamespace(
        session=SimpleNamespace(connection=shown, rows=0),
        position=position or Position(),
        streams=SimpleNamespace(stdin=stdin),
        attachments=SimpleNamespace(limit=limit),
        diagnostics=SimpleNamespace(report=lambda message: None),
    )
    made = Copying(components, engine)  # type: ignore[arg-type]
    made.loader = loader  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(("size", "limit", "fits"), [(3, 3, True), (4, 3, False), (8, 0, True), (9, 0, False)])
def test_a_file_is_sent_to_the_engine_if_it_fits_into_an_attachment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, limit: int, fits: bool
) -> None:
    monkeypatch.setattr(copying, "LARGEST", 8)
    (tmp_path / "data").write_bytes(bytes(size))
    loader, engine = Loader(), Engine()
    copy = read_copy(f"copy t from '{tmp_path}/data' (format csv)", command=True)
    asyncio.run(copier(loader, engine=engine, limit=limit)._load(copy))
    assert engine.sent == [str(tmp_path / "data")] * fits
    assert loader.loaded == [("data", bytes(size), "data")] * (not fits)


def copied(sql: str, position: Position | None = None, stdin: bytes = b"") -> Loader:
    loader = Loader()
    read, write = os.pipe()
    os.write(write, stdin)
    os.close(write)

    async def work() -> None:
        copy = read_copy(sql, command=True)
        with os.fdopen(read) as stream:
            await copier(loader, position, stream)._load(copy)

    asyncio.run(work())
    return loader


def leftovers() -> Sequence[Path]:
    return list(scratch().folder("stdin").parent.glob("*/data*"))


@pytest.mark.parametrize("where", ["pstdin", "stdin"])
def test_stdin_is_loaded(where: str) -> None:
    assert copied(f"copy t from {where} (format csv)", stdin=b"a\n1\n").loaded == [("stdin", b"a\n1\n", "data")]
    assert leftovers() == []


def test_compressed_stdin_is_told_by_its_first_bytes() -> None:
    ((_, _, name),) = copied("copy t from pstdin (format csv)", stdin=b"\x1f\x8b\x08\0\0\0\0\0\0\3").loaded
    assert name == "data.gz"


def test_stdin_that_is_the_script_is_not_loaded() -> None:
    position = Position()
    with position.within("stdin"), pytest.raises(UsageError, match="the script itself is on stdin"):
        copied("copy t from pstdin (format csv)", position)


def test_the_output_of_a_command_is_loaded() -> None:
    assert copied("copy t from program 'printf 7' (format csv)").loaded == [("the command's output", b"7", "data")]
    with pytest.raises(OutputError, match="failed with exit code 3"):
        copied("copy t from program 'printf 7; exit 3' (format csv)")
    assert leftovers() == []


def test_no_data_are_no_load(tmp_path: Path) -> None:
    async def work(content: bytes) -> Loader:
        loader, path = Loader(), tmp_path / "data"
        path.write_bytes(content)
        copy = read_copy("copy t from stdin (format csv)")
        await copier(loader)._load_data(copy, path)
        return loader

    assert asyncio.run(work(b"")).loaded == []
    assert asyncio.run(work(b"1\n")).loaded == [("STDIN", b"1\n", "data")]


def test_a_command_that_is_interrupted_does_not_run_on(tmp_path: Path) -> None:
    pids: list[int] = []

    async def work() -> None:
        os.mkfifo(tmp_path / "pid")
        command = Trusted(f"echo $$ > {tmp_path}/pid; exec sleep 60")
        task = asyncio.ensure_future(copying._output_of(command, tmp_path / "out"))
        pids.append(int(await asyncio.to_thread((tmp_path / "pid").read_text)))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
