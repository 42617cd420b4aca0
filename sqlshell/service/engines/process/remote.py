"""The Engine protocol over sockets: the engine of an organization runs in its own process.

A process that exits, hangs or fails permanently is replaced when it is next needed: its running statements fail with
XX000, its sessions report once that they were restarted, and readers repeat their requests. No method that the event
loop calls waits for the process: database, schema, transaction and progress are taken from its replies.
"""

from __future__ import annotations

import errno
import itertools
import stat
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb import CAPABILITIES, TRAITS, contents, objects, version
from sqlshell.service.engines.duckdb.published import FOLDER, SPOOL, PublishedRelations
from sqlshell.service.engines.engine import (
    CatalogQuery,
    EngineSession,
    Listing,
    ObjectQuery,
    Outcome,
    Plan,
    Relation,
    Rows,
    RunOptions,
    Sink,
    StreamQuery,
)
from sqlshell.service.engines.process.frames import (
    Answer,
    Ask,
    Call,
    CancelRows,
    Close,
    Interrupt,
    ReleaseMemory,
    Request,
    Run,
    TrimMemory,
)
from sqlshell.service.engines.process.process import EngineConfig, Process, ProcessEnded
from sqlshell.service.failure import Failure, ResultLost
from sqlshell.service.results.results import Discard, Spool
from sqlshell.sql.analysis.kinds import is_repeatable

MOST_IDLE: Final = 12
"""After how many calls of trim_memory(), which happen every 5 seconds, a process without readers is stopped."""

LONGEST: Final = 30.0
"""The maximum number of seconds between two attempts to open the databases."""

ASKED_SECONDS: Final = 0.2
"""The minimum interval between requests for the progress of a statement."""

RESTARTED: Final = "the session was restarted because {why}"
GONE: Final = "temporary tables, settings and variables were lost"
UNRUN: Final = "the statement was not run; run it again"
LOST: Final = "the open transaction was lost because {why}; run ROLLBACK to end it"


