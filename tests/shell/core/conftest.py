"""Closes the journals of a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.shell.core.scripted import WatchedJournal


@pytest.fixture(autouse=True)
def closed_journals() -> Iterator[None]:
    yield
    while WatchedJournal.made:
        WatchedJournal.made.pop().close()
