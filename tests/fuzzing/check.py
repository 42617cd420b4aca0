"""Runs one statement with one role, and compares its changes with what the role may change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyFailure

from sqlshell.service.engines.engine import Rights
from tests.fuzzing.statements import statements
from tests.fuzzing.world import World, broken

RIGHTS = st.sampled_from(list(Rights))


def fuzz(world: World, examples: int, *, derandomize: bool) -> Counter[str]:
    """Try as many statements; how many ended in what. Raises AssertionError for the shortest that did too much."""
    ended: Counter[str] = Counter()
    tried: list[tuple[str, Rights, bool]] = []

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=derandomize,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(statements(), RIGHTS, st.booleans())
    def one(template: str, rights: Rights, in_transaction: bool) -> None:
        sql = template.replace("{own}", str(world.own)).replace("{out}", str(world.out))
        tried.append((sql, rights, in_transaction))
        before = world.before
        after, answer = world.run(sql, rights, in_transaction=in_transaction)
        ended[f"{rights.name} {answer[:5]}"] += 1
        if after != before:
            world.restore(after)
        wrong = broken(before, after, rights)
        assert not wrong, f"{rights.name}: {sql!r} changed {wrong}"
        assert not answer.startswith("XX"), f"{rights.name}: {sql!r} ended with {answer}"

    try:
        one()
    except FlakyFailure as error:
        # What it has changed could not be restored.
        raise AssertionError(str(error.exceptions[0])) from error
    _compare_all(world, tried)
    return ended


def _compare_all(world: World, tried: Sequence[tuple[str, Rights, bool]]) -> None:
    """Raises AssertionError if one of these statements has changed something without a trace."""
    if (after := world.state()) == world.before:
        return
    wrong = broken(world.before, after, Rights.READ)
    for sql, rights, in_transaction in tried:
        world.restore(after)
        world.run(sql, rights, in_transaction=in_transaction)
        after = world.state()
        if told := broken(world.before, after, rights):
            raise AssertionError(f"{rights.name}: {sql!r} changed {told}")
    raise AssertionError(f"one of {len(tried)} statements changed {wrong}")
