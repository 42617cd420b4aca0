"""The prompt shows the state of a transaction, on the embedded service, on `serve`, and after \\c."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Served
from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.slow("a terminal")


def _prompts(mark: str, name: str = "memory.main") -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        lines = [line for line in text.split("\n") if line and "│" not in line]
        return bool(lines) and lines[-1] == f"{name}{mark}>"

    return holds


def test_a_transaction_at_the_prompt(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", "w.duckdb", rows=50)
    terminal.wait(_prompts("", "w.main"))
    steps = (
        ("create table t (a int primary key);", ""),
        ("begin;", "*"),
        ("insert into t values (1);", "*"),
        ("selct;", "*"),
        ("\\d t", "*"),
        ("select nope;", "!"),
        ("select 1 as one;", "!"),
        ("commit;", ""),
        ("begin; insert into t values (7); rollback; select 1 as two;", ""),
        ("begin; begin;", "!"),
        ("rollback;", ""),
        ("begin; select 2 as three;", "*"),
        ("begin;&", "*"),
    )
    for number, (text, mark) in enumerate(steps):
        terminal.enter(text)
        # What is typed while a statement runs is shown before it is read.
        terminal.wait(_prompts(mark, "w.main"))
        terminal.enter(f"\\echo step-{number}")
        terminal.wait(lambda seen, number=number: f"\nstep-{number}\n" in seen)  # type: ignore[misc]
        terminal.wait(_prompts(mark, "w.main"))
    terminal.enter("\\c other.duckdb")
    terminal.wait("connected to other.duckdb")
    terminal.enter("begin;")
    terminal.wait(_prompts("*", "other.main"))
    terminal.close()


def test_a_transaction_of_a_served_session(tmp_path: Path, served: Served) -> None:
    terminal = Terminal(tmp_path, "-q", served.url, env={"SQLSHELL_TOKEN": served.token})
    terminal.prompt()
    for text, mark in (("begin;", "*>"), ("begin;", "!>"), ("rollback;", "main>")):
        terminal.enter(text)
        terminal.wait(lambda seen, mark=mark: [x for x in seen.split("\n") if x and "│" not in x][-1].endswith(mark))  # type: ignore[misc]
    terminal.close()


@pytest.mark.parametrize(("template", "shown"), [("{database}{transaction}# ", "w*#")])
def test_the_mark_in_a_template(tmp_path: Path, template: str, shown: str) -> None:
    terminal = Terminal(tmp_path, "-q", "w.duckdb")
    terminal.prompt()
    terminal.enter(f"\\pset prompt '{template}'")
    terminal.wait("w#")
    terminal.enter("begin;")
    terminal.wait(shown)
    terminal.close()


def test_ctrl_c_while_connecting_keeps_the_connection(tmp_path: Path, served: Served) -> None:
    terminal = Terminal(tmp_path, "work.duckdb")
    terminal.prompt()
    terminal.enter("begin;")
    terminal.wait("main*>")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        terminal.enter(f"\\c http://127.0.0.1:{silent.getsockname()[1]}")
        connection, _ = silent.accept()
        with connection:
            terminal.type("\x03")
            terminal.wait("still connected to work.duckdb")
    terminal.enter("select 41 + 1 as still_there;")
    terminal.wait(" 42 │")
    terminal.wait(_prompts("*", "work.main"))
    terminal.enter(f"\\c {served.url}")
    terminal.wait("token for")
    terminal.enter(served.token)
    terminal.wait(f"connected to {served.url}")
    terminal.close()
