"""Errors as text: for people at a terminal, for programs that read a pipe, and in full."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Sequence

import pytest

from sqlshell.diagnostics import Diagnostics, Excerpt
from sqlshell.errors import ShellError, StatementError, UsageError, Where
from sqlshell.origin import Trusted, trusted_text
from sqlshell.runtime import bugs
from sqlshell.shell.running.failures import report
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.analysis.secrets import redactor
from tests.shell.core.scripted import Answer, Core, ScriptedClient

SELECT = "select\n  o.totl\nfrom o"
TOLD = (
    'Binder Error: Table "o" does not have a column named "totl"\nCandidate bindings: : "total", "note"\n\n'
    "LINE 2:   o.totl\n          ^^^^^^"
)
SYNTAX = 'Parser Error: syntax error at or near "zzz"\n\nLINE 1: zzz 1\n        ^^^'


class TerminalText(io.StringIO):
    def isatty(self) -> bool:
        return True


def failed(message: str, state: str = "42703") -> Answer:
    return Answer((), error=StatementError(message, where=Where(state, "id1")))


def ran(script: str, name: str, answers: dict[str, Answer], *, verbose: int = 0, interactive: bool = False) -> Core:
    async def work() -> Core:
        core = Core(ScriptedClient(answers), interactive=interactive)
        core.shell.diagnostics.verbose = verbose
        await core.shell.run_script([Trusted(script)], name, stop=False)
        return core

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("script", "name", "place"),
    [
        (f"{SELECT};", "s.sql", "s.sql:2:3"),
        (f"{SELECT};", "stdin", "<stdin>:2:3"),
        (f"{SELECT};", "", "<command>:2:3"),
        (f"select 1;\n\n{SELECT} \\g\n", "s.sql", "s.sql:4:3"),
        (f"\\set x 2\n{SELECT};", "s.sql", "s.sql:3:3"),
        (f"\\set x o.totl\n{SELECT.replace('o.totl', ':x')};", "s.sql", "s.sql:2"),
        ("select\n\\echo\n  o.totl\nfrom o;", "s.sql", "s.sql:1"),
    ],
)
def test_a_pipe_gets_the_place_and_at_most_three_lines(script: str, name: str, place: str) -> None:
    core = ran(script, name, {SELECT: failed(TOLD)})
    cause = 'error[42703]: table "o" does not have a column named "totl"\nhelp: did you mean "total"?\n'
    assert core.err.endswith(f"{place}: {cause}")
    assert core.err.count("error") == 1


@pytest.mark.parametrize("before", ["", "select 1; ", "  "])
def test_a_pipe_gets_the_line_if_there_is_no_hint(before: str) -> None:
    core = ran(f"{before}zzz 1;", "s.sql", {"zzz 1": failed(SYNTAX, "42601")})
    assert core.err == (
        f's.sql:1:{len(before) + 1}: error[42601]: syntax error at or near "zzz"\n 1 | zzz 1\n   | ^^^\n'
    )


def test_typed_statements_have_no_place() -> None:
    core = ran("zzz 1;", "", {"zzz 1": failed(SYNTAX, "42601")}, interactive=True)
    assert core.err.startswith("error[42601]: syntax error")


def test_a_long_message_and_all_hints_are_one_line_each_in_a_pipe() -> None:
    stream = io.StringIO()
    Diagnostics(stream).error(ShellError("one\n\n  two\nthree", "did you mean x?\nfirst\nsecond", Where("XX000")))
    assert stream.getvalue() == "error[XX000]: one; two; three\nhelp: did you mean x? first; second\n"


def shown(error: ShellError, excerpt: Excerpt | None = None, *, colors: bool = False) -> Sequence[str]:
    stream = TerminalText()
    diagnostics = Diagnostics(stream)
    diagnostics.find_paint = lambda: (lambda text, role: f"<{role}>{text}</>") if colors else None
    diagnostics.error(error, excerpt)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(("locale", "bar"), [("C.UTF-8", "│"), ("C", "|")])
def test_a_terminal_shows_the_line_in_a_gutter(monkeypatch: pytest.MonkeyPatch, locale: str, bar: str) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    error = ShellError("wrong\nas it is", "a\nb", Where("42703"))
    assert shown(error, Excerpt(12, 3, "  日本", 2, 4)) == [
        "error[42703]: wrong",
        "as it is",
        f" 12 {bar}   日本",
        f"    {bar}   ^^^^",
        "help: a",
        "help: b",
    ]


def test_the_parts_of_an_error_have_the_colors_of_their_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    error = ShellError("wrong\x1b[2J", "usage: x", Where("42703", file="s\x1b.sql", line=2, column=3))
    assert shown(error, Excerpt(2, 3, "x\x1b[2Jy", 1, 2), colors=True) == [
        "s\\x1b.sql:2:3: <error>error[42703]:</> wrong\\x1b[2J",
        "<dim> 2 │</> <sql>x\\x1b[2Jy</>",
        "<dim>   │</>  <error>^^</>",
        "<help>usage:</> x",
    ]


def test_a_terminal_shows_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(TerminalText):
        def fileno(self) -> int:
            return 2

    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((20, 24)))
    stream = Screen()
    diagnostics = Diagnostics(stream)
    diagnostics.error(ShellError("the table is missing", "look for another one"), Excerpt(1, 1, "x" * 30, 0, 30))
    diagnostics.say("a text that is longer than the line")
    diagnostics.say("a text that is longer than the line", verbatim=True)
    assert stream.getvalue().splitlines() == [
        "error: the table is",
        "missing",
        f" 1 | {'x' * 30}",
        f"   | {'^' * 30}",
        "help: look for",
        "another one",
        "a text that is",
        "longer than the line",
        "a text that is longer than the line",
    ]


def test_a_warning_has_the_color_of_its_role() -> None:
    stream = TerminalText()
    diagnostics = Diagnostics(stream)
    diagnostics.find_paint = lambda: lambda text, role: f"<{role}>{text}</>"
    diagnostics.warn("odd\x1b", "s.sql:3")
    assert stream.getvalue() == "s.sql:3: <warning>warning:</> odd\\x1b\n"


@pytest.mark.parametrize(("quiet", "always"), [(False, False), (True, False), (True, True)])
def test_a_note_has_its_label_at_a_terminal_only(quiet: bool, always: bool) -> None:
    said = []
    for stream in (TerminalText(), io.StringIO()):
        diagnostics = Diagnostics(stream, quiet=lambda: quiet)
        diagnostics.find_paint = lambda: lambda text, role: f"<{role}>{text}</>"
        diagnostics.note("stopped\x1b", always=always)
        said.append(stream.getvalue())
    shown = not quiet or always
    assert said == (["<help>note:</> stopped\\x1b\n", "stopped\\x1b\n"] if shown else ["", ""])


FULL = (
    'error[42703]: table "o" does not have a column named "totl"\n 2 |   o.totl\n   |   ^^^^^^\n'
    'help: did you mean "total"?\nnote: 42703 (undefined_column) · statement id1\nnote: the service\'s message:\n'
    '  Binder Error: Table "o" does not have a column named "totl"\n  Candidate bindings: : "total", "note"\n  \n'
    "  LINE 2:   o.totl\n            ^^^^^^\n"
)


def test_verbose_errors_have_the_message_of_the_service() -> None:
    assert ran(f"{SELECT};", "s.sql", {SELECT: failed(TOLD)}, verbose=1).err == f"s.sql:2:3: {FULL}"


def test_the_last_error_is_shown_again_in_full() -> None:
    core = ran(f"{SELECT};\nselect 1;\n\\errverbose\n", "s.sql", {SELECT: failed(TOLD)})
    assert core.out == f"a\n1\ns.sql:2:3: {FULL}"
    assert ran("\\errverbose\n", "s.sql", {}).out == "there is no previous error\n"


@pytest.mark.parametrize("wanted", ["", "1"])
def test_the_traceback_of_a_bug_is_shown_if_it_is_wanted(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    class Wrong(ScriptedClient):
        async def step(self, what: str) -> None:
            raise ZeroDivisionError("of a test")

    async def work() -> Core:
        core = Core(Wrong())
        await core.shell.run_script([Trusted("select 1;")], "", stop=False)
        return core

    monkeypatch.setenv(bugs.TRACEBACK, wanted)
    core = asyncio.run(work())
    assert "ZeroDivisionError" in core.err
    assert core.err.startswith("Traceback") is bool(wanted)


def test_an_error_of_a_command_is_shown_again_too() -> None:
    stream = io.StringIO()
    diagnostics = Diagnostics(stream)
    diagnostics.error(UsageError("no such thing", "try another"))
    assert diagnostics.last_error() == "error: no such thing\nhelp: try another"


def test_the_last_error_is_wrapped_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    diagnostics = Diagnostics(io.StringIO())
    diagnostics.error(UsageError("there is no such thing anywhere", "try another thing of this kind"))
    monkeypatch.setattr(Diagnostics, "_width", 20)
    lines = diagnostics.last_error().split("\n")
    assert all(len(line) <= 20 for line in lines)
    assert " ".join(line.strip() for line in lines).endswith("try another thing of this kind")


@pytest.mark.parametrize("verbose", [0, 1])
def test_no_part_of_a_statement_with_secrets_is_shown(verbose: int) -> None:
    sql = "create secret s (type s3, secret 'hunter2')"
    told = f"Parser Error: syntax error at or near \"'hunter2'\"\n\nLINE 1: {sql}\n{' ' * 41}^^^^^^^^^"
    stream, error = io.StringIO(), StatementError(told, where=Where("42601", "id1"))
    diagnostics = Diagnostics(stream, verbose=verbose)
    report(error, ("s.sql", 1, 1), Lexed(trusted_text(Trusted(sql))), diagnostics, tuple, redactor(()))
    text = stream.getvalue() + diagnostics.last_error()
    assert "error[42601]: " in text
    assert "hunter2" not in text
