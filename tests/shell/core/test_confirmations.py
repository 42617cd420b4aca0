"""What is asked before sample data is dropped, and what the blocks of \\parallel refuse."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sqlshell.shell.commands import guides
from sqlshell.shell.effects import Chain, Execute, ShowMessage
from sqlshell.shell.running import parallel
from tests.shell.core.scripted import Core


@pytest.mark.parametrize(
    ("answer", "dropped"), [("y", True), (" YES ", True), ("n", False), ("", False), ("yy", False)]
)
def test_sample_data_is_dropped_if_that_is_confirmed(
    monkeypatch: pytest.MonkeyPatch, answer: str, dropped: bool
) -> None:
    asked: list[str] = []

    async def ask(question: str) -> str:
        asked.append(question)
        return answer

    async def work() -> None:
        core = Core()
        monkeypatch.setattr(core.front_end, "ask", ask)
        effect = await guides._remove(core.shell.view, ["orders", "customers"], [])
        assert asked == ["Drop 2 tables of sample data in the schema shop? [y/N] "]
        if not dropped:
            assert effect == ShowMessage("not confirmed; nothing was dropped")
            return
        assert isinstance(effect, Chain)
        executed = effect.effects[0]
        assert isinstance(executed, Execute)
        texts = [statement.text for statement in executed.statements]
        assert sorted(texts[:2]) == ["DROP TABLE shop.customers", "DROP TABLE shop.orders"]
        assert texts[2:] == ["DROP SCHEMA shop"]

    asyncio.run(work())


def run(text: str) -> Core:
    async def work() -> Core:
        core = Core()
        core.session.options.on_error = "continue"
        await core.run(text)
        return core

    return asyncio.run(work())


def test_a_block_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "MOST_STATEMENTS", 2)
    core = run("\\parallel 2\nselect 1;\nselect 2;\nselect 3;\n\\end\n")
    assert "\\parallel: at most 2 statements with" in core.err
    monkeypatch.setattr(parallel, "MOST_CHARACTERS", 16)
    assert run("\\parallel 2\nselect 1;\nselect 2;\n\\end\n").err == ""
    assert "use several blocks" in run("\\parallel 2\nselect 1;\nselect 22;\n\\end\n").err


def test_a_block_ends_in_its_own_script(tmp_path: Path) -> None:
    (tmp_path / "inner.sql").write_text("\\end\n")
    core = run(f"\\parallel 2\nselect 1;\n\\i {tmp_path}/inner.sql\n\\end\n")
    assert "\\end: the \\parallel is in another script" in core.err
