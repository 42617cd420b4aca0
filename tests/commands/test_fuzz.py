"""Every command with results of every width, length and type, and with every argument that completion offers: none ends
the shell or causes a bug report. Also, how a bug in a command is reported.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import BinaryIO, cast

import duckdb
import pytest

from sqlshell.config.values import Config
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit
from sqlshell.launch.connector import Connector
from sqlshell.launch.services import open_endpoint
from sqlshell.launch.targets import context_of, find_destination
from sqlshell.origin import Trusted
from sqlshell.output.sinks.sink import StreamSink
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.runtime.streams import Streams
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands import BUILTIN, Command, table
from sqlshell.shell.commands.arguments import arguments
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.front_end import FrontEnd, Paint, Progress
from sqlshell.shell.interactive.editor import edit_text
from sqlshell.shell.metadata.catalog_loader import CatalogLoader
from sqlshell.shell.options import Options
from sqlshell.shell.records.redaction import SecretFilter
from sqlshell.shell.results.result_output import ResultOutput
from sqlshell.shell.running.attachments import Attachments
from sqlshell.shell.scripts.conditions import CONDITION_COMMANDS
from sqlshell.shell.scripts.position import Position
from sqlshell.shell.session import Session, SessionState
from sqlshell.shell.shell import Shell

ELSEWHERE = {"q", "c", "gexec", "prompt", "!", "e", "browse", "watch", "tutorial", *CONDITION_COMMANDS}
"""Commands that have a test of their own: they leave, move, ask, wait, go on without end or run what they find."""
SENDING = {"g", "gx", "bg", "gset", "gdesc", "clip", "crosstab", "chart", "local"}
WORDS = (
    *("", "a", "1", "2", "3", "0", "-1", "999", "a b", "a b c", "1 2 3", "x", "''", "'", '"a b"', ":a", "on", "off"),
    *("é", "\\", "-", "*", "*.*", "a*?", "%", "1e400", "nan", "99999999999999999999", "a=b", "c=0", "c=1 i=0", "NULL"),
    *("bar 1 2", "line 1", "scatter 2 1", "hist a", "heat a", "heat 1 1", "heat 3 2 1", "to", "to to"),
    *("null", "null ''", "maxwidth 1", "wide fold", "expanded auto", "select 1 from _", "|cat >/dev/null", "out.csv"),
)


class Person(FrontEnd):
    """A person, who may be given something to ask, to look at and to edit with."""

    painted: Paint | None = None

    @property
    def paint(self) -> Paint | None:
        return self.painted

    def edit(self, text: str, path: Trusted) -> Trusted:
        return edit_text(text, path, sys.stdin)


class Room:
    """A shell on the embedded service; `bugs` are the texts that made it report one, with the reports."""

    def __init__(self, shell: Shell, front_end: Person, environment: Connector, stream: io.StringIO) -> None:
        self.shell = shell
        self.front_end = front_end
        self.environment = environment
        self.bugs: dict[str, str] = {}
        self._stream = stream

    async def enter(self, text: str) -> str:
        """What it says on stderr to a text."""
        self._stream.seek(0)
        self._stream.truncate()
        assert await self.shell.run_script([Trusted(text)], "", stop=False), f"the shell ended: {text!r}"
        told = self._stream.getvalue()
        if "bug in sqlshell" in told:
            self.bugs[text] = told
        return told


@contextlib.asynccontextmanager
async def room(folder: Path, *, interactive: bool) -> AsyncIterator[Room]:
    stream = io.StringIO()
    diagnostics = Diagnostics(stream)
    config = Config(folder / "config.toml", {})
    place = find_destination("", {}, {}, config, diagnostics.warn)
    with contextlib.ExitStack() as services, (folder / "screen").open("w") as screen:
        streams = Streams(io.StringIO(), screen, stream)
        front_end = Person(diagnostics, Progress())
        connector = Connector(
            Trusted(""),
            {},
            config,
            {"SQLSHELL_STATE_DIR": str(folder / "state")},
            place.settings,
            Options(timing=interactive),
            SecretFilter(),
            front_end,
            diagnostics,
            streams,
            services,
            interactive,
        )
        reached = open_endpoint(place)
        services.callback(reached.release)
        state = SessionState.on(connector.connection(place, context_of(place), reached), front_end.announce)
        session = Session(
            state, options=connector.options, interactive=interactive, secret_filter=connector.secret_filter
        )
        sink = StreamSink(cast(BinaryIO, screen.buffer))
        outlet = ResultOutput(session, front_end, diagnostics, lambda endless, sideways: sink, streams.stdout, sink)
        attachments = Attachments((), diagnostics)
        shell = Shell(
            session,
            outlet,
            attachments,
            front_end,
            connector,
            diagnostics,
            Position(),
            streams,
        )
        try:
            yield Room(shell, front_end, connector, stream)
        finally:
            outlet.abort()
            await shell.aclose()


def results(many: int = 2_500) -> list[str]:
    """Statements whose results have 0, 1, 2 and 300 columns, no row, one and many, and every type."""
    with duckdb.connect() as database:
        types = [row[0] for row in database.execute("describe from test_all_types()").fetchall()]
    wide = ", ".join(f"i + {number} as c{number}" for number in range(300))
    made = ["create or replace table made as select 1 as a", "select 1 as a, 2 as a, 3 as a"]
    for rows in (0, 1, many):
        made += [
            f"select i as a from range({rows}) t(i)",
            f"select i % 7 as a, 'x' || i as b from range({rows}) t(i)",
            f"select 'x' || i % 5 as a, 'y' || i % 3 as b, i / 2 as c from range({rows}) t(i)",
            f"select date '2020-01-01' + i::int as a, null as b from range({rows}) t(i)",
        ]
    made += [f"select {wide} from range({rows}) t(i)" for rows in (0, 1, 40)]
    made += [f'select "{name}" as a from test_all_types()' for name in types]
    return [*made, "select * from test_all_types()"]


def words_for(shell: Shell, item: Command) -> list[str]:
    """What may be typed behind a command: what completion offers, and what a hand may slip to."""
    offered = [suggestion.text for suggestion in arguments(shell, item.name, "")][:12]
    return [*WORDS, *offered, *(f"{word} 1" for word in offered)]


@pytest.mark.fuzz
@pytest.mark.timeout(600)
@pytest.mark.parametrize("interactive", [False, True])
def test_no_command_ends_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interactive: bool) -> None:
    monkeypatch.chdir(tmp_path)
    # \cd without an argument goes there.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    (tmp_path / "a").write_text("select 1 as included;\n")
    chance = random.Random(20_260_713 + interactive)
    asked = [item for item in BUILTIN if item.name not in ELSEWHERE]

    async def work() -> None:
        async with room(tmp_path, interactive=interactive) as here:
            here.front_end.painted = (lambda text, role: f"\x1b[1m{text}\x1b[0m") if interactive else None
            statements = results()
            sending = [item for item in asked if item.name in SENDING]
            for sql in statements:
                await here.enter(f"{sql};\n")
                for item in chance.sample(sending, 3):
                    await here.enter(f"{sql} \\{item.name} {chance.choice(words_for(here.shell, item))}\n\\r\n")
                for item in chance.sample(asked, 3):
                    await here.enter(f"\\{item.name} {chance.choice(words_for(here.shell, item))}\n\\r\n")
                await here.enter("\\o\n\\tee\n\\log\n\\transcript\n\\unset a\n\\format table\n\\x off\n")
            charts = [word for word in WORDS if not word.startswith("|")]
            for sql in statements:
                for kind in chance.sample(("", "bar", "line", "scatter", "hist", "heat"), 3):
                    await here.enter(f"{sql} \\chart {kind} {chance.choice(charts) if kind else ''}\n\\r\n")
            for item in asked:
                for word in chance.sample(words_for(here.shell, item), 10):
                    await here.enter(f"\\{item.name} {word}\n\\r\n")
                await here.enter("\\o\n\\tee\n\\log\n\\transcript\n\\format table\n\\x off\n")
            await here.enter("select 42 as answer;\n")
            assert here.shell.session.rows == 1
            assert not here.bugs, "\n".join(f"{text[-100:]!r}: {told}" for text, told in here.bugs.items())

    asyncio.run(work())


@pytest.mark.fuzz
@pytest.mark.timeout(600)
def test_what_goes_on_leaves_or_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # \cd without an argument goes there.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setenv("EDITOR", "true")

    async def work() -> None:
        async with room(tmp_path, interactive=False) as here:
            for sql in (*results(40)[:17], "select 'select 1/'", "select '\\q'", "select null", "select 'select ''a'"):
                for line in ("\\watch c=2 i=0", "\\watch 0 m=5000", "\\gexec"):
                    await here.enter(f"{sql} {line}\n\\r\n")
            for item in BUILTIN:
                if item.name in ELSEWHERE - {"watch", "q", "!", "tutorial"}:
                    for word in WORDS:
                        await here.enter(f"\\{item.name} {word}\n")
                        here.shell.discard_unfinished()
            for word in ("", "''", "true", "false", "exit 3", "kill -9 $$"):
                await here.enter(f"\\! {word}\n")
            assert not here.bugs, "\n".join(f"{text[-100:]!r}: {told}" for text, told in here.bugs.items())

    asyncio.run(work())


@command("broken", "[WORD...]")
async def broken(shell: CommandShell, args: Args) -> None:
    """Has a bug."""
    if args == ["result"]:

        async def take(result: Result) -> Summary:
            raise KeyError("no such\nthing")

        await shell.submit(args.name, take)
        return
    iterator: Iterator[int] = iter(())
    next(iterator)


def test_a_bug_is_one_line_that_can_be_reported(tmp_path: Path) -> None:
    async def work() -> None:
        async with room(tmp_path, interactive=False) as here:
            vars(here.shell)["commands"] = table([*BUILTIN, broken])
            told = await here.enter("\\broken\nselect 1 as a;\n")
            assert told.startswith("error: bug in sqlshell"), told
            assert "\\broken: StopIteration" in told
            assert "report this line" in told
            assert told.count("\n") == 1
            assert int(here.shell.exit) == 3
            assert here.shell.session.rows == 1
            told = await here.enter("select 1 as a \\broken result\n\\echo :ERROR\nselect 2 as b, 3 as c;\n")
            assert r"KeyError: 'no such\nthing'" in told, told
            assert told.count("\n") == 1
            assert here.shell.variables["ERROR"].text == "false"
            # A script stops there, as at any failure.
            here.shell.failures.exit = Exit.DONE
            assert await here.shell.run_script([Trusted("\\broken\nselect 4;\n\\q\n")], "script.sql", stop=None)
            assert int(here.shell.exit) == 3

    asyncio.run(work())


def test_names_are_looked_up_in_no_session_that_stays(tmp_path: Path) -> None:
    async def work() -> None:
        async with room(tmp_path, interactive=False) as here:
            await here.enter("create database d2; use database d2;\n")
            session, loaded = here.shell.session, asyncio.Event()
            loader = CatalogLoader(session.connection.client, lambda: session.context, "", None, changed=loaded.set)
            loader.begin()
            await loaded.wait()
            await here.enter("use database memory;\n")
            for _ in range(100):
                message = await here.enter("drop database d2;\n")
                if not message:
                    break
                await asyncio.sleep(0.02)
            assert not message
            await loader.aclose()

    asyncio.run(work())
