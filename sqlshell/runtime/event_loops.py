"""Event loops: what all of them are told."""

from __future__ import annotations

import asyncio

SLOW_SECONDS = 5.0


def expect_imports(loop: asyncio.AbstractEventLoop) -> None:
    """Let callbacks take longer before asyncio's debug mode (`python -X dev`) reports them.

    Modules are loaded when they are first needed, which takes longer than asyncio's limit of 0.1 s.
    """
    loop.slow_callback_duration = SLOW_SECONDS
