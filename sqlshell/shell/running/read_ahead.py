"""A script's next statements, sent together where the service takes them so.

They are those that have arrived: nothing waits for more. What needs something in between (a value that the one before
leaves behind, a file, a question, a command) is sent alone, and so is all that a person types at a prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sqlshell.client.statements.client import Client, StatementBatch, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import UsageError
from sqlshell.origin import Own, mine
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.running.attachments import reads_stdin
from sqlshell.shell.running.policy import Policy
from sqlshell.shell.scripts.variables import Variables
from sqlshell.sql.analysis.kinds import reads_only
from sqlshell.sql.script.items import Item, Statement
from sqlshell.sql.script.scanner import copies_from_stdin
from sqlshell.sql.script.splitting import split

MOST = 2_000
"""Statements that are sent in batches one after another."""

SIZE = 256 << 10
"""Characters of them."""


class Ahead:
    """Statements that were sent together, or will be with the first of them."""

    def __init__(self, taken: StatementBatch, planned: Sequence[tuple[Statement, Submission]]) -> None:
        self.taken = taken
        self._planned = deque(planned)

    @property
    def done(self) -> bool:
        return not self._planned

    def next(self) -> Submission:
        """The next one's submission: what is asked of it before it is sent was asked already."""
        return self._planned.popleft()[1]

    async def aclose(self, context: SessionContext, journal: Journal, *, patient: bool) -> tuple[int, str]:
        """Have the service run no more: how many ran behind the last one that was waited for, and words for it."""
        behind = await self.taken.aclose(context, patient=patient)
        for item in behind:
            journal.began(item.statement_id, item.sql, context, 0)
            journal.ended(item.statement_id, item.sql_state, item.message)
        journal.flush()
        if not behind:
            return 0, ""
        lines = [statement.line for statement, _ in list(self._planned)[: len(behind)]]
        where = f"line {lines[0]}" if lines[0] == lines[-1] else f"lines {lines[0]} to {lines[-1]}"
        many = "1 statement" if len(behind) == 1 else f"{len(behind):,} statements"
        return len(behind), f"{many} after it ({where}) had already run; \\jobs lists the outcomes"


async def plan(
    items: Sequence[Item],
    start: int,
    client: Client,
    policy: Policy,
    variables: Variables,
    *,
    stop: bool,
    near: bool,
    piped: bool,
) -> Ahead | None:
    """The statements from number `start` on that can be sent together; None where it is fewer than two.

    `near` says that the service is in this process, so that nothing is sent twice; `piped` that the reader of rows may
    leave before their end, behind which nothing may have changed.
    """
    if not client.supports_batches:
        return None
    planned: list[tuple[Statement, Submission]] = []
    size, reads, shown = 0, not near, False
    for number in range(start, min(len(items), start + MOST)):
        item = items[number]
        if not isinstance(item, Statement) or not _plain(item, variables):
            break
        size += len(item.text)
        if size > SIZE:
            break
        try:
            await policy.check(item.text, None)
        except UsageError:
            # It is told where the statement stands.
            break
        only = (piped or reads) and reads_only(item.text)
        if piped and shown and not only:
            break
        shown = shown or only or "returning" in item.text.lower()
        reads = reads and only
        planned.append((item, Submission(item.text, (), None, reads, item.ending)))
    if len(planned) < 2:
        return None
    taken = client.begin_batch([submission for _, submission in planned], stop=stop)
    return Ahead(taken, planned) if taken is not None else None


def _plain(item: Statement, variables: Variables) -> bool:
    """Whether a statement is what its text says, and one."""
    text = item.text
    if item.background or item.settled or "@" in text or copies_from_stdin(text) or reads_stdin(text):
        return False
    if ":" in text and variables.fill(mine(Own(text))).text != text:
        return False
    return ";" not in text or len(split(text, commands=False)) == 1
