"""The real service on a real socket, and the real program in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import checked
from tests.prepared import Prepared

CHECKED = Path(checked.__file__)
"""The program that is `sqlshell`, and checks the answers of its service."""


@dataclass(frozen=True, slots=True)
class Served:
    """A running `sqlshell serve`."""

    url: str
    token: str
    process: subprocess.Popen[str]


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str


Program = Callable[..., Done]


def clean_environment(home: Path, extra: Mapping[str, str] = {}) -> dict[str, str]:
    """An environment without anything of the person who runs the tests."""
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "SYSTEMROOT", checked.WRONG) if key in os.environ}
    return kept | {"HOME": str(home), "TERM": "xterm-256color", "PYTHONWARNINGS": "default"} | dict(extra)


_STARTED: list[subprocess.Popen[str]] = []

_WRONG = Path(tempfile.mkstemp(prefix="sqlshell-wrong-")[1])
"""What services of this run answered that is not as their OpenAPI document says."""


def pytest_configure() -> None:
    os.environ[checked.WRONG] = str(_WRONG)
    checked.install()


def pytest_unconfigure() -> None:
    _WRONG.unlink(missing_ok=True)


def pytest_runtest_teardown() -> None:
    if _WRONG.stat().st_size:
        said = _WRONG.read_text()
        _WRONG.write_text("")
        pytest.fail(f"answers that are not as /openapi.json says:\n{said}", pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def nothing_stays_behind() -> Iterator[None]:
    """A test that failed may have left its service."""
    yield
    for process in _STARTED:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def serve(
    folder: Path,
    *options: str,
    token: str = "test-token-0123456789",
    python: Sequence[str] = (),
    stderr: Path | None = None,
) -> Served:
    """Start the service with options of its own and of Python's; `stderr` is a file for what it writes there."""
    token_file = folder / "token"
    token_file.write_text(token)
    token_file.chmod(0o600)
    with (stderr or Path(os.devnull)).open("wb") as said:
        process = subprocess.Popen(
            [
                sys.executable,
                *python,
                str(CHECKED),
                "serve",
                "--port",
                "0",
                "--token-file",
                str(token_file),
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=clean_environment(folder),
            cwd=folder,
        )
    _STARTED.append(process)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on "), line
    return Served(line.removeprefix("listening on ").strip(), token, process)


def stop(served: Served) -> int:
    served.process.send_signal(signal.SIGTERM)
    code = served.process.wait(30)
    assert served.process.stdout is not None
    served.process.stdout.close()
    return code


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for all tests that do not change it; partitions of 1,000 rows."""
    running = serve(tmp_path_factory.mktemp("service"), "--partition-rows", "1000")
    yield running
    stop(running)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    made = Prepared(clean_environment(tmp_path_factory.mktemp("prepared")))
    yield made
    made.close()


@pytest.fixture
def program(tmp_path: Path, prepared: Prepared) -> Program:
    """Run the program: `program(*argv, stdin=…, env=…)`; its home and working folder are empty."""

    def run(*argv: str, stdin: str | bytes | None = None, env: Mapping[str, str] = {}, timeout: float = 60) -> Done:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        if prepared.can_run(environment := clean_environment(tmp_path, env)):
            code, out, err = prepared.run(argv, given, environment, tmp_path, timeout)
            assert b"Traceback" not in err, err.decode()
            return Done(code, out.decode(), err.decode())
        done = subprocess.run(
            [sys.executable, "-m", "sqlshell", *argv],
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            env=environment,
            cwd=tmp_path,
            timeout=timeout,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
