"""Runs the program in a process forked from one that has imported it, because imports take most of a short run.

What differs from `python -m sqlshell` is what the imports do, and that the interpreter is not taken apart at the end.
Tests of those give options of Python: the forked process then starts Python anew. A service's own processes are forked
as well (see forked.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import IO, Any, NoReturn

from msgspec.structs import replace

from tests import forked

FIXED = ("PYTHON", "LC_", "LANG")
"""The interpreter reads variables that begin with these when it starts."""

IMPORTED = (
    *("anyio._backends._asyncio", "encodings.idna", "uvicorn.lifespan.off"),
    "difflib",  # click imports it for each short option
    *("sqlshell.launch.cli", "sqlshell.launch.embedded", "sqlshell.launch.invocation", "sqlshell.launch.serve"),
    *("sqlshell.launch.configure", "sqlshell.launch.transfer"),
    *("sqlshell.service.server", "sqlshell.shell.interactive.loop"),
    *("sqlshell.shell.commands", "sqlshell.shell.commands.lexing"),
    *("sqlshell.shell.loading.load", "sqlshell.shell.running.excerpt", "sqlshell.shell.running.send_ahead"),
    *("sqlshell.output.changes", "sqlshell.sql.analysis.effects"),
    *("sqlshell.output.writers.delimited", "sqlshell.output.writers.csv_from_json"),
    *("sqlshell.output.writers.styles", "sqlshell.output.writers.table", "sqlshell.output.text.display"),
    *forked.IMPORTED,
)
"""What most runs of the program import, and what takes them longest."""

SETTINGS = "TESTED_SETTINGS"
"""The variable with a service's settings that are no options, as JSON."""

CHECKED = Path(__file__).with_name("checked.py")
"""The program that is `sqlshell`, and checks the answers of its service."""


class Forked:
    """A process, with what tests use of subprocess.Popen. `streams` are our ends of its standard streams."""

    def __init__(self, argv: Sequence[str], status: socket.socket, streams: Sequence[IO[Any] | None]) -> None:
        self.args = list(argv)
        self.stdin, self.stdout, self.stderr = streams
        self.returncode: int | None = None
        self._status = status
        self._lock = threading.Lock()
        self.pid = _read(status)

    def poll(self) -> int | None:
        """The exit code, or minus the signal; None while it runs."""
        with self._lock:
            if self.returncode is None and select.select([self._status], [], [], 0)[0]:
                self.returncode = _read(self._status)
                self._status.close()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises TimeoutExpired."""
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._status], [], [], left)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Write to it, and wait until it has ended: what it wrote on stdout and stderr. Raises TimeoutExpired."""
        message: dict[str, Any] = {}

        def read(name: str, file: IO[Any]) -> None:
            with file:
                message[name] = file.read()

        def write(file: IO[Any]) -> None:
            # It may end without having read everything.
            with contextlib.suppress(BrokenPipeError), file:
                file.write(given)

        names = [name for name in ("stdout", "stderr") if getattr(self, name) is not None]
        threads = [threading.Thread(target=read, args=(name, getattr(self, name)), daemon=True) for name in names]
        if self.stdin is not None and given:
            threads.append(threading.Thread(target=write, args=(self.stdin,), daemon=True))
        elif self.stdin is not None:
            self.stdin.close()
        for thread in threads:
            thread.start()
        self.wait(timeout)
        for thread in threads:
            thread.join()
        return message.get("stdout"), message.get("stderr")

    def close(self) -> None:
        """Close our ends of its streams."""
        for file in (self.stdin, self.stdout, self.stderr):
            if file is not None:
                file.close()

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.wait()


