"""Everything that commands print to stdout and stderr: of their own accord, and of what they refuse."""

from __future__ import annotations

import asyncio

import pytest

from sqlshell.errors import Exit
from sqlshell.origin import Trusted
from tests.goldens import run_sessions
from tests.shell.core.scripted import Core


def run(script: str) -> Core:
    async def work() -> Core:
        core = Core()
        core.session.options.on_error = "continue"
        # A service that has announced something is not asked for it.
        core.session.connection.service.transport.extensions = frozenset({"batch"})
        await core.shell.run_script([Trusted(script)], "")
        await core.shell.aclose()
        return core

    return asyncio.run(work())


def test_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    def printed(script: str) -> tuple[str, str]:
        core = run(script)
        return core.out, core.err

    run_sessions("sessions/commands.txt", printed)


def test_a_refused_command_sends_nothing_and_fails_its_script() -> None:
    def printed(script: str) -> tuple[str, str]:
        core = run(script)
        assert core.client.ran == []
        assert core.shell.exit == Exit.USAGE
        return core.out, core.err

    run_sessions("sessions/refusals.txt", printed)
