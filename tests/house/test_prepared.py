"""Programs that tests start end with the tests, however these end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

STARTS_AND_IS_KILLED = """
import os, pathlib, signal, sys
from tests.conftest import serve
served = serve(pathlib.Path(sys.argv[1]))
print(served.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow("starts a service")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_service_ends_with_tests_that_are_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS_AND_IS_KILLED, str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    process = Path("/proc", done.stdout.strip())
    until = time.monotonic() + 30
    while process.exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not process.exists()
