"""Organizations divide the machine's memory among them."""

from __future__ import annotations

import pytest

from sqlshell.service.organizations import organizations
from sqlshell.service.organizations.organizations import MIN_MEMORY, memory_share


def test_shares_are_no_more_than_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(organizations, "machine_memory", lambda: 100 << 30)
    assert memory_share(1) == memory_share(4) == 20 << 30
    assert memory_share(8) == 10 << 30
    assert memory_share(10_000) == MIN_MEMORY
