"""Effects that run statements, or work with the results of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from sqlshell.errors import ShellError, UsageError
from sqlshell.humanize import format_count, not_run
from sqlshell.origin import Own
from sqlshell.output.copy import Consumer
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.runtime.descriptors import descriptor
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.effects import Execute, Repeat, Submit, UseResult
from sqlshell.shell.running.failures import Failures
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.running.interruption import Interruption
from sqlshell.shell.running.submitting import SubmitRequest, Submitter


class StatementActions:
    """Sends the query buffer and the statements of commands. Each method raises ShellError."""

    def __init__(
        self,
        components: ShellComponents,
        submitter: Submitter,
        foreground: Foreground,
        interruption: Interruption,
        failures: Failures,
    ) -> None:
        self._components = components
        self._submitter = submitter
        self._foreground = foreground
        self._interruption = interruption
        self._failures = failures

    async def submit(self, effect: Submit, name: str) -> None:
        """Send the query buffer. With a consumer, the result of \\local that was shown last is passed to it again."""
        components, buffer = self._components, self._components.buffer
        if effect.describes:
            # At the prompt a refused statement is kept, so that it can be corrected.
            await self._submitter.check_describable(buffer.substituted_text, name)
        statement = buffer.send(name)
        consumer = _RecordingConsumer(effect.consumer) if effect.consumer is not None else None
        if statement is None and buffer.last_was_local:
            show = consumer or partial(components.result_output.show, expanded=effect.expanded, output=effect.output)
            # The result itself: its source has a different name by now.
            async with components.session.state.result_history.open() as result:
                await self._interruption.interruptible(_awaited(show, result), name)
        else:
            request = SubmitRequest(
                statement or buffer.last,
                consumer,
                effect.expanded,
                effect.output,
                effect.background,
                verbatim=statement is None,
                described_for=name if effect.describes else "",
            )
            await self._submitter.submit(request)
        if effect.needs_rows and consumer is not None:
            self._require_result(consumer, name)

    async def execute(self, effect: Execute, name: str) -> None:
        if effect.silent:
            buffer = self._components.buffer
            last = buffer.last
            try:
                for statement in effect.statements:
                    await self._submitter.submit(SubmitRequest(statement, _discard, verbatim=True, internal=True))
            finally:
                buffer.remember(last)
            return
        for number, statement in enumerate(effect.statements, 1):
            try:
                await self._submitter.submit(SubmitRequest(statement, verbatim=effect.verbatim))
            except ShellError as error:
                left = len(effect.statements) - number
                if not self._failures.ends_script(error):
                    self._failures.report(error)
                    continue
                if left:
                    self._components.diagnostics.warn(f"\\{name}: {not_run((left, 'statement'))}")
                raise

    async def export(self, path: Own, name: str) -> None:
        """Write the result of a statement to a file."""
        components, buffer = self._components, self._components.buffer
        if path.startswith("|") or descriptor(path) is not None:
            raise UsageError(f"\\export writes to a file, not to {path}", "use \\g for other outputs")
        components.result_output.check(path)
        statement = buffer.send(name)
        if statement is None and buffer.last_was_local:
            raise UsageError(f"\\{name} requires a statement of the service; the last one was \\local")
        rows: int | None = None

        async def write(result: Result) -> Summary:
            nonlocal rows
            if result.endless is not None:
                raise UsageError("an unbounded result cannot be exported", "use -o FILE with --max-rows or --for")
            summary = await components.result_output.show(result, output=path)
            rows = summary.rows
            return summary

        request = SubmitRequest(statement or buffer.last, write, verbatim=True, rows_for="export")
        await self._submitter.submit(request)
        if rows is not None:
            components.diagnostics.report(f"{format_count(rows, 'row')} written to {path}", file=str(path))
        elif components.session.connection.offline is None:
            raise UsageError("\\export: the statement ran, but did not return a result set")

    async def use_result(self, effect: UseResult, name: str) -> None:
        statement = self._components.buffer.scanner.take()
        if statement is not None:
            consumer = _RecordingConsumer(effect.consumer)
            await self._submitter.submit(SubmitRequest(statement, consumer))
            self._require_result(consumer, name)
            return
        history = self._components.session.state.result_history
        shortfall = history.shortfall(effect.name)
        if shortfall:
            self._components.diagnostics.note(shortfall, always=True)
        async with history.open(effect.name) as result:
            await self._interruption.interruptible(_awaited(effect.consumer, result), name)

    async def repeat(self, effect: Repeat, name: str) -> None:
        from sqlshell.shell.running.repeating import Repeater

        buffer = self._components.buffer
        sent = buffer.send(name)
        if sent is None and buffer.last_was_local:
            raise UsageError(f"\\{name} requires a statement of the service; the last one was \\local")
        await Repeater(self._components, self._submitter, self._foreground, self._interruption).run(sent, effect)

    async def fetch(self, statement_id: str) -> None:
        state = self._components.session.state
        show = state.result_history.recording(self._components.result_output.show, state)
        await self._foreground.fetch(statement_id, state.context, show)

    def receive(self, values: Mapping[str, str | None]) -> None:
        self._components.variables.receive(values)
        if self._submitter.resumer is not None:
            self._submitter.resumer.received(values)

    def record(self, path: Own) -> None:
        self._submitter.record(path)

    async def replay(self, path: Own) -> None:
        from sqlshell.shell.records.replay import Replayer

        await Replayer(self._components, self._submitter).run(path)

    def _require_result(self, consumer: _RecordingConsumer, name: str) -> None:
        # With --offline no statement runs.
        if not consumer.called and not self._submitter.skipped and self._components.session.connection.offline is None:
            raise UsageError(f"\\{name}: the statement ran, but did not return a result set")


class _RecordingConsumer:
    """Passes results to a consumer, and records whether there was one."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.called = False

    async def __call__(self, result: Result) -> Summary:
        self.called = True
        return await self._consumer(result)


async def _discard(result: Result) -> Summary:
    await result.batches.aclose()
    return Summary(0, True)


async def _awaited(consumer: Consumer, result: Result) -> Summary:
    return await consumer(result)
