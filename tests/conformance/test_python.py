"""Python's own: SQLAlchemy's tests of dialects, the published tests of PEP 249, JupySQL in a notebook."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from sqlshell.dbapi import connect
from tests.conformance.environments import python_with
from tests.conftest import clean_environment

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PASSED = 1413
"""The tests of SQLAlchemy 2.1.9 that pass, at least."""


def run(folder: Path, *argv: str, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = clean_environment(folder, {"PYTHONPATH": path} if path else {})
    return subprocess.run(argv, capture_output=True, text=True, cwd=folder, env=environment, timeout=3000, check=False)


@pytest.mark.conformance
@pytest.mark.timeout(1200)
def test_sqlalchemy_s_tests_of_dialects(tmp_path: Path) -> None:
    for file in (HERE / "sqlalchemy_suite").iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    (tmp_path / "conftest.py").write_text("from plugin import *\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\npython_files = suite.py\n")
    with connect(tmp_path / "suite.duckdb") as connection:
        connection.execute("create schema test_schema")
    # pytest's own tracebacks parse the long files of tests that fail as expected, which takes most of the time.
    options = ("-c", "pytest.ini", "-p", "unsupported", "-p", "no:xdist", "-p", "no:schemathesis", "-q", "--tb=native")
    url = f"sqlshell:///{tmp_path}/suite.duckdb"
    done = run(tmp_path, sys.executable, "-m", "pytest", *options, "--maxfail=10000", "--dburi", url, "suite.py")
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (\w+)", done.stdout.splitlines()[-1])}
    assert not {"failed", "errors", "error"} & counts.keys(), done.stdout[-5_000:]
    assert counts["passed"] >= PASSED


@pytest.mark.conformance
def test_the_published_tests_of_the_pep(tmp_path: Path) -> None:
    python = python_with("dbapi-compliance==1.15.0")
    [folder] = python.parents[1].glob("lib/python*/site-packages")
    done = run(tmp_path, sys.executable, str(HERE / "drive_dbapi20.py"), str(folder), path=str(ROOT))
    assert re.search(r"Ran 36 tests in .*\n\nOK\n", done.stderr), done.stderr


@pytest.mark.conformance
def test_jupysql_in_a_notebook(tmp_path: Path) -> None:
    python = python_with("jupysql==0.11.1", "nbclient==0.11.0", "ipykernel==7.4.0")
    path = os.pathsep.join((str(ROOT), sysconfig.get_path("purelib")))
    done = run(tmp_path, str(python), str(HERE / "drive_jupysql.py"), "sqlshell://", path=path)
    assert done.returncode == 0, done.stderr[-3_000:]
    outputs = json.loads(done.stdout)
    assert outputs[3].strip() == """[(1, "it's"), (2, 'two')]"""
    assert outputs[4].strip() == "two"
    assert outputs[5].strip() == "[{'n': 2}]"
    assert "notes" in outputs[6]
    assert outputs[7].strip() == "4999950000"
    assert outputs[8].split()[-1] == "12497500"
    assert outputs[9].strip() == "[{'one': 1}]"
