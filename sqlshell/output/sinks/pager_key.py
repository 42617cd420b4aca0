"""A key of `less` that opens something else on the terminal, and returns to the same place of less afterwards.

less runs an editor on a file with its command `visual`, waits for it, and draws its screen again. The editor here is a
script that writes to one pipe and waits at another: while it waits, the terminal is free.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping

from sqlshell.runtime.scratch import scratch

KEY = "B"

_SCRIPT = """echo >'{folder}/pressed'
read -r answer <'{folder}/done'
"""


class PagerKey:
    """`pressed` runs in the event loop of the thread that makes this, one at a time. Raises OSError."""

    def __init__(self, pressed: Callable[[], Awaitable[None]]) -> None:
        self._work = pressed
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._folder = scratch().folder("pager")
        self._pipes: list[int] = []
        try:
            for name in ("pressed", "done"):
                os.mkfifo(self._folder / name, 0o600)
                # With both ends open, neither side ever waits for the other to open it, and none sees an end.
                self._pipes.append(os.open(self._folder / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
            quoted = str(self._folder).replace("'", "'\\''")
            (self._folder / "script").write_text(_SCRIPT.format(folder=quoted))
            (self._folder / "keys").write_text(f"#command\n{KEY} visual\nv invalid\n")
        except OSError:
            self.close()
            raise
        self._loop.add_reader(self._pipes[0], self._pressed)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that give less the key. A command that begins with - is not shown."""
        return {
            "LESSKEYIN": str(self._folder / "keys"),
            "LESSEDIT": '-sh "$SQLSHELL_PAGER_KEY"',
            "SQLSHELL_PAGER_KEY": str(self._folder / "script"),
        }

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._pipes:
            self._loop.remove_reader(self._pipes[0])
        for pipe in self._pipes:
            os.close(pipe)
        self._pipes = []
        shutil.rmtree(self._folder, ignore_errors=True)

    def _pressed(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._pipes[0], 64)
        if self._task is None:
            self._task = asyncio.ensure_future(self._answered())

    async def _answered(self) -> None:
        try:
            await self._work()
        finally:
            self._task = None
            if self._pipes:
                os.write(self._pipes[1], b"\n")
