"""Carries out the effects that backslash commands return."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import assert_never

from sqlshell.shell.actions.loads import LoadActions
from sqlshell.shell.actions.local import LocalActions
from sqlshell.shell.actions.scripts import ScriptActions
from sqlshell.shell.actions.session import SessionActions
from sqlshell.shell.actions.statements import StatementActions
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.effects import (
    Attach,
    Branch,
    Chain,
    ClearBuffer,
    ClearHistory,
    Connect,
    Copy,
    Detach,
    Edit,
    Effect,
    Execute,
    Export,
    Fetch,
    LocalSql,
    Log,
    OfferExamples,
    Print,
    Quit,
    ReceiveVariables,
    RecordTranscript,
    Redirect,
    RefreshCatalog,
    Repeat,
    ReplayTranscript,
    Restrict,
    RunFile,
    RunSteps,
    SetContext,
    SetOptions,
    SetVariable,
    ShowMessage,
    ShowResult,
    Submit,
    UnsetVariable,
    UseResult,
)


class Actions:
    """Carries out effects: each is passed to the part that it concerns."""

    def __init__(
        self,
        components: ShellComponents,
        statements: StatementActions,
        scripts: ScriptActions,
        session: SessionActions,
        local: LocalActions,
        loads: LoadActions,
    ) -> None:
        self._components = components
        self._statements = statements
        self._scripts = scripts
        self._session = session
        self._local = local
        self._loads = loads

    async def perform(self, effect: Effect, name: str) -> None:
        """Carry out an effect of the command `name`. Raises ShellError.

        Submit, UseResult, Repeat and LocalSql without a text send the query buffer; all others leave it unchanged.
        """
        components = self._components
        match effect:
            case Submit():
                with components.session.options_for(effect.options) if effect.options else contextlib.nullcontext():
                    await self._statements.submit(effect, name)
                    await self._perform_next(effect.then, name)
            case Execute():
                await self._statements.execute(effect, name)
            case Export(path):
                await self._statements.export(path, name)
            case UseResult():
                await self._statements.use_result(effect, name)
                await self._perform_next(effect.then, name)
            case Repeat():
                await self._statements.repeat(effect, name)
            case Fetch(statement_id):
                await self._statements.fetch(statement_id)
            case RecordTranscript(path):
                self._statements.record(path)
            case ReplayTranscript(path):
                await self._statements.replay(path)
            case LocalSql(text):
                await self._local.run(text)
            case ClearBuffer():
                components.buffer.scanner.take()
                components.diagnostics.report("query buffer cleared", always=components.session.interactive)
            case Chain(effects):
                for each in effects:
                    await self.perform(each, name)
            case ShowMessage(text, own, verbatim):
                components.diagnostics.say(text, own=own, verbatim=verbatim)
            case Print(text, paged=True):
                await components.result_output.page(text)
            case Print(text, with_results, own, folds=folds):
                components.result_output.print(text, with_results=with_results, own=own, folds=folds)
            case ShowResult(result, output):
                await components.result_output.show(result, output=output)
            case Redirect(output, once, as_copy):
                components.result_output.redirect(output, once=once, as_copy=as_copy)
            case Log(path):
                components.result_output.log(path)
            case Quit():
                self._scripts.quit(name)
            case RunFile(path, relative):
                await self._scripts.include(path, relative=relative)
            case RunSteps():
                await self._scripts.run_steps(effect)
            case Edit(path):
                self._scripts.edit(path)
            case SetVariable(variable, value, question):
                if question:
                    components.session.secret_filter.add(value.text, question)
                components.variables.set(variable, value)
                if warning := components.variables.warning(variable):
                    components.diagnostics.warn_here(warning)
            case UnsetVariable(variable):
                components.variables.unset(variable)
            case ReceiveVariables(values):
                self._statements.receive(values)
            case Branch(word, condition):
                components.conditions.enter(word, condition)
            case Connect(target, place):
                await self._session.connect(target, place)
            case SetOptions(options):
                self._session.set_options(options)
            case SetContext():
                self._session.set_context(effect)
            case Attach(path):
                self._session.attach(path)
            case Copy(copy):
                await self._loads.copy(copy)
            case Restrict():
                self._scripts.restrict(effect)
            case OfferExamples(texts):
                components.session.examples = texts
            case Detach():
                self._session.detach()
            case ClearHistory():
                self._session.clear_history()
            case RefreshCatalog():
                components.front_end.refresh_catalog()
            case _:
                assert_never(effect)

    async def _perform_next(self, then: Callable[[], Effect | None] | None, name: str) -> None:
        following = then() if then is not None else None
        if following is not None:
            await self.perform(following, name)
