"""The progress line names the statement of a script that runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sqlshell.origin import Own
from sqlshell.shell.front_end import NoProgress
from tests.shell.core.scripted import Core


class WatchedProgress(NoProgress):
    """Keeps what the line shows, in turn: a place as (file, number, count), "no place", or "nothing"."""

    live = True

    def __init__(self) -> None:
        self.shown: list[tuple[str, int, int] | str] = []

    def show(self, running: object) -> None:
        place = self.script
        self._add((place.name, place.number, place.count) if place is not None else "no place")

    def hide(self) -> None:
        # The line of a script stays until something else is written.
        if self.script is None:
            self._add("nothing")

    def _add(self, line: tuple[str, int, int] | str) -> None:
        if self.shown[-1:] != [line]:
            self.shown.append(line)


def shown_by(script: str, *, interactive: bool = False) -> list[tuple[str, int, int] | str]:
    progress = WatchedProgress()

    async def work() -> None:
        core = Core(interactive=interactive, progress=progress)
        assert await core.shell.run_script([Own(script)], "")
        assert progress.script is None
        await core.shell.aclose()

    asyncio.run(work())
    return progress.shown


def test_the_place_is_one_of_the_script_that_was_called(tmp_path: Path) -> None:
    (tmp_path / "inner.sql").write_text("select 10;\nselect 11;\n")
    shown = shown_by(f"select 1;\n\\i {tmp_path}/inner.sql\nselect 2;\n")
    assert shown == [("", 1, 2), ("", 2, 2), "nothing"]


def test_a_person_sees_no_places() -> None:
    assert set(shown_by("select 1;\nselect 2;\n", interactive=True)) == {"no place", "nothing"}
