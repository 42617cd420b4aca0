"""The Engine protocol over sockets: the engine of an organization runs in its own process.

A process that exits, hangs or fails permanently is replaced when it is next needed: its running statements fail with
XX000, its sessions report once that they were restarted, and readers repeat their requests. No method that the event
loop calls waits for the process: database, schema, transaction and progress are taken from its replies.
"""

from __future__ import annotations

import errno
import itertools
import math
import stat
import threading
import time
import typing
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from msgspec.structs import replace

from sqlshell.errors import reason
from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.catalog import INITIAL_SCHEMA, DuckdbCatalog
from sqlshell.service.engines.duckdb.published import PublishedRelations
from sqlshell.service.engines.engine import (
    SPOOL,
    SYSTEM_FOLDER,
    Engine,
    EngineSession,
    Listing,
    LocalEngine,
    LocalSession,
    Outcome,
    Relation,
    RunOptions,
    Sink,
    completed,
)
from sqlshell.service.engines.process.frames import Answer, Call, EngineConfig, Opened, Ran
from sqlshell.service.engines.process.process import Process, ProcessEnded
from sqlshell.service.failure import Failure, ResultLost
from sqlshell.service.results.results import Discard, Spool
from sqlshell.sql.analysis.kinds import is_repeatable
from sqlshell.text import format_count

MOST_IDLE: Final = 12
"""After how many calls of trim_memory(), which happen every 5 seconds, a process without readers is stopped."""

AGAIN_SECONDS: Final = 10.0
"""The time between two attempts to open databases that could not be opened."""

ASKED_SECONDS: Final = 0.2
"""The minimum interval between requests for the progress of a statement."""

RENDERED: Final = frozenset({"read", "partitions", "convert"})
"""The methods that the process that renders results has."""

CHANGING: Final = frozenset({"run", "load", "attach", "detach"})
"""The methods that are not called again if the process exited while it ran one."""

RESTARTED: Final = "the session was restarted because {why}"
GONE: Final = "temporary tables, settings and variables were lost"
UNRUN: Final = "the statement was not run; run it again"
LOST: Final = "the open transaction was lost because {why}; run ROLLBACK to end it"

P = ParamSpec("P")
R = TypeVar("R")


