"""--checkpoint and --resume: skips the statements that an earlier run completed, and records the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from sqlshell.client.statements.client import StatementBatch
from sqlshell.errors import CannotResume, Interrupted, ShellError, UnknownStatement, UsageError, WaitTimeout
from sqlshell.interface import sqlstate
from sqlshell.interface.sqlstate import DONE
from sqlshell.origin import Trusted
from sqlshell.runtime.bugs import bug_of
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.records.checkpoint import Checkpoint, Step, digest
from sqlshell.shell.running.statement import LexedSubmission, outcome_unknown, submission_of
from sqlshell.shell.running.submitting import CarryOut, Submitter, Use
from sqlshell.shell.session import SessionState
from sqlshell.sql.analysis.kinds import is_repeatable, verb
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.script.items import BackslashCommand, Statement

if TYPE_CHECKING:
    from sqlshell.shell.commands.command import Command

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


class ResumingSubmitter(Submitter):
    """Sends what an earlier run with the checkpoint has not done, and records it."""

    records = True

    def __init__(self, components: ShellComponents, checkpoint: Checkpoint) -> None:
        super().__init__(components)
        self._checkpoint = checkpoint
        self._again: list[tuple[SessionState, Lexed]] = []
        """Statements of the session that have to run again before the next one that is not skipped."""
        self._skipped_count = 0
        self._restart = ""
        """The place of the first step that runs: steps after it may be skipped, because no rollback undoes them."""
        self._step: Step | None = None
        """The step of the statement that is sent next."""

    async def command(self, command: Command, item: BackslashCommand, args: Trusted, carry_out: CarryOut) -> None:
        """Carry out a command, once if it acts by itself. Raises ShellError."""
        # The loads of \copy are recorded where they happen.
        if command.changes or command.sends_with(item.args) or command.name == "copy":
            await carry_out(args)
        else:
            await self.once(command.name, f"\\{item.name} {item.args}", partial(carry_out, args))

    async def once(self, name: str, text: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work of a command and record its outcome, unless an earlier run has done it. Raises ShellError."""
        step, former = await self._next(digest(self._session.redact(text)))
        if former is not None and former.state == "done":
            self._skipped_count += 1
            return
        await self._continue(step)
        transaction = bool(self._session.transaction.state)
        # The rows of a \copy are rolled back with the transaction.
        outside = name in _ACTING and not (name == "copy" and transaction)
        self._checkpoint.sent(step, transaction=transaction, repeatable=not outside, outside=outside)
        try:
            await work()
        except ShellError as error:
            if not outcome_unknown(error, arrived=False):
                self._ended(step, done=False, sql_state=error.where.sql_state)
            raise
        self._ended(step, done=True)

    def received(self, values: Mapping[str, str | None]) -> None:
        """Record the variables that \\gset has set from the result of the last statement. Raises OutputError."""
        self._checkpoint.received(values)

    async def _send(self, item: Statement, statement: Lexed, use: Use) -> None:
        if use.background:
            raise UsageError("background statements cannot be used with --checkpoint", "run it without & or \\bg")
        step = await self._statement(statement, consumed=use.handler is not None, output=bool(use.output))
        self.skipped = step is None
        if step is None:
            return
        self._step = step if step.n else None
        try:
            await super()._send(item, statement, use)
        finally:
            self._step = None

    async def _statement(self, statement: Lexed, *, consumed: bool, output: bool) -> Step | None:
        """The step of a statement that has to run, number 0 if it is not recorded again; None if it is skipped.

        `consumed` says that a command uses its result, `output` that its result goes to a file of its own. Raises
        ShellError.
        """
        session = self._session
        step, former = await self._next(digest(session.redact(statement)))
        if former is None or former.state != "done":
            if former is not None:
                self._diagnostics.note(f"{former.place}: the outcome is unknown; running it again (it only reads)")
            await self._continue(step)
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
            self._variables.receive(former.values)
        elif consumed or (self._result_output.exporting and not output):
            if is_repeatable(statement):
                # The rows are needed again: for variables, or for a file that the earlier run did not finish.
                await self._continue(None)
                return Step(0)
            if consumed:
                raise CannotResume(
                    "a command requires the result of this statement, but the statement is not run again: it may write",
                    f"remove {self._checkpoint.path} to start again",
                    step.where(),
                )
            self._diagnostics.warn_here("the result of a statement that an earlier run completed is not written again")
        session.rows, session.elapsed = former.rows, None
        self._variables.record_outcome(None)
        self._skipped_count += 1
        return None

    async def _run(self, submission: LexedSubmission, use: Use, batch: StatementBatch | None = None) -> None:
        step, self._step = self._step, None
        if step is None:
            await super()._run(submission, use, batch)
            return
        session, statement = self._session, submission.statement
        transaction = bool(session.transaction.state)
        self._checkpoint.sent(step, transaction=transaction, repeatable=self._repeatable(statement))
        session.on_identified = partial(self._checkpoint.identified, step)
        try:
            await super()._run(submission, use, batch)
        except Exception as error:
            self._record_failure(step, statement, error if isinstance(error, ShellError) else bug_of(error))
            raise
        finally:
            session.on_identified = None
        undone = session.ended is not None and session.ended.rolls_back
        self._ended(step, done=True, rows=session.rows, undone=undone)

    def _record_failure(self, step: Step, statement: Lexed, error: ShellError) -> None:
        """Record the outcome of a statement that failed, if it is known. Raises OutputError."""
        ended = self._session.ended
        answered = ended is not None and ended.answered is not None
        if answered or not outcome_unknown(error, arrived=ended is not None and bool(ended.statement_id)):
            # A statement whose rows could not be written has run nevertheless; only one that reads runs again for them.
            done = answered and not is_repeatable(statement)
            self._ended(step, done=done, sql_state=error.where.sql_state, rows=self._session.rows)

    def _ended(
        self, step: Step, *, done: bool, sql_state: str = DONE, rows: int | None = None, undone: bool = False
    ) -> None:
        """Record an outcome; `undone` if it rolled the transaction back instead. Raises OutputError."""
        transaction = bool(self._session.transaction.state)
        self._checkpoint.ended(
            step, done=done, sql_state=sql_state, rows=rows, transaction=transaction, rolled_back=undone
        )

    def finish(self, *, complete: bool) -> None:
        """End all scripts, which are `complete` if none failed. Raises ShellError."""
        if not complete:
            return
        self._checkpoint.check_end()
        if self._skipped_count:
            self._say_skipped("nothing to do")
        self._checkpoint.complete()

    def close(self) -> None:
        """Stop recording."""
        super().close()
        self._checkpoint.close()

    async def _next(self, digest: str) -> tuple[Step, Step | None]:
        """The next step, and what the earlier run recorded of it; its outcome is known. Raises ShellError."""
        former = self._checkpoint.undecided()
        if former is not None:
            await self._decide(former)
        return self._checkpoint.next(*self._position.place, digest)

    async def _continue(self, step: Step | None) -> None:
        """Before the first step that runs: restore the session, and report that the run continues."""
        again, self._again = self._again, []
        for state, statement in again:
            if state is self._session.state:
                await self.send(submission_of(statement))
        if step is None:
            return
        self._restart = self._restart or step.place
        if self._skipped_count and not self._checkpoint.continues:
            self._say_skipped(f"resuming at {self._restart}")

    def _say_skipped(self, then: str) -> None:
        count, self._skipped_count = self._skipped_count, 0
        self._diagnostics.note(f"{then} ({count:,} done)")

    async def _decide(self, former: Step) -> None:
        """Determine the outcome of a step: from the service if it knows the statement, otherwise from --if-unknown.

        Raises CannotResume if neither tells it, and Interrupted.
        """
        unknown, state = self._checkpoint.unknown, ""
        asked = bool(former.id) and not self._session.embedded
        if asked:
            try:
                state = await self._statement_runner.interruptible(self._end_of(former), "")
            except Interrupted:
                raise Interrupted(
                    "stopped waiting for the statement, which may still be running on the service",
                    _WAIT_AGAIN,
                    former.where("", former.id),
                ) from None
        if state:
            done = not sqlstate.failed(state)
            outcome = "completed" if done else f"failed (SQLSTATE {state})"
            self._diagnostics.note(f"{former.place}: the service reports that the statement {outcome}")
            self._checkpoint.decide(former, done=done, sql_state=state)
        elif unknown:
            self._checkpoint.decide(former, done=unknown == "skip")
        else:
            raise self._unknown(former, asked=asked)

    async def _end_of(self, former: Step) -> str:
        """Wait until a statement has ended on the service; returns its sqlState, "" if the service does not know it.

        Raises CannotResume.
        """
        session = self._session
        try:
            state, _ = await session.state.background.wait(
                former.id, session.context, partial(self._show_waiting, former)
            )
        except (UnknownStatement, UsageError):
            # The legacy interface has no lookups.
            return ""
        except ShellError as error:
            late = isinstance(error, WaitTimeout)
            failed = CannotResume(
                error.message if late else f"cannot look up the outcome of the statement: {error.message}",
                _WAIT_AGAIN if late else error.hint,
                former.where(error.where.sql_state if late else "", former.id),
            )
            failed.exit = error.exit
            raise failed from None
        return state

    def _show_waiting(self, former: Step) -> None:
        if self._session.running is None:
            self._diagnostics.note(f"{former.place}: still running on the service; waiting for it")
            self._statement_runner.show_progress(None, f"waiting for {former.place}", "^C stops waiting")

    def _unknown(self, former: Step, *, asked: bool) -> CannotResume:
        if asked:
            known = f", and the service does not know the statement ({former.id})"
        else:
            known = f" (statement {former.id})" if former.id else ""
        return CannotResume(
            f"the outcome of the statement is unknown: the earlier run ended after the statement was sent{known}",
            "check whether the statement took effect; continue with --resume --if-unknown skip if it did, or --resume "
            "--if-unknown send if it did not",
            former.where("", former.id),
        )

    def _repeatable(self, statement: Lexed) -> bool:
        word = verb(statement)
        if word in _ENDS:
            return False
        # The end of the run rolls a transaction back.
        harmless = word in _TRANSACTION and not self._application(statement)
        return (
            bool(self._session.transaction.state)
            or harmless
            or self._changes_session(statement)
            or (is_repeatable(statement))
        )

    def _changes_session(self, statement: Lexed) -> bool:
        word = verb(statement)
        return word in _SESSION or (word in _EMBEDDED and self._session.embedded)

    @staticmethod
    def _application(statement: Lexed) -> bool:
        return [token.word for token in statement.first(2)[:2]] == ["BEGIN", "APPLICATION"]

    @staticmethod
    def _is_temporary(statement: Lexed) -> bool:
        words = [token.word for token in statement.first(4)[:4]]
        return words[:1] == ["CREATE"] and not _TEMPORARY.isdisjoint(takewhile(_BEFORE_KIND.__contains__, words[1:]))
