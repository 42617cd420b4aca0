"""Parts of the prompt in unusual situations: editor, signals, messages, themes, caches, text that goes on."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import NotAnswered, UsageError
from sqlshell.origin import EMPTY, Trusted
from sqlshell.runtime.streams import Streams
from sqlshell.shell.front_end import Progress
from sqlshell.shell.interactive import front_end, loop
from sqlshell.shell.interactive.editing.continuation import Continuations
from sqlshell.shell.interactive.editing.formatter import format_script
from sqlshell.shell.interactive.editor import edit_text
from sqlshell.shell.interactive.front_end import PromptFrontEnd
from sqlshell.shell.interactive.interrupts import handling_interrupts, interrupt_typed_ahead
from sqlshell.shell.interactive.look import highlight
from sqlshell.shell.interactive.look.highlight import LineLexer
from sqlshell.shell.options import Options
from tests.shell.core.scripted import Core


@pytest.fixture
def typed() -> Iterator[PipeInput]:
    """Keys for prompts, which draw into nothing."""
    output = Vt100_Output(io.StringIO(), lambda: Size(rows=20, columns=80))
    with create_pipe_input() as source, create_app_session(source, output):
        yield source


def person(folder: Path, message: io.StringIO, options: Options | None = None) -> PromptFrontEnd:
    streams = Streams(io.StringIO(), io.StringIO(), message)
    return PromptFrontEnd(
        options or Options(),
        Diagnostics(message),
        Progress(),
        streams,
        state=folder,
        themes=folder,
        target="",
    )


def test_a_text_that_cannot_be_given_to_the_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "true")
    with pytest.raises(UsageError, match=r"\Acannot write the text for the editor: the text contains a lone surrogate"):
        edit_text("\ud800", EMPTY, sys.stdin)


def test_a_file_that_cannot_be_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "true")
    with pytest.raises(UsageError, match=r"\Acannot read .*/folder: is a directory\Z"):
        (tmp_path / "folder").mkdir()
        edit_text("", Trusted(str(tmp_path / "folder")), sys.stdin)


@pytest.mark.parametrize(
    ("text", "written", "saved"),
    [("select 1;  \n\n", "select 1;\n", "select 1;\nadded"), ("", "", "added")],
)
def test_a_text_is_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, written: str, saved: str) -> None:
    script = tmp_path / "editor"
    script.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/given\nprintf "added\\n\\n" >> "$1"\n')
    script.chmod(0o700)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"'{script}'")
    assert edit_text(text, EMPTY, sys.stdin) == saved
    assert (tmp_path / "given").read_text() == written


def test_an_editor_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "false")
    with pytest.raises(UsageError, match=r"\Athe editor failed with exit code 1\Z") as raised:
        edit_text("a", EMPTY, sys.stdin)
    assert raised.value.hint == "nothing was run"


def test_a_line_from_the_editor_replaces_the_typed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\nprintf "select 2;" > "$1"\n')
    script.chmod(0o700)

    async def work(run: bool, editor: str) -> tuple[str, int, list[str], str]:
        monkeypatch.setenv("VISUAL", editor)
        core, message, sent = Core(), io.StringIO(), list[str]()

        def accepted(buffer: Buffer) -> bool:
            sent.append(buffer.text)
            return True

        buffer = Buffer(document=Document("select 1"), accept_handler=accepted)
        await loop._edit(core.shell, person(tmp_path, message), buffer, run)
        return buffer.text, buffer.cursor_position, sent, core.err

    assert asyncio.run(work(False, str(script))) == ("select 2;", 9, [], "")
    assert asyncio.run(work(True, str(script))) == ("select 2;", 9, ["select 2;"], "")
    failed = "error: the editor failed with exit code 1\nhelp: nothing was run\n"
    assert asyncio.run(work(True, "false")) == ("select 1", 8, [], failed)


def test_the_explorer_requires_a_terminal_that_moves_its_cursor(tmp_path: Path) -> None:
    async def work() -> str:
        core = Core()
        await loop._browse_last(core.shell, person(tmp_path, io.StringIO()))
        return core.err

    assert asyncio.run(work()) == "error: the explorer requires a terminal with cursor control\n"


def test_a_signal_is_for_the_prompt_while_it_reads_and_for_the_statement_otherwise(typed: PipeInput) -> None:
    async def work() -> None:
        prompt: PromptSession[str] = PromptSession()
        interrupted = asyncio.Event()

        def interrupt() -> bool:
            interrupted.set()
            return True

        def press() -> None:
            os.kill(os.getpid(), signal.SIGINT)

        before = signal.getsignal(signal.SIGINT)
        with handling_interrupts(prompt.app, interrupt):
            press()
            await interrupted.wait()
            interrupted.clear()
            with pytest.raises(KeyboardInterrupt):
                await prompt.prompt_async(handle_sigint=False, pre_run=press)
            assert not interrupted.is_set()
        assert signal.getsignal(signal.SIGINT) is before
        assert not asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    asyncio.run(work())


def test_no_interrupt_is_typed_ahead_where_no_terminal_is(typed: PipeInput) -> None:
    typed.send_text("\x03")
    assert not interrupt_typed_ahead(typed, io.StringIO())
    assert [press.data for press in typed.read_keys()] == ["\x03"]


def test_a_question_is_not_asked_after_an_interrupt(
    tmp_path: Path, typed: PipeInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_end, "interrupt_typed_ahead", lambda source, stdin: True)
    with pytest.raises(NotAnswered, match="canceled"):
        asyncio.run(person(tmp_path, io.StringIO()).ask("sure? "))


def test_an_answer_is_a_line(tmp_path: Path, typed: PipeInput) -> None:
    async def work(keys: str) -> str:
        asking = asyncio.ensure_future(person(tmp_path, io.StringIO()).ask("sure? "))
        for _ in range(20):
            await asyncio.sleep(0)
        typed.send_text(keys)
        return await asking

    assert asyncio.run(work("yes\r")) == "yes"
    for keys in ("\x03", "\x04"):
        with pytest.raises(NotAnswered, match="canceled"):
            asyncio.run(work(keys))


def test_a_message_is_printed_where_no_prompt_is(tmp_path: Path) -> None:
    message = io.StringIO()
    person(tmp_path, message).announce("[1] is done\x1b")
    assert message.getvalue() == "[1] is done\\x1b\n"


@pytest.mark.parametrize("in_thread", (True, False))
def test_a_warning_is_printed_above_the_line_that_is_typed(tmp_path: Path, in_thread: bool) -> None:
    screen = io.StringIO()
    diagnostics = Diagnostics(screen)
    PromptFrontEnd(
        Options(),
        diagnostics,
        Progress(),
        Streams(io.StringIO(), screen, screen),
        state=tmp_path,
        themes=tmp_path,
        target="",
    )

    async def until(seen: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not seen():  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def work() -> None:
        running = asyncio.ensure_future(PromptSession[str]().prompt_async("> ", handle_sigint=False))
        keys.send_text("sel")
        await until(lambda: "sel" in screen.getvalue())
        if in_thread:
            await asyncio.to_thread(diagnostics.warn, "late")
        else:
            diagnostics.warn("late")
        await until(lambda: "sel" in screen.getvalue().partition("warning: late\n")[2])
        keys.send_text("\r")
        assert await running == "sel"

    output = Vt100_Output(screen, lambda: Size(rows=20, columns=80))
    with create_pipe_input() as keys, create_app_session(keys, output):
        asyncio.run(work())
    # The line is erased first.
    assert "\x1b[J" in screen.getvalue().partition("warning: late\n")[0].rpartition("sel")[2]
    diagnostics.warn("after")
    assert screen.getvalue().endswith("warning: after\n")


def test_a_theme_that_cannot_be_loaded_is_told_once_and_leaves_the_style(tmp_path: Path) -> None:
    message, options = io.StringIO(), Options(theme="nope")
    styles = person(tmp_path, message, options).theme_styles
    first = styles.style("also-not")
    assert message.getvalue() == ""
    assert styles.style() is first
    assert styles.style() is first
    said = message.getvalue()
    assert said.count("error: ") == 1
    assert "nope" in said
    options.theme = "paper"
    assert styles.style() is not first
    assert styles.paint is not None


def test_lines_that_are_not_there_are_drawn_as_nothing() -> None:
    line = LineLexer(Continuations()).lex_document(Document("select 1"))
    assert (line(0)[0], line(1), line(9)) == (("class:pygments.keyword", "select"), [], [])


def test_few_lines_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highlight, "KEPT", 2)
    lexer = LineLexer(Continuations())
    line = lexer.lex_document(Document("1;\n2;\n3;\n4;\n5;\n6;"))
    kept = []
    for number in range(6):
        assert line(number)[0][1] == str(number + 1)
        kept.append(len(lexer._known))
    assert kept == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "formatted", "why"),
    [
        ("create table t (a int) default", None, "not formatted: a statement is unfinished"),
        ("select 1 -- one", "SELECT\n  1 /* one */", ""),
        ("select 1;\n-- two\n", "SELECT\n  1;\n/* two */", ""),
        ("begin transaction", "BEGIN", ""),
        ("-- only a comment\n", None, ""),
        ("select 1 ; ", "SELECT\n  1;", ""),
        ("select 1 +", None, "not formatted: cannot parse the text: "),
    ],
)
def test_words_that_the_parser_ignores(text: str, formatted: str | None, why: str) -> None:
    found, reason = format_script(text)
    assert found == (formatted or text)
    assert reason == why or (why.endswith(": ") and reason.startswith(why))
