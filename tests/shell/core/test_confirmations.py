"""What is asked before sample data is dropped."""

from __future__ import annotations

import asyncio

import pytest

from sqlshell.shell.commands import guides
from tests.shell.core.scripted import Core


@pytest.mark.parametrize(
    ("answer", "dropped"), [("y", True), (" YES ", True), ("n", False), ("", False), ("yy", False)]
)
def test_sample_data_is_dropped_if_that_is_confirmed(
    monkeypatch: pytest.MonkeyPatch, answer: str, dropped: bool
) -> None:
    asked: list[str] = []

    async def ask(question: str, *, keys: str = "") -> str:
        asked.append(question)
        return answer

    async def work() -> None:
        core = Core()
        monkeypatch.setattr(core.front_end, "ask", ask)
        await guides._remove(core.shell, ["orders", "customers"], [])
        assert asked == ["Drop 2 tables of sample data in the schema shop? [y/N] "]
        texts = [sql for sql, _ in core.client.ran]
        if not dropped:
            assert (core.err, texts) == ("not confirmed; nothing was dropped\n", [])
            return
        assert sorted(texts[:2]) == ["DROP TABLE shop.customers", "DROP TABLE shop.orders"]
        assert texts[2:] == ["DROP SCHEMA shop"]

    asyncio.run(work())
