"""`\\c` if a step of it fails: the shell stays connected as it was, under the same policy."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from tests.conftest import Program

PROFILES = """
[profiles.first]
url = "first.duckdb"
read_only = true

[profiles.pattern]
url = "other.duckdb"
secret_names = ["("]

[profiles.confirm]
url = "other.duckdb"
confirm = ["DRPO"]

[profiles.zone]
url = "other.duckdb"
timezone = "Mars/Olympus"

[profiles.token]
url = "http://127.0.0.1:9"
token_file = "absent"
"""
FAILING = {
    "pattern": "not a valid regular expression",
    "confirm": "'DRPO' is not a kind of statement",
    "zone": "unknown time zone 'Mars/Olympus'",
    "token": "cannot read token file",
    "absent": "not a URL, profile or existing file",
    "http://127.0.0.1:9": "connection refused",
    "held.duckdb": f"in use by process {os.getpid()}",
}


@pytest.mark.parametrize("target", FAILING)
def test_a_connection_that_fails_changes_nothing(program: Program, tmp_path: Path, target: str) -> None:
    (tmp_path / "config.toml").write_text(PROFILES)
    duckdb.connect(str(tmp_path / "first.duckdb")).close()
    with duckdb.connect(str(tmp_path / "held.duckdb")):
        done = program(
            *("first", "-q", "--format", "csv", "--on-error", "continue"),
            *("-c", "select 1 as one", "-c", f"\\c {target}"),
            *("-c", "select current_database() as d", "-c", "create table t (i int)"),
            env={"SQLSHELL_CONFIG_DIR": str(tmp_path)},
        )
    assert FAILING[target] in done.err
    assert "still connected to first (first.duckdb)" in done.err
    assert done.out == "one\n1\nd\nfirst\n"
    assert "cannot run CREATE TABLE: profile 'first' allows only statements that read" in done.err
    assert not (tmp_path / "other.duckdb").exists()