class RemoteEngine:
    """An engine in a process.

    `config` returns what to open, each time a process is started; `renewed` is called after a process was replaced,
    before the new one is used. Every call except release_memory() and close() waits for the process, and raises Failure
    (XX000) if it cannot be started.
    """

    name = "duckdb"
    capabilities, traits = CAPABILITIES, TRAITS

    def __init__(self, config: Callable[[], EngineConfig], renewed: Callable[[], None]) -> None:
        self._config = config
        self._renewed = renewed
        self._process: Process | None = None
        self._starting = threading.RLock()
        self._processes = itertools.count(1)
        self._connections = itertools.count(1)
        self._failures = 0
        self._not_before = 0.0
        self._renewing = False
        self._rendering = threading.Lock()
        self._renderer: Process | None = None
        """The process that renders results, while there are readers."""
        self._idle = 0
        """How often trim_memory() was called since the last reader."""
        self._closed = False
        self._opened: EngineConfig
        """What the latest process was opened with."""
        self.first_database = ""
        self.first_database = self.process().first_database
        self._published = PublishedRelations(self._opened.folder / FOLDER)

    @property
    def version(self) -> str:
        return version()

    @property
    def broken(self) -> Mapping[str, str]:
        return self._process.broken if self._process is not None else {}

    @property
    def protections(self) -> str:
        """A description of how the process is restricted."""
        return self._process.protections if self._process is not None else ""

    def process(self) -> Process:
        """The process, restarted if necessary. Raises Failure."""
        with self._starting:
            process = self._process
            if process is not None and process.alive:
                return process
            if self._closed:
                raise Failure(sqlstate.INTERNAL, "the service is shutting down")
            if process is not None:
                process.wait()
            left = self._not_before - time.monotonic()
            if left > 0 and process is not None:
                raise Failure(sqlstate.INTERNAL, f"{process.why}; it will be restarted in {left:.0f} seconds")
            if self._renewing:
                raise Failure(sqlstate.INTERNAL, process.why if process is not None else "")
            self._opened = self._config()
            begun = self._process = Process(self._opened, next(self._processes))
            self._renewing = True
            try:
                begun.opened()
                if process is not None:
                    self._renewed()
            except Failure:
                begun.kill("the engine could not open its databases")
                self._failures += 1
                self._not_before = time.monotonic() + min(LONGEST, 2.0 ** (self._failures - 1))
                raise
            finally:
                self._renewing = False
            self._failures = 0
            return begun

    def connect(self) -> RemoteConnection:
        return RemoteConnection(self, next(self._connections))

    def spool(self) -> Path:
        """A new file for a large result, which the engine's process can write but not read."""
        return self._opened.folder / SPOOL / uuid.uuid4().hex

    def read(self, path: Path, start: int, counts: Sequence[int]) -> list[bytes]:
        bodies: list[bytes] = self._rendered("read", list[bytes], path, start, counts)
        return bodies

    def partitions(self, path: Path, rows: int, options: RunOptions) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = self._rendered("partitions", list[tuple[int, int]], path, rows, options)
        return found

    def convert(
        self, source: Path, ends: Sequence[int], columns: Sequence[ColumnInfo], instants: Sequence[int], target: Path
    ) -> None:
        self._rendered("convert", None, source, ends, columns, instants, target)

    def renderer(self) -> Process:
        """The process that renders results, which has no access to the databases. Raises Failure."""
        with self._rendering:
            if self._renderer is None or not self._renderer.alive:
                if self._closed:
                    raise Failure(sqlstate.INTERNAL, "the service is shutting down")
                self._renderer = Process(replace(self._opened, databases={}, renders=True), next(self._processes))
            renderer, self._idle = self._renderer, 0
        renderer.opened()
        return renderer

    def trim_memory(self) -> None:
        self._idle += 1
        for process in (self._process, self._renderer):
            if process is not None and process.used:
                process.used = False
                process.order(TrimMemory())
        with self._rendering:
            if self._renderer is not None and self._idle > MOST_IDLE and not self._renderer.busy:
                self._renderer.stop()
                self._renderer = None

    def release_memory(self) -> None:
        if (renderer := self._renderer) is not None:
            renderer.order(ReleaseMemory())

    def attach(self, name: str, path: Path | None) -> None:
        self._called(self.process, "attach", None, name, path, again=False)

    def detach(self, name: str) -> None:
        self._called(self.process, "detach", None, name, again=False)

    def mount(self, store: str, copy: Path) -> None:
        self._ask("mount", None, store, copy)

    def view(self, store: str, entities: Mapping[str, Path]) -> None:
        raise Failure(
            sqlstate.UNSUPPORTED,
            "internal error: an engine in a process of its own reads copies of entities",
        )

    def catalog(self, query: CatalogQuery, seen: EngineSession | None = None) -> Rows:
        return self.read_listing(contents.listing(query))

    def objects(self, query: ObjectQuery, seen: EngineSession) -> Listing:
        return objects.found(query, cast(objects.Session, seen))

    def read_listing(self, sql: str) -> Rows:
        """The rows of the service's own query, as strings; NULL is "". Raises Failure."""
        rows: list[tuple[str, ...]] = self._ask("read_listing", list[tuple[str, ...]], sql)
        return rows

    def inline(self, rows: Listing) -> str:
        return contents.inline(rows)

    def publish(self, tables: Mapping[str, Listing]) -> None:
        try:
            self._published.publish(tables)
        except OSError as error:
            raise Failure(sqlstate.DISK_FULL, f"cannot write the system relations: {error.strerror}") from error

    def head(self, stream: Relation, least: int = 0) -> int:
        return int(self._ask("head", int, stream, least))

    def rows(self, query: StreamQuery, start: int, end: int, number: int) -> list[str]:
        rows: list[str] = self._ask("rows", list[str], query, start, end, number)
        return rows

    def cancel_rows(self, number: int) -> None:
        if self._process is not None:
            self._process.order(CancelRows(number))

    def stop(self) -> None:
        """Ask the process to exit. Never waits."""
        self._closed = True
        for process in (self._process, self._renderer):
            if process is not None:
                process.stop()

    def close(self) -> None:
        self.stop()
        for process in (self._process, self._renderer):
            if process is not None:
                process.wait()

    def _ask(self, method: str, kind: Any, *given: Any) -> Any:
        """Call an idempotent method."""
        return self._called(self.process, method, kind, *given)

    def _rendered(self, method: str, kind: Any, *given: Any) -> Any:
        """Call an idempotent method of the process that renders results."""
        return self._called(self.renderer, method, kind, *given)

    @staticmethod
    def _called(find: Callable[[], Process], method: str, kind: Any, *given: Any, again: bool = True) -> Any:
        """Call a method, `again` in a new process if the first one ended."""
        process = find()
        try:
            return process.result(process.call(Call(0, 0, method, list(given))), kind)
        except ProcessEnded:
            why = process.why_it_ended()
        if not again:
            raise Failure(sqlstate.INTERNAL, f"{why}; the operation may have taken effect")
        process = find()
        try:
            return process.result(process.call(Call(0, 0, method, list(given))), kind)
        except ProcessEnded:
            raise Failure(sqlstate.INTERNAL, process.why_it_ended()) from None


