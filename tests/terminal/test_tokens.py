"""A prompt for another token when one is rejected, at a terminal and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Program, serve, stop
from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.slow("a terminal")


def test_a_wrong_token_is_noticed_before_a_statement_is_typed(tmp_path: Path) -> None:
    served = serve(tmp_path)
    try:
        terminal = Terminal(tmp_path, "-q", served.url, env={"SQLSHELL_TOKEN": "wrong"})
        terminal.wait(f"token for {served.url}:")
        terminal.enter(served.token)
        terminal.prompt()
        terminal.enter("select 41 + 1 as once;")
        assert terminal.wait(" 42 │").count("token for") == 1
        terminal.close()
        terminal = Terminal(tmp_path, "-q", served.url, env={"SQLSHELL_TOKEN": "wrong"})
        terminal.wait(f"token for {served.url}:")
        terminal.type("\x03")
        terminal.wait("canceled")
        terminal.prompt()
        terminal.close()
    finally:
        stop(served)


def test_a_token_is_asked_for_again(tmp_path: Path, program: Program) -> None:
    first = serve(tmp_path)
    port = first.url.rpartition(":")[2]
    terminal = Terminal(tmp_path, "-q", first.url, env={"SQLSHELL_TOKEN": first.token})
    terminal.prompt()
    terminal.enter("select 41 + 1 as before;")
    terminal.wait(" 42 │")
    stop(first)
    second = serve(tmp_path, "--port", port, token="another-token-987654321")
    try:
        terminal.enter("select 42 + 1 as after;")
        terminal.wait("rejected the token")
        terminal.wait(f"token for {first.url}:")
        terminal.enter("wrong")
        assert "wrong" not in terminal.wait("invalid token")
        terminal.enter("\\echo still here")
        terminal.wait("\nstill here\n")
        terminal.clear()
        terminal.enter("select 43 + 1 as again;")
        terminal.wait("token for")
        terminal.enter(second.token)
        shown = terminal.wait(" 44 │")
        assert shown.count("token for") == 1
        assert second.token not in shown
        terminal.clear()
        terminal.enter("select 44 + 1 as once;")
        assert "token for" not in terminal.wait(" 45 │")
        terminal.close()
        script = program(first.url, "-c", "select 1", env={"SQLSHELL_TOKEN": first.token})
        assert (script.code, "token for" in script.err) == (3, False)
    finally:
        stop(second)
