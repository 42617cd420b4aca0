"""Starts and stops the process of one engine, and calls it."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from sqlshell.interface import sqlstate
from sqlshell.service.engines.process.frames import (
    MEMORY_NOTE,
    Answer,
    Call,
    EngineConfig,
    Opened,
    convert_to,
    frame,
    read_answer,
    read_report,
    receive,
    send,
)
from sqlshell.service.failure import Failure

STOPPED_SECONDS: Final = 30.0
"""How long it may take to write its databases when it stops."""

EXIT_SECONDS: Final = 5.0
"""How long a process may take to exit after its channels have been closed."""

IDLE: Final = 8
"""The maximum number of idle channels."""


_log = logging.getLogger("sqlshell.service")

ALLOCATORS: Final = {
    "DUCKDB_JE_MALLOC_CONF": "retain:false",
    "MALLOC_ARENA_MAX": "4",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
    "MALLOC_TRIM_THRESHOLD_": "1048576",
}
"""Settings of DuckDB's and the C library's allocators: addresses of freed memory would count against the memory limit,
and glibc keeps them after it has freed a large block, unless its thresholds are set.
"""


class ProcessEnded(Exception):
    """The process has exited; `begun` says whether it had read the call."""

    def __init__(self, *, begun: bool) -> None:
        super().__init__()
        self.begun = begun


class Process:
    """The process of one engine. opened() waits until it is ready; each call uses a separate channel."""

    def __init__(self, config: EngineConfig, number: int) -> None:
        self.progress: dict[int, float | None] = {}
        self._config = config
        self._why = ""
        self._is_wanted = True
        """Whether it is to go on: its end is logged."""
        self._spent = False
        """Whether it should be replaced as soon as it is idle."""
        self._opened: Opened | None = None
        self._ready = threading.Event()
        self._gone = threading.Event()
        self._orders, self._theirs = socket.socketpair()
        self._unsent: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._sending = threading.Lock()
        self._idle: list[socket.socket] = []
        self._calls = 0
        self._counting = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        # The process is killed when the thread that started it ends, so this thread lives as long as the process.
        threading.Thread(target=self._keep, name=f"engine-{number}", daemon=True).start()

    def opened(self) -> Opened:
        """Wait until the databases are open. Raises Failure if they cannot be opened."""
        self._ready.wait()
        if self._opened is None:
            self._gone.wait()
            raise Failure(sqlstate.INTERNAL, self.why)
        return self._opened

    @property
    def alive(self) -> bool:
        return not self._why and not self._gone.is_set()

    @property
    def busy(self) -> bool:
        return self._calls > 0

    @property
    def why(self) -> str:
        """Why it exited, once that is known."""
        return self._why or "the engine's process exited"

    def order(self, method: str, connection: int = 0, number: int = 0) -> None:
        """Send an order, even to a process that does not read. Never waits."""
        if not self._gone.is_set():
            self._unsent.put(frame(Call(method, connection, number)))

    def call(self, call: Call) -> Answer:
        """Make a call and wait for its answer. Raises ProcessEnded."""
        try:
            with self._channel() as channel:
                send(channel, call)
                body = receive(channel)
                if not body:
                    raise ProcessEnded(begun=True)
                return read_answer(body)
        except (BrokenPipeError, ConnectionResetError):
            # The process did not read what was sent.
            raise ProcessEnded(begun=False) from None
        except msgspec.MsgspecError as error:
            self.kill(f"the engine's process sent an invalid reply: {error}")
            raise ProcessEnded(begun=True) from None

    def result(self, answer: Answer, kind: Any) -> Any:
        """Return the result in an answer, as a type. Raises the error in it: Failure or OSError."""
        if (error := answer.error) is None:
            return convert_to(answer.result, kind)
        if error.fatal:
            # Other sessions see this reason, so it does not quote the message, which may contain this statement's data.
            self.kill("the engine failed")
            raise Failure(error.sql_state, f"the engine failed and was restarted: {error.message}")
        if error.spent:
            self._spent = True
            self._retire()
        if error.code:
            raise OSError(error.code, error.message)
        raise Failure(error.sql_state, error.message, error.missing)

    def why_it_ended(self) -> str:
        """Wait, after a call found that the process has exited, until the reason is known."""
        if not self._gone.wait(EXIT_SECONDS) and self.alive:
            self.kill("the engine's process did not respond")
        self._gone.wait(STOPPED_SECONDS)
        return self.why

    def kill(self, why: str) -> None:
        """Kill the process. Never waits."""
        self._why = self._why or why
        if self._child is not None:
            with contextlib.suppress(OSError):
                self._child.kill()

    def stop(self) -> None:
        """Ask the process to shut down, because it is no longer needed. Never waits."""
        self._is_wanted = False
        self._shut_down("the service was shut down")

    def _shut_down(self, why: str) -> None:
        self._why = self._why or why
        self.order("stop")

    def wait(self, seconds: float = STOPPED_SECONDS) -> None:
        """Wait until it has exited; kill it after `seconds`."""
        if not self._gone.wait(seconds):
            self.kill("the engine's process did not exit")
            self._gone.wait(seconds)

    @contextlib.contextmanager
    def _channel(self) -> Iterator[socket.socket]:
        """An exclusive channel; it is closed after an error, because its reply may be unread. Raises ProcessEnded."""
        with self._counting:
            if not self.alive:
                raise ProcessEnded(begun=False)
            self._calls += 1
            channel = self._idle.pop() if self._idle else None
        try:
            channel = channel or self._new_channel()
            yield channel
            with self._counting:
                if self.alive and len(self._idle) < IDLE:
                    self._idle.append(channel)
                    channel = None
        finally:
            if channel is not None:
                channel.close()
            with self._counting:
                self._calls -= 1
            self._retire()

    def _retire(self) -> None:
        """Stop a process that has no memory left, unless it is busy. Never waits."""
        with self._counting:
            if self._spent and not self._calls and self.alive:
                self._shut_down(f"the engine's process ran out of memory {MEMORY_NOTE}")

    def _new_channel(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                with self._sending:
                    socket.send_fds(self._orders, [frame(Call("serve"))], [theirs.fileno()])
            except OSError:
                ours.close()
                raise ProcessEnded(begun=False) from None
        return ours

    def _keep(self) -> None:
        try:
            with self._theirs:
                number = self._theirs.fileno()
                module = "sqlshell.service.engines.process.child"
                self._child = launch(module, descriptors=[number], arguments=[str(number), str(os.getpid())])
            if self._why:
                self.kill(self._why)
            # A process that ends with unread messages resets the connection.
            with contextlib.suppress(ConnectionResetError):
                self._listen()
        except Failure as failure:
            self._why = self._why or failure.message
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            started = self._child is not None
            what = "sent an invalid message" if started else "could not be started"
            self.kill(f"the engine's process {what}: {error}")
        finally:
            self._why = self._ended(self._child.wait() if self._child is not None else 0)
            if self._is_wanted and self._opened is not None:
                _log.warning("engine of organization %s: %s", self._config.folder.name, self._why)
            self._gone.set()
            self._ready.set()
            self._unsent.put(b"")
            self._orders.close()
            with self._counting:
                for channel in self._idle:
                    channel.close()
                self._idle.clear()

    def _send_orders(self) -> None:
        """Send the orders until the process has exited. Whoever gives one does not wait for a process that does not
        read."""
        with contextlib.suppress(OSError):
            while order := self._unsent.get():
                with self._sending:
                    self._orders.sendall(order)

    def _listen(self) -> None:
        """Open the databases, and read the reports of the process until it exits. Raises Failure."""
        with self._sending:
            send(self._orders, self._config)
        threading.Thread(target=self._send_orders, daemon=True).start()
        body = receive(self._orders)
        if not body:
            return
        self._opened = self.result(read_answer(body), Opened)
        self._ready.set()
        while body := receive(self._orders):
            report = read_report(body)
            if report.connection in self.progress:
                self.progress[report.connection] = report.progress

    def _ended(self, code: int) -> str:
        if self._why or code >= 0:
            return self._why or f"the engine's process failed with exit code {code}"
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
            # DuckDB aborts if it cannot allocate memory where it cannot report it.
            lacks_memory = name in {"SIGABRT", "SIGSEGV"}
            cause = f", perhaps because it ran out of memory {MEMORY_NOTE}" if lacks_memory else ""
            return f"the engine's process was killed by {name}{cause}"
        return f"the engine's process was killed by signal {-code}"


def launch(
    module: str,
    *,
    descriptors: Sequence[int] = (),
    arguments: Sequence[str] = (),
    temporary: Path | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start `main()` of a module in a process; its result is the exit code. The process has `descriptors` by their
    numbers, `arguments` in sys.argv, and its temporary files in `temporary`.

    Its imports come from the same directories as here. Raises OSError.
    """
    # Anybody may own the current directory.
    path = [item for item in sys.path if item and Path(item).is_absolute()]
    code = f"import sys; sys.path[:] = {path!r}; from {module} import main; sys.exit(main())"
    environment = {"LC_ALL": "C.UTF-8", **ALLOCATORS}
    if temporary is not None:
        environment["TMPDIR"] = str(temporary)
    return subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", "-c", code, *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd="/",
        pass_fds=tuple(descriptors),
        start_new_session=True,
    )
