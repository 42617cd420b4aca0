"""The process that holds one organization's engine; its argument is the descriptor of its first socket.

The first socket receives control messages, which never wait for the engine. Each further socket, which arrives through
the first one, receives calls, one after another, in a separate thread. The process exits when the service closes the
first socket.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import queue
import signal
import socket
import sys
import threading
import time
import typing
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from sqlshell.interface import sqlstate
from sqlshell.runtime.lean_duckdb import duckdb
from sqlshell.runtime.unused_memory import Growth, limit_unused_memory, return_unused_memory
from sqlshell.service.engines.duckdb.connection import DuckdbConnection
from sqlshell.service.engines.duckdb.failures import followable
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.duckdb.messages import is_locked
from sqlshell.service.engines.duckdb.published import FOLDER, RENDERING, RESULTS, SPOOL
from sqlshell.service.engines.duckdb.results.result_files import ResultFiles
from sqlshell.service.engines.engine import CANCELED_BEFORE_START, Sink
from sqlshell.service.engines.process.frames import (
    READ,
    Answer,
    Ask,
    Broken,
    Call,
    CancelRows,
    Channel,
    Close,
    Error,
    Frames,
    Interrupt,
    Memory,
    Open,
    Opened,
    Progress,
    ReleaseMemory,
    ReplaceSoon,
    Report,
    Run,
    State,
    Stop,
    TrimMemory,
    convert_to,
    read_order,
    read_request,
    send,
)
from sqlshell.service.engines.process.memory import USED_UP, short_of_memory, short_of_spill, used_up
from sqlshell.service.engines.sandbox import sandbox
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard, Spool

CLOSING_SECONDS: Final = 5.0
"""How long running statements may take to stop when the process exits."""

LOCKED_SECONDS: Final = 10.0
"""How long to wait for the previous process to release the databases."""

RELIEF_SECONDS: Final = 5.0
"""Approximate time in seconds until DuckDB's allocator has returned the memory of a statement."""

LOOKS: Final = 10
"""How often to check that."""

THREADS: Final = 12
"""Threads for calls that are started at the beginning, while memory for their stacks is available. More are started
when needed, and kept.
"""

CONNECTION: Final = frozenset(
    {"use", "stream_query", "plan", "resolve", "columns", "listed", "load", "lose_transaction"}
)
ENGINE: Final = frozenset(
    {"attach", "detach", "mount", "read_listing", "head", "rows", "read", "partitions", "convert"}
)
"""The methods that may be called."""


class Renderer(ResultFiles):
    """What a process has instead of an engine if it only renders results."""

    first_database = "results"
    broken: Mapping[str, str] = {}

    def connect(self) -> NoReturn:
        raise Failure(sqlstate.INTERNAL, "internal error: this process has no databases")

    def cancel_rows(self, number: int) -> None:
        """Do nothing: it reads no streams."""

    def read_listing(self, sql: str) -> list[tuple[str, ...]]:
        return []

    def close(self) -> None:
        self.release_memory()


class ChildConnection:
    """A connection, and its running call. Calls are numbered, so that a late interrupt does not stop the next one, and
    one that is early stops the call that it is for.
    """

    def __init__(self, connect: Callable[[], DuckdbConnection]) -> None:
        self._connect = connect
        self._connection: DuckdbConnection | None = None
        self._lock = threading.Lock()
        self._number = 0
        """The number of the latest call."""
        self._unwanted = 0
        """The number of the latest call that was interrupted before it began."""
        self._closed = self._runs = False

    def begin(self, number: int) -> DuckdbConnection:
        """Mark that a call runs. Raises Failure if it has been interrupted."""
        if self._connection is None:
            self._connection = self._connect()
        with self._lock:
            if self._unwanted >= number or self._closed:
                raise Failure(sqlstate.CANCELED, CANCELED_BEFORE_START)
            self._number, self._runs = number, True
            return self._connection

    def end(self) -> None:
        with self._lock:
            self._runs = False
            if self._closed and self._connection is not None:
                self._connection.close()

    def interrupt(self, number: int) -> None:
        with self._lock:
            if number == self._number and self._runs and self._connection is not None:
                self._connection.cancel()
            elif number > self._number:
                self._unwanted = number

    def progress(self) -> float | None:
        return self._connection.progress() if self._connection is not None else None

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._connection is None:
                return
            if self._runs:
                self._connection.cancel()
            else:
                self._connection.close()

    @property
    def runs(self) -> bool:
        return self._runs

    def state(self) -> State | None:
        connection = self._connection
        if connection is None:
            return None
        return (
            connection.database,
            connection.schema,
            connection.transaction,
            connection.timezone,
            connection.leaves_state,
        )


