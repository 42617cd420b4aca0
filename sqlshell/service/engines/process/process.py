"""Starts, monitors and stops the process of one engine."""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import select
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Limits
from sqlshell.service.engines.process import launching
from sqlshell.service.engines.process.frames import (
    READ,
    Answer,
    Ask,
    Broken,
    Channel,
    Close,
    Frames,
    Memory,
    Open,
    Opened,
    Order,
    Progress,
    ReplaceSoon,
    Request,
    Stop,
    convert_to,
    frame,
    read_answer,
    read_report,
    send,
)
from sqlshell.service.failure import Failure

ASKED_SECONDS: Final = 5.0
"""How often a busy process is asked whether it is alive."""

SILENT_SECONDS: Final = 30.0
"""How long it may take to respond."""

STOPPED_SECONDS: Final = 30.0
"""How long it may take to write its databases when it stops."""

EXIT_SECONDS: Final = 5.0
"""How long a process may take to exit after its channels have been closed."""

RETRY_SECONDS: Final = 0.02
"""How soon sending is tried again if a process does not read."""

IDLE: Final = 8
"""The maximum number of idle channels."""


class EngineConfig(Struct, frozen=True):
    """An engine's folder, databases (name -> file; the first is the initial one), limits, and the columns of the
    service's own relations; or, with `renders`, a process that only renders the results in the folder."""

    folder: Path
    databases: Mapping[str, Path]
    limits: Limits
    system: Mapping[str, Sequence[tuple[str, str]]] = {}
    renders: bool = False


class ProcessEnded(Exception):
    """The process has exited; `begun` says whether it had read the call."""

    def __init__(self, *, begun: bool) -> None:
        super().__init__()
        self.begun = begun


