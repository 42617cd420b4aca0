"""The modules that each way of starting may import, measured in a new process."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from sqlshell.launch.cli import run
code = run({argv!r})
assert code == {code}, code
print("\\n".join(sorted(sys.modules)), file=sys.stderr)
"""


def loaded(argv: list[str], code: int = 0) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(argv=argv, code=code)],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["serve", "--help"]])
def test_help_imports_nothing_heavy(argv: list[str]) -> None:
    heavy = {"httpx", "duckdb", "starlette", "prompt_toolkit", "pygments", "tabulate", "asyncio", "uvicorn"}
    assert not heavy & loaded(argv)


@pytest.mark.slow("starts Python anew")
def test_the_remote_path_imports_no_engine_and_no_prompt() -> None:
    modules = loaded(["http://127.0.0.1:9", "-q", "-c", "select 1"], 3)
    assert "httpx" in modules
    assert not {"duckdb", "starlette", "uvicorn", "prompt_toolkit", "tabulate"} & modules


@pytest.mark.slow("starts Python anew")
def test_batch_mode_on_the_local_service_imports_no_prompt() -> None:
    modules = loaded(["-q", "-c", "select 1", "--format", "csv"])
    assert "duckdb" in modules
    assert not {"prompt_toolkit", "tabulate", "multiprocessing"} & modules
    # The client calls the service without a server.
    assert not {"httpcore", "httptools", "uvicorn", "websockets"} & modules
    assert not {"sqlshell.service.engines.process.process", "sqlshell.service.engines.process.remote"} & modules
    # A statement of the engine needs no kind of object.
    assert not {"sqlshell.service.objects.kinds", "sqlshell.service.objects.store"} & modules


def test_the_service_imports_no_engine_and_no_websockets() -> None:
    assert not {"duckdb", "websockets"} & imported("sqlshell.service.server")


def test_an_engines_process_imports_only_what_an_engine_needs() -> None:
    modules = imported("sqlshell.service.engines.process.child")
    assert "duckdb" in modules
    assert not {"asyncio", "httpx", "starlette", "uvicorn", "websockets"} & modules


def test_the_first_prompt_imports_nothing_heavy() -> None:
    modules = imported("sqlshell.launch.first_prompt")
    assert not {"httpx", "duckdb", "prompt_toolkit", "pygments", "asyncio", "ssl"} & modules


def test_the_package_imports_almost_nothing() -> None:
    modules = imported("sqlshell")
    assert {name for name in modules if name.startswith("sqlshell")} == {"sqlshell", "sqlshell.version"}
    assert not {"asyncio", "inspect", "msgspec"} & modules


def imported(module: str) -> set[str]:
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())
