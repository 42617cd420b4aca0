"""No statement changes more than its role may."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from sqlshell.service.engines.engine import Rights
from tests.cases import lines
from tests.fuzzing.check import fuzz
from tests.fuzzing.world import World, broken

FILES = [*lines("attempts", "files"), "create temp view q as from '{f}'; "]
CHANGES = lines("attempts", "changes")


@pytest.mark.parametrize("number", [50, pytest.param(500, marks=pytest.mark.fuzz)])
def test_no_statement_changes_more_than_its_role_may(tmp_path: Path, number: int) -> None:
    world = World(tmp_path)
    try:
        ended = fuzz(world, number, derandomize=True)
    finally:
        world.close()
    # Of each role some were done, so that a judge who refuses all would be noticed.
    assert all(ended[f"{role} 00000"] for role in ("READ", "DATA", "OBJECTS")), ended


@pytest.mark.parametrize("kind", ["changes", "files"])
@pytest.mark.parametrize("rights", Rights)
def test_no_known_attempt_changes_more_than_the_role_may(tmp_path: Path, rights: Rights, kind: str) -> None:
    world = World(tmp_path)
    secret, made = world.out / "secret.csv", world.out / "made.csv"
    files = [sql.format(f=secret, o=made, d=world.out) for sql in FILES]
    ended: Counter[str] = Counter()
    try:
        for sql in CHANGES if kind == "changes" else files:
            after, answer = world.run(sql, rights, in_transaction=False)
            ended[answer[:5]] += 1
            wrong = broken(world.before, after, rights)
            assert not wrong, f"{sql!r} changed {wrong}"
            assert not answer.startswith("XX"), f"{sql!r} ended with {answer}"
            if after != world.before:
                world.restore(after)
        assert broken(world.before, world.state(), rights) == ""
    finally:
        world.close()
    assert ended["00000"] and ended["42501"]
