"""What the effects of backslash commands do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sqlshell.client.statements.client import Submission
from sqlshell.errors import Interrupted, ShellError, UsageError
from sqlshell.origin import NOWHERE, Text, mine
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.port import (
    Again,
    Connect,
    Consumer,
    Edit,
    Effect,
    Execute,
    Fetch,
    LocalSql,
    Log,
    Many,
    Print,
    Quit,
    Record,
    Redirect,
    Replay,
    Reset,
    Run,
    RunFile,
    Say,
    Show,
    Submit,
    Use,
)
from sqlshell.shell.running.submitting import Asked, refuse_writing, submit
from sqlshell.sql.analysis.files import refuse_files
from sqlshell.sql.script.scanner import Statement
from sqlshell.sql.script.splitting import split

if TYPE_CHECKING:
    from sqlshell.shell.shell import Shell


async def perform(shell: Shell, effect: Effect, name: str) -> None:
    """Do it; `name` is the command that asked for it. Raises ShellError.

    Submit, Use, Again and LocalSql without a text send the statement that is being written; all others leave it.
    """
    match effect:
        case Submit(options=options) if options:
            with shell.session.options_for(options):
                await perform(shell, replace(effect, options={}), name)
        case Submit(expanded, output, background, consumer, then, reads=reads, needs_rows=needs_rows):
            if reads:
                # A person keeps what is refused, to go on with it.
                refuse_writing(shell.buffer.filled, name)
            statement = shell.buffer.send(name)
            taker = consumer = _Taker(consumer) if consumer is not None else None
            if statement is None and shell.buffer.last_local:
                show = consumer or partial(shell.outlet.show, expanded=expanded, output=output)
                # The result itself: what it was made from has another name by now.
                async with shell.past.opened() as result:
                    await shell.interruptible(_awaited(show, result), name)
            else:
                given = statement or shell.buffer.last
                reader = name if reads else ""
                await submit(
                    shell, Asked(given, consumer, expanded, output, background, statement is None, reader=reader)
                )
            if needs_rows and taker is not None:
                _refuse_nothing(shell, taker, name)
            await _then(shell, then, name)
        case Execute(statements, final):
            for number, statement in enumerate(statements, 1):
                try:
                    await submit(shell, Asked(statement, final=final))
                except ShellError as error:
                    left = len(statements) - number
                    if not shell.ends(error):
                        shell.tell(error)
                        continue
                    if left:
                        shell.diagnostics.warn(f"\\{name}: {left:,} statement{'' if left == 1 else 's'} not run")
                    raise
        case Use(consumer, then, result_name):
            statement = shell.buffer.scanner.take()
            if statement is not None:
                taker = _Taker(consumer)
                await submit(shell, Asked(statement, taker))
                _refuse_nothing(shell, taker, name)
            else:
                if shell.past.entry(result_name).limit is not None:
                    shell.diagnostics.say(
                        f"this result has its first {shell.past.entry(result_name).limit:,} rows; \\pset rowlimit 0"
                        " before the statement gives all"
                    )
                async with shell.past.opened(result_name) as result:
                    await shell.interruptible(_awaited(consumer, result), name)
            await _then(shell, then, name)
        case LocalSql(text):
            statement = None if text else shell.buffer.scanner.take()
            await _local(shell, statement.whole if statement is not None else mine(text))
        case Again():
            from sqlshell.shell.running.repeating import again

            statement = shell.buffer.send(name)
            if statement is None and shell.buffer.last_local:
                raise UsageError(f"\\{name} runs a statement of the service, and the last one was \\local")
            await again(shell, statement, effect)
        case Reset():
            shell.buffer.scanner.take()
            shell.announce("the query buffer is cleared")
        case Say(text, own):
            shell.diagnostics.say(text, own=own)
        case Print(text, paged=True):
            await shell.outlet.page(text)
        case Print(text, with_results, own):
            shell.outlet.print(text, with_results=with_results, own=own)
        case Many(effects):
            for each in effects:
                await perform(shell, each, name)
        case Show(result, output):
            await shell.outlet.show(result, output=output)
        case Redirect(output, once, too):
            shell.outlet.redirect(output, once=once, too=too)
        case Quit():
            unfinished = shell.buffer.scanner.take()
            if unfinished is not None and not shell.at_prompt:
                shell.diagnostics.warn(f"\\{name}: the unfinished statement before it was not run")
            shell.leave()
        case _:
            await _elsewhere(shell, effect)


class _Taker:
    """Hands results to a consumer, and knows whether there was one."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.took = False

    async def __call__(self, result: Result) -> Summary:
        self.took = True
        return await self._consumer(result)