class RemoteConnection:
    """A session of a RemoteEngine. It is created in the process on first use."""

    def __init__(self, engine: RemoteEngine, number: int) -> None:
        self.database, self.schema = engine.first_database, contents.INITIAL_SCHEMA
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
        self._abandoned = False

    def run(self, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        if not isinstance(sink, Spool | Discard):
            raise TypeError("rows of an engine's process are kept by a Spool")
        file = self._engine.spool() if isinstance(sink, Spool) else None
        name = str(file) if file is not None else None
        self._abandoned = False
        process, answer = self._call(lambda number: Run(self._number, number, sql, options, name))
        outcome = self._checked(process, answer, Outcome)
        if isinstance(sink, Spool) and answer.layout is not None and file is not None:
            try:
                self._keep(answer, outcome, sink, file, options)
            except (Failure, OSError) as error:
                sink.drop()
                if is_repeatable(sql):
                    raise
                raise ResultLost(error, certain=True) from error
        return self._with_warning(replace(outcome, written=None))

    def load(self, names: Sequence[str], columns: Sequence[str], path: Path, options: RunOptions) -> Outcome:
        given = [list(names), list(columns), path, options]
        process, answer = self._call(lambda number: Call(self._number, number, "load", given))
        return self._with_warning(self._checked(process, answer, Outcome))

    def use(self, database: str, schema: str) -> None:
        self._ask("use", None, database, schema)

    def stream_query(self, sql: str, streams: Collection[Relation], options: RunOptions) -> StreamQuery | None:
        query: StreamQuery | None = self._ask("stream_query", StreamQuery | None, sql, list(streams), options)
        return query

    def plan(self, sql: str, options: RunOptions) -> Plan:
        plan: Plan = self._ask("plan", Plan, sql, options)
        return plan

    def columns(self, relation: Relation, options: RunOptions) -> list[ColumnInfo]:
        columns: list[ColumnInfo] = self._ask("columns", list[ColumnInfo], list(relation), options)
        return columns

    def listed(self, sql: str) -> Rows:
        rows: list[tuple[str, ...]] = self._ask("listed", list[tuple[str, ...]], sql)
        return rows

    def resolve(self, names: Sequence[str]) -> Relation:
        if len(names) == 2:
            # The first part may be a schema or a database.
            relation: Relation = self._ask("resolve", Relation, list(names))
            return relation
        return names[-3] if len(names) > 2 else self.database, names[-2] if len(names) > 1 else self.schema, names[-1]

    def lose_transaction(self) -> None:
        self._ask("lose_transaction", None)

    def cancel(self, *, force: bool = False) -> bool:
        process = self._process
        if not force and process is not None:
            process.order(Interrupt(self._number, self._latest))
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
            process.order(Ask(self._number))
        return process.progress.get(self._number)

    def close(self) -> None:
        if self._process is not None:
            self._process.progress.pop(self._number, None)
            self._process.order(Close(self._number))

    def _call(self, made: Callable[[int], Request], *, idempotent: bool = False) -> tuple[Process, Answer]:
        """The answer to what is `made` with its number. It is sent again to a new process if it has not begun, or is
        idempotent. Raises Failure."""
        for last in (False, True):
            process = self._bound()
            try:
                answer = process.call(made(self._next_number()))
            except ProcessEnded as end:
                if last or self._abandoned or (end.begun and not idempotent):
                    raise self._lost(process, end) from None
                process.why_it_ended()
            else:
                self._take(answer)
                return process, answer
        raise AssertionError

    def _checked(self, process: Process, answer: Answer, kind: Any) -> Any:
        """The result of a statement. Raises its error, with the warning about the session."""
        try:
            return process.result(answer, kind)
        except (Failure, OSError) as error:
            raise self._failure_with_warning(error) from error

    def _keep(self, answer: Answer, outcome: Outcome, sink: Spool, file: Path, options: RunOptions) -> None:
        """Keep a complete result, whose file is moved to where the engine's process cannot name it."""
        assert answer.layout is not None
        if answer.layout.form != "record":
            _move(file, sink.lend())
        if outcome.written is None:
            sink.adopt(answer.layout, answer.body, answer.size)
            return
        sink.finish(self._engine.partitions(sink.file(), outcome.written, options))

    def _with_warning(self, outcome: Outcome) -> Outcome:
        """An outcome, with the warning about the session."""
        warning, self._anew = self._anew, ""
        if warning:
            message = f"{outcome.message}; {warning}" if sqlstate.warns(outcome.sql_state) else warning
            return replace(outcome, message=message, sql_state=sqlstate.WARNING)
        return outcome

    def _failure_with_warning(self, error: Failure | OSError) -> Failure | OSError:
        """A failure, with the warning about the session."""
        warning, self._anew = self._anew, ""
        if not warning or isinstance(error, OSError):
            return error
        if self.transaction == "failed":
            return Failure("40000", warning)
        return error.with_message(f"{error.message}\n{warning}")

    def _lost(self, process: Process, end: ProcessEnded) -> Failure:
        self._answered = self._answered or end.begun or self._abandoned
        why = process.why_it_ended()
        effect = "the statement may have taken effect" if end.begun else "the statement did not run"
        return Failure(sqlstate.INTERNAL, f"the statement failed because {why}; {effect}")

    def _next_number(self) -> int:
        self._latest += 1
        return self._latest

    def _take(self, answer: Answer) -> None:
        if answer.state is not None:
            self._answered = True
            self.database, self.schema, self.transaction, self.timezone, self._leaves = answer.state

    def _ask(self, method: str, kind: Any, *given: Any) -> Any:
        """Call an idempotent method. Raises Failure."""
        process, answer = self._call(lambda number: Call(self._number, number, method, list(given)), idempotent=True)
        return process.result(answer, kind)

    def _restore(self, process: Process, method: str, *given: Any) -> None:
        """Call a method in a new process before the statement. Raises Failure and ProcessEnded."""
        answer = process.call(Call(self._number, self._next_number(), method, list(given)))
        self._take(answer)
        process.result(answer, None)

    def _bound(self) -> Process:
        """The process, with the session restored to its previous database and schema if the process was replaced.

        Raises Failure; once with SESSION_LOST if temporary state of the session was lost.
        """
        process = self._engine.process()
        before = self._process
        if process is before:
            return process
        self._process = process
        if before is None or not self._answered:
            return process
        why = before.why_it_ended()
        place, transaction, leaves = (self.database, self.schema), self.transaction, self._leaves
        try:
            self.timezone = ""
            if place != (self._engine.first_database, contents.INITIAL_SCHEMA):
                self._restore(process, "use", *place)
            if transaction:
                self._restore(process, "lose_transaction")
        except (ProcessEnded, Failure) as error:
            self._process, self.transaction, self._leaves = before, transaction, leaves
            if isinstance(error, ProcessEnded):
                raise self._lost(process, error) from None
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
