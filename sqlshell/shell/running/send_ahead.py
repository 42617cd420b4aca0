"""The next statements of a script, sent ahead of their turn, together, if the service supports it.

Only statements that have arrived: nothing waits for more. A statement that requires something in between (a value that
the previous one sets, a file, a question, a command) is sent separately, and so is everything typed at a prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sqlshell.client.statements.client import StatementBatch
from sqlshell.errors import UsageError
from sqlshell.interface import sqlstate
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.running.attachments import reads_stdin
from sqlshell.shell.running.statement import LexedSubmission, submission_of
from sqlshell.shell.running.submitting import Submitter, Use
from sqlshell.sql.analysis.copy_statements import is_copy
from sqlshell.sql.analysis.kinds import is_repeatable
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.script.items import Item, Statement
from sqlshell.sql.script.splitting import split
from sqlshell.text import format_count

MAX_STATEMENTS = 2_000
"""Maximum statements that are sent in consecutive batches."""

MAX_CHARACTERS = 256 << 10
"""Maximum characters of these."""

Planned = tuple[Statement, LexedSubmission]


class SendAhead(Submitter):
    """Carries out the statements of scripts, several together where that makes no difference."""

    def __init__(self, components: ShellComponents) -> None:
        super().__init__(components)
        self._batch: StatementBatch | None = None
        self._planned: deque[Planned] = deque()
        """Statements that were sent together, or will be sent with the first of them; their confirmations are given."""

    async def start_batch(self, items: Sequence[Item], number: int, *, stop: bool) -> None:
        """Send the statements from this one on together, if that is possible and makes no difference."""
        if self._planned:
            return
        connection = self._session.connection
        if self._batch is not None:
            self._batch = None
            connection.journal.flush()
        if connection.offline is not None or not connection.client.supports_batches:
            return
        if not self._conditions.active or self._attachments.waiting or not self._result_output.takes_several:
            return
        planned = await self._plan(items, number)
        if len(planned) < 2:
            return
        self._batch = connection.client.begin_batch([submission for _, submission in planned], stop=stop)
        if self._batch is not None:
            self._planned.extend(planned)

    async def end_batch(self) -> int:
        """End the batch: no more of it runs. Reports how many statements ran after the last one."""
        planned, batch = list(self._planned), self._batch
        self._planned.clear()
        if not planned or batch is None:
            return 0
        awaited = batch.unread - len(planned)
        context, journal = self._session.context, self._session.connection.journal
        already_run = await batch.aclose(context, patient=self._statement_runner.patient)
        for item in already_run:
            journal.record_start(item.statement_id, item.sql, context, 0)
            journal.record_end(item.statement_id, item.sql_state, item.message)
        journal.flush()
        # A statement that is not waited for any more is not one after it, and a canceled one has not run.
        ran = sum(item.sql_state != sqlstate.CANCELED for item in already_run[awaited:])
        if ran and not self._result_output.reader_left:
            lines = [statement.line for statement, _ in planned[:ran]]
            where = f"line {lines[0]}" if lines[0] == lines[-1] else f"lines {lines[0]} to {lines[-1]}"
            kept = "" if self._session.embedded else "; \\jobs lists the outcomes"
            self._diagnostics.warn(f"{format_count(ran, 'statement')} sent ahead ({where}) had already run{kept}")
        return ran

    async def _send(self, item: Statement, statement: Lexed, use: Use) -> None:
        if not self._planned:
            await super()._send(item, statement, use)
            return
        planned, submission = self._planned.popleft()
        # Otherwise it would get the result of another statement.
        assert planned.text == item.text, f"{item.text!r} was not sent with the others"
        await self._run(submission, use, self._batch)

    async def _plan(self, items: Sequence[Item], start: int) -> Sequence[Planned]:
        """The statements from number `start` on that can be sent together.

        The embedded service gets nothing ahead. The reader of rows in a pipe may exit early, after which nothing may be
        changed.
        """
        connection, piped = self._session.connection, self._result_output.piped
        planned: list[Planned] = []
        size, reads, shown = 0, not connection.embedded, False
        for number in range(start, min(len(items), start + MAX_STATEMENTS)):
            item = items[number]
            if not isinstance(item, Statement) or not self._can_be_batched(item):
                break
            size += len(item.text)
            if size > MAX_CHARACTERS:
                break
            try:
                await connection.policy.check(item.lexed, None)
            except UsageError:
                # The message includes the position of the statement.
                break
            only = (piped or reads) and is_repeatable(item.lexed)
            if piped and shown and not only:
                break
            shown = shown or only or "returning" in item.text.lower()
            reads = reads and only
            planned.append((item, submission_of(item.lexed, repeatable=reads, ending=item.ending)))
        return planned

    def _can_be_batched(self, item: Statement) -> bool:
        """Whether the text is exactly one statement without substitutions."""
        text, statement = item.text, item.lexed
        if item.background or item.substituted or "@" in text or reads_stdin(statement):
            return False
        # The shell loads files and writes rows itself.
        if is_copy(statement):
            return False
        variables = self._variables
        if variables.lacks_connection(text) or (":" in text and variables.substitute(statement) != item.whole):
            return False
        return ";" not in text or len(split(text, commands=False)) == 1
