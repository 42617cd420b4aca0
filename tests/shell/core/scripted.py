"""A shell with a scripted client: tests the core without a process, a socket or a terminal."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from sqlshell.client.statements.client import Observer, StatementBatch, Submission
from sqlshell.context import SessionContext
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import ShellError, StatementError, UsageError, Where
from sqlshell.interface.models import ContextEcho
from sqlshell.origin import Trusted
from sqlshell.output.sinks.sink import StreamSink
from sqlshell.result import Batch, Column, Result
from sqlshell.runtime.streams import Streams
from sqlshell.shell.components import ScriptModes
from sqlshell.shell.connection import Connection
from sqlshell.shell.front_end import FrontEnd, Progress
from sqlshell.shell.options import Options
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.results.result_output import ResultOutput
from sqlshell.shell.running.attachments import Attachments
from sqlshell.shell.scripts.position import Position
from sqlshell.shell.session import Session, SessionState
from sqlshell.shell.shell import Shell
from sqlshell.sql.analysis.lexed import Sql
from tests.shell.sessions import connection

ECHO = ContextEcho(database_name="d", schema_name="s")


@dataclass(frozen=True)
class Answer:
    """What the service says to a statement: rows of one column in batches, or a failure after them."""

    rows: Sequence[Sequence[str]] = (("1",),)
    echo: ContextEcho = ECHO
    error: ShellError | None = None
    elapsed: float | None = 0.25


class Rows:
    """Batches that come one at a time, each after a step of the loop."""

    def __init__(self, client: ScriptedClient, answer: Answer) -> None:
        self._client = client
        self._left = list(answer.rows)
        self._error = answer.error
        self.closed = False

    def __aiter__(self) -> Rows:
        return self

    async def __anext__(self) -> Batch:
        await self._client.step("rows")
        if self._left:
            return Batch(1, rows=[[value] for value in self._left.pop(0)])
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed = True


class ScriptedClient:
    """Answers each statement by its text; `events` is what happened, in order. Each await counts as a step."""

    wait_limit: float | None = None
    supports_batches: bool | None = False
    can_refetch = True
    can_cancel = True

    def __init__(self, answers: Mapping[str, Answer] | None = None, name: str = "") -> None:
        self.answers = dict(answers or {})
        self.name = name
        self.events: list[str] = []
        self.ran: list[tuple[str, SessionContext]] = []
        self.open: list[Rows] = []
        self.on_step: Callable[[str], None] = lambda what: None
        self.terminated: list[str] = []
        self.left: list[str] = []
        self.closed = False

    async def step(self, what: str) -> None:
        self.on_step(what)
        await asyncio.sleep(0)

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        observer = observer or Observer()
        self.ran.append((submission.sql, context))
        number = f"{self.name}id{len(self.ran)}"
        self.events.append(f"submit {submission.sql}")
        await self.step("submit")
        answer = self.answers.get(submission.sql, Answer())
        observer.statement_id(number)
        await self.step("wait")
        observer.context(answer.echo)
        self.events.append("echo")
        if answer.error is not None and not answer.rows:
            raise answer.error
        batches = Rows(self, answer)
        if answer.rows:
            self.open.append(batches)
        yield Result(
            columns=[Column("a", "INTEGER")] if answer.rows else [],
            batches=batches,
            statement_id=number,
            sql_state="00000",
            row_counts=[len(batch) for batch in answer.rows],
            elapsed=answer.elapsed,
        )
        self.events.append("read")

    async def fetch(
        self, statement_id: str, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        self.events.append(f"fetch {statement_id}")
        await self.step("fetch")
        batches = Rows(self, Answer())
        self.open.append(batches)
        yield Result(
            columns=[Column("a", "INTEGER")],
            batches=batches,
            statement_id=statement_id,
            sql_state="00000",
            row_counts=[1],
        )

    async def state(self, statement_id: str, context: SessionContext) -> tuple[str, str]:
        return "00000", ""

    async def terminate(self, query_id: str, context: SessionContext) -> None:
        self.terminated.append(query_id)
        await self.step("terminate")

    def begin_batch(self, submission: Sequence[Submission], *, stop: bool) -> StatementBatch | None:
        return None

    is_legacy = False

    async def end_sessions(self, session_ids: Sequence[str]) -> None:
        self.left += session_ids

    async def aclose(self) -> None:
        self.closed = True


class WatchedJournal(Journal):
    """A journal in memory that adds what it is told to the events of a client."""

    made: ClassVar[list[WatchedJournal]] = []
    """Those of a test, which are closed behind it."""

    def __init__(self, events: list[str]) -> None:
        super().__init__(None, "nowhere", "", lambda text: None)
        self._events = events
        self.was_closed = False
        self.made.append(self)

    def record_start(self, statement_id: str, sql: Sql, context: SessionContext, ago: float) -> None:
        self._events.append(f"began {statement_id}")
        super().record_start(statement_id, sql, context, ago)

    def record_end(
        self, statement_id: str, state: str, message: str = "", rows: int | None = None, *, waited: float = 0.0
    ) -> None:
        self._events.append(f"ended {statement_id} {state} {rows}")
        super().record_end(statement_id, state, message, rows, waited=waited)

    def close(self) -> None:
        self.was_closed = True
        super().close()


class Screen(io.BytesIO):
    """Stdout in memory."""

    def __init__(self, events: list[str]) -> None:
        super().__init__()
        self._events = events

    def write(self, data: Any) -> int:
        if bytes(data).strip() and self._events[-1:] != ["rows shown"]:
            self._events.append("rows shown")
        return super().write(data)


@dataclass
class ScriptedEnvironment:
    """Gives the connections that a test put into `targets`; an error is raised, a coroutine function awaited."""

    targets: dict[str, Connection | ShellError | Callable[[], Any]] = field(default_factory=dict)
    queries: Path | None = None

    def profiles(self) -> Sequence[str]:
        return sorted(self.targets)

    def themes(self) -> Sequence[str]:
        return ("default",)

    async def connect(self, target: Trusted, present: Connection, place: Sequence[Trusted] = ()) -> Connection:
        found = self.targets[target]
        if isinstance(found, ShellError):
            raise found
        if isinstance(found, Connection):
            return found
        made = await found()
        assert isinstance(made, Connection)
        return made

    async def local(self, present: Connection) -> tuple[Connection, Path]:
        raise UsageError("no database here")


class Core:
    """A shell on a scripted client. Used within asyncio.run()."""

    def __init__(
        self,
        client: ScriptedClient | None = None,
        *,
        interactive: bool = False,
        context: SessionContext | None = None,
        modes: Callable[[Diagnostics], ScriptModes] = lambda _: ScriptModes(),
    ) -> None:
        self.client = client or ScriptedClient()
        self.events = self.client.events
        self.stderr, self.screen = io.StringIO(), Screen(self.events)
        diagnostics = Diagnostics(self.stderr)
        self.front_end = FrontEnd(diagnostics, Progress())
        self.environment = ScriptedEnvironment()
        self.journal = WatchedJournal(self.events)
        given = connection(self.client, context, journal=self.journal, label="first", own_session="s1")
        options = Options()
        options.choose({"format": "csv"})
        self.session = Session(SessionState.on(given, self.front_end.announce), options, interactive)
        stdout, sink = io.TextIOWrapper(self.screen, write_through=True), StreamSink(self.screen)
        self.outlet = ResultOutput(self.session, self.front_end, diagnostics, lambda *_: sink, stdout, sink)
        attachments = Attachments((), diagnostics)
        self.shell = Shell(
            self.session,
            self.outlet,
            attachments,
            self.front_end,
            self.environment,
            diagnostics,
            Position(),
            Streams(io.StringIO(), stdout, self.stderr),
            modes(diagnostics),
        )

    @property
    def out(self) -> str:
        return self.screen.getvalue().decode()

    @property
    def err(self) -> str:
        return self.stderr.getvalue()

    async def run(self, text: str) -> None:
        assert await self.shell.run_script([Trusted(text)], "")

    def texts(self) -> dict[str, str]:
        return {name: value.text for name, value in self.shell.variables.items()}


def failure(state: str = "42601", message: str = "wrong") -> StatementError:
    return StatementError(message, where=Where(state))


async def until(true: Callable[[], bool]) -> None:
    """Let other tasks run until this is true."""
    while not true():  # noqa: ASYNC110 - what it waits for is a step of the same loop
        await asyncio.sleep(0)
