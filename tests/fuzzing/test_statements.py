"""No statement changes more than its role may."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzzing.check import fuzz
from tests.fuzzing.world import World


@pytest.mark.parametrize("number", [50, pytest.param(500, marks=pytest.mark.fuzz)])
def test_no_statement_changes_more_than_its_role_may(tmp_path: Path, number: int) -> None:
    world = World(tmp_path)
    try:
        ended = fuzz(world, number, derandomize=True)
    finally:
        world.close()
    # Of each role some were done, so that a judge who refuses all would be noticed.
    assert all(ended[f"{role} 00000"] for role in ("READ", "DATA", "OBJECTS")), ended