class Host:
    """The engine with its connections, and the threads that process calls."""

    def __init__(self, orders: socket.socket, engine: DuckdbEngine | Renderer) -> None:
        self.engine = engine
        self._orders = orders
        self._sending = threading.Lock()
        self._connections: dict[int, ChildConnection] = {}
        self._connecting = threading.Lock()
        self._closing: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._close_some, daemon=True).start()
        self._pressed = threading.Event()
        threading.Thread(target=self._relieve, daemon=True).start()
        self._channels: queue.SimpleQueue[socket.socket] = queue.SimpleQueue()
        self._threads = self._serving = 0
        self._growth = Growth()
        self._counting = threading.Lock()
        for _ in range(THREADS):
            self._add_thread()

    def report(self, message: Report) -> None:
        with self._sending, contextlib.suppress(OSError):
            send(self._orders, message)

    def handle_order(self, order: Any, descriptors: list[int]) -> None:
        match order:
            case Channel():
                channel = socket.socket(fileno=descriptors.pop(0))
                with self._counting:
                    self._serving += 1
                    more = self._serving > self._threads
                if more:
                    with contextlib.suppress(RuntimeError):
                        # Without memory for another thread, the call waits for one that is busy.
                        self._add_thread()
                self._channels.put(channel)
            case Interrupt():
                self._held(order.connection).interrupt(order.number)
            case Close():
                connection = self._connections.pop(order.connection, None)
                if connection is not None:
                    # Rolling back may take some time.
                    self._closing.put(connection.close)
            case Ask():
                held = self._connections.get(order.connection)
                self.report(Progress(order.connection, held.progress() if held is not None else None))
            case CancelRows():
                self.engine.cancel_rows(order.number)
            case ReleaseMemory():
                self._closing.put(self._release_memory)
            case TrimMemory() if self._growth.large:
                self._closing.put(return_unused_memory)

    def close(self) -> None:
        """Stop running statements and close the databases, which writes them to disk."""
        held = list(self._connections.values())
        for item in held:
            item.close()
        until = time.monotonic() + CLOSING_SECONDS
        while (running := [item for item in held if item.runs]) and time.monotonic() < until:
            time.sleep(0.01)
            for item in running:
                # An interrupt between two steps of a statement may be lost.
                item.close()
        self.engine.close()

    def _close_some(self) -> None:
        while True:
            with contextlib.suppress(duckdb.Error):
                self._closing.get()()

    def _release_memory(self) -> None:
        self.engine.release_memory()
        return_unused_memory()

    def _held(self, number: int) -> ChildConnection:
        with self._connecting:
            connection = self._connections.get(number)
            if connection is None:
                connection = self._connections[number] = ChildConnection(self.engine.connect)
            return connection

    def _add_thread(self) -> None:
        """Start a thread. Raises RuntimeError if there is no memory for it."""
        threading.Thread(target=self._serve_some, daemon=True).start()
        with self._counting:
            self._threads += 1

    def _serve_some(self) -> None:
        while True:
            channel = self._channels.get()
            with channel, contextlib.suppress(OSError):
                self._serve(channel)
            with self._counting:
                self._serving -= 1

    def _serve(self, channel: socket.socket) -> None:
        frames = Frames(channel)
        request: Run | Call | None
        while True:
            try:
                message = frames.next()
                if not message:
                    return
                request = read_request(message)
                if isinstance(request, Run):
                    self._run(channel, request)
                else:
                    self._call(channel, request)
            except MemoryError as error:
                # The request could not be read, or the reply not be written.
                message, request = b"", None
                send(channel, Answer(self._error(error)))

    def _relieve(self) -> None:
        """After a statement that ran out of memory: make sure that the process has some again, or
        ask to be replaced.
        """
        while True:
            self._pressed.wait()
            self._pressed.clear()
            looks = calm = 0
            while used_up():
                return_unused_memory()
                time.sleep(RELIEF_SECONDS / LOOKS)
                looks += 1
                calm = 0 if any(item.runs for item in list(self._connections.values())) else calm + 1
                if calm == LOOKS or looks == LOOKS * 6:
                    self.report(ReplaceSoon(USED_UP))
                    break
            else:
                self.report(Memory(""))

    def _run(self, channel: socket.socket, run: Run) -> None:
        held = self._held(run.connection)
        sink = Spool(functools.partial(Path, run.file), run.options.partition_rows) if run.file else Discard()
        try:
            outcome = held.begin(run.number).run(run.statement, run.options, sink)
            if outcome.written is None:
                sink.finish(outcome.filed)
            kept = (sink.layout, sink.body, sink.size) if isinstance(sink, Spool) else ()
            answer = Answer(None, held.state(), outcome, *kept)
        except Exception as error:
            if isinstance(sink, Spool):
                sink.drop()
            answer = Answer(self._error(error), held.state())
        finally:
            held.end()
        send(channel, answer)

    def _call(self, channel: socket.socket, call: Call) -> None:
        held = self._held(call.connection) if call.connection else None
        try:
            if held is not None:
                result = _called(held.begin(call.number), CONNECTION, call)
            else:
                result = _called(self.engine, ENGINE, call)
            answer = Answer(None, held.state() if held is not None else None, result=result)
        except Exception as error:
            answer = Answer(self._error(error), held.state() if held is not None else None)
        finally:
            if held is not None:
                held.end()
        send(channel, answer)

    def _error(self, error: Exception) -> Error:
        fatal = self._is_broken(error)
        if not fatal and (short := short_of_memory(error)) is not None:
            self.report(Memory(USED_UP))
            self._pressed.set()
            return Error(short.sql_state, short.message)
        error = short_of_spill(error) or error
        if isinstance(error, Failure):
            return Error(error.sql_state, followable(error.message), fatal=fatal, missing=error.missing)
        if isinstance(error, OSError):
            return Error(sqlstate.LIMIT, error.strerror or str(error), error.errno or errno.EIO)
        return Error(sqlstate.INTERNAL, f"internal error: {type(error).__name__}: {error}", fatal=fatal)

    def _is_broken(self, error: BaseException | None) -> bool:
        """Whether an error has made the instance, or one of its databases, unusable."""
        seen = set()
        while error is not None and not isinstance(error, duckdb.Error):
            seen.add(error)
            # An error may be its own cause.
            error = error.__cause__ if error.__cause__ not in seen else None
        if isinstance(error, duckdb.IOException):
            # DuckDB says this of a database that could not be written at a checkpoint.
            return "has been invalidated" in str(error)
        if not isinstance(error, duckdb.InternalException | duckdb.FatalException):
            return False
        try:
            self.engine.read_listing("SELECT 1")
        except Failure as failure:
            return isinstance(failure.__cause__, duckdb.FatalException)
        return False