def _refuse_nothing(shell: Shell, taker: _Taker, name: str) -> None:
    # With --offline no statement runs.
    if not taker.took and shell.offline is None:
        raise UsageError(f"\\{name}: the statement ran, but did not return a result set")


async def _then(shell: Shell, then: Callable[[], Effect | None] | None, name: str) -> None:
    following = then() if then is not None else None
    if following is not None:
        await perform(shell, following, name)


async def _local(shell: Shell, given: Text) -> None:
    """Run a statement on the results that this shell remembers."""
    if not given.text.strip():
        raise UsageError("\\local needs a statement", "\\local select count(*) from _")
    if shell.local is None:
        shell.local = await shell.hooks.local()
    local = shell.local
    filled = shell.variables.fill(given)
    sql = filled.text.strip().removesuffix(";")
    if filled.foreign and len(split(sql, commands=False)) > 1:
        raise UsageError(f"{filled.source} came from the service and holds several statements", "\\local runs one")
    refuse_files(filled)
    # It may write files, and what it runs on came from the service.
    await shell.policy.check(sql, shell.hooks.ask)
    await shell.interruptible(local.prepare(sql, shell.past), "local")
    start = filled.text.index(sql)
    foreign = filled.part(start, start + len(sql)).foreign
    shell.buffer.last, shell.buffer.last_local = Statement(sql, 0, 0, True, foreign=foreign), True
    before, shell.foreground = shell.foreground, local.foreground
    seen = shell.session.interactive and not shell.outlet.exporting
    limit = (shell.session.options.rowlimit or None) if seen else None
    try:
        show = shell.past.noting(shell.outlet.show, local.service.statements, local.own, limit)
        await local.foreground.run(Submission(sql, [], limit), local.own.context, show)
    finally:
        shell.foreground = before


async def _step(shell: Shell) -> str:
    """What a person wants of the next step, in small letters; "" runs it, and where there is nobody to ask."""
    if shell.hooks.ask is None or not shell.session.interactive:
        return ""
    try:
        return (await shell.hooks.ask("Enter runs it, s skips it, q ends the tour: ")).strip().lower()
    except Interrupted:
        return "q"


async def _awaited(consumer: Consumer, result: Result) -> Summary:
    return await consumer(result)


async def _elsewhere(shell: Shell, effect: Effect) -> None:
    """Scripts, editors, other targets, earlier statements."""
    match effect:
        case Record(path):
            from sqlshell.shell.records.transcript import Transcript

            if shell.transcript is not None:
                shell.transcript.close()
            shell.transcript = Transcript(path, shell.hooks.redact) if path else None
        case Replay(path):
            from sqlshell.shell.records.replay import replay

            await replay(shell, path)
        case Log(path):
            shell.outlet.log(path)
        case RunFile(path, beside):
            await shell.include(path, beside=beside)
        case Run(steps):
            before = shell.exit
            for text, script in steps:
                shell.diagnostics.say(text)
                answer = await _step(shell) if script else ""
                if answer.startswith("q"):
                    break
                if script and not answer.startswith("s") and not await shell.run_script([script], "", stop=False):
                    break
            shell.exit = before
        case Edit(path):
            from sqlshell.shell.interactive.editor import edited

            if not path:
                shell.buffer.check_written()
            written = shell.buffer.scanner.pending
            last = f"{shell.buffer.last.text};" if shell.buffer.last.text else ""
            text = edited(written or last, path)
            # The statement that ran last does not run again for having been looked at.
            shell.buffer.edited = text if path or written or text != last else NOWHERE
            shell.buffer.scanner.take()
        case Connect(target):
            await shell.hooks.connect(target)
            shell.diagnostics.say(f"now on {shell.session.target}")
        case Fetch(statement_id):
            show = shell.past.noting(shell.outlet.show, shell.service.statements, shell.session)
            await shell.foreground.fetch(statement_id, shell.session.context, show)
