"""What the effects of backslash commands do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlshell.client.watch import Submission
from sqlshell.errors import Exit, UsageError
from sqlshell.output.formats import Summary
from sqlshell.result import Result
from sqlshell.shell.port import (
    Again,
    Connect,
    Consumer,
    Drop,
    Edit,
    Effect,
    Execute,
    Fetch,
    Keep,
    LocalSql,
    Log,
    Many,
    Print,
    Quit,
    Record,
    Redirect,
    Replay,
    Run,
    RunFile,
    Say,
    Show,
    Submit,
    Use,
)
from sqlshell.sql.items import Command
from sqlshell.sql.scanner import split

if TYPE_CHECKING:
    from sqlshell.shell.shell import Shell


async def perform(shell: Shell, effect: Effect, item: Command) -> None:
    """Do it; `item` is the command that asked for it. Raises ShellError."""
    match effect:
        case Submit(expanded, output, background, consumer, then, reads):
            text = _text(shell, item)
            if reads:
                _refuse_writing(text, item.name)
            if item.statement is None and shell.last_local:
                show = consumer or partial(shell.outlet.show, expanded=expanded, output=output)
                # The result itself: what it was made from has another name by now.
                async with shell.past.opened() as result:
                    await shell.interruptible(_awaited(show, result), item.name)
            else:
                await shell.statement(text, consumer, expanded=expanded, output=output, background=background)
            following = then() if then is not None else None
            if following is not None:
                await perform(shell, following, item)
        case Execute(texts, own):
            for text in texts:
                await shell.statement(text, own=own)
        case Use(consumer, then, name):
            if item.statement is not None:
                await shell.statement(item.statement.text, consumer)
            else:
                if shell.past.entry(name).limit is not None:
                    shell.diagnostics.say(
                        f"this result has its first {shell.past.entry(name).limit:,} rows; \\pset rowlimit 0 before"
                        " the statement gives all"
                    )
                async with shell.past.opened(name) as result:
                    await shell.interruptible(_awaited(consumer, result), item.name)
            following = then() if then is not None else None
            if following is not None:
                await perform(shell, following, item)
        case LocalSql(text):
            await _local(shell, text or (item.statement.text if item.statement is not None else ""))
        case Again():
            from sqlshell.shell.watching import again

            if item.statement is None and shell.last_local:
                raise UsageError(f"\\{item.name} runs a statement of the service, and the last one was \\local")
            await again(shell, _text(shell, item), effect)
        case Keep(tell=tell):
            following = tell(item.statement.text if item.statement is not None else shell.last_text)
            if following is not None:
                await perform(shell, following, item)
            if item.statement is not None and effect.goes_on:
                await _go_on(shell, item.statement.text)
        case Say(text, own):
            shell.diagnostics.say(text, own=own)
        case Print(text, with_results, own):
            shell.outlet.print(text, with_results=with_results, own=own)
        case Many(effects):
            for each in effects:
                await perform(shell, each, item)
        case Show(result, output):
            await shell.outlet.show(result, output=output)
        case Redirect(output, once, too):
            shell.outlet.redirect(output, once=once, too=too)
        case Quit():
            shell.leave()
        case Drop():
            shell.last_text = "" if item.statement is None else shell.last_text
        case _:
            await _elsewhere(shell, effect)


async def _local(shell: Shell, sql: str) -> None:
    """Run a statement on the results that this shell remembers."""
    if not sql.strip():
        raise UsageError("\\local needs a statement", "\\local select count(*) from _")
    if shell.local is None:
        shell.local = await shell.hooks.local()
    local = shell.local
    sql, own = shell.variables.fill(sql.strip().removesuffix(";"))
    if not own and len(split(sql, commands=False)) > 1:
        raise UsageError("a value that came from a service holds several statements", "\\local runs one")
    await shell.interruptible(local.prepare(sql, shell.past), "local")
    shell.last_text, shell.last_local = sql, True
    before, shell.foreground = shell.foreground, local.foreground
    seen = shell.session.interactive and not shell.outlet.exporting
    limit = (shell.session.options.rowlimit or None) if seen else None
    try:
        show = shell.past.noting(shell.outlet.show, local.service.statements, local.own, limit)
        await local.foreground.run(Submission(sql, [], limit), local.own.context, show)
    finally:
        shell.foreground = before


async def _awaited(consumer: Consumer, result: Result) -> Summary:
    return await consumer(result)


async def _elsewhere(shell: Shell, effect: Effect) -> None:
    """Scripts, editors, other targets, earlier statements."""
    match effect:
        case Record(path):
            from sqlshell.shell.transcript import Transcript

            if shell.transcript is not None:
                shell.transcript.close()
            shell.transcript = Transcript(path, shell.hooks.redact) if path else None
        case Replay(path):
            from sqlshell.shell.replaying import replay

            await replay(shell, path)
        case Log(path):
            shell.outlet.log(path)
        case RunFile(path, beside):
            await shell.include(path, beside=beside)
        case Run(steps):
            before = shell.exit
            for text, script in steps:
                shell.diagnostics.say(text)
                if script and not await shell.run_script([script], "", stop=False):
                    break
            shell.exit = before
        case Edit(path):
            from sqlshell.shell.editor import edit_file, edited

            if path:
                edit_file(path)
                await shell.include(path)
            else:
                shell.prefill = edited(shell.last_text)
        case Connect(target):
            await shell.hooks.connect(target)
            shell.diagnostics.say(f"now on {shell.session.target}")
        case Fetch(statement_id):
            show = shell.past.noting(shell.outlet.show, shell.service.statements, shell.session)
            await shell.foreground.fetch(statement_id, shell.session.context, show)


async def _go_on(shell: Shell, text: str) -> None:
    """A statement that was only looked at: a person finds it at the prompt, a script's runs."""
    if shell.session.interactive and shell.exit == Exit.DONE and not any(shell.including):
        shell.prefill = text
    else:
        await shell.statement(text)


def _text(shell: Shell, item: Command) -> str:
    """The statement that a command ends; without one, the last, as in psql."""
    if item.statement is not None:
        return item.statement.text
    if not shell.last_text:
        raise UsageError(f"\\{item.name} ends a statement, and there is none", "write it behind one")
    return shell.last_text


def _refuse_writing(text: str, name: str) -> None:
    from sqlshell.sql.effects import effects

    writing = next((found for found in effects(text) if found.writes), None)
    if writing is not None:
        raise UsageError(f"\\{name} would run it, and {writing.name} may write")
