"""The loop of the prompt on a terminal in memory: what is sent, said and drawn for what is typed."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input

from sqlshell.client.service import Service
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit
from sqlshell.runtime.streams import Streams
from sqlshell.shell.front_end import Progress
from sqlshell.shell.interactive import loop
from sqlshell.shell.interactive.front_end import PromptFrontEnd
from sqlshell.shell.interactive.loop import changes_catalog, interact
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure
from tests.shell.sessions import session as new_session
from tests.shell.test_explorer_screen import _Drawn, terminal


@pytest.fixture(autouse=True)
def _answering(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is scripted, and its service has no address."""

    async def version(self: Service) -> str:
        return "2.0.0"

    monkeypatch.setattr(Service, "version", version)


class Person(PromptFrontEnd):
    """Notes when names for completion are loaded again."""

    loads: tuple[str, ...] = ()

    def refresh_catalog(self) -> None:
        self.loads += ("names",)

    def context_changed(self) -> None:
        self.loads += ("context",)


class Prompt:
    """A prompt that runs: `keys` are what is typed, `drawn` what is seen."""

    def __init__(self, core: Core, person: Person, keys: PipeInput, drawn: _Drawn) -> None:
        self.core, self.person, self.keys, self.drawn = core, person, keys, drawn
        self.code: Exit | None = None

    @property
    def sent(self) -> list[str]:
        return [sql for sql, _ in self.core.client.ran if sql in self.core.client.answers]

    async def until(self, seen: str) -> str:
        async for screen in self._screens():
            if seen in screen:
                return screen
        raise AssertionError(f"not seen: {seen}")

    async def _screens(self) -> AsyncIterator[str]:
        while self.code is None:
            yield self.drawn.text()
            await asyncio.sleep(0.001)


@asynccontextmanager
async def prompting(folder: Path, typed: str = "", width: int = 80, **options: object) -> AsyncIterator[Prompt]:
    output, drawn = terminal(width, 12)
    with create_pipe_input() as keys, create_app_session(keys, output):
        statements = ("select 1", "select 2", "create table t (a int)", "select\n1", "begin")
        answers = {sql: Answer() for sql in statements} | {"select 0": Answer((), error=failure())}
        core = Core(ScriptedClient(answers), interactive=True)
        for name, value in options.items():
            setattr(core.session.options, name, value)
        streams = Streams(io.StringIO(), io.StringIO(), core.stderr)
        person = Person(
            core.session.options,
            Diagnostics(core.stderr),
            Progress(),
            streams,
            state=folder,
            themes=folder,
            target="",
        )
        prompt = Prompt(core, person, keys, drawn)

        async def work() -> None:
            prompt.code = await interact(core.shell, person, ["first", "last"], typed)

        running = asyncio.ensure_future(work())
        try:
            yield prompt
            await asyncio.wait_for(running, 60)
        finally:
            running.cancel()
            await core.shell.aclose()
        assert person.loader is not None
        assert person.loader._task is None or person.loader._task.done()


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "xterm")


ROWS = "enter the rows, one per line; \\. alone on a line, or Ctrl-D, ends them\n"
HELP = """\
Type:  \\? for help with sqlshell commands
       \\h for help with SQL
       \\g or a semicolon at the end to run a statement
       \\q to quit
"""
NO_TABLE = "error: the response to DESCRIBE RELATION COLUMNS t does not have the names and types of columns\n"
OPEN = "warning: the open transaction was not committed and is rolled back\n"
CREATE = "create table t (a int)"


