"""Runs of the program, each forked from a process that has imported it: imports are most of the work of a short run.

What differs from `python -m sqlshell` is what the imports themselves do; tests of that start processes of their own.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

FIXED = ("PYTHON", "LC_", "LANG")
"""The interpreter reads variables that begin with these when it starts."""

IMPORTED = (
    *("anyio._backends._asyncio", "platformdirs.unix", "uvicorn.lifespan.off"),
    *(
        "sqlshell.launch.cli",
        "sqlshell.launch.embedded",
        "sqlshell.launch.invocation",
        "sqlshell.output.writers.raw_csv",
        "sqlshell.shell.commands",
    ),
)


class Prepared:
    """The process; one run at a time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._ours, theirs = socket.socketpair()
        self._fixed = fixed(environment)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.prepared", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=Path(__file__).parent.parent,
                pass_fds=[theirs.fileno()],
            )
        self._answers = self._ours.makefile("rb")

    def can_run(self, environment: Mapping[str, str]) -> bool:
        return self._process.poll() is None and fixed(environment) == self._fixed

    def run(
        self, argv: Sequence[str], given: bytes | None, environment: Mapping[str, str], folder: Path, timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Exit code, stdout and stderr. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        request = json.dumps([argv, dict(environment), str(folder)]).encode()
        read: list[tuple[IO[bytes], list[bytes]]] = []
        theirs = [os.open(os.devnull, os.O_RDONLY)] if given is None else []
        if given is not None:
            end, mine = os.pipe()
            theirs.append(end)
            writer = threading.Thread(target=_write, args=(mine, given), daemon=True)
            writer.start()
        for _ in ("stdout", "stderr"):
            mine, end = os.pipe()
            theirs.append(end)
            read.append((os.fdopen(mine, "rb"), []))
        readers = [threading.Thread(target=lambda f=f, to=to: to.append(f.read()), daemon=True) for f, to in read]
        socket.send_fds(self._ours, [len(request).to_bytes(8)], theirs)
        self._ours.sendall(request)
        for descriptor in theirs:
            os.close(descriptor)
        for reader in readers:
            reader.start()
        child = int(self._answers.readline())
        begun = time.monotonic()
        killer = threading.Timer(timeout, os.kill, (child, signal.SIGKILL))
        killer.start()
        code = int(self._answers.readline())
        killer.cancel()
        if code == -signal.SIGKILL and time.monotonic() - begun >= timeout:
            raise subprocess.TimeoutExpired(list(argv), timeout)
        for (file, _), reader in zip(read, readers, strict=True):
            reader.join()
            file.close()
        return code, b"".join(read[0][1]), b"".join(read[1][1])

    def close(self) -> None:
        self._answers.close()
        self._ours.close()
        self._process.wait(30)


def fixed(environment: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in environment.items() if key.startswith(FIXED)}


def _write(descriptor: int, given: bytes) -> None:
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(given)
    except BrokenPipeError:
        pass


def _serve(number: int) -> bool:
    """Fork for each request. True in a process that is to be the program, False when there are no more requests."""
    requests = socket.socket(fileno=number)
    while True:
        head, descriptors, _, _ = socket.recv_fds(requests, 8, 3)
        if not head:
            return False
        size = int.from_bytes(head)
        argv, environment, folder = json.loads(requests.recv(size, socket.MSG_WAITALL))
        child = os.fork()
        if not child:
            requests.close()
            for standard, descriptor in enumerate(descriptors):
                os.dup2(descriptor, standard)
                os.close(descriptor)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            time.tzset()
            tempfile.tempdir = None
            sys.argv[1:] = argv
            gc.unfreeze()
            return True
        for descriptor in descriptors:
            os.close(descriptor)
        requests.sendall(f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        requests.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    for module in IMPORTED:
        importlib.import_module(module)
    from sqlshell.__main__ import main
    from tests import checked

    checked.install()
    gc.freeze()
    if _serve(int(sys.argv[1])):
        main()
