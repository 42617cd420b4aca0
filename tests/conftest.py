"""The real service on a real socket, and the real program in a separate process."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from tests import checked
from tests.prepared import SETTINGS, Forked, Prepared


@dataclass(frozen=True, slots=True)
class Served:
    """A running `sqlshell serve`."""

    url: str
    token: str
    process: Forked | subprocess.Popen[str]

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which the program connects to it."""
        return {"SQLSHELL_URL": self.url, "SQLSHELL_TOKEN": self.token}


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str


Program = Callable[..., Done]

PROCESSOR_SECONDS = 5.0
"""After which a text is taken for one that is read for ever."""


def clean_environment(home: Path, extra: Mapping[str, str] = {}) -> dict[str, str]:
    """An environment without anything of the person who runs the tests."""
    names = ("PATH", "LANG", "SYSTEMROOT", "TMPDIR", "COVERAGE_PROCESS_CONFIG", checked.WRONG)
    kept = {key: os.environ[key] for key in names if key in os.environ}
    return kept | {"HOME": str(home), "TERM": "xterm-256color", "PYTHONWARNINGS": "default"} | dict(extra)


_STARTED: list[Forked] = []


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        # Programs that are killed leave their temporary files, which go with this folder. pytest keeps its own.
        os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.gettempdir()
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="sqlshell-tests-")
    # What services of this run answer that is not as their OpenAPI document says.
    descriptor, os.environ[checked.WRONG] = tempfile.mkstemp(prefix="sqlshell-wrong-")
    os.close(descriptor)
    checked.install()
    # A busy machine fails no test.
    settings.register_profile("sqlshell", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("sqlshell")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """More processes than cores, because tests wait for a part of their time."""
    return (os.cpu_count() or 1) * 3 // 2


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    # What is collected stays to the end, and is not worth a search for garbage.
    gc.disable()
    if hasattr(session.config, "workerinput"):
        _import_tests(session.config)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _import_tests(config: pytest.Config) -> None:
    """Import the modules of tests, each worker beginning with another one.

    Most of the time goes into rewriting their asserts. So each worker rewrites some and finds the others in the cache,
    which is therefore written even if PYTHONDONTWRITEBYTECODE is set.
    """
    sys.dont_write_bytecode = False
    asked = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    files = sorted({file for path in asked for file in (path.rglob("test_*.py") if path.is_dir() else [path])})
    worker: dict[str, Any] = config.workerinput  # type: ignore[attr-defined]
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[first:] + files[:first]:
        # What is wrong with a module is reported when it is collected.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(config.rootpath).with_suffix("").parts))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a parameter by the beginning of a long text; pytest numbers those that begin alike."""
    if isinstance(val, bytes):
        val = val.decode("ascii", "backslashreplace")
    return val[:24] if isinstance(val, str) and len(val) > 24 else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test that is marked flaky once more if it fails."""
    mark = item.get_closest_marker("flaky")
    if mark is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed for report in reports):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        reports[0].user_properties.append(("run again", mark.args[0]))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        for name, reason in getattr(report, "user_properties", ()):
            if name == "run again":
                terminalreporter.write_line(f"RUN AGAIN {report.nodeid}: {reason}")


def pytest_unconfigure(config: pytest.Config) -> None:
    gc.unfreeze()
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)


def pytest_runtest_teardown() -> None:
    wrong = Path(os.environ[checked.WRONG])
    if wrong.stat().st_size:
        message = wrong.read_text()
        wrong.write_text("")
        pytest.fail(f"answers that are not as /openapi.json says:\n{message}", pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def nothing_stays_behind() -> Iterator[None]:
    """A test that failed may have left its service, and one that killed it our end of its output."""
    yield
    for process in _STARTED:
        process.kill()
        process.wait()
        process.close()
    if prepared.cache_info().currsize:
        prepared().close()


@functools.cache
def prepared() -> Prepared:
    """The program, ready to be forked; made for the first who asks."""
    return Prepared(clean_environment(Path(os.devnull)))


def serve(
    folder: Path,
    *options: str,
    token: str = "test-token-0123456789",
    python: Sequence[str] | None = None,
    stderr: Path | None = None,
    settings: Mapping[str, float] = {},
) -> Served:
    """Start the service with options of its own and of Python's; `stderr` is a file for what it writes there.

    `settings` are those that are no options; they need a process that is forked.
    """
    token_file = folder / "token"
    token_file.write_text(token)
    token_file.chmod(0o600)
    argv = ("serve", "--port", "0", "--token-file", str(token_file), *options)
    environment = clean_environment(folder, {SETTINGS: json.dumps(settings)} if settings else {})
    with (stderr or Path(os.devnull)).open("wb") as message:
        process = prepared().start(argv, environment, folder, stdout=PIPE, stderr=message, text=True, python=python)
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


def start(folder: Path, *argv: str, env: Mapping[str, str] = {}, **given: Any) -> Forked:
    """Start the program there; `given` are streams and options as Prepared.start() takes them."""
    process = prepared().start(argv, clean_environment(folder, env), folder, **given)
    _STARTED.append(process)
    return process


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run the program: `program(*argv, stdin=…, env=…)`; its home and working folder are empty."""

    def run(*argv: str, stdin: str | bytes | None = None, env: Mapping[str, str] = {}, timeout: float = 60) -> Done:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        process = start(tmp_path, *argv, env=env, stdin=DEVNULL if given is None else PIPE, stdout=PIPE, stderr=PIPE)
        try:
            out, err = process.communicate(given, timeout)
        finally:
            process.kill()
        assert b"Traceback" not in err, err.decode()
        return Done(process.wait(), out.decode(), err.decode())

    return run


@pytest.fixture
def bounded() -> Iterator[None]:
    """Ends, with an error, what would take for ever: none of these takes a tenth of this."""

    def enough(number: int, frame: object) -> None:
        raise AssertionError("this takes more than the length of its text")

    before = signal.signal(signal.SIGVTALRM, enough)
    signal.setitimer(signal.ITIMER_VIRTUAL, PROCESSOR_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.pem, and certificates of it for 127.0.0.1 and for a client.

    They say what their keys are for and whose they are (RFC 5280): Python 3.13 and newer refuse those that do not.
    """
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*argv: str) -> None:
        subprocess.run(["openssl", *argv], cwd=folder, check=True, capture_output=True)

    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    signs = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    openssl(*new, *signs, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority")
    for name, purpose in (("server", "IP:127.0.0.1"), ("client", "DNS:client")):
        (folder / f"{name}.ext").write_text(
            f"subjectAltName={purpose}\nextendedKeyUsage={name}Auth\nkeyUsage=critical,digitalSignature,keyEncipherment\n"
            "basicConstraints=CA:FALSE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
        )
        openssl(
            "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=x"
        )
        signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext")
        openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
    return folder
