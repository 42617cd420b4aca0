"""The event loops of this process that run in threads of their own, and settings of every loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
from collections.abc import Mapping
from typing import Any

SLOW_SECONDS = 5.0


def thread_loop() -> asyncio.AbstractEventLoop:
    """A new event loop for a thread. A process that is forked can discard it without effect on this one."""
    loop = asyncio.SelectorEventLoop(_OwnSelector())
    allow_slow_imports(loop)
    return loop


def allow_slow_imports(loop: asyncio.AbstractEventLoop) -> None:
    """Raise the time after which asyncio's debug mode (`python -X dev`) reports a slow callback.

    Modules are imported on first use, which can take longer than asyncio's limit of 0.1 s.
    """
    loop.slow_callback_duration = SLOW_SECONDS


def end_threads(loop: asyncio.AbstractEventLoop) -> None:
    """Wait for the threads that a loop, which is not running, started for asyncio.to_thread()."""
    with contextlib.suppress(RuntimeError):
        # At the exit of the program Python 3.12 does not start the thread that this waits with.
        loop.run_until_complete(loop.shutdown_default_executor())


class _OwnSelector(selectors.BaseSelector):
    """The default selector of the process that created it. In a process forked from that one, it is empty.

    Linux shares an epoll set with forked processes. One that exits destroys its copy of the loop, which removes the
    loop's sockets from the set: the loop of its parent would wait for them forever.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._selector: selectors.BaseSelector = selectors.DefaultSelector()

    def _own(self) -> selectors.BaseSelector:
        if os.getpid() != self._process:
            self._process = os.getpid()
            self._selector.close()
            self._selector = selectors.SelectSelector()
        return self._selector

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._own().register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._own().unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._own().modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._selector.select(timeout)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._own().get_map()

    def close(self) -> None:
        self._own().close()
