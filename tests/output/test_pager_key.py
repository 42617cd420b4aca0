"""The key of the pager: its script waits until the work is done, however that ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sqlshell.output.sinks.pager import PagerKey


def pressed(work: Callable[[], Awaitable[None]], times: int) -> tuple[list[int], Path]:
    """The exit codes of the script, which is run several times, and its folder."""

    async def run() -> tuple[list[int], Path]:
        # A failed work is reported by whoever does it.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        key = PagerKey(work)
        script = Path(key.environment["SQLSHELL_PAGER_KEY"])
        try:
            codes = []
            for _ in range(times):
                shell = await asyncio.create_subprocess_exec("sh", str(script))
                codes.append(await shell.wait())
        finally:
            key.close()
        return codes, script.parent

    return asyncio.run(run())


def test_the_script_ends_if_the_work_fails() -> None:
    tries: list[str] = []

    async def work() -> None:
        tries.append("work")
        raise OSError("failed")

    codes, folder = pressed(work, 2)
    assert (codes, tries) == ([0, 0], ["work"] * 2)
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_leaves_no_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []

    def fails(path: Path, *args: object) -> None:
        folders.append(path)
        raise OSError("full")

    monkeypatch.setattr("os.mkfifo", fails)

    async def work() -> None:
        raise AssertionError("never called")

    with pytest.raises(OSError, match="full"):
        pressed(work, 1)
    assert not folders[0].parent.exists()
