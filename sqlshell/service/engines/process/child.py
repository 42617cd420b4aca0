"""The process that holds one organization's engine. Its arguments are the descriptor of its first socket and the number
of the process that started it.

The first socket receives orders, which never wait for the engine. Each further socket, which arrives through the first
one, receives calls, one after another, in a separate thread. The process exits when the service closes the first
socket.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import resource
import signal
import socket
import sys
import threading
import time
import typing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NoReturn

import duckdb

from sqlshell.interface import sqlstate
from sqlshell.runtime.unused_memory import Growth, limit_unused_memory, memory_of_process, return_unused_memory
from sqlshell.service.engines.duckdb.connection import DuckdbConnection
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.engine import CANCELED_BEFORE_START, RENDERING, RESULTS, SPOOL, SYSTEM_FOLDER, RunOptions
from sqlshell.service.engines.files.failures import Cause, followable
from sqlshell.service.engines.process.frames import (
    MEMORY_NOTE,
    Answer,
    Call,
    EngineConfig,
    Error,
    Opened,
    Ran,
    Report,
    State,
    convert_to,
    read_call,
    read_config,
    receive,
    send,
)
from sqlshell.service.engines.sandbox import sandbox
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard, Spool
from sqlshell.service.settings import limit_note

CLOSING_SECONDS: Final = 5.0
"""How long running statements may take to stop when the process exits."""

LOCKED_SECONDS: Final = 10.0
"""How long to wait for the previous process to release the databases."""

THREADS: Final = 12
"""Threads that are started at the beginning, while memory for their stacks is available: more than the service keeps
idle channels. More are started when needed, and kept.
"""

MOST_THREADS: Final = 1000

LEAST_MEMORY: Final = 512 << 20
"""Minimum memory in bytes that a process should have left of its limit, which is 1.5 GiB more than DuckDB's, after a
statement that had too little."""

CALLABLE: Final = frozenset(
    {"run", "use", "stream_query", "rows", "plan", "resolve", "columns", "listed", "load", "lose_transaction"}
    | {"attach", "detach", "mount", "read_listing", "head", "read", "partitions", "convert"}
)
"""The methods of a connection and of the engine that may be called."""


class Session:
    """A connection, which is opened by its first call, and its running call. Calls are numbered, so that a late
    interrupt does not stop the next one, and one that is early stops the call that it is for.
    """

    def __init__(self, connect: Callable[[], DuckdbConnection]) -> None:
        self._connect = connect
        self._connection: DuckdbConnection | None = None
        self._lock = threading.Lock()
        self._running = 0
        """The number of the call that runs, 0 for none."""
        self._interrupted = 0
        """The number of the latest call that was to be interrupted."""
        self._closed = False

    @contextlib.contextmanager
    def running(self, number: int) -> Iterator[DuckdbConnection]:
        """Mark that a call runs. Raises Failure if it has been interrupted."""
        connection = self._connection = self._connection or self._connect()
        with self._lock:
            if self._interrupted >= number or self._closed:
                raise Failure(sqlstate.CANCELED, CANCELED_BEFORE_START)
            self._running = number
        try:
            yield connection
        finally:
            with self._lock:
                self._running = 0
                if self._closed:
                    connection.close()

    def run(self, sql: str, options: RunOptions, file: Path | None) -> Ran:
        """Run a statement. Its rows are stored in `file` unless they are few, or discarded if that is None."""
        assert self._connection is not None
        if file is None:
            return Ran(self._connection.run(sql, options, Discard()))
        spool = Spool(lambda: file, options.partition_rows)
        try:
            outcome = self._connection.run(sql, options, spool)
            if outcome.written is None:
                spool.finish(outcome.filed)
        except BaseException:
            spool.drop()
            raise
        return Ran(outcome, spool.layout, spool.body, spool.size)

    def interrupt(self, number: int) -> None:
        with self._lock:
            self._interrupted = number
            if number == self._running and self._connection is not None:
                self._connection.cancel()

    def progress(self) -> float | None:
        return self._connection.progress() if self._connection is not None else None

    def close(self) -> bool:
        """Close the connection, or interrupt it: then it is closed at the end of the call. Returns whether it is."""
        with self._lock:
            self._closed = True
            if self._connection is None:
                return True
            if self._running:
                self._connection.cancel()
            else:
                self._connection.close()
            return not self._running

    def state(self) -> State | None:
        held = self._connection
        if held is None:
            return None
        return held.database, held.schema, held.transaction, held.timezone, held.leaves_state


class Host:
    """The engine with its sessions, and the threads that process calls."""

    def __init__(self, orders: socket.socket, engine: DuckdbEngine) -> None:
        self.engine = engine
        self._orders = orders
        self._sessions: dict[int, Session] = {}
        self._connecting = threading.Lock()
        self._growth = Growth()
        self._threads = ThreadPoolExecutor(MOST_THREADS)
        started = threading.Barrier(THREADS)
        for _ in range(THREADS):
            self._begin(started.wait)

    def obey(self, order: Call, descriptors: list[int]) -> None:
        """Carry out an order, without waiting for the engine."""
        number = order.connection
        match order.method:
            case "serve":
                self._begin(functools.partial(self._serve, socket.socket(fileno=descriptors.pop())))
            case "interrupt":
                self._session(number).interrupt(order.number)
            case "progress":
                session = self._sessions.get(number)
                with contextlib.suppress(OSError):
                    send(self._orders, Report(number, session.progress() if session is not None else None))
            case "close" if (session := self._sessions.pop(number, None)) is not None:
                # Rolling back may take some time.
                self._begin(session.close)
            case "trim_memory":
                self._begin(self._trim_memory)

    def close(self) -> None:
        """Stop running statements and close the databases, which writes them to disk."""
        until = time.monotonic() + CLOSING_SECONDS
        # An interrupt between two steps of a statement may be lost.
        while [item for item in list(self._sessions.values()) if not item.close()] and time.monotonic() < until:
            time.sleep(0.01)
        self.engine.close()

    def _trim_memory(self) -> None:
        self.engine.trim_memory()
        if self._growth.large:
            return_unused_memory()

    def _begin(self, work: Callable[[], Any]) -> None:
        # Without memory for another thread, the work waits for one that is busy.
        with contextlib.suppress(RuntimeError):
            self._threads.submit(work)

    def _session(self, number: int) -> Session:
        with self._connecting:
            return self._sessions.setdefault(number, Session(self.engine.connect))

    def _serve(self, channel: socket.socket) -> None:
        with channel, contextlib.suppress(OSError):
            while self._serve_call(channel):
                # What the call held is free while the next one is awaited.
                pass

    def _serve_call(self, channel: socket.socket) -> bool:
        try:
            body = receive(channel)
            if body:
                send(channel, self._answer(read_call(body)))
            return bool(body)
        except MemoryError as error:
            # The call could not be read, or the answer not be written.
            send(channel, Answer(self._error(error)))
            return True

    def _answer(self, call: Call) -> Answer:
        session = self._session(call.connection) if call.connection else None
        result, error = None, None
        try:
            if session is None:
                result = called(self.engine, call)
            else:
                with session.running(call.number) as connection:
                    result = called(session if call.method == "run" else connection, call)
        except Exception as failed:
            error = self._error(failed)
        return Answer(error, session.state() if session is not None else None, result)

    def _error(self, error: Exception) -> Error:
        fatal = self._is_broken(error)
        if not fatal and (limited := over_limit(error)) is not None:
            return_unused_memory()
            return Error(limited.sql_state, limited.message, spent=used_up())
        if isinstance(error, Failure):
            return Error(error.sql_state, followable(error.message), fatal=fatal, missing=error.missing)
        if isinstance(error, OSError):
            return Error(sqlstate.LIMIT, error.strerror or str(error), error.errno or errno.EIO)
        return Error(sqlstate.INTERNAL, f"internal error: {type(error).__name__}: {error}", fatal=fatal)

    def _is_broken(self, error: BaseException) -> bool:
        """Whether an error has made the instance, or one of its databases, unusable."""
        cause = next((item for item in causes(error) if isinstance(item, duckdb.Error)), None)
        if isinstance(cause, duckdb.IOException):
            # DuckDB says this of a database that could not be written at a checkpoint.
            return "has been invalidated" in str(cause)
        if not isinstance(cause, duckdb.InternalException | duckdb.FatalException):
            return False
        try:
            self.engine.read_listing("SELECT 1")
        except Failure as failure:
            return isinstance(failure.__cause__, duckdb.FatalException)
        return False


@functools.cache
def _kinds(target: Any, method: str) -> tuple[Any, ...]:
    """The types of the parameters of a method."""
    hints = typing.get_type_hints(getattr(target, method))
    return tuple(kind for name, kind in hints.items() if name != "return")


def called(target: Any, call: Call) -> Any:
    """Call a method; its last parameters may have defaults."""
    if call.method not in CALLABLE:
        raise Failure(sqlstate.UNSUPPORTED, f"unknown method {call.method} of an engine")
    kinds = _kinds(target.__class__, call.method)
    return getattr(target, call.method)(*map(convert_to, call.given, kinds))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Return an error and its causes; an error may be its own cause."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        error = error.__cause__


def over_limit(error: BaseException) -> Failure | None:
    """Return the failure for an error that means too little memory, or too little space for temporary files; None for
    another error."""
    for cause in causes(error):
        text = str(cause)
        if isinstance(cause, duckdb.OutOfMemoryException) and Cause.SPILL_FULL.of(text):
            what = "the temporary files of the organization's statements need too much space"
            return Failure(sqlstate.LIMIT, f"{what} {limit_note('spill_size')}")
        if isinstance(cause, MemoryError | duckdb.OutOfMemoryException) or _lacks_memory(cause):
            message = text.partition("\n")[0].strip()
            if isinstance(cause, MemoryError) or Cause.NO_THREAD.of(message) or not message:
                message = "out of memory"
            return Failure(sqlstate.LIMIT, f"{message}: the engine's memory is limited {MEMORY_NOTE}")
    return None


def _lacks_memory(error: BaseException) -> bool:
    if isinstance(error, duckdb.InternalException):
        return Cause.NO_MEMORY.of(error)
    return isinstance(error, RuntimeError) and (Cause.NO_THREAD.of(error) or Cause.NO_MEMORY_FOR_CODE.of(error))


def used_up() -> bool:
    """Tell whether the process has nearly reached its limit of data memory (RLIMIT_DATA)."""
    most = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if most == resource.RLIM_INFINITY:
        return False
    try:
        return memory_of_process("VmData") > most - LEAST_MEMORY
    except MemoryError:
        return True


def open_engine(config: EngineConfig) -> DuckdbEngine:
    """Return the engine on the databases of an organization, or on none. Raises Failure."""
    if config.renders:
        return DuckdbEngine(temporary=config.folder / RENDERING)
    until = time.monotonic() + LOCKED_SECONDS
    while True:
        engine = DuckdbEngine(temporary=config.folder / "temporary")
        try:
            engine.lock(config.folder, config.databases, config.limits, config.system)
        except Exception as error:
            raise Failure(sqlstate.INTERNAL, str(error).partition("\n")[0]) from error
        held = any(Cause.OPEN_IN_ANOTHER_PROCESS.of(reason) for reason in engine.broken.values())
        if time.monotonic() > until or not held:
            return engine
        engine.close()
        time.sleep(0.05)


def restrict(config: EngineConfig, parent: int) -> sandbox.Protections:
    """Give up all access that is not needed. Raises Failure if the system refuses that."""
    folder, limits = config.folder, config.limits
    temporary = folder / (RENDERING if config.renders else "temporary")
    os.environ["TMPDIR"] = str(temporary)
    databases = folder / "databases"
    if config.renders:
        read, write, fill = [folder / RESULTS], [temporary], []
    else:
        read, write, fill = [folder / "copies"], [databases, temporary, folder / SYSTEM_FOLDER], [folder / SPOOL]
    try:
        bounds = sandbox.Bounds(sandbox.memory_bound(limits.memory, limits.threads), sandbox.file_bound(databases))
        return sandbox.restrict(read, write, bounds, fill=fill, parent=parent)
    except OSError as error:
        raise Failure(sqlstate.INTERNAL, f"the engine's process cannot be restricted: {error}") from error


def main() -> NoReturn:
    """Serve the process at the other end of the first socket until it is closed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        # The service is asked to stop, and it asks this process.
        signal.signal(number, signal.SIG_IGN)
    limit_unused_memory()
    orders = socket.socket(fileno=int(sys.argv[1]))
    with contextlib.suppress(OSError):
        _serve_orders(orders)
    # Unless it was asked to stop, the service has exited: committed data is in the write-ahead logs of the databases.
    os._exit(0)


def _serve_orders(orders: socket.socket) -> None:
    body = receive(orders)
    if not body:
        return
    config = read_config(body)
    try:
        protections = restrict(config, int(sys.argv[2]))
        engine = open_engine(config)
    except Failure as failure:
        send(orders, Answer(Error(failure.sql_state, failure.message)))
        os._exit(1)
    host = Host(orders, engine)
    send(orders, Answer(result=Opened(engine.first_database, dict(engine.broken), str(protections))))
    descriptors: list[int] = []
    while body := receive(orders, descriptors):
        order = read_call(body)
        if order.method == "stop":
            host.close()
            return
        host.obey(order, descriptors)
