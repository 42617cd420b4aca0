"""Virtual environments of third-party clients, created once for each checkout and set of versions."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / ".pytest_cache" / "environments"
SECONDS = 600
"""The longest time that pip may take."""


def python_with(*requirements: str) -> Path:
    """The Python of an environment that has these packages. Skips the test where no registry gives them."""
    key = hashlib.sha256("\n".join((sys.version, *requirements)).encode())
    ROOT.mkdir(parents=True, exist_ok=True)
    folder = ROOT / key.hexdigest()[:16]
    with (ROOT / f"{folder.name}.lock").open("w") as lock:
        # Processes that test side by side make it once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        python, whole = folder / "bin" / "python", folder / "whole"
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            venv.create(folder, with_pip=True)
            command = [
                str(python),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--retries",
                "1",
                *requirements,
            ]
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            if done.returncode:
                shutil.rmtree(folder, ignore_errors=True)
                message = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [
                    done.stderr[-200:]
                ]
                pytest.skip(f"pip cannot install {' '.join(requirements)}: {message[-1]}")
            whole.touch()
    return python
