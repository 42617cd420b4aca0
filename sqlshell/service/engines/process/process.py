"""A process that holds one engine, as the service sees it: how it is started, asked, watched and ended."""

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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Failure, Limits
from sqlshell.service.engines.process import launching
from sqlshell.service.engines.process.frames import (
    READ,
    Ask,
    Broken,
    Channel,
    Close,
    Frames,
    Open,
    Opened,
    Order,
    Progress,
    Spent,
    Stop,
    frame,
    read_report,
)

ASKED_SECONDS: Final = 5.0
"""How often a process that works is asked whether it still answers."""

SILENT_SECONDS: Final = 30.0
"""How long it may leave that unanswered."""

STOPPED_SECONDS: Final = 30.0
"""How long it may take to write its databases out at the end."""

SOON_SECONDS: Final = 5.0
"""How long after its channels a process may end."""

AGAIN_SECONDS: Final = 0.02
"""How soon a process that did not read is tried again."""

IDLE: Final = 8
"""Channels that are kept for later."""


class Opening(Struct, frozen=True):
    """What an engine opens: its folder, databases (name -> file; sessions begin in the first one) and limits."""

    folder: Path
    databases: Mapping[str, Path]
    limits: Limits


class Ended(Exception):
    """The process has ended; `begun` says whether it had read what it was asked."""

    def __init__(self, *, begun: bool) -> None:
        super().__init__()
        self.begun = begun


class Process:
    """One process. opened() says how it began, and every call takes a channel of its own for as long as it takes."""

    def __init__(self, opening: Opening, number: int) -> None:
        self.number = number
        self.first_database = self.protections = ""
        self.broken: dict[str, str] = {}
        self.progress: dict[int, float | None] = {}
        self._opening = opening
        self._why = ""
        self._broken = ""
        self._spent = ""
        """Why it is to be replaced as soon as nothing runs in it."""
        self._ready = threading.Event()
        self._gone = threading.Event()
        self._sending = threading.Lock()
        self._unsent: deque[bytes] = deque()
        self._idle: list[tuple[socket.socket, Frames]] = []
        self._calls = 0
        self._counting = threading.Lock()
        self._orders: socket.socket
        self._child: subprocess.Popen[bytes] | None = None
        # The process ends with the thread that began it, which is why that thread lasts as long.
        threading.Thread(target=self._keep, name=f"engine-{number}", daemon=True).start()

    def opened(self) -> None:
        """Wait until the databases are open. Raises Failure where they cannot be."""
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
        """Why it ended, once that is known."""
        return self._why or self._broken or "the engine's process ended"

    def order(self, order: Order) -> bool:
        """Never waits: what a process that does not listen cannot be told now is told later, where that has to be.

        Returns whether it was told.
        """
        if self._gone.is_set() or self._child is None:
            return False
        with self._sending:
            if not self._flush() and not isinstance(order, Close | Stop):
                # Who interrupts or asks does it again.
                return False
            self._unsent.append(frame(order))
            return self._flush()

    @contextlib.contextmanager
    def channel(self) -> Iterator[tuple[socket.socket, Frames]]:
        """A channel that is one's own. Whoever leaves it by an error has not read all of an answer. Raises Ended."""
        with self._counting:
            if not self.alive:
                raise Ended(begun=False)
            self._calls += 1
            found = self._idle.pop() if self._idle else None
        try:
            found = found or self._channel()
            try:
                yield found
            except BaseException:
                found[0].close()
                raise
            with self._counting:
                keep = self.alive and len(self._idle) < IDLE
                if keep:
                    self._idle.append(found)
            if not keep:
                found[0].close()
        finally:
            with self._counting:
                self._calls -= 1
            if self._spent:
                self._retire()

    def _retire(self) -> None:
        """End a process that is spent, unless something runs in it. Never waits."""
        with self._counting:
            if self._calls or not self.alive:
                return
            self._why = self._spent
        self.stop()

    def why_it_ended(self) -> str:
        """Why, when what was asked of it found that it has ended: soon that is known."""
        if not self._gone.wait(SOON_SECONDS) and self.alive:
            self.kill("the engine's process did not answer")
        self._gone.wait(STOPPED_SECONDS)
        return self.why

    def kill(self, why: str) -> None:
        """End it at once. Never waits."""
        self._why = self._why or why
        child = self._child
        if child is not None:
            with contextlib.suppress(OSError):
                child.send_signal(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end in good order. Never waits."""
        self._why = self._why or "the service stopped"
        if not self.order(Stop()):
            self.kill(self._why)

    def wait(self, seconds: float = STOPPED_SECONDS) -> None:
        """Until it has ended; after so long it is killed."""
        if not self._gone.wait(seconds):
            self.kill("the engine's process did not end")
            self._gone.wait(seconds)

    def _channel(self) -> tuple[socket.socket, Frames]:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                while not self._hand_over(theirs.fileno()):
                    time.sleep(AGAIN_SECONDS)
            except OSError:
                ours.close()
                raise Ended(begun=False) from None
        return ours, Frames(ours)

    def _hand_over(self, descriptor: int) -> bool:
        """Send a channel's other end, unless the process has not read what was sent before. Raises OSError."""
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
                # It has ended.
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
            self._listen()
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            said = "cannot be started" if self._child is None else "could not be understood"
            self.kill(f"the engine's process {said}: {error}")
        finally:
            code = self._child.wait() if self._child is not None else 0
            self._why = self._why or self._broken or _ended(code)
            self._gone.set()
            self._ready.set()
            if self._child is not None:
                self._orders.close()
            with self._counting:
                for channel, _ in self._idle:
                    channel.close()
                self._idle.clear()

    def _begin(self) -> None:
        opening = self._opening
        begun = _begun_early()
        if begun is None:
            begun = _begin()
        child, self._orders = begun
        self._child = child
        if self._why:
            self.kill(self._why)
        asked = Open(opening.folder, dict(opening.databases), opening.limits, os.getpid())
        with self._sending:
            self._orders.sendall(frame(asked))

    def _listen(self) -> None:
        """Read what the process says until it ends."""
        frames = Frames(self._orders)
        # The socket itself has no timeout: others write to it, and those never wait.
        readable = select.poll()
        readable.register(self._orders, select.POLLIN)
        heard = asked = time.monotonic()
        while True:
            if not readable.poll((AGAIN_SECONDS if self._unsent else ASKED_SECONDS) * 1000):
                now = time.monotonic()
                if heard < asked < now - SILENT_SECONDS:
                    self.kill(f"the engine's process did not answer for {SILENT_SECONDS:.0f} seconds")
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
                    case Spent():
                        self._spent = report.why
                        self._retire()


def begin_early() -> None:
    """Begin a process for the engine that is opened next, while other things are made ready. From the main thread: the
    process ends with the thread that began it. Why it cannot be begun is told when it is needed."""
    with contextlib.suppress(OSError):
        _early().put(_begin())


@functools.cache
def _early() -> queue.SimpleQueue[tuple[subprocess.Popen[bytes], socket.socket]]:
    return queue.SimpleQueue()


def end_early() -> None:
    """End what begin_early() began and nobody needed."""
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
    """A process that waits to be told what it opens, and our end of its first socket. Raises OSError."""
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


def _ended(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"the engine's process was ended by {signal.Signals(-code).name}"
    return f"the engine's process ended with code {code}"