def forwarded(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return a method that calls the one of this name in the process; its result has the declared type. Arguments by
    name are the last ones, in order."""
    kind = typing.get_type_hints(method)["return"]

    def forward(self: Any, /, *given: P.args, **last: P.kwargs) -> R:
        result: R = self.ask(method.__name__, kind, *given, *last.values())
        return result

    return forward


class _Caller(ABC):
    """Calls methods in a process."""

    _abandoned = False
    """Whether the process was killed because of the running call."""

    def ask(self, method: str, kind: Any, *given: Any) -> Any:
        """Call a method, again in a new process if the first one exited, unless it changes something. Raises
        Failure."""
        for last in (False, True):
            process = self._bound(method)
            try:
                answer = self._answer(process, method, *given)
            except ProcessEnded as end:
                if last or self._abandoned or (end.begun and method in CHANGING):
                    raise self._lost(process, method, end) from None
                process.why_it_ended()
            else:
                return process.result(answer, kind)
        raise AssertionError

    @abstractmethod
    def _bound(self, method: str) -> Process:
        """The process that has the method, started if necessary. Raises Failure."""

    @abstractmethod
    def _answer(self, process: Process, method: str, *given: Any) -> Answer:
        """The answer to a call. Raises ProcessEnded."""

    @abstractmethod
    def _lost(self, process: Process, method: str, end: ProcessEnded) -> Failure:
        """The failure of a call whose process exited."""


class RemoteEngine(_Caller, DuckdbCatalog):
    """An engine in a process.

    `config` returns what to open, each time a process is started; `renewed` is called after a process was replaced,
    before the new one is used. Every call except trim_memory() and close() waits for the process, and raises Failure
    (XX000) if it cannot be started.
    """

    def __init__(self, config: Callable[[], EngineConfig], renewed: Callable[[], None]) -> None:
        self._config = config
        self._renewed = renewed
        self._process: Process | None = None
        self._starting = threading.RLock()
        self._processes = itertools.count(1)
        self._connections = itertools.count(1)
        self._not_before = 0.0
        self._renewing = False
        self._rendering = threading.Lock()
        self._renderer: Process | None = None
        """The process that renders results, while there are readers."""
        self._idle = 0
        """How often trim_memory() was called since the last reader."""
        self._closed = False
        self._latest: EngineConfig
        """What the latest process was to open."""
        self.opened: Opened
        """What it has opened, and how it is restricted."""
        self.process()
        self.first_database = self.opened.first_database
        self._published = PublishedRelations(self._latest.folder / SYSTEM_FOLDER)

    def process(self) -> Process:
        """Return the process, restarted if necessary. Raises Failure."""
        with self._starting:
            before = self._process
            if before is not None and before.alive:
                return before
            if self._closed:
                raise Failure(sqlstate.INTERNAL, "the service is shutting down")
            if before is not None:
                before.wait()
                if self._renewing:
                    raise Failure(sqlstate.INTERNAL, before.why)
                if (left := self._not_before - time.monotonic()) > 0:
                    wait = format_count(math.ceil(left), "second")
                    raise Failure(sqlstate.INTERNAL, f"{before.why}; it will be restarted in {wait}")
            self._latest = self._config()
            begun = self._process = Process(self._latest, next(self._processes))
            self._renewing = True
            try:
                self.opened = begun.opened()
                if before is not None:
                    self._renewed()
            except Failure:
                begun.kill("the engine could not open its databases")
                self._not_before = time.monotonic() + AGAIN_SECONDS
                raise
            finally:
                self._renewing = False
            return begun

    def renderer(self) -> Process:
        """Return the process that renders results, which has no access to the databases. Raises Failure."""
        with self._rendering:
            if self._renderer is None or not self._renderer.alive:
                if self._closed:
                    raise Failure(sqlstate.INTERNAL, "the service is shutting down")
                self._renderer = Process(replace(self._latest, databases={}, renders=True), next(self._processes))
            renderer, self._idle = self._renderer, 0
        renderer.opened()
        return renderer

    def connect(self) -> RemoteConnection:
        return RemoteConnection(self, next(self._connections))

    def spool(self) -> Path:
        """Return a new file for a large result, which the engine's process can write but not read."""
        return self._latest.folder / SPOOL / uuid.uuid4().hex

    read = forwarded(Engine.read)
    convert = forwarded(Engine.convert)
    attach = forwarded(LocalEngine.attach)
    detach = forwarded(LocalEngine.detach)
    mount = forwarded(LocalEngine.mount)
    head = forwarded(LocalEngine.head)
    read_listing = forwarded(DuckdbCatalog.read_listing)

    def partitions(self, path: Path, rows: int, options: RunOptions) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = self.ask("partitions", list[tuple[int, int]], path, rows, options)
        return found

    def publish(self, tables: Mapping[str, Listing]) -> None:
        try:
            self._published.publish(tables)
        except OSError as error:
            raise Failure(sqlstate.DISK_FULL, f"cannot write the system relations: {reason(error)}") from error

    def trim_memory(self) -> None:
        for process in (self._process, self._renderer):
            if process is not None:
                process.order("trim_memory")
        self._idle += 1
        with self._rendering:
            if self._renderer is not None and self._idle > MOST_IDLE and not self._renderer.busy:
                self._renderer.stop()
                self._renderer = None

    def close(self) -> None:
        self._closed = True
        processes = [process for process in (self._process, self._renderer) if process is not None]
        for process in processes:
            process.stop()
        for process in processes:
            process.wait()

    def _bound(self, method: str) -> Process:
        return self.renderer() if method in RENDERED else self.process()

    def _answer(self, process: Process, method: str, *given: Any) -> Answer:
        return process.call(Call(method, given=given))

    def _lost(self, process: Process, method: str, end: ProcessEnded) -> Failure:
        effect = "; the operation may have taken effect" if end.begun and method in CHANGING else ""
        return Failure(sqlstate.INTERNAL, process.why_it_ended() + effect)


class RemoteConnection(_Caller):
    """A session of a RemoteEngine. It is created in the process on first use."""

    def __init__(self, engine: RemoteEngine, number: int) -> None:
        self.database, self.schema = engine.first_database, INITIAL_SCHEMA
        self.transaction = self.timezone = ""
        self._engine = engine
        self._number = number
        self._process: Process | None = None
        self._latest = 0
        """The number of the latest call."""
        self._anew = ""
        """A warning about the session for the next statement."""
        self._leaves = False
        """Whether it has temporary state that would be lost with its process."""
        self._answered = False
        """Whether it has, or may have, done anything in a process."""
        self._asked = 0.0

    use = forwarded(EngineSession.use)
    columns = forwarded(EngineSession.columns)
    lose_transaction = forwarded(EngineSession.lose_transaction)
    plan = forwarded(LocalSession.plan)
    stream_query = forwarded(LocalSession.stream_query)
    listed = forwarded(LocalSession.listed)
    rows = forwarded(LocalSession.rows)

    def run(self, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        if not isinstance(sink, Spool | Discard):
            raise TypeError("rows of an engine's process are kept by a Spool")
        self._abandoned = False
        file = self._engine.spool() if isinstance(sink, Spool) else None
        ran: Ran = self._statement("run", Ran, sql, options, file)
        if isinstance(sink, Spool) and file is not None:
            try:
                self._keep(ran, sink, file, options)
            except (Failure, OSError) as error:
                sink.drop()
                if is_repeatable(sql):
                    raise
                raise ResultLost(error, certain=True) from error
        return self._with_warning(replace(ran.outcome, written=None))

    def load(self, names: Sequence[str], columns: Sequence[str], path: Path, options: RunOptions) -> Outcome:
        return self._with_warning(self._statement("load", Outcome, names, columns, path, options))

    def resolve(self, names: Sequence[str]) -> Relation:
        if len(names) == 2:
            # The first part may be a schema or a database.
            relation: Relation = self.ask("resolve", Relation, names)
            return relation
        return completed(names, self.database, self.schema)

    def cancel(self, *, force: bool = False) -> bool:
        process = self._process
        if not force and process is not None:
            process.order("interrupt", self._number, self._latest)
        if not force or process is None or not process.busy:
            return not force
        self._abandoned = True
        process.kill("a statement did not respond to an interrupt, so the engine's process was killed")
        return True

    def progress(self) -> float | None:
        process, now = self._process, time.monotonic()
        if process is None:
            return None
        if now - self._asked > ASKED_SECONDS:
            self._asked = now
            process.progress.setdefault(self._number, None)
            process.order("progress", self._number)
        return process.progress.get(self._number)

    def close(self) -> None:
        if self._process is not None:
            self._process.progress.pop(self._number, None)
            self._process.order("close", self._number)

    def _answer(self, process: Process, method: str, *given: Any) -> Answer:
        """The answer to a call; takes over the state of the session. Raises ProcessEnded."""
        self._latest += 1
        answer = process.call(Call(method, self._number, self._latest, given))
        if answer.state is not None:
            self._answered = True
            self.database, self.schema, self.transaction, self.timezone, self._leaves = answer.state
        return answer

    def _statement(self, method: str, kind: Any, *given: Any) -> Any:
        """The result of a statement. Raises its error, with the warning about the session."""
        try:
            return self.ask(method, kind, *given)
        except Failure as failure:
            warning, self._anew = self._anew, ""
            if not warning:
                raise
            if self.transaction == "failed":
                raise Failure("40000", warning) from failure
            raise failure.with_message(f"{failure.message}\n{warning}") from failure

    def _with_warning(self, outcome: Outcome) -> Outcome:
        """An outcome, with the warning about the session."""
        warning, self._anew = self._anew, ""
        if warning:
            message = f"{outcome.message}; {warning}" if sqlstate.warns(outcome.sql_state) else warning
            return replace(outcome, message=message, sql_state=sqlstate.WARNING)
        return outcome

    def _keep(self, ran: Ran, sink: Spool, file: Path, options: RunOptions) -> None:
        """Keep a complete result, whose file is moved to where the engine's process cannot name it."""
        assert ran.layout is not None
        if ran.layout.form != "record":
            _move(file, sink.lend())
        if ran.outcome.written is None:
            sink.adopt(ran.layout, ran.body, ran.size)
        else:
            sink.finish(self._engine.partitions(sink.file(), ran.outcome.written, options))

    def _lost(self, process: Process, method: str, end: ProcessEnded) -> Failure:
        self._answered = self._answered or end.begun or self._abandoned
        why = process.why_it_ended()
        effect = "the statement may have taken effect" if end.begun else "the statement did not run"
        return Failure(sqlstate.INTERNAL, f"the statement failed because {why}; {effect}")

    def _bound(self, method: str) -> Process:
        """The process, with the session restored to its previous database and schema if the process was replaced.

        Raises Failure; once with SESSION_LOST if temporary state of the session was lost.
        """
        process, before = self._engine.process(), self._process
        if process is before:
            return process
        self._process = process
        if before is None or not self._answered:
            return process
        why = before.why_it_ended()
        place, transaction, leaves = (self.database, self.schema), self.transaction, self._leaves
        try:
            self.timezone = ""
            if place != (self._engine.first_database, INITIAL_SCHEMA):
                process.result(self._answer(process, "use", *place), None)
            if transaction:
                process.result(self._answer(process, "lose_transaction"), None)
        except (ProcessEnded, Failure) as error:
            self._process, self.transaction, self._leaves = before, transaction, leaves
            if isinstance(error, ProcessEnded):
                raise self._lost(process, method, error) from None
            raise
        self._leaves = False
        warning = (LOST if transaction else RESTARTED).format(why=why)
        if leaves and not transaction:
            # The statement may refer to lost objects, and could find others with the same names.
            raise Failure(sqlstate.SESSION_LOST, f"{warning}: {GONE}; {UNRUN}")
        self._anew = f"{warning}; {GONE}" if leaves else warning
        return process


def _move(file: Path, target: Path) -> None:
    """Move a file that an engine's process has written. Raises OSError."""
    file.rename(target)
    if not stat.S_ISREG(target.lstat().st_mode):
        target.unlink()
        raise OSError(errno.EINVAL, "not a regular file")
