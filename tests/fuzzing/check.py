"""Runs one statement with one role, and compares its changes with what the role may change."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sqlshell.service.engines.engine import Rights
from tests.fuzzing.statements import statements
from tests.fuzzing.world import World, broken


def fuzz(world: World, examples: int, *, derandomize: bool) -> Counter[str]:
    """Try as many statements; how many ended in what. Raises AssertionError for the shortest that did too much."""
    ended: Counter[str] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=derandomize,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(statements(), st.sampled_from(list(Rights)), st.booleans())
    def one(template: str, rights: Rights, in_transaction: bool) -> None:
        sql = template.replace("{own}", str(world.own)).replace("{out}", str(world.out))
        before = world.before
        after, answer = world.run(sql, rights, in_transaction=in_transaction)
        ended[f"{rights.name} {answer[:5]}"] += 1
        if after != before:
            world.restore()
        wrong = broken(before, after, rights)
        assert not wrong, f"{rights.name}: {sql!r} changed {wrong}"
        assert not answer.startswith("XX"), f"{rights.name}: {sql!r} ended with {answer}"

    one()
    return ended
