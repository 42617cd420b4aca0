"""A test is run again only if it is marked flaky, and the summary tells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pathlib
import pytest

def fails_at_first(path):
    path.open("a").write(".")
    assert path.stat().st_size > 1

@pytest.mark.flaky("the reason")
def test_marked():
    fails_at_first(pathlib.Path("marked"))

@pytest.mark.flaky("another")
def test_broken():
    assert False

def test_other():
    fails_at_first(pathlib.Path("other"))
"""


@pytest.mark.slow("runs pytest")
@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")])
def test_a_test_is_run_again_only_if_it_is_marked(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import pytest_runtest_protocol, pytest_terminal_summary\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = flaky(reason)\n")
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "--disable-plugin-autoload", "-p", "no:cacheprovider", *options]
    root = str(Path(__file__).parents[2])
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": root}, capture_output=True, text=True, check=False)
    told = [line for line in done.stdout.splitlines() if line.startswith(("RUN AGAIN", "FAILED"))]
    assert done.stdout.splitlines()[-1].startswith("2 failed, 1 passed"), done.stdout
    assert sorted(line.partition(" - ")[0] for line in told) == [
        "FAILED test_it.py::test_broken",
        "FAILED test_it.py::test_other",
        "RUN AGAIN test_it.py::test_broken: another",
        "RUN AGAIN test_it.py::test_marked: the reason",
    ]
