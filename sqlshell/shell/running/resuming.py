"""--checkpoint and --resume: skips the statements that an earlier run completed, and records the others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import takewhile
from typing import Final

from sqlshell.client.statements.protocol import poll_wait
from sqlshell.errors import CannotResume, Exit, Interrupted, ShellError, UnknownStatement, UsageError
from sqlshell.interface import sqlstate
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.records.checkpoint import Checkpoint, Step, digest
from sqlshell.shell.running.interruption import Interruption
from sqlshell.shell.running.outcomes import outcome_unknown
from sqlshell.shell.session import SessionState
from sqlshell.sql.analysis.kinds import is_repeatable, verb
from sqlshell.sql.analysis.lexed import Lexed

_SESSION: Final = frozenset({"SET", "RESET", "USE"})
"""Statements that only change the session: they run again, so that what follows finds the same session."""
_EMBEDDED: Final = frozenset({"LOAD", "PRAGMA", "ATTACH", "DETACH", "PREPARE", "DEALLOCATE"})
"""Further ones of an engine that starts with the run."""
_TRANSACTION: Final = frozenset({"BEGIN", "START", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"})
"""Statements of transactions that may be repeated. A COMMIT may have taken effect."""
_ENDS: Final = frozenset({"COMMIT", "END"})
_TEMPORARY: Final = frozenset({"TEMP", "TEMPORARY"})
_BEFORE_KIND: Final = _TEMPORARY | {"OR", "REPLACE", "LOCAL", "GLOBAL"}
"""The words between CREATE and the kind of the object."""

_ACTING: Final = frozenset({"!", "copy", "cancel", "replay"})
"""The commands that may change something outside of this shell; all others may run twice."""

_WAIT_AGAIN: Final = "run the same command line again to continue waiting"

Run = Callable[[Lexed], Awaitable[None]]
"""Runs a statement without showing or recording it."""


class Resumer:
    """Decides for each step of a run whether it is skipped."""

    def __init__(self, components: ShellComponents, interruption: Interruption, checkpoint: Checkpoint) -> None:
        self._components = components
        self._interruption = interruption
        self._checkpoint = checkpoint
        self._again: list[tuple[SessionState, Lexed]] = []
        """Statements of the session that have to run again before the next one that is not skipped."""
        self._skipped = 0

    async def statement(self, statement: Lexed, run: Run, *, consumed: bool, output: bool) -> Step | None:
        """The step of a statement that has to run; None if it is skipped.

        `consumed` says that a command uses its result, `output` that its result goes to a file of its own. Raises
        ShellError.
        """
        session = self._components.session
        step, former = await self._next(digest(session.redact(statement)))
        if former is None or former.state != "done":
            if former is not None:
                self._components.diagnostics.note(
                    f"{former.place}: the outcome is unknown; running the statement again, because repeating it is safe"
                )
            await self._continue(step, run)
            return step
        if self._is_temporary(statement):
            raise CannotResume(
                "the statement created a temporary object, which no longer exists",
                f"remove {self._checkpoint.path} to start again",
                step.where(),
            )
        if self._changes_session(statement):
            self._again.append((session.state, statement))
        elif former.values is not None:
            self._components.variables.receive(former.values)
        elif consumed or (self._components.result_output.exporting and not output):
            if is_repeatable(statement):
                # The rows are needed again: for variables, or for a file that the earlier run did not finish.
                await self._continue(None, run)
                return Step(0)
            if consumed:
                raise CannotResume(
                    "a command needs the result of this statement, but the statement is not run again because it may "
                    "write",
                    f"remove {self._checkpoint.path} to start again",
                    step.where(),
                )
            self._components.diagnostics.warn_here(
                "the result of a statement that an earlier run completed is not written again"
            )
        session.rows, session.elapsed = former.rows, None
        self._components.variables.record_outcome(None)
        self._skipped += 1
        return None

    async def command(self, name: str, text: str, run: Run) -> Step | None:
        """The step of a command that acts; None if it is skipped. Raises ShellError."""
        step, former = await self._next(digest(self._components.session.redact(text)))
        if former is not None and former.state == "done":
            self._skipped += 1
            return None
        await self._continue(step, run)
        transaction = bool(self._components.session.transaction.state)
        # The rows of a \copy are rolled back with the transaction.
        outside = name in _ACTING and not (name == "copy" and transaction)
        self._checkpoint.sent(step, transaction=transaction, repeatable=not outside, outside=outside)
        return step

    def sent(self, step: Step, statement: Lexed) -> None:
        """Before a statement is sent. Raises OutputError."""
        if step.n:
            transaction = bool(self._components.session.transaction.state)
            self._checkpoint.sent(step, transaction=transaction, repeatable=self._repeatable(statement))

    def identified(self, step: Step, statement_id: str) -> None:
        if step.n:
            self._checkpoint.identified(step, statement_id)

    def ended(self, step: Step, statement: Lexed | None, error: ShellError | None, *, undone: bool = False) -> None:
        """The outcome of a statement, or of a command (None); `undone` if it rolled the transaction back instead.

        Raises OutputError.
        """
        session = self._components.session
        answered = (
            error is not None
            and statement is not None
            and session.ended is not None
            and session.ended.answered is not None
        )
        arrived = statement is not None and session.ended is not None and bool(session.ended.statement_id)
        if not step.n or (error is not None and not answered and outcome_unknown(error, arrived=arrived)):
            return
        state = error.where.sql_state if error is not None else sqlstate.DONE
        # A statement whose rows could not be written has run nevertheless; only one that reads runs again for them.
        done = error is None or (answered and statement is not None and not is_repeatable(statement))
        rows = session.rows if statement is not None else None
        transaction = bool(session.transaction.state)
        self._checkpoint.ended(step, done=done, sql_state=state, rows=rows, transaction=transaction, rolled_back=undone)

    async def recording_outcome(self, step: Step, work: Awaitable[None]) -> None:
        """Do the work of a command, and record its outcome. Raises ShellError."""
        try:
            await work
        except ShellError as error:
            self.ended(step, None, error)
            raise
        self.ended(step, None, None)

    def received(self, values: Mapping[str, str | None]) -> None:
        """\\gset has set these variables from the result of the last statement. Raises OutputError."""
        self._checkpoint.received(values)

    def finish(self, *, complete: bool) -> None:
        """The end of all scripts. Raises ShellError."""
        if not complete:
            return
        self._checkpoint.check_end()
        if self._skipped:
            self._say_skipped("nothing is left")
        self._checkpoint.complete()

    def close(self) -> None:
        self._checkpoint.close()

    async def _next(self, digest: str) -> tuple[Step, Step | None]:
        """The next step, and what the earlier run recorded of it; its outcome is known. Raises ShellError."""
        former = self._checkpoint.undecided()
        if former is not None:
            await self._decide(former)
        position = self._components.position
        return self._checkpoint.next(position.script, position.line, digest)

    async def _continue(self, step: Step | None, run: Run) -> None:
        """Before the first step that runs: restore the session, and report that the run continues."""
        again, self._again = self._again, []
        for state, statement in again:
            if state is self._components.session.state:
                await run(statement)
        if step is not None and self._skipped and not self._checkpoint.continues:
            self._say_skipped(f"continuing at {step.place}")

    def _say_skipped(self, then: str) -> None:
        count, self._skipped = self._skipped, 0
        what = "1 statement or command" if count == 1 else f"{count:,} statements and commands"
        self._components.diagnostics.note(f"{what} already done; {then}")

    async def _decide(self, former: Step) -> None:
        """Determine the outcome of a step: from the service if it knows the statement, otherwise from --unknown.

        Raises CannotResume if neither tells it, and Interrupted.
        """
        unknown, state = self._checkpoint.unknown, ""
        asked = bool(former.id) and not self._components.session.embedded
        if asked:
            try:
                state = await self._interruption.interruptible(self._end_of(former), "")
            except Interrupted:
                raise Interrupted(
                    "stopped waiting for the statement, which may still be running on the service",
                    _WAIT_AGAIN,
                    former.where("", former.id),
                ) from None
        if state:
            self._components.diagnostics.note(f"{former.place}: the service reports sqlState {state}")
            self._checkpoint.decide(former, done=not sqlstate.failed(state), sql_state=state)
        elif unknown:
            self._checkpoint.decide(former, done=unknown == "skip")
        else:
            raise self._unknown(former, asked=asked)

    async def _end_of(self, former: Step) -> str:
        """Wait until a statement has ended on the service; returns its sqlState, "" if the service does not know it.

        Raises CannotResume.
        """
        limit, began = self._components.session.connection.client.wait_limit, time.monotonic()
        while sqlstate.running(state := await self._ask(former)):
            elapsed = time.monotonic() - began
            if limit is not None and elapsed >= limit:
                late = CannotResume(
                    f"the statement is still running after {elapsed:.1f} s",
                    _WAIT_AGAIN,
                    former.where(state, former.id),
                )
                late.exit = Exit.TIMEOUT
                raise late
            if self._components.session.running is None:
                self._components.diagnostics.note(f"{former.place}: still running on the service; waiting for it")
                self._interruption.show_progress(None, f"waiting for {former.place}", "^C stops waiting")
            await asyncio.sleep(poll_wait(elapsed))
        return state

    async def _ask(self, former: Step) -> str:
        session = self._components.session
        try:
            state, _ = await session.connection.client.state(former.id, session.context)
        except (UnknownStatement, UsageError):
            # The legacy interface has no lookups.
            return ""
        except ShellError as error:
            failed = CannotResume(
                f"cannot look up the outcome of the statement: {error.message}",
                error.hint,
                former.where("", former.id),
            )
            failed.exit = error.exit
            raise failed from None
        return state

    def _unknown(self, former: Step, *, asked: bool) -> CannotResume:
        if asked:
            known = f", and the service does not know the statement ({former.id})"
        else:
            known = f" (statement {former.id})" if former.id else ""
        return CannotResume(
            f"the outcome of the statement is unknown: the earlier run ended after the statement was sent{known}",
            "check whether the statement took effect; continue with --resume --unknown skip if it did, or --resume "
            "--unknown send if it did not",
            former.where("", former.id),
        )

    def _repeatable(self, statement: Lexed) -> bool:
        word = verb(statement)
        if word in _ENDS:
            return False
        # The end of the run rolls a transaction back.
        harmless = word in _TRANSACTION and not self._application(statement)
        return (
            bool(self._components.session.transaction.state)
            or harmless
            or self._changes_session(statement)
            or (is_repeatable(statement))
        )

    def _changes_session(self, statement: Lexed) -> bool:
        word = verb(statement)
        return word in _SESSION or (word in _EMBEDDED and self._components.session.embedded)

    @staticmethod
    def _application(statement: Lexed) -> bool:
        return [token.word for token in statement.first(2)[:2]] == ["BEGIN", "APPLICATION"]

    @staticmethod
    def _is_temporary(statement: Lexed) -> bool:
        words = [token.word for token in statement.first(4)[:4]]
        return words[:1] == ["CREATE"] and not _TEMPORARY.isdisjoint(takewhile(_BEFORE_KIND.__contains__, words[1:]))