@functools.cache
def _kinds(engines: Any, method: str) -> tuple[Any, ...]:
    """The types of the parameters of a method."""
    hints = typing.get_type_hints(getattr(engines, method))
    return tuple(kind for name, kind in hints.items() if name != "return")


def _called(target: Any, methods: Collection[str], call: Call) -> Any:
    if call.method not in methods:
        raise Failure(sqlstate.UNSUPPORTED, f"unknown method {call.method} of an engine")
    values = iter(call.given)
    given: list[Any] = []
    for kind in _kinds(target.__class__, call.method):
        if kind is Sink:
            # The rows of calls other than Run are not stored.
            given.append(Discard())
            continue
        try:
            value = next(values)
        except StopIteration:
            # The last parameters have defaults.
            break
        given.append(convert_to(value, kind))
    return getattr(target, call.method)(*given)


def open_engine(asked: Open) -> DuckdbEngine:
    """The engine on the databases of an organization. Raises Failure."""
    until = time.monotonic() + LOCKED_SECONDS
    while True:
        engine = DuckdbEngine(temporary=asked.folder / "temporary")
        try:
            engine.lock(asked.folder, asked.databases, asked.limits, asked.system)
        except Exception as error:
            raise Failure(sqlstate.INTERNAL, str(error).partition("\n")[0]) from error
        if time.monotonic() > until or not any(is_locked(reason) for reason in engine.broken.values()):
            return engine
        engine.close()
        time.sleep(0.05)


