"""Fixtures for tests of the service."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from sqlshell.service.storage import Storage


@pytest.fixture
def storage() -> Iterator[Storage]:
    """A storage that keeps nothing, and is closed."""
    with contextlib.closing(Storage()) as made:
        yield made
