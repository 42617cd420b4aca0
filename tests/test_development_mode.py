"""`python -X dev -W error` reports nothing in sessions of all kinds: no open connections, no warnings of libraries."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Served, clean_environment, serve, stop
from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.slow("starts Python anew")

DEVELOPING = [sys.executable, "-X", "dev", "-W", "error", "-m", "sqlshell"]

SESSIONS = {
    "a script": ["-c", "select 1", "-c", r"\d", "-c", "select 1;&", "-c", r"\jobs"],
    "a statement again and again": ["-c", r"select 1 \watch 0.1 c=2"],
    "named queries": ["-c", r"\n+ one select 1", "-c", r"\n one", "-c", r"\n"],
    "a file": ["kept.duckdb", "-c", "create or replace table t (a int)", "-c", "insert into t values (1) returning *"],
    "a result in a file": ["-c", "select * from range(100000)", "-o", "rows.csv"],
    "local SQL": ["-c", "select 1 as x", "-c", r"\local select x + 1 from _"],
    "a transcript": ["-c", r"\transcript kept.sql", "-c", "select 1", "-c", r"\transcript"],
    "a failure": ["-c", "selct"],
    "an unknown statement": ["fetch", "nonsense"],
    "help": ["--help"],
    "settings": ["config", "list"],
    "repairing": ["doctor"],
    "a service that refuses": ["http://127.0.0.1:9", "-c", "select 1"],
    "a database that is none": ["none.db", "-c", "select 1"],
}


def run(home: Path, *argv: str, token: str = "") -> str:
    """What the program wrote on stderr."""
    environment = clean_environment(home, {"SQLSHELL_TOKEN": token} if token else {})
    environment.pop("PYTHONWARNINGS")
    done = subprocess.run(
        [*DEVELOPING, *argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=home,
        env=environment,
        check=False,
    )
    return done.stderr


def silent(text: str) -> bool:
    # asyncio tells of each step that took a tenth of a second, and on a busy machine any may.
    slow = re.search(r"Executing <.* took [1-9]\d*\.\d+ seconds", text)
    return not slow and not any(word in text for word in ("Warning", "Exception", "Traceback", "nanobind"))


@pytest.mark.parametrize("kind", SESSIONS)
def test_a_session(tmp_path: Path, kind: str) -> None:
    (tmp_path / "none.db").write_text("this is no database")
    message = run(tmp_path, *SESSIONS[kind])
    assert silent(message), message


def test_a_prompt(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, python=DEVELOPING[1:-2])
    terminal.prompt()
    terminal.enter("create table kept (a int);")
    terminal.wait("CREATE TABLE")
    terminal.type("select * from k\t")
    terminal.wait("kept")
    terminal.type("\x03")
    terminal.enter(r"select 1 as again \watch 0.1 c=2")
    terminal.wait("every 0.1s")
    terminal.prompt()
    terminal.enter(r"\q")
    assert terminal.end() == 0
    assert silent(terminal.written.decode()), terminal.written.decode()


def test_a_service(tmp_path: Path) -> None:
    served: Served = serve(tmp_path, "--data", "kept", python=DEVELOPING[1:-2], stderr=tmp_path / "message")
    message = [
        run(
            tmp_path, served.url, "-c", "create stream s (a int)", "-c", "insert into s values (1)", token=served.token
        ),
        run(tmp_path, served.url, "-c", "from range(100000)", "-o", "rows.csv", token=served.token),
        run(tmp_path, served.url, "-c", "from s", "--max-rows", "1", "--duration", "1s", token=served.token),
        run(tmp_path, served.url, "-c", "select 1;&", "-c", r"\wait", "-c", r"\jobs", token=served.token),
    ]
    assert stop(served) == 0
    message.append((tmp_path / "message").read_text())
    assert all(map(silent, message)), message
