"""Background tasks, which never prompt the user."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

_in_background: ContextVar[bool] = ContextVar("_in_background", default=False)


def start_in_background(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task that is marked as background work; tasks that it starts are marked too."""

    async def marked() -> None:
        _in_background.set(True)
        await work

    return asyncio.ensure_future(marked())


def in_background() -> bool:
    """Whether the caller is background work."""
    return _in_background.get()
