"""Statements from submission to result: sessions run theirs in order, and every statement stays findable by its id."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho, StatementRequest
from sqlshell.service.dialect import ListQueries, Query, Terminate, Use, read
from sqlshell.service.engines.engine import Connection, Engine, Failure, Options, Outcome
from sqlshell.service.objects import Parts
from sqlshell.service.results import Spool, Store
from sqlshell.sql.scanner import Statement, split

RECORDS = 10_000
"""Statements that stay findable; the oldest finished ones are let go."""

KEPT_SECONDS = 3600.0
IDLE_SECONDS = 1800.0
"""How long a session without statements lives."""

WORKERS = 64
TERMINATE_SECONDS = 5.0
NOT_RUN = "not run: a statement before it in the same submission failed"


@dataclass(slots=True, eq=False)
class Record:
    """One statement. `state` is its sqlState; 03000 until it is done."""

    sql: str
    spool: Spool
    context: ContextEcho
    statement_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created: float = field(default_factory=time.time)
    state: str = sqlstate.RUNNING
    message: str = ""
    outcome: Outcome | None = None
    connection: Connection | None = None
    ending: bool = False
    finished: float = 0.0
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def running(self) -> bool:
        return self.state == sqlstate.RUNNING


@dataclass(slots=True, eq=False)
class Session:
    """One connection of the engine and the context beside it. Statements take turns by `turn`."""

    connection: Connection
    parts: Parts = field(default_factory=Parts)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    used: float = field(default_factory=time.monotonic)
    waiting: int = 0

    def echo(self) -> ContextEcho:
        return self.parts.echo(self.connection.database, self.connection.schema)


class Statements:
    """All statements of the service. Used from one event loop; the engine works in threads.

    `row_limits` is whether a request's `parameters.rowLimit` counts, as it does when embedded.
    """

    def __init__(self, engine: Engine, *, partition_rows: int, row_limits: bool) -> None:
        self._engine = engine
        self._partition_rows = partition_rows
        self._row_limits = row_limits
        self._store = Store()
        self._records: OrderedDict[str, Record] = OrderedDict()
        self._sessions: dict[str, Session] = {}
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="statement")
        self._tasks: set[asyncio.Task[None]] = set()
        self._interrupting = threading.Lock()
        self._closed = False

    async def submit(self, request: StatementRequest) -> list[Record]:
        """Begin to run the statements of a request; their records, in order. Raises Failure when there is none."""
        items = split(request.statement)
        texts = [item.text for item in items if isinstance(item, Statement)]
        if not texts:
            raise Failure(sqlstate.SYNTAX, "there is no statement")
        session, own = await self._session(request)
        self._forget()
        records = [Record(text, self._store.new(), session.echo()) for text in texts]
        for record in records:
            self._records[record.statement_id] = record
        if len(items) != len(texts):
            self._finish(records[0], sqlstate.SYNTAX, 'syntax error at or near "\\"')
            self._cancel(records[1:])
            return records
        if len(records) == 1 and isinstance(asked := read(texts[0], "", ""), Terminate):
            # Never behind what it is to end.
            task = asyncio.ensure_future(self._terminate(records[0], asked.statement_id))
        else:
            session.waiting += 1
            task = asyncio.ensure_future(self._run(session, own, request, records))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return records

    def find(self, statement_id: str) -> Record | None:
        return self._records.get(statement_id)

    async def close(self) -> None:
        """End what runs, close all sessions and remove all results."""
        self._closed = True
        until = time.monotonic() + TERMINATE_SECONDS
        for record in self._records.values():
            record.ending = True
        while any(record.connection for record in self._records.values()) and time.monotonic() < until:
            self._interrupt(*(record for record in self._records.values() if record.connection))
            await asyncio.sleep(0.01)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._pool.shutdown(wait=False, cancel_futures=True)
        for session in self._sessions.values():
            session.connection.close()
        self._engine.close()
        self._store.close()

    async def _session(self, request: StatementRequest) -> tuple[Session, bool]:
        """The session of a request, and whether it is for this request alone."""
        name = (request.parameters.session_id if request.parameters else None) or ""
        await self._expire()
        found = self._sessions.get(name) if name else None
        if found is None:
            connection = await asyncio.get_running_loop().run_in_executor(self._pool, self._engine.connect)
            # Another request of the same new session may have been faster.
            found = self._sessions.setdefault(name, Session(connection)) if name else Session(connection)
            if found.connection is not connection:
                connection.close()
        found.used = time.monotonic()
        return found, not name

    async def _expire(self) -> None:
        oldest = time.monotonic() - IDLE_SECONDS
        for name, session in list(self._sessions.items()):
            if session.used < oldest and not session.waiting:
                del self._sessions[name]
                session.connection.close()

    def _forget(self) -> None:
        oldest = time.time() - KEPT_SECONDS
        for statement_id, record in list(islice(self._records.items(), 10)):
            if not record.running and (len(self._records) >= RECORDS or record.finished < oldest):
                record.spool.drop()
                del self._records[statement_id]

    async def _run(self, session: Session, own: bool, request: StatementRequest, records: Sequence[Record]) -> None:
        try:
            async with session.turn:
                failed = False
                for number, record in enumerate(records):
                    if failed:
                        self._finish(record, sqlstate.CANCELLED, NOT_RUN)
                        continue
                    await self._one(session, request if number == 0 else None, request, record)
                    failed = sqlstate.failed(record.state)
        finally:
            session.waiting -= 1
            session.used = time.monotonic()
            if own:
                session.connection.close()

    async def _one(
        self, session: Session, adopted: StatementRequest | None, request: StatementRequest, record: Record
    ) -> None:
        if record.ending:
            self._finish(record, sqlstate.CANCELLED, "the statement was ended before it began")
            return
        loop = asyncio.get_running_loop()
        with self._interrupting:
            record.connection = session.connection
        try:
            work = partial(self._work, session, adopted, request, record)
            outcome = await loop.run_in_executor(self._pool, work)
        except Failure as failure:
            self._finish(record, failure.sql_state, failure.message, session)
        except OSError as error:
            self._finish(record, sqlstate.LIMIT, f"the result cannot be kept: {error.strerror}", session)
        else:
            record.outcome = outcome
            self._finish(record, outcome.sql_state, outcome.message, session)

    def _work(
        self, session: Session, adopted: StatementRequest | None, request: StatementRequest, record: Record
    ) -> Outcome:
        """In a thread: adopt the request's context, run the statement. Raises Failure."""
        connection = session.connection
        try:
            if adopted is not None:
                session.parts.adopt(adopted)
                database, schema = adopted.database or "", adopted.schema or ""
                if database not in {"", connection.database} or schema not in {"", connection.schema}:
                    connection.use(database, schema)
            asked = read(record.sql, connection.database, connection.schema)
            sql = record.sql
            match asked:
                case Use(kind, names):
                    return self._use(session, kind, names)
                case ListQueries():
                    sql = self._queries()
                case Query(own):
                    sql = own
                case Terminate():
                    raise Failure(sqlstate.UNSUPPORTED, "TERMINATE QUERY stands alone in its submission")
            return connection.run(sql, self._options(request), record.spool.keep)
        finally:
            record.spool.finish()
            with self._interrupting:
                record.connection = None

    def _options(self, request: StatementRequest) -> Options:
        parameters = request.parameters
        limit = parameters.row_limit if parameters and self._row_limits else None
        return Options((parameters.timezone if parameters else None) or "UTC", self._partition_rows, limit)

    @staticmethod
    def _use(session: Session, kind: str, names: tuple[str, ...]) -> Outcome:
        match kind:
            case "database":
                session.connection.use(names[0], names[1] if len(names) > 1 else "")
            case "schema":
                session.connection.use(names[0] if len(names) > 1 else "", names[-1])
            case _:
                session.parts.use(kind, names[-1])
        return Outcome(message=f"using {kind.replace('_', ' ')} {names[-1]}")

    def _queries(self) -> str:
        """LIST QUERIES as SQL: the latest statements first."""
        rows = [
            f"({_text(record.statement_id)}, {_text(record.state)}, {_text(record.sql[:1000])}, {record.created:.3f})"
            for record in reversed(list(self._records.values())[-1000:])
        ]
        return f"SELECT id, state, statement, created FROM (VALUES {', '.join(rows)}) t(id, state, statement, created)"

    async def _terminate(self, record: Record, statement_id: str) -> None:
        target = self._records.get(statement_id.lower())
        if target is None:
            self._finish(record, sqlstate.NO_QUERY, f"there is no query {statement_id!r}")
            return
        target.ending = True
        until = time.monotonic() + TERMINATE_SECONDS
        while target.running and time.monotonic() < until:
            self._interrupt(target)
            try:
                async with asyncio.timeout(0.05):
                    await target.done.wait()
            except TimeoutError:
                continue
        meaning = "is still running" if target.running else f"is at {target.state}"
        self._finish(record, sqlstate.DONE, f"query {statement_id} {meaning} ({sqlstate.meaning(target.state)})")

    def _interrupt(self, *records: Record) -> None:
        """End what these records run. Under the lock, so that the next statement of a session is never hit."""
        with self._interrupting:
            for record in records:
                if record.connection is not None:
                    record.connection.interrupt()

    def _cancel(self, records: Sequence[Record]) -> None:
        for record in records:
            self._finish(record, sqlstate.CANCELLED, NOT_RUN)

    @staticmethod
    def _finish(record: Record, state: str, message: str, session: Session | None = None) -> None:
        if session is not None:
            record.context = session.echo()
        if sqlstate.failed(state):
            record.spool.drop()
        record.state, record.message, record.finished = state, message, time.time()
        record.done.set()


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
