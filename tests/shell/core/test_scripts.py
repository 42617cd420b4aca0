"""How scripts begin, include others, are left, and end: all that is said, and what runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sqlshell.errors import ConnectionFailed, Exit, Interrupted, ShellError, UsageError
from sqlshell.origin import Trusted
from sqlshell.shell.front_end import Progress
from sqlshell.shell.scripts.position import ScriptPlace
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure


def run(
    script: str,
    name: str = "",
    *,
    client: ScriptedClient | None = None,
    before: Callable[[Core], None] = lambda _: None,
) -> Core:
    async def work() -> Core:
        core = Core(client)
        before(core)
        core.session.options.quiet = True
        await core.shell.run_script([Trusted(script)], name)
        await core.shell.finish()
        await core.shell.aclose()
        return core

    return asyncio.run(work())


def sent(core: Core) -> list[str]:
    return [sql for sql, _ in core.client.ran]


def test_quit_ends_only_the_script_that_it_is_in(tmp_path: Path) -> None:
    (tmp_path / "inner.sql").write_text("select 1;\n\\q\nselect 2;\n")
    core = run(f"\\i {tmp_path}/inner.sql\nselect 3;\n\\i {tmp_path}/inner.sql\nselect 4;\n\\q\nselect 5;\n")
    assert sent(core) == ["select 1", "select 3", "select 1", "select 4"]
    assert (core.shell.exit, core.err) == (Exit.DONE, "")


def test_a_script_beside_the_one_that_includes_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "inner.sql").write_text("select 1;\n")
    (folder / "outer.sql").write_text("\\ir inner.sql\n\\i inner.sql\n")
    core = run((folder / "outer.sql").read_text(), f"{folder}/outer.sql")
    assert sent(core) == ["select 1"]
    assert core.err == f"{folder}/outer.sql:2: error: cannot read inner.sql: no such file or directory\n"
    assert core.shell.exit == Exit.USAGE


def test_a_script_that_includes_itself(tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text(f"select 1;\n\\i {script}\n")
    core = run(f"\\i {script}\nselect 2;\n")
    assert sent(core) == ["select 1"] * 50
    first, hint, *callers = core.err.splitlines()
    assert first == f"{script}:2: error: {script}: scripts are nested more than 50 levels deep"
    assert hint == "help: check whether the script includes itself"
    assert callers == [
        f"{script}:2: the script included here failed",
        "warning: 1 statement was not run",
    ]
    assert core.shell.exit == Exit.USAGE


@pytest.mark.parametrize("error", [ConnectionFailed("gone"), Interrupted("interrupted")])
def test_what_ends_an_included_script_ends_those_that_include_it(tmp_path: Path, error: ShellError) -> None:
    (tmp_path / "inner.sql").write_text("select 1;\nselect 2;\n")
    (tmp_path / "middle.sql").write_text("\\ir inner.sql\nselect 3;\n")

    async def work() -> Core:
        core = Core(ScriptedClient({"select 1": Answer(error=error)}))
        await core.shell.run_script([Trusted(f"\\i {tmp_path / 'middle.sql'}\nselect 4;\n")], "", stop=False)
        return core

    assert [sql for sql, _ in asyncio.run(work()).client.ran] == ["select 1"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"select 1;\nselect '\xe9';\n", "{}:2: invalid UTF-8"),
        (b"select 1;\0", "{} is a binary file, not a script\nhelp: a script must be UTF-8 text"),
    ],
)
def test_a_script_that_is_not_text(tmp_path: Path, content: bytes, said: str) -> None:
    script = tmp_path / "s.sql"
    script.write_bytes(content)
    core = run(f"\\i {script}\nselect 2;\n")
    assert sent(core) == []
    assert core.err.startswith(f"error: {said.format(script)}")
    assert core.shell.exit == Exit.USAGE


def test_a_script_that_cannot_be_read_to_its_end() -> None:
    def chunks() -> Iterator[Trusted]:
        yield Trusted("select 1;\nselect")
        raise UsageError("cannot read s.sql: input/output error")

    async def work() -> Core:
        core = Core()
        assert await core.shell.run_script(chunks(), "s.sql")
        return core

    core = asyncio.run(work())
    assert sent(core) == ["select 1"]
    assert core.err == "s.sql:1: error: cannot read s.sql: input/output error\n"
    assert core.shell.exit == Exit.USAGE


def test_what_a_failure_leaves_out_is_counted() -> None:
    core = run("\\nosuch\nselect 1;\n\\echo a\nselect 2;\n")
    assert core.err.endswith("warning: 2 statements and 1 command were not run\n")
    core = run("\\nosuch\n" + "select 1;\n" * 3, "stdin")
    assert core.err.endswith("warning: at least 3 statements were not run\n")
    core = run("\\nosuch\ncopy t from stdin;\n1\n2\n\\.\n")
    assert core.err.endswith("warning: 1 statement was not run\n")
    assert run("\\nosuch\n").err.count("\n") == 2


def test_only_the_beginning_of_a_long_rest_is_counted() -> None:
    def rest(chunks: int) -> str:
        async def work() -> Core:
            core = Core()
            texts = [Trusted("\\nosuch\n"), *[Trusted("select 1;\n")] * chunks]
            await core.shell.run_script(iter(texts), "s.sql")
            return core

        return asyncio.run(work()).err.splitlines()[-1]

    assert rest(15) == "warning: 15 statements were not run"
    assert rest(16) == "warning: at least 16 statements were not run"
    assert rest(40) == "warning: at least 16 statements were not run"


def test_restricted_commands() -> None:
    script = "\\restrict k\n\\echo a\n\\unrestrict x\n\\restrict x\n\\unrestrict k\n\\echo b\n"

    async def work() -> Core:
        core = Core()
        await core.shell.run_script([Trusted(script)], "", stop=False)
        return core

    core = asyncio.run(work())
    disabled = "backslash commands are disabled by \\restrict\nhelp: \\unrestrict KEY enables them again\n"
    assert core.err == (
        f"error: \\echo: {disabled}"
        "error: \\unrestrict: this is not the key of \\restrict\n"
        f"error: \\restrict: {disabled}"
    )
    assert core.out == "b\n"


def test_the_unfinished_statement_before_a_command_that_sends() -> None:
    core = run("select 1 \\g a b c\n", before=lambda core: setattr(core.session.options, "on_error", "continue"))
    assert sent(core) == []
    assert core.err.endswith("warning: the unfinished statement before \\g was discarded\n")
    # A command that would not have sent it keeps it from being sent at the end.
    core = run("select 1\n\\nosuch\n", before=lambda core: setattr(core.session.options, "on_error", "continue"))
    assert sent(core) == []
    assert core.err.endswith("warning: the unfinished statement was not run because a command in it failed\n")
    core = run("select 1\n\\nosuch\n;", before=lambda core: setattr(core.session.options, "on_error", "continue"))
    assert sent(core) == ["select 1"]


def test_a_bug_does_not_end_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(ScriptedClient):
        async def step(self, what: str) -> None:
            await super().step(what)
            if len(self.ran) == 1 and what == "wait":
                raise KeyError("broken")

    core = run(
        "select 1;\nselect 2;\n",
        client=Broken(),
        before=lambda core: setattr(core.session.options, "on_error", "continue"),
    )
    assert sent(core) == ["select 1", "select 2"]
    assert "KeyError" in core.err
    assert core.shell.exit == Exit.SERVICE


class Terminal(Progress):
    """A terminal that shows progress: the label and the share of the script at each wait."""

    live = True

    def __init__(self) -> None:
        self.seen: list[tuple[str, float | None] | None] = []

    def show(self, running: object) -> None:
        self.seen.append((self.script.label, self.script.share) if self.script is not None else None)


def test_the_place_in_a_script_is_shown(tmp_path: Path) -> None:
    progress = Terminal()

    def watched(core: Core) -> None:
        core.front_end.progress = progress

    inner = tmp_path / "inner.sql"
    inner.write_text("select 7;\nselect 8;\n")
    core = run(f"select 1;\n\\i {inner}\nselect 2; select 3;\n", before=watched)
    assert progress.script is None
    assert sent(core) == ["select 1", "select 7", "select 8", "select 2", "select 3"]
    assert progress.seen == [
        ("statement 1 of 3", 0.0),
        # The statements of an included script are not counted.
        ("statement 1 of 3", 0.0),
        ("statement 1 of 3", 0.0),
        ("statement 2 of 3", pytest.approx(1 / 3)),
        ("statement 3 of 3", pytest.approx(2 / 3)),
    ]


def test_no_place_is_shown_at_the_prompt() -> None:
    progress = Terminal()

    async def work() -> None:
        core = Core(interactive=True)
        core.front_end.progress = progress
        await core.shell.run(Trusted("select 1;"))

    asyncio.run(work())
    assert progress.seen == [None]


def test_the_place_in_a_file(tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text("select 1;\nselect 2;\n")
    place = ScriptPlace.of(iter([]), str(script))
    assert (place.name, place.size, place.count, place.share, place.label) == (
        "s.sql",
        20,
        0,
        0.0,
        "s.sql: statement 0",
    )
    place.arrived("select 1;\n")
    assert place.count == 0, "only the whole text is counted"
    place = ScriptPlace.of(iter([]), str(script))
    place.arrived(script.read_text())
    place.number = 1
    assert (place.count, place.share_with(0.5), place.label) == (2, 0.25, "s.sql: statement 1 of 2")
    place.number = 3
    assert place.count == 0, "a variable has made a further statement"
    assert ScriptPlace.of(iter([]), "stdin").size == 0
    assert ScriptPlace.of(iter([]), "stdin").share is None
    long = ScriptPlace.of(["select 1;" * 8_000], "")
    assert (long.size, long.count, long.label) == (72_000, 0, "statement 0")
    long.offset = 36_000
    assert long.share == 0.5
    assert ScriptPlace.of(["select 1;"], "").single
    assert ScriptPlace.of(["é;"], "").size == 3


@pytest.mark.parametrize("send", [False, True])
def test_a_command_that_fails_at_the_prompt_keeps_the_statement(send: bool) -> None:
    async def work() -> Core:
        core = Core(interactive=True)
        assert await core.shell.run(Trusted("select 1"))
        assert await core.shell.run(Trusted("\\nosuch"), send=send)
        assert core.shell.buffer.text == "select 1"
        assert await core.shell.run(Trusted("+ 1"), send=True)
        assert not await core.shell.run(Trusted("\\q"))
        return core

    core = asyncio.run(work())
    assert sent(core) == ["select 1\n+ 1"]


def test_what_ctrl_c_discards_at_the_prompt() -> None:
    async def work() -> Core:
        core = Core(interactive=True)
        await core.shell.run(Trusted("\\if false"))
        await core.shell.run(Trusted("select 1;"))
        core.shell.discard_unfinished()
        assert not core.session.skipping
        await core.shell.run(Trusted("select 2;"))
        await core.shell.run(Trusted("select 4"))
        core.shell.discard_unfinished()
        assert core.shell.buffer.text == "select 2"
        await core.shell.run(Trusted("select 5;"))
        return core

    core = asyncio.run(work())
    assert sent(core) == ["select 2", "select 5"]
    assert core.err == ("statement ignored; use \\endif or Ctrl-C to leave the \\if block\n1 row\n1 row\n")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["begin;", "select 1;"], "1 row\n1 row\nwarning: the open transaction was not committed and is rolled back\n"),
    ],
)
def test_what_is_lost_at_the_end_of_the_prompt(typed: list[str], said: str) -> None:
    async def work() -> Core:
        core = Core(interactive=True)
        for text in typed:
            await core.shell.run(Trusted(text))
        await core.shell.finish_prompt(wait=True)
        await core.shell.aclose()
        return core

    assert asyncio.run(work()).err == said


def test_failures_of_a_file_of_the_user_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "rc.sql").write_text("select 1;\n\\nosuch\nselect 2;\n")

    async def work() -> Core:
        core = Core(ScriptedClient({"select 1": Answer(rows=(), error=failure())}))
        await core.shell.run_own(Trusted(f"{tmp_path}/rc.sql"))
        return core

    core = asyncio.run(work())
    assert sent(core) == ["select 1", "select 2"]
    assert core.shell.exit == Exit.DONE