class Process:
    """The process of one engine. opened() waits until it is ready; each call uses a separate channel."""

    def __init__(self, config: EngineConfig, number: int) -> None:
        self.number = number
        self.first_database = self.protections = ""
        self.broken: dict[str, str] = {}
        self.progress: dict[int, float | None] = {}
        self.used = False
        """Whether a call has ended since this was last set to False."""
        self._config = config
        self._why = ""
        self._broken = ""
        self._spent = ""
        """Why it should be replaced as soon as it is idle, or ""."""
        self._short_of_memory = ""
        self._ready = threading.Event()
        self._gone = threading.Event()
        self._sending = threading.Lock()
        self._unsent: deque[bytes] = deque()
        self._idle: list[tuple[socket.socket, Frames]] = []
        self._calls = 0
        self._counting = threading.Lock()
        self._orders: socket.socket
        self._child: subprocess.Popen[bytes] | None = None
        # The process is killed when the thread that started it ends, so this thread lives as long as the process.
        threading.Thread(target=self._keep, name=f"engine-{number}", daemon=True).start()

    def opened(self) -> None:
        """Wait until the databases are open. Raises Failure if they cannot be opened."""
        self._ready.wait()
        if not self.first_database:
            self._gone.wait()
            raise Failure(sqlstate.INTERNAL, self.why)

    @property
    def alive(self) -> bool:
        return not self._why and not self._gone.is_set()

    @property
    def busy(self) -> bool:
        return self._calls > 0

    @property
    def why(self) -> str:
        """Why it exited, once that is known."""
        return self._why or self._broken or "the engine's process exited"

    def order(self, order: Order) -> bool:
        """Send a control message without waiting; returns whether it was sent.

        If the process does not read, Close and Stop are sent later; other messages are dropped.
        """
        if self._gone.is_set() or self._child is None:
            return False
        with self._sending:
            if not self._flush() and not isinstance(order, Close | Stop):
                # Interrupts and progress requests are repeated by their senders.
                return False
            self._unsent.append(frame(order))
            return self._flush()

    def call(self, request: Request) -> Answer:
        """Send a call and wait for its answer. Raises ProcessEnded."""
        try:
            with self._channel() as (channel, frames):
                send(channel, request)
                if not (message := frames.next()):
                    raise ProcessEnded(begun=True)
                return read_answer(message)
        except (BrokenPipeError, ConnectionResetError):
            # The process did not read what was sent.
            raise ProcessEnded(begun=False) from None
        except msgspec.MsgspecError as error:
            self.kill(f"invalid reply from the engine's process: {error}")
            raise ProcessEnded(begun=True) from None
        finally:
            self.used = True

    def result(self, answer: Answer, kind: Any) -> Any:
        """The result in an answer, as a type; None for None. Raises the error in it: Failure or OSError."""
        if (error := answer.error) is None:
            return convert_to(answer.result, kind) if kind is not None else None
        if error.fatal:
            # Other sessions see this reason, so it does not quote the message, which may contain this statement's data.
            self.kill("the engine failed")
            raise Failure(error.sql_state, f"the engine failed and was restarted: {error.message}")
        if error.code:
            raise OSError(error.code, error.message)
        raise Failure(error.sql_state, error.message, error.missing)

    @contextlib.contextmanager
    def _channel(self) -> Iterator[tuple[socket.socket, Frames]]:
        """An exclusive channel; it is closed after an error, because its reply may be unread. Raises ProcessEnded."""
        with self._counting:
            if not self.alive:
                raise ProcessEnded(begun=False)
            self._calls += 1
            channel = self._idle.pop() if self._idle else None
        try:
            channel = channel or self._new_channel()
            try:
                yield channel
            except BaseException:
                channel[0].close()
                raise
            with self._counting:
                keep = self.alive and len(self._idle) < IDLE
                if keep:
                    self._idle.append(channel)
            if not keep:
                channel[0].close()
        finally:
            with self._counting:
                self._calls -= 1
            if self._spent:
                self._retire()

    def _retire(self) -> None:
        """Stop a process that should be replaced, unless it is busy. Never waits."""
        with self._counting:
            if self._calls or not self.alive:
                return
            self._why = self._spent
        self.stop()

    def why_it_ended(self) -> str:
        """Wait, after a call found that the process has exited, until the reason is known."""
        if not self._gone.wait(EXIT_SECONDS) and self.alive:
            self.kill("the engine's process did not respond")
        self._gone.wait(STOPPED_SECONDS)
        return self.why

    def kill(self, why: str) -> None:
        """Kill the process. Never waits."""
        self._why = self._why or why
        child = self._child
        if child is not None:
            with contextlib.suppress(OSError):
                child.send_signal(signal.SIGKILL)

    def stop(self) -> None:
        """Ask the process to shut down. Never waits."""
        self._why = self._why or "the service was shut down"
        if not self.order(Stop()):
            self.kill(self._why)

    def wait(self, seconds: float = STOPPED_SECONDS) -> None:
        """Wait until it has exited; kill it after `seconds`."""
        if not self._gone.wait(seconds):
            self.kill("the engine's process did not exit")
            self._gone.wait(seconds)

    def _new_channel(self) -> tuple[socket.socket, Frames]:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                while not self._hand_over(theirs.fileno()):
                    time.sleep(RETRY_SECONDS)
            except OSError:
                ours.close()
                raise ProcessEnded(begun=False) from None
        return ours, Frames(ours)

    def _hand_over(self, descriptor: int) -> bool:
        """Send a channel's other end; returns False if the process is not reading. Raises OSError."""
        with self._sending:
            if not self._flush():
                return False
            try:
                socket.send_fds(self._orders, [frame(Channel())], [descriptor], socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            return True

    def _flush(self) -> bool:
        while self._unsent:
            try:
                sent = self._orders.send(self._unsent[0], socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError:
                # The process has exited.
                self._unsent.clear()
                continue
            if sent < len(self._unsent[0]):
                self._unsent[0] = self._unsent[0][sent:]
                return False
            self._unsent.popleft()
        return True

    def _keep(self) -> None:
        try:
            self._begin()
            # A process that ends with unread messages resets the connection.
            with contextlib.suppress(ConnectionResetError):
                self._listen()
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            what = (
                "cannot start the engine's process"
                if self._child is None
                else "invalid message from the engine's process"
            )
            self.kill(f"{what}: {error}")
        finally:
            code = self._child.wait() if self._child is not None else 0
            self._why = self._why or self._broken or self._ended(code)
            self._gone.set()
            self._ready.set()
            if self._child is not None:
                self._orders.close()
            with self._counting:
                for channel, _ in self._idle:
                    channel.close()
                self._idle.clear()

    def _begin(self) -> None:
        config = self._config
        begun = _begun_early()
        if begun is None:
            begun = _begin()
        child, self._orders = begun
        self._child = child
        if self._why:
            self.kill(self._why)
        system = {name: list(columns) for name, columns in config.system.items()}
        asked = Open(config.folder, dict(config.databases), config.limits, os.getpid(), system, config.renders)
        with self._sending:
            self._orders.sendall(frame(asked))

    def _listen(self) -> None:
        """Read the reports of the process until it exits."""
        frames = Frames(self._orders)
        # The socket itself has no timeout, because other threads write to it without waiting.
        readable = select.poll()
        readable.register(self._orders, select.POLLIN)
        heard = asked = time.monotonic()
        while True:
            if not readable.poll((RETRY_SECONDS if self._unsent else ASKED_SECONDS) * 1000):
                now = time.monotonic()
                if heard < asked < now - SILENT_SECONDS:
                    self.kill(f"the engine's process did not respond for {SILENT_SECONDS:.0f} seconds")
                elif heard >= asked and (self._calls or not self._ready.is_set()):
                    asked = now
                    self.order(Ask())
                with self._sending:
                    self._flush()
                continue
            data = self._orders.recv(READ)
            if not data:
                return
            heard = time.monotonic()
            for message in frames.feed(data):
                report = read_report(message)
                match report:
                    case Opened():
                        self.broken, self.protections = report.broken, report.protections
                        self.first_database = report.first_database
                        self._ready.set()
                    case Progress():
                        if report.connection in self.progress:
                            self.progress[report.connection] = report.share
                    case Broken():
                        self._broken = report.why
                    case Memory():
                        self._short_of_memory = report.why
                    case ReplaceSoon():
                        self._spent = report.why
                        self._retire()

    def _ended(self, code: int) -> str:
        if code < 0 and self._short_of_memory:
            return self._short_of_memory
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"the engine's process was killed by {signal.Signals(-code).name}"
        return f"the engine's process exited with code {code}"


def begin_early() -> None:
    """Start a process in advance for the engine that is opened next.

    Call it from the main thread, because the process is killed when its starting thread ends. Errors are reported when
    the process is needed.
    """
    with contextlib.suppress(OSError):
        _early().put(_begin())


@functools.cache
def _early() -> queue.SimpleQueue[tuple[subprocess.Popen[bytes], socket.socket]]:
    return queue.SimpleQueue()


def end_early() -> None:
    """Kill an unused process of begin_early()."""
    while (begun := _begun_early()) is not None:
        child, orders = begun
        orders.close()
        child.kill()
        child.wait()


def _begun_early() -> tuple[subprocess.Popen[bytes], socket.socket] | None:
    with contextlib.suppress(queue.Empty):
        return _early().get_nowait()
    return None


def _begin() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a process; returns it and our end of its first socket. Raises OSError."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            number = theirs.fileno()
            child = launching.begin(
                "sqlshell.service.engines.process.child", descriptors=[number], arguments=[str(number)]
            )
        except OSError:
            ours.close()
            raise
    return child, ours
