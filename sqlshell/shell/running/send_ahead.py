"""The next statements of a script, sent ahead of their turn, together, if the service supports it.

Only statements that have arrived: nothing waits for more. A statement that requires something in between (a value that
the previous one sets, a file, a question, a command) is sent separately, and so is everything typed at a prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sqlshell.client.statements.client import Client, StatementBatch
from sqlshell.context import SessionContext
from sqlshell.errors import UsageError
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.running.attachments import reads_stdin
from sqlshell.shell.running.statement import LexedSubmission, submission_of
from sqlshell.shell.scripts.variables import Variables
from sqlshell.sql.analysis.copy_statements import is_copy
from sqlshell.sql.analysis.kinds import is_repeatable
from sqlshell.sql.analysis.policy import Policy
from sqlshell.sql.script.items import Item, Statement
from sqlshell.sql.script.splitting import split
from sqlshell.text import format_count

MAX_STATEMENTS = 2_000
"""Maximum statements that are sent in consecutive batches."""

MAX_CHARACTERS = 256 << 10
"""Maximum characters of these."""


class SendAhead:
    """Statements that were sent together, or will be sent with the first of them."""

    def __init__(self, batch: StatementBatch, planned: Sequence[tuple[Statement, LexedSubmission]]) -> None:
        self.batch = batch
        self._planned = deque(planned)

    @property
    def done(self) -> bool:
        return not self._planned

    def next(self, statement: Statement) -> LexedSubmission:
        """The submission of this statement, the next one; its confirmations have already been given."""
        planned, submission = self._planned.popleft()
        # Otherwise it would get the result of another statement.
        assert planned.text == statement.text, f"{statement.text!r} was not sent with the others"
        return submission

    async def aclose(self, context: SessionContext, journal: Journal, *, patient: bool) -> tuple[int, str]:
        """Stop the batch: returns how many statements ran after the last one that was awaited, and a message about
        them.
        """
        awaited = self.batch.unread - len(self._planned)
        already_run = await self.batch.aclose(context, patient=patient)
        for item in already_run:
            journal.record_start(item.statement_id, item.sql, context, 0)
            journal.record_end(item.statement_id, item.sql_state, item.message)
        journal.flush()
        # A statement that is not waited for any more is not one after it.
        already_run = already_run[awaited:]
        if not already_run:
            return 0, ""
        lines = [statement.line for statement, _ in list(self._planned)[: len(already_run)]]
        where = f"line {lines[0]}" if lines[0] == lines[-1] else f"lines {lines[0]} to {lines[-1]}"
        many = format_count(len(already_run), "statement")
        return len(already_run), f"{many} after it ({where}) had already run; \\jobs lists the outcomes"


async def plan(
    items: Sequence[Item],
    start: int,
    client: Client,
    policy: Policy,
    variables: Variables,
    *,
    stop: bool,
    embedded: bool,
    piped: bool,
) -> SendAhead | None:
    """The statements from number `start` on that can be sent together; None if there are fewer than two.

    `embedded` says that the service is in this process, so that nothing is sent ahead; `piped` that the reader of
    rows may exit early, after which nothing may be changed.
    """
    if not client.supports_batches:
        return None
    planned: list[tuple[Statement, LexedSubmission]] = []
    size, reads, shown = 0, not embedded, False
    for number in range(start, min(len(items), start + MAX_STATEMENTS)):
        item = items[number]
        if not isinstance(item, Statement) or not _can_be_batched(item, variables):
            break
        size += len(item.text)
        if size > MAX_CHARACTERS:
            break
        try:
            await policy.check(item.lexed, None)
        except UsageError:
            # The message includes the position of the statement.
            break
        only = (piped or reads) and is_repeatable(item.lexed)
        if piped and shown and not only:
            break
        shown = shown or only or "returning" in item.text.lower()
        reads = reads and only
        planned.append((item, submission_of(item.lexed, repeatable=reads, ending=item.ending)))
    if len(planned) < 2:
        return None
    batch = client.begin_batch([submission for _, submission in planned], stop=stop)
    return SendAhead(batch, planned) if batch is not None else None


def _can_be_batched(item: Statement, variables: Variables) -> bool:
    """Whether the text is exactly one statement without substitutions."""
    text, statement = item.text, item.lexed
    if item.background or item.substituted or "@" in text or reads_stdin(statement):
        return False
    # The shell loads files and writes rows itself.
    if is_copy(statement):
        return False
    if variables.lacks_connection(text) or (":" in text and variables.substitute(statement) != item.whole):
        return False
    return ";" not in text or len(split(text, commands=False)) == 1
