"""The service's own processes, forked from one that has imported what they need: DuckDB is most of their start.

A service that was forked itself (see prepared.py) calls install(). What differs from a true start is what an
interpreter does when it begins: its options, and the variables that the C library and DuckDB's allocator read. Tests of
those start the service with options of Python.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

IMPORTED = ("sqlshell.service.engines.process.child", "sqlshell.service.engines.converter")

SOURCE = "forked-from"
"""The name of the process that is forked, one for each service and a child of it."""

_END_WITH_PARENT, _NAME, _ADOPT = 1, 15, 36
"""PR_SET_PDEATHSIG, PR_SET_NAME and PR_SET_CHILD_SUBREAPER of prctl()."""

_MESSAGE = 64 << 10
_DESCRIPTORS = 16


def install() -> None:
    """Have this process's own processes forked. It has one thread yet."""
    if not sys.platform.startswith("linux"):
        # Elsewhere a process adopts none of its grandchildren.
        return
    from sqlshell.service.engines.process import process

    service, libc = os.getpid(), ctypes.CDLL(None)
    libc.prctl(_ADOPT, 1, 0, 0, 0)
    requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        requests.close()
        libc.prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_NAME, SOURCE.encode(), 0, 0, 0)
        code, arguments = _forks(theirs, service)
        libc.prctl(_NAME, code.partition(" import main")[0].rpartition(".")[2].encode(), 0, 0, 0)
        sys.argv = ["-c", *arguments]
        leave(lambda: exec(code, {"__name__": "__main__"}))
    theirs.close()

    class Forked(subprocess.Popen[bytes]):
        def _execute_child(self, args: Sequence[str], *given: Any) -> None:
            pass_fds, folder, environment, streams = given[3], given[4], given[5], given[9:15]
            code = args.index("-c") + 1
            request = json.dumps([args[code], args[code + 1 :], environment, folder, pass_fds]).encode()
            ours, its = socket.socketpair()
            with ours, its:
                descriptors = [its.fileno(), streams[0], streams[3], streams[5], *pass_fds]
                socket.send_fds(requests, [request], descriptors)
                its.close()
                self.pid = int.from_bytes(ours.recv(8, socket.MSG_WAITALL))
            self._child_created = True
            self._close_pipe_fds(*streams)  # type: ignore[attr-defined]

    named = {name: getattr(subprocess, name) for name in ("DEVNULL", "PIPE")}
    vars(process)["subprocess"] = SimpleNamespace(Popen=Forked, **named)


def leave(run: Callable[[], object]) -> NoReturn:
    """Run it, and end this process as the interpreter does, but for what takes the modules apart."""
    code = 0
    try:
        run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    os._exit(code)


def _forks(requests: socket.socket, service: int) -> tuple[str, Sequence[str]]:
    """Fork for each request. Only a forked process is given something: code and its arguments."""
    os.setsid()
    with Path(os.devnull).open("r+b", 0) as null:
        for standard in range(3):
            os.dup2(null.fileno(), standard)
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, _MESSAGE, _DESCRIPTORS)
        if not request:
            os._exit(0)
        if between := os.fork():
            for descriptor in descriptors:
                os.close(descriptor)
            os.waitpid(between, 0)
            continue
        if child := os.fork():
            os.write(descriptors[0], child.to_bytes(8))
            os._exit(0)
        code, arguments, environment, folder, numbers = json.loads(request)
        requests.detach()
        _place(descriptors[1:], [0, 1, 2, *numbers])
        os.setsid()
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None
        # The service adopts it as soon as the process between them has ended.
        while os.getppid() != service:
            time.sleep(0.0005)
        return code, arguments


def _place(descriptors: Sequence[int], numbers: Sequence[int]) -> None:
    """Give descriptors these numbers, and close all others."""
    above = max(*descriptors, *numbers) + 1
    for step, descriptor in enumerate(descriptors):
        os.dup2(descriptor, above + step)
    for step, number in enumerate(numbers):
        os.dup2(above + step, number)
    for below, number in pairwise([*sorted(numbers), os.sysconf("SC_OPEN_MAX")]):
        if below + 1 < number:
            os.closerange(below + 1, number)
