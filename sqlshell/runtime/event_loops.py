"""Settings of every event loop."""

from __future__ import annotations

import asyncio
import contextlib

SLOW_SECONDS = 5.0


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