class Prepared:
    """The process that is forked."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._requests, theirs = socket.socketpair()
        self._fixed = _fixed(environment)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.prepared", str(theirs.fileno())],
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env=environment,
                cwd=Path(__file__).parent.parent,
                pass_fds=[theirs.fileno()],
            )

    def start(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        stdin: int | IO[Any] = DEVNULL,
        stdout: int | IO[Any] = DEVNULL,
        stderr: int | IO[Any] = DEVNULL,
        text: bool = False,
        python: Sequence[str] | None = None,
        terminal: bool = False,
    ) -> Forked:
        """`sqlshell *argv`, in `folder`; its streams are given as to Popen, and are in UTF-8 where `text`.

        `python` are options of Python, which is started anew for them. With `terminal`, stdin becomes the terminal
        that controls it.
        """
        if python is None and _fixed(environment) != self._fixed:
            python = ()
        status, its_status = socket.socketpair()
        with contextlib.ExitStack() as theirs:
            theirs.enter_context(its_status)
            ours: list[IO[Any] | None] = []
            descriptors = [its_status.fileno()]
            for given, writes in ((stdin, True), (stdout, False), (stderr, False)):
                if given == PIPE:
                    end, mine = os.pipe() if writes else os.pipe()[::-1]
                    theirs.callback(os.close, end)
                    ours.append(_opened(mine, writes=writes, text=text))
                else:
                    end = given if isinstance(given, int) else given.fileno()
                    if given == DEVNULL:
                        end = os.open(os.devnull, os.O_RDWR)
                        theirs.callback(os.close, end)
                    ours.append(None)
                descriptors.append(end)
            request = json.dumps([list(argv), dict(environment), str(folder), python, terminal]).encode()
            socket.send_fds(self._requests, [len(request).to_bytes(8)], descriptors)
            self._requests.sendall(request)
            return Forked(argv, status, ours)

    def close(self) -> None:
        self._requests.close()
        self._process.wait(30)


def _opened(descriptor: int, *, writes: bool, text: bool) -> IO[Any]:
    if text:
        return open(descriptor, "w" if writes else "r", encoding="utf-8", buffering=-1)
    return os.fdopen(descriptor, "wb" if writes else "rb")


def _fixed(environment: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in environment.items() if key.startswith(FIXED)}


def _read(status: socket.socket) -> int:
    return int.from_bytes(status.recv(8, socket.MSG_WAITALL), signed=True)


def _tell(status: socket.socket, number: int) -> None:
    # Who started it may be gone.
    with contextlib.suppress(OSError):
        status.sendall(number.to_bytes(8, signed=True))


def _forks(requests: socket.socket) -> Iterator[tuple[Sequence[str], Sequence[str] | None]]:
    """Fork for each request. Only a forked process is given something: its argv, and options of a Python to start."""
    running: dict[int, socket.socket] = {}
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                woken.recv(1 << 12)
                while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    with running.pop(ended[0]) as status:
                        _tell(status, os.waitstatus_to_exitcode(ended[1]))
            if requests not in ready:
                continue
            head, descriptors, _, _ = socket.recv_fds(requests, 8, 4)
            if not head:
                # Who started them has ended, or was killed.
                for child in running:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                return
            request = requests.recv(int.from_bytes(head), socket.MSG_WAITALL)
            status = socket.socket(fileno=descriptors[0])
            if child := os.fork():
                for descriptor in descriptors[1:]:
                    os.close(descriptor)
                running[child] = status
                _tell(status, child)
                continue
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for held in (requests, woken, waker, status, *running.values()):
                held.close()
            selector.close()
            argv, environment, folder, python, terminal = json.loads(request)
            for standard, descriptor in enumerate(descriptors[1:]):
                os.dup2(descriptor, standard)
                os.close(descriptor)
            if terminal:
                os.setsid()
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            yield argv, python


def _become(argv: Sequence[str]) -> NoReturn:
    """Be the program. It ends as the interpreter does, but for what takes the modules apart."""
    from sqlshell.__main__ import main

    time.tzset()
    tempfile.tempdir = None
    sys.argv[1:] = argv
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())  # type: ignore[union-attr]
    if argv[:1] == ["serve"]:
        forked.install()
        _set(json.loads(os.environ.pop(SETTINGS, "{}")))
    forked.leave(main)


def _set(settings: Mapping[str, float]) -> None:
    """Give a service settings that are no options."""
    from sqlshell.launch import serve

    of_options = serve.settings_of
    serve.settings_of = lambda given: replace(of_options(given), **settings)


def _serve(number: int) -> None:
    from sqlshell.service.settings import EMBEDDED
    from tests import checked
    from tests.opened import open_ahead

    for module in IMPORTED:
        importlib.import_module(module)
    checked.install()
    open_ahead()
    # What the first check of an answer imports and reads takes as long as the rest of a short run.
    checked.of_settings(EMBEDDED)
    gc.freeze()
    for argv, python in _forks(socket.socket(fileno=number)):
        if python is None:
            _become(argv)
        os.execve(sys.executable, [sys.executable, *python, str(CHECKED), *argv], os.environ)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