@pytest.mark.parametrize(
    ("typed", "sent", "said", "loads"),
    [
        ("select 1;\r\\q\r", ["select 1"], "1 row\n", "context"),
        ("select 1;\r\x04", ["select 1"], "1 row\n", "context"),
        ("exit\r", [], "", ""),
        ("QUIT;\r", [], "", ""),
        ("\x04", [], "", ""),
        ("help\r\x04", [], HELP, ""),
        ("select\rexit\r;\r\\q\r", [], "Use \\q to quit.\n1 row\n", "context"),
        ("select 1\rexit\r\x03\\q\r", [], "Use \\q to quit.\n", ""),
        ("abc\x03\\q\r", [], "", ""),
        ("select 1\rabc\x03select 2;\r\\q\r", ["select 2"], "1 row\n", "context"),
        ("select 0;\rselect 2;\r\\q\r", ["select 0", "select 2"], "error[42601]: wrong\n1 row\n", "context context"),
        (f"{CREATE};\rselect 1;\r\\q\r", [CREATE, "select 1"], "1 row\n1 row\n", "names context"),
        ("copy t from stdin;\r1\r\x04\\q\r", [], f"{ROWS}{NO_TABLE}", "names context context"),
        ("\\x\rselect 1;\r\\q\r", ["select 1"], "Expanded display is on.\n1 row\n", "context context"),
        ("begin;\r\\q\r", ["begin"], f"1 row\n{OPEN}", "names"),
        ("select\r1;\r\\q\r", ["select\n1"], "1 row\n", "context"),
    ],
)
def test_what_is_typed(tmp_path: Path, typed: str, sent: list[str], said: str, loads: str) -> None:
    async def work() -> Prompt:
        async with prompting(tmp_path, typed) as prompt:
            pass
        return prompt

    prompt = asyncio.run(work())
    assert (prompt.sent, prompt.core.err, " ".join(prompt.person.loads)) == (sent, f"first\nlast\n{said}", loads)
    assert prompt.code == Exit.DONE


def test_a_line_is_sent_without_its_end_where_each_line_is_a_statement(tmp_path: Path) -> None:
    async def work() -> Prompt:
        async with prompting(tmp_path, "select 1\r\\q\r", multiline=False) as prompt:
            pass
        return prompt

    assert asyncio.run(work()).sent == ["select 1"]


@pytest.mark.parametrize(
    ("keys", "screen"),
    [
        (["select '", "\r"], ["d.s> select '", "  '>"]),
        (["select 1", "\r", "+"], ["d.s> select 1", "  -> +"]),
        (["select (", "\r"], ["d.s> select (", "  (>"]),
        (["copy t from stdin;", "\r", "1"], ["d.s> copy t from stdin;", "       >> 1"]),
    ],
)
def test_what_is_drawn(tmp_path: Path, keys: list[str], screen: list[str]) -> None:
    async def work() -> list[str]:
        async with prompting(tmp_path, completion=False) as prompt:
            await prompt.until("d.s>")
            for text in keys:
                prompt.keys.send_text(text)
            shown = await prompt.until(screen[-1])
            prompt.keys.send_text("\x03\\q\r")
        return shown.rstrip().split("\n")

    assert [line.rstrip() for line in asyncio.run(asyncio.wait_for(work(), 60))] == screen


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("select 1;", False),
        ("\\x", False),
        ("select 1; create table t (a int);", True),
        ("drop table t", True),
        ("alter table t add column b int", True),
        ("-- create table", False),
        ("", False),
    ],
)
def test_statements_after_which_names_are_loaded_again(text: str, changes: bool) -> None:
    assert changes_catalog(text) is changes


@pytest.mark.parametrize(
    ("limit", "elapsed", "rung"), [(5.0, 5.0, True), (5.0, 4.9, False), (0.0, 9.0, False), (5.0, None, False)]
)
def test_the_end_of_a_long_statement_is_notified(
    monkeypatch: pytest.MonkeyPatch, limit: float, elapsed: float | None, rung: bool
) -> None:
    monkeypatch.setattr(loop, "draws", lambda stream: True)
    stdout, session = io.StringIO(), new_session()
    session.options.notify, session.elapsed = limit, elapsed
    loop._notify(session, Streams(io.StringIO(), stdout, stdout))
    text = "sqlshell: statement finished after 5.000 s"
    assert stdout.getvalue() == (f"\a\x1b]9;{text}\x07\x1b]777;notify;sqlshell;{text}\x07" if rung else "")


@pytest.mark.parametrize(
    ("text", "theme"),
    [
        ("\\theme paper", "paper"),
        ("\\theme  paper ", ""),
        ("\\theme pap", ""),
        ("\\themes paper", ""),
        ("\\theme", ""),
        (f"\\theme {'x' * 200}", ""),
    ],
)
def test_the_theme_that_is_being_chosen(text: str, theme: str) -> None:
    assert loop._chosen_theme(text, lambda: ["paper", "default"]) == theme
