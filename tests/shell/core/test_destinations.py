"""Where results go, and in which format: all that the screen, stderr and the files get."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import Exit
from sqlshell.origin import Trusted
from sqlshell.output.sinks.sink import StreamSink
from sqlshell.output.writer import Summary
from sqlshell.result import Batch, Column, HeldBatches, Result
from tests.goldens import run_sessions
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure
from tests.shell.core.test_waiting import Given, Stream, rows

TABLE = "+-----+\n|   a |\n|-----|\n|   1 |\n+-----+\n"
RECORD = "-[ RECORD 1 ]+----------\na | 1\n"


def as_tables(core: Core) -> None:
    core.session.options.format = "table"
    core.session.options.chosen.clear()


def run(script: str, client: ScriptedClient | None = None, *, chosen: bool = False, stop: bool = False) -> Core:
    """A shell after a script, which a failure ends with `stop`; `chosen` says that the user has set the format csv."""

    async def work() -> Core:
        core = Core(client)
        if not chosen:
            as_tables(core)
        await core.shell.run_script([Trusted(script)], "", stop=stop)
        core.outlet.close()
        await core.shell.aclose()
        return core

    return asyncio.run(work())


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_what_each_destination_gets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def printed(script: str) -> tuple[str, str]:
        """What is printed, and the files that were written."""
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        monkeypatch.chdir(folder)
        core = run(script, ScriptedClient({"select 'wrong'": Answer(rows=(), error=failure())}))
        written = "".join(f"[{name}]\n{text}" for name, text in sorted(files(folder).items()))
        return core.out + written, core.err

    run_sessions("sessions/destinations.txt", printed)


def test_a_format_that_holds_one_result(tmp_path: Path) -> None:
    core = run(f"\\o {tmp_path}/a.xlsx\nselect 1;\nselect 2;\n")
    assert core.err == (
        "error: several results cannot share one xlsx output\nhelp: write each to its own file: \\g FILE\n"
    )
    core = run(f"\\tee {tmp_path}/b.xlsx\nselect 1;\nselect 2;\n")
    assert "error: several results cannot share one xlsx output\n" in core.err
    core = run(f"select 1 \\g {tmp_path}/c.xlsx\nselect 1 \\g {tmp_path}/d.xlsx\n")
    assert core.err == ""


@pytest.mark.parametrize(
    "script",
    [
        "\\o {}/a.xlsx\nRETURNING",
        "\\tee {}/a.arrow\nRETURNING",
        "\\once {}/a.csv.zst\nRETURNING",
        "RETURNING \\g {}/a.arrow",
        "RETURNING \\g {}/a.csv.zst",
        "RETURNING \\g {}/no/a.csv",
        "RETURNING \\export {}/a.arrow",
        "\\copy (RETURNING) to '{}/a.arrow'",
        "\\copy (RETURNING) to '{}/a.csv.zst'",
        "copy (RETURNING) to stdout (format arrow);",
        "\\format arrow\nRETURNING",
        "\\format insert\nRETURNING",
        "\\tee {}/b.json\n\\format xlsx\nRETURNING",
        "RETURNING \\gset a-b",
    ],
)
def test_what_is_missing_for_the_rows_is_known_before_a_statement_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    for name in ("xlsxwriter", "pyarrow", "backports.zstd", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    statement = "insert into t values (1) returning i"
    core = run(f"{script.format(tmp_path)}\n".replace("RETURNING", statement) + ";\n", stop=True)
    assert "require" in core.err or "cannot write" in core.err or "valid variable name" in core.err
    assert core.client.ran == []
    assert not (tmp_path / "a.xlsx").exists()


def test_a_statement_without_rows_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    sql = "create table t (i int)"
    core = run(f"\\format arrow\n{sql};\n", ScriptedClient({sql: Answer(rows=())}))
    assert "requires" not in core.err
    assert [text for text, _ in core.client.ran] == [sql]


def test_the_second_result_of_a_format_that_holds_one_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    core = run(f"\\o {tmp_path}/a.xlsx\nselect 1;\ninsert into t values (1) returning i;\n")
    assert "error: several results cannot share one xlsx output\n" in core.err
    assert [text for text, _ in core.client.ran] == ["select 1"]


class Left(Given):
    """Each of its results is unbounded and was left after some rows."""

    def __init__(self) -> None:
        super().__init__(rows(2, endless=Stream("service", 2)))


@pytest.mark.parametrize("command", ["o", "tee"])
@pytest.mark.parametrize("unbounded", [True, False])
def test_only_rows_that_do_not_come_again_are_kept_when_the_program_is_ended(
    tmp_path: Path, command: str, unbounded: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("before\n")

    async def work() -> None:
        core = Core(Left() if unbounded else None)
        await core.run(f"\\{command} {path}\nselect 1;\n")
        core.outlet.abort()

    asyncio.run(work())
    assert path.read_text() == ("a\n0\n1\n" if unbounded else "before\n")
    assert files(tmp_path).keys() == {"a.csv"}


def test_rows_of_a_bounded_result_after_an_unbounded_one(tmp_path: Path) -> None:
    """A new file does not inherit what the former one held."""
    path = tmp_path / "b.csv"

    async def work() -> None:
        core = Core(Left())
        await core.run(f"\\o {tmp_path}/a.csv\nselect 1;\n\\o {path}\n")
        core.client = ScriptedClient()
        core.session.state.connection.service.statements = core.client
        await core.run("select 2;\n")
        core.outlet.abort()

    asyncio.run(work())
    assert files(tmp_path) == {"a.csv": "a\n0\n1\n"}


class Terminal(StreamSink):
    """The screen of a terminal; `asked` tells for which kinds of results it was asked for."""

    def __init__(self, core: Core) -> None:
        super().__init__(core.screen)
        core.screen.isatty = lambda: True  # type: ignore[method-assign]
        self.asked: list[tuple[bool, bool]] = []
        self.offered: list[str] = []
        core.outlet._screen = self.made

    def made(self, endless: bool, sideways: bool) -> StreamSink:
        self.asked.append((endless, sideways))
        return self


@pytest.mark.parametrize(
    ("options", "client", "asked"),
    [
        ({}, None, (False, True)),
        ({"wide": "fold"}, None, (False, False)),
        ({"format": "csv"}, None, (False, False)),
        ({}, Left(), (True, True)),
        ({"format": "jsonl"}, Left(), (True, False)),
    ],
)
def test_the_screen_that_a_result_gets(
    options: dict[str, str], client: ScriptedClient | None, asked: tuple[bool, bool]
) -> None:
    async def work() -> Terminal:
        core = Core(client)
        as_tables(core)
        for name, value in options.items():
            setattr(core.session.options, name, value)
        screen = Terminal(core)
        await core.run("select 1;\n")
        return screen

    assert asyncio.run(work()).asked == [asked]


def test_a_long_text_is_paged_as_it_is() -> None:
    async def work() -> tuple[Core, Terminal]:
        core = Core()
        screen = Terminal(core)
        await core.outlet.page("a\n\ud800b\n")
        return core, screen

    core, screen = asyncio.run(work())
    assert (core.out, screen.asked) == ("a\n?b\n", [(False, False)])


@pytest.mark.parametrize(
    ("terminal", "own", "shown"),
    [(True, False, "a\\x1b[1m\tb\n"), (True, True, "a\x1b[1m\tb\n"), (False, False, "a\x1b[1m\tb\n")],
)
def test_only_own_text_sends_control_sequences_to_a_terminal(terminal: bool, own: bool, shown: str) -> None:
    async def work() -> Core:
        core = Core()
        core.screen.isatty = lambda: terminal  # type: ignore[method-assign]
        assert core.outlet.print("a\x1b[1m\tb\n", own=own)
        return core

    assert asyncio.run(work()).out == shown


def test_a_text_that_is_no_unicode_is_printed() -> None:
    async def work() -> Core:
        core = Core()
        core.outlet.print("a\ud800\n")
        return core

    assert asyncio.run(work()).out == "a?\n"


@pytest.mark.parametrize("interactive", [True, False])
def test_a_reader_that_has_exited(interactive: bool, tmp_path: Path) -> None:
    async def work(stdout: int) -> Core:
        core = Core(interactive=interactive)

        def closed(data: object) -> int:
            raise BrokenPipeError

        core.screen.write = closed  # type: ignore[method-assign]
        core.screen.fileno = lambda: stdout  # type: ignore[method-assign]
        assert not core.outlet.reader_left
        assert core.outlet.print("a\n") is False
        assert core.outlet.reader_left
        await core.shell.run_script([Trusted("select 1;\nselect 2;\n")], "")
        return core

    with (tmp_path / "stdout").open("wb") as stdout:
        core = asyncio.run(work(stdout.fileno()))
    assert len(core.client.ran) == (2 if interactive else 1)
    assert core.shell.exit == (Exit.DONE if interactive else Exit.UNREAD)
    assert core.err == ("0 of 1 row read (stopped early)\n" * 2 if interactive else "")


class Wide(ScriptedClient):
    """Results of 100 columns; each is fetched again for the explorer."""

    async def result(self) -> AsyncGenerator[Result, None]:
        columns = [Column(f"c{number}") for number in range(100)]
        batch = Batch(100, rows=[["x"] * 100])
        yield Result(columns, HeldBatches(batch), statement_id="id1", row_counts=[1], elapsed=0.5)

    def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        (observer or Observer()).statement_id("id1")
        return self.result()

    def fetch(
        self, statement_id: str, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        self.events.append(f"fetch {statement_id}")
        return self.result()


@pytest.mark.parametrize(
    ("options", "explores"),
    [
        ({}, True),
        ({"browse": 101}, False),
        ({"browse": 0}, False),
        ({"wide": "fold"}, False),
        ({"format": "csv"}, False),
    ],
)
def test_a_result_of_many_columns_opens_in_the_explorer(options: dict[str, object], explores: bool) -> None:
    browsed: list[int] = []

    async def browse(result: Result) -> Summary:
        browsed.append(len(result.columns))
        return Summary(1, True)

    async def work() -> Core:
        core = Core(Wide(), interactive=True)
        as_tables(core)
        for name, value in options.items():
            setattr(core.session.options, name, value)
        core.front_end.browse = browse
        await core.run("select 1;\n")
        return core

    core = asyncio.run(work())
    assert browsed == ([100] if explores else [])
    assert core.events == [
        "began id1",
        *([] if explores else ["rows shown"]),
        "ended id1 00000 1",
        *["fetch id1"] * explores,
    ]
    assert (core.out == "") is explores
    assert core.err == "1 row\n"


def test_without_an_explorer_a_result_of_many_columns_is_shown() -> None:
    async def work(client: ScriptedClient) -> Core:
        core = Core(client, interactive=True)
        as_tables(core)
        await core.run("select 1;\n")
        return core

    assert asyncio.run(work(Wide())).out
