"""Settings of every event loop."""

from __future__ import annotations

import asyncio

SLOW_SECONDS = 5.0


def allow_slow_imports(loop: asyncio.AbstractEventLoop) -> None:
    """Raise the time after which asyncio's debug mode (`python -X dev`) reports a slow callback.

    Modules are imported on first use, which can take longer than asyncio's limit of 0.1 s.
    """
    loop.slow_callback_duration = SLOW_SECONDS
