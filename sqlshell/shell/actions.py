"""What the effects of backslash commands do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Protocol, assert_never

from msgspec.structs import replace

from sqlshell.client.statements.client import Submission
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Interrupted, ShellError, UsageError
from sqlshell.origin import NOWHERE, Own, Text, mine
from sqlshell.output.copy import Consumer
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.effects import (
    Again,
    Attach,
    Branch,
    Connect,
    Detach,
    Edit,
    Effect,
    Execute,
    Fetch,
    ForgetHistory,
    LocalSql,
    Log,
    Many,
    Print,
    Quit,
    ReceiveVariables,
    Record,
    Redirect,
    RefreshCatalog,
    Replay,
    Reset,
    Run,
    RunFile,
    Say,
    SetContext,
    SetOptions,
    SetVariable,
    Show,
    Submit,
    UnsetVariable,
    Use,
)
from sqlshell.shell.environment import Environment
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.results.outlet import Outlet
from sqlshell.shell.running.attachments import Attachments
from sqlshell.shell.running.connecting import Connecting
from sqlshell.shell.running.failures import Failures
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.running.interruption import Interruption
from sqlshell.shell.running.submitting import Asked, Submitter, refuse_writing
from sqlshell.shell.running.transaction import Transaction
from sqlshell.shell.scripts.buffer import Buffer
from sqlshell.shell.scripts.flow import Flow
from sqlshell.shell.scripts.position import Position
from sqlshell.shell.scripts.variables import Variables
from sqlshell.shell.session import Session, SessionState
from sqlshell.sql.analysis.files import refuse_files
from sqlshell.sql.script.scanner import Statement
from sqlshell.sql.script.splitting import split

if TYPE_CHECKING:
    from sqlshell.shell.local.local import Local


class Scripts(Protocol):
    """Whoever runs scripts."""

    async def run_script(self, chunks: Iterable[Own], name: str, *, stop: bool | None = None) -> bool: ...

    async def include(self, path: Own, *, beside: bool = False) -> None: ...

    def leave(self) -> None: ...


class Actions:
    """Carries out effects. `scripts` runs what commands include."""

    def __init__(
        self,
        scripts: Scripts,
        session: Session,
        position: Position,
        buffer: Buffer,
        variables: Variables,
        flow: Flow,
        attachments: Attachments,
        submitter: Submitter,
        foreground: Foreground,
        connecting: Connecting,
        interruption: Interruption,
        failures: Failures,
        outlet: Outlet,
        front_end: FrontEnd,
        environment: Environment,
        diagnostics: Diagnostics,
    ) -> None:
        self._scripts = scripts
        self._session = session
        self._position = position
        self._buffer = buffer
        self._variables = variables
        self._flow = flow
        self._attachments = attachments
        self._submitter = submitter
        self._foreground = foreground
        self._connecting = connecting
        self._interruption = interruption
        self._failures = failures
        self._outlet = outlet
        self._front_end = front_end
        self._environment = environment
        self._diagnostics = diagnostics
        self._local: tuple[SessionState, Local] | None = None

    async def perform(self, effect: Effect, name: str) -> None:
        """Do it; `name` is the command that asked for it. Raises ShellError.

        Submit, Use, Again and LocalSql without a text send the statement that is being written; all others leave it.
        """
        match effect:
            case Submit():
                await self._submit(effect, name)
            case Execute(statements, final):
                for number, statement in enumerate(statements, 1):
                    try:
                        await self._submitter.submit(Asked(statement, final=final))
                    except ShellError as error:
                        left = len(statements) - number
                        if not self._failures.ends(error):
                            self._failures.tell(error)
                            continue
                        if left:
                            self._diagnostics.warn(
                                f"\\{name}: {left:,} statement{' was' if left == 1 else 's were'} not run"
                            )
                        raise
            case Use():
                await self._use(effect, name)
            case LocalSql(text):
                written = None if text else self._buffer.scanner.take()
                await self._run_locally(written.whole if written is not None else mine(text))
            case Again():
                from sqlshell.shell.running.repeating import Repeater

                sent = self._buffer.send(name)
                if sent is None and self._buffer.last_local:
                    raise UsageError(f"\\{name} requires a statement of the service; the last one was \\local")
                repeater = Repeater(
                    self._session,
                    self._buffer,
                    self._submitter,
                    self._foreground,
                    self._interruption,
                    self._outlet,
                    self._diagnostics,
                )
                await repeater.run(sent, effect)
            case Reset():
                self._buffer.scanner.take()
                self._diagnostics.note("query buffer cleared", always=self._session.interactive)
            case Say(text, own):
                self._diagnostics.say(text, own=own)
            case Print(text, paged=True):
                await self._outlet.page(text)
            case Print(text, with_results, own):
                self._outlet.print(text, with_results=with_results, own=own)
            case Many(effects):
                for each in effects:
                    await self.perform(each, name)
            case Show(result, output):
                await self._outlet.show(result, output=output)
            case Redirect(output, once, too):
                self._outlet.redirect(output, once=once, too=too)
            case Quit():
                unfinished = self._buffer.scanner.take()
                if unfinished is not None and not (self._session.interactive and not self._position.in_file):
                    self._diagnostics.warn(f"\\{name}: the unfinished statement before it was discarded")
                self._scripts.leave()
            case Record(path):
                self._submitter.record(path)
            case Replay(path):
                from sqlshell.shell.records.replay import Replayer

                await Replayer(self._session, self._submitter, self._outlet, self._diagnostics).run(path)
            case Log(path):
                self._outlet.log(path)
            case RunFile(path, beside):
                await self._scripts.include(path, beside=beside)
            case Run(steps):
                with self._failures.counted_apart():
                    for text, script in steps:
                        self._diagnostics.say(text)
                        answer = await self._step() if script else ""
                        if answer.startswith("q"):
                            break
                        if not script or answer.startswith("s"):
                            continue
                        if not await self._scripts.run_script([script], "", stop=False):
                            break
            case Edit(path):
                self._edit(path)
            case Connect(target):
                await self._connect(target)
            case Fetch(statement_id):
                state = self._session.state
                show = state.past.noting(self._outlet.show, state)
                await self._foreground.fetch(statement_id, state.context, show)
            case SetVariable(name_, value, asked):
                if asked:
                    self._session.keeping.note(value.text, asked)
                self._variables.set(name_, value)
            case UnsetVariable(name_):
                self._variables.unset(name_)
            case ReceiveVariables(values):
                self._variables.receive(values)
            case Branch():
                self._flow.enter(effect.word, effect.condition)
            case SetOptions(values):
                for option, chosen in values.items():
                    setattr(self._session.options, option, chosen)
            case SetContext(context, sources):
                state = self._session.state
                if context.session_id != state.context.session_id:
                    state.transaction = Transaction()
                state.context = context
                state.sources |= sources
            case Attach(path):
                added = self._attachments.add(path)
                told = (
                    f"{added.path} ({added.size:,} bytes) is attached to the next statement that names {added.name!r}"
                )
                self._diagnostics.say(told)
            case Detach():
                count = self._attachments.clear()
                self._diagnostics.say(f"{count} file{'' if count == 1 else 's'} detached")
            case ForgetHistory():
                try:
                    self._front_end.forget()
                except OSError as error:
                    raise UsageError(f"cannot clear the history: {error.strerror or error}") from None
            case RefreshCatalog():
                self._front_end.refresh()
            case _:
                assert_never(effect)

    async def _submit(self, effect: Submit, name: str) -> None:
        if effect.options:
            with self._session.options_for(effect.options):
                await self._submit(replace(effect, options={}), name)
            return
        if effect.reads:
            # A person keeps what is refused, to go on with it.
            refuse_writing(self._buffer.filled, name)
        statement = self._buffer.send(name)
        taker = _Taker(effect.consumer) if effect.consumer is not None else None
        if statement is None and self._buffer.last_local:
            show = taker or partial(self._outlet.show, expanded=effect.expanded, output=effect.output)
            # The result itself: what it was made from has another name by now.
            async with self._session.state.past.opened() as result:
                await self._interruption.interruptible(_awaited(show, result), name)
        else:
            asked = Asked(
                statement or self._buffer.last,
                taker,
                effect.expanded,
                effect.output,
                effect.background,
                final=statement is None,
                reader=name if effect.reads else "",
            )
            await self._submitter.submit(asked)
        if effect.needs_rows and taker is not None:
            self._refuse_nothing(taker, name)
        await self._then(effect.then, name)

    async def _use(self, effect: Use, name: str) -> None:
        statement = self._buffer.scanner.take()
        if statement is not None:
            taker = _Taker(effect.consumer)
            await self._submitter.submit(Asked(statement, taker))
            self._refuse_nothing(taker, name)
        else:
            past = self._session.state.past
            limit = past.entry(effect.name).limit
            if limit is not None:
                self._diagnostics.say(
                    f"this result contains only the first {limit:,} rows; to get all, use \\pset rowlimit 0 "
                    "and run the statement again"
                )
            async with past.opened(effect.name) as result:
                await self._interruption.interruptible(_awaited(effect.consumer, result), name)
        await self._then(effect.then, name)

    def _refuse_nothing(self, taker: _Taker, name: str) -> None:
        # With --offline no statement runs.
        if not taker.took and self._session.connection.offline is None:
            raise UsageError(f"\\{name}: the statement ran, but did not return a result set")

    async def _then(self, then: Callable[[], Effect | None] | None, name: str) -> None:
        following = then() if then is not None else None
        if following is not None:
            await self.perform(following, name)

    async def _connect(self, target: Own) -> None:
        session = self._session
        try:
            connecting = self._environment.connect(target, session.connection)
            connection = await self._interruption.interruptible(connecting, "c")
        except ShellError as error:
            kept = f"still connected to {session.target}"
            error.hint = f"{error.hint} ({kept})" if error.hint else kept
            raise
        await self._connecting.use(connection)
        self._diagnostics.say(f"connected to {session.target}")

    def _edit(self, path: Own) -> None:
        if not path:
            self._buffer.check_written()
        written = self._buffer.scanner.pending
        last = f"{self._buffer.last.text};" if self._buffer.last.text else ""
        text = self._front_end.edit(written or last, path)
        # The statement that ran last does not run again for having been looked at.
        self._buffer.edited = text if path or written or text != last else NOWHERE
        self._buffer.scanner.take()

    async def _step(self) -> str:
        """What a person wants of the next step, in small letters; "" runs it, and where there is nobody to ask."""
        if self._front_end.ask is None:
            return ""
        try:
            return (await self._front_end.ask("[Enter] run, [s] skip, [q] quit: ")).strip().lower()
        except Interrupted:
            return "q"

    async def _run_locally(self, given: Text) -> None:
        """Run a statement on the results that this shell remembers."""
        if not given.text.strip():
            raise UsageError("\\local requires a statement", "example: \\local select count(*) from _")
        session = self._session
        local = await self._local_results()
        filled = self._variables.fill(given)
        sql = filled.text.strip().removesuffix(";")
        if filled.foreign and len(split(sql, commands=False)) > 1:
            raise UsageError(
                f"{filled.source} came from the service and contains several statements", "\\local runs only one"
            )
        refuse_files(filled)
        # It may write files, and what it runs on came from the service.
        await session.connection.policy.check(sql, self._front_end.ask)
        past = session.state.past
        await self._interruption.interruptible(local.prepare(sql, past), "local")
        start = filled.text.index(sql)
        foreign = filled.part(start, start + len(sql)).foreign
        self._buffer.last, self._buffer.last_local = Statement(sql, 0, 0, True, foreign=foreign), True
        seen = session.interactive and not self._outlet.exporting
        limit = (session.options.rowlimit or None) if seen else None
        show = past.noting(self._outlet.show, local.session.state, limit)
        with self._interruption.instead(local.foreground):
            await local.foreground.run(Submission(sql, [], limit), local.session.context, show)

    async def _local_results(self) -> Local:
        """The database of this shell alone; each connection has its own, which is closed with it."""
        state = self._session.state
        if self._local is not None and self._local[0] is state:
            return self._local[1]
        from sqlshell.shell.local.local import Local

        connection, folder = await self._environment.local(state.connection)
        local = Local(connection, folder, self._session, self._outlet, self._front_end, self._diagnostics)
        state.closing.push_async_callback(local.aclose)
        self._local = state, local
        return local


class _Taker:
    """Hands results to a consumer, and knows whether there was one."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.took = False

    async def __call__(self, result: Result) -> Summary:
        self.took = True
        return await self._consumer(result)


async def _awaited(consumer: Consumer, result: Result) -> Summary:
    return await consumer(result)
