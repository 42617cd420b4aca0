"""The memory shares of all organizations together never exceed the machine's memory."""

from __future__ import annotations

from sqlshell.service.organizations.memory_quota import MIN_BYTES, PARTS, MemoryQuota

GIB = 1 << 30


def test_shares_are_no_more_than_the_whole() -> None:
    quota = MemoryQuota(16 * GIB)
    given = [quota.of(str(number)) for number in range(6)]
    assert given[: PARTS - 2] == [4 * GIB] * (PARTS - 2)
    assert sum(given) <= 16 * GIB
    assert [quota.of(str(number)) for number in range(6)] == given
    assert min(quota.of(str(number)) for number in range(60)) == MIN_BYTES


def test_a_share_is_free_when_its_organization_is_gone() -> None:
    quota = MemoryQuota(16 * GIB)
    for number in range(100):
        assert quota.of(str(number)) == 4 * GIB
        quota.forget(str(number))