def _restricted(asked: Open, orders: socket.socket) -> sandbox.Protections:
    """Give up all access that is not needed for what was asked. The process exits if the system refuses that."""
    folder, limits = asked.folder, asked.limits
    temporary = folder / (RENDERING if asked.renders else "temporary")
    os.environ["TMPDIR"] = str(temporary)
    databases = folder / "databases"
    bounds = sandbox.Bounds(sandbox.memory_bound(limits.memory, limits.threads), sandbox.file_bound(databases))
    if asked.renders:
        read, write, fill = [folder / RESULTS], [temporary], []
    else:
        read, write, fill = [folder / "copies"], [databases, temporary, folder / FOLDER], [folder / SPOOL]
    try:
        return sandbox.restrict(read, write, bounds, fill=fill, parent=asked.parent)
    except OSError as error:
        send(orders, Broken(f"the engine's process cannot be restricted: {error}"))
        os._exit(1)


def main() -> NoReturn:
    """Serve the process at the other end of the first socket until it is closed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        # The service is asked to stop, and it asks this process.
        signal.signal(number, signal.SIG_IGN)
    limit_unused_memory()
    orders = socket.socket(fileno=int(sys.argv[1]))
    frames = Frames(orders)
    message = frames.next()
    if not message:
        # The socket is no longer needed.
        os._exit(0)
    first = read_order(message)
    assert isinstance(first, Open)
    descriptors: list[int] = []
    protections = _restricted(first, orders)
    hosts: queue.SimpleQueue[Host] = queue.SimpleQueue()

    def open_it() -> None:
        try:
            engine = Renderer() if first.renders else open_engine(first)
        except Failure as failure:
            send(orders, Broken(failure.message))
            os._exit(1)
        hosts.put(Host(orders, engine))
        send(orders, Opened(engine.first_database, dict(engine.broken), str(protections)))

    threading.Thread(target=open_it, daemon=True).start()
    host: Host | None = None
    given: list[int]
    while True:
        data, given = b"", []
        with contextlib.suppress(OSError):
            data, given, _, _ = socket.recv_fds(orders, READ, 16, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
        descriptors += given
        if not data:
            # The service has exited: committed data is in the write-ahead logs of the databases.
            os._exit(0)
        for message in frames.feed(data):
            order = read_order(message)
            if host is None and isinstance(order, Ask):
                send(orders, Progress(order.connection))
                continue
            host = host or hosts.get()
            if isinstance(order, Stop):
                host.close()
                os._exit(0)
            host.handle_order(order, descriptors)
