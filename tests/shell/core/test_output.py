"""Where results go: what stays of a result that fails, what cannot be shown, and what is told while rows arrive."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlshell.errors import Exit
from sqlshell.origin import Trusted
from sqlshell.shell.front_end import Progress
from sqlshell.shell.running.statement import Running
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure
from tests.shell.core.test_catalog_contents import Service


class Live(Progress):
    """A terminal that shows progress: what was shown of each wait, and when it was hidden or cleared."""

    live = True

    def __init__(self) -> None:
        self.events: list[str] = []

    def show(self, running: Running) -> None:
        self.events.append("rows" if running.fetching else "wait")

    def hide(self) -> None:
        self.events.append("hide")

    def clear(self) -> None:
        self.events.append("clear")


def run(
    script: str,
    client: ScriptedClient | None = None,
    before: Callable[[Core], None] = lambda _: None,
    *,
    interactive: bool = False,
) -> Core:
    async def work() -> Core:
        core = Core(client, interactive=interactive)
        before(core)
        await core.shell.run_script([Trusted(script)], "", stop=False)
        await core.shell.aclose()
        return core

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("ending", "live", "shown"),
    [(";", True, True), ("\\g {}", True, True), ("\\g '| cat > {}'", True, False), ("\\g {}", False, False)],
)
def test_rows_are_counted_while_a_file_gets_them(tmp_path: Path, ending: str, live: bool, shown: bool) -> None:
    progress = Live()
    progress.live = live

    def watched(core: Core) -> None:
        core.front_end.progress = progress

    path = tmp_path / "rows.csv"
    core = run(f"select 1 {ending.format(path)}\n", before=watched)
    assert (core.shell.exit, core.err) == (Exit.DONE, "")
    assert (path.read_text() if path.exists() else core.out) == "a\n1\n"
    assert ("rows" in progress.events) is shown, progress.events
    assert not shown or "hide" in progress.events[progress.events.index("rows") :]


def test_a_file_has_no_part_of_a_result_that_failed(tmp_path: Path) -> None:
    answers = {
        "select 1": Answer(rows=(("1",),)),
        "select 2": Answer(rows=(("2",) * 100_000, ("3",)), error=failure("XX000")),
    }
    path = tmp_path / "rows.csv"
    core = run(f"\\o {path}\nselect 1;\nselect 2;\nselect 1;\n\\o\n", ScriptedClient(answers))
    assert core.err == "<command>:3: error[XX000]: wrong\n"
    assert path.read_text() == "a\n1\na\n1\n"


@pytest.mark.parametrize("to", ["\\o {}\nselect 1;\n\\o\n", "select 1 \\g {}\n"])
@pytest.mark.parametrize(("name", "told"), [("rows.json", True), ("rows.csv", False), ("rows.txt", False)])
def test_a_format_that_is_not_that_of_the_extension_is_told(tmp_path: Path, to: str, name: str, told: bool) -> None:
    path = tmp_path / name
    core = run("\\format csv\n" + to.format(path))
    assert path.read_text() == "a\n1\n"
    assert (
        core.err.removeprefix("Format is csv.\n")
        == f"{path} is written in the format csv, which was set explicitly\n" * told
    )


@pytest.mark.parametrize(("terminal", "redirected"), [(True, False), (True, True), (False, False)])
def test_a_terminal_gets_no_binary_format(tmp_path: Path, terminal: bool, redirected: bool) -> None:
    def at_terminal(core: Core) -> None:
        core.screen.isatty = lambda: terminal  # type: ignore[method-assign]

    path = tmp_path / "rows"
    ending = f"\\g {path}" if redirected else ";"
    core = run(f"\\format arrows\nselect 1 {ending}\n", before=at_terminal)
    refused = (
        "error: the arrows format is binary and cannot be shown on a terminal\nhelp: write it to a file: -o FILE\n"
    )
    assert (refused in core.err) is (terminal and not redirected)
    assert bool(core.screen.getvalue()) is not terminal
    assert path.exists() is redirected


@pytest.mark.parametrize("interactive", [True, False])
@pytest.mark.parametrize("command", ["select 1;", "\\l"])
def test_values_that_are_cut_are_counted_once(interactive: bool, command: str) -> None:
    client = Service({"select 1": (["a"], [["abcdef"]]), "LIST DATABASES": (["name"], [["abcdef"]])})
    core = run(f"\\pset format table\n\\pset maxwidth 5\n{command}\n", client, interactive=interactive)
    assert len(re.findall(r"\d values? (?:cut|truncated)", core.err)) == 1, core.err
