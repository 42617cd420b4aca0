"""Runs of pytest, each forked from a process that has imported what the tests import, but nothing that is changed.

Each line of stdin is a run: its arguments, its environment, and the file for what it writes. The process prints the
run's process, which leads a group of its own, and then its exit code.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from typing import Any

IMPORTED = (
    *("pytest", "_pytest.pytester", "_pytest.legacypath", "_pytest.doctest", "_pytest.logging", "_pytest.terminal"),
    *("asyncio", "sqlite3", "duckdb", "httpx", "httpcore", "anyio", "msgspec.json", "starlette.applications"),
    *("starlette.responses", "uvicorn", "websockets", "hypothesis.strategies", "jsonschema_rs", "pygments.lexers"),
    *("cryptography.fernet", "prompt_toolkit.shortcuts", "pyte", "pexpect", "multipart", "wcwidth", "tabulate"),
)


def main() -> int:
    for name in IMPORTED:
        try:
            importlib.import_module(name)
        except ImportError:
            # An extra that is not installed here is imported by the tests that want it.
            continue
    gc.freeze()
    for line in sys.stdin:
        argv, environment, log = json.loads(line)
        child = os.fork()
        if not child:
            return _run(argv, environment, log)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    return 0


def _run(argv: list[str], environment: dict[str, Any], log: str) -> int:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for standard, descriptor in enumerate((nothing, written, written)):
        os.dup2(descriptor, standard)
    os.close(nothing)
    os.close(written)
    os.environ.clear()
    os.environ.update(environment)
    importlib.invalidate_caches()
    import pytest

    return int(pytest.main(argv))


if __name__ == "__main__":
    sys.exit(main())
