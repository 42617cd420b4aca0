"""Which engines must be installed: SQLSHELL_TEST_ENGINES is 1 for all, or has names such as "postgresql,spark"."""

from __future__ import annotations

import os

_NAMES = frozenset(os.environ.get("SQLSHELL_TEST_ENGINES", "").split(","))


def required(engine: str) -> bool:
    """Whether a test of an engine that is not installed fails instead of being skipped."""
    return "1" in _NAMES or engine in _NAMES
