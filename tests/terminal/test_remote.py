"""A remote service in a real pty: the hidden token prompt, and Ctrl-C with a service that does not
cancel statements.
"""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path

import pytest

from tests.client.test_statements import RUNNING, scripted
from tests.conftest import Served
from tests.service.client import Client
from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.slow("a terminal")


def test_a_token_is_asked_for_and_never_shown(tmp_path: Path, served: Served) -> None:
    terminal = Terminal(tmp_path, "-q", served.url)
    terminal.wait("token for http://127.0.0.1")
    terminal.enter(served.token)
    terminal.prompt()
    terminal.enter("select 42 as answer;")
    terminal.wait(" 42 │")
    terminal.enter("\\context")
    shown = terminal.wait("session id")
    assert re.search(r"target +http://127\.0\.0\.1", shown)
    assert served.token.encode() not in terminal.written
    terminal.prompt()
    terminal.type("\x04")
    assert terminal.end() == 0


def test_the_prompt_reads_keys_before_the_service_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        terminal = Terminal(tmp_path, "-q", url, env={"SQLSHELL_TOKEN": "tok"})
        terminal.prompt()
        terminal.enter("\\echo while it is silent")
        terminal.wait("\nwhile it is silent\n")
        terminal.prompt()
        terminal.enter("\\q")
        assert terminal.end() == 0


def test_what_is_typed_stays_when_the_token_is_rejected(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as refusing:
        url = f"http://127.0.0.1:{refusing.getsockname()[1]}"
        terminal = Terminal(tmp_path, "-q", url, env={"SQLSHELL_TOKEN": "tok"})
        terminal.prompt()
        terminal.type("\\echo kept")
        terminal.wait("> \\echo kept")
        answering = threading.Thread(target=_refuse, args=(refusing,), daemon=True)
        answering.start()
        terminal.wait(f"token for {url}:")
        terminal.type("\x03")
        terminal.wait("canceled")
        terminal.wait("> \\echo kept")
        terminal.enter(" as typed")
        terminal.wait("\nkept as typed\n")
        terminal.close()


def _refuse(server: socket.socket) -> None:
    """Reject every token."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def test_a_second_ctrl_c_stops_waiting(tmp_path: Path) -> None:
    with scripted((202, RUNNING)) as state:
        terminal = Terminal(tmp_path, "-q", state.url, env={"SQLSHELL_TOKEN": "tok"})
        terminal.wait(lambda text: re.search(r"127\.0\.0\.1:\d+>", text) is not None)
        terminal.enter("select 1;")
        terminal.wait(lambda text: "ms" in text or " s" in text.partition("select 1;")[2])
        terminal.type("\x03")
        terminal.wait(lambda text: b"TERMINATE QUERY" in b"".join(asked[3] for asked in state.asked))
        terminal.type("\x03")
        terminal.wait("stopped waiting")
        terminal.wait(f"\\fetch {str(RUNNING['statementID'])[:8]} ")
        terminal.prompt()
        terminal.type("\x04")
        assert terminal.end() == 0


def test_a_service_that_is_gone(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", "http://127.0.0.1:9", env={"SQLSHELL_TOKEN": "tok"})
    terminal.wait(lambda text: re.search(r"127\.0\.0\.1:\d+>", text) is not None)
    terminal.enter("select 1;")
    terminal.wait("connection refused")
    terminal.prompt()
    terminal.enter("\\q")
    assert terminal.end() == 0


def test_what_is_made_is_a_tag_and_what_is_gone_is_told_once(tmp_path: Path, served: Served) -> None:
    terminal = Terminal(tmp_path, "-q", served.url, env={"SQLSHELL_TOKEN": served.token}, rows=40, columns=120)
    terminal.wait(">")
    with Client(served) as other:
        other.run("create schema gone_at_prompt")
        terminal.enter("use schema gone_at_prompt;")
        terminal.wait("gone_at_prompt>")
        assert other.state("drop schema gone_at_prompt") == "00000"
    terminal.enter("select 5 + 1; select 6 + 1;")
    told = terminal.wait("not run")
    assert told.count("3D003") == 1
    assert "is selected now" in told
    assert "╭" not in told
    terminal.enter("\\nonsense")
    terminal.wait("unknown command")
    terminal.enter("create or replace temp table made as select 1 as i;")
    made = terminal.wait("CREATE")
    assert "3D003" not in made.partition("create or replace")[2]
    terminal.wait(lambda text: "CREATE TEMP" in text.partition("as i;")[2] or "CREATE" in text.partition("as i;")[2])
    assert "summary" not in terminal.screen()
    terminal.enter("create store s with ('kafka.sasl.username' = 'hunter2_47', 'sasl.password' = hunter2_47);")
    terminal.wait(lambda text: "error" in text.partition("hunter2_47")[2])
    terminal.prompt()
    terminal.type("\x04")
    assert terminal.end() == 0
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("history" in str(path) for path in kept)
    assert not [path for path in kept if b"hunter2_47" in path.read_bytes()]
