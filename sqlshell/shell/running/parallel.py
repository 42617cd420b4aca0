"""\\parallel: statements that are collected up to \\end, then run several at once; results are shown in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct, field

from sqlshell.client.statements.client import StatementBatch
from sqlshell.client.statements.concurrent import ConcurrentBatch
from sqlshell.client.statements.polling import new_session_id
from sqlshell.errors import Interrupted, ShellError, Unread, UsageError
from sqlshell.humanize import format_count, not_run
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.running.failures import AlreadyReported, Failures
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.running.submission import LexedSubmission
from sqlshell.sql.analysis.kinds import verb
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.script.items import Statement

MOST_STATEMENTS: Final = 10_000
MOST_CHARACTERS: Final = 64 << 20
"""Maximum statements of a block, and their characters, which are in memory before the first one runs."""

SENDERS: Final = frozenset({"g", "gx"})
"""The commands that may send a statement of a block."""

_SESSION_ONLY: Final = frozenset(
    {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "USE", "SET", "RESET"}
)


class BlockStatement(Struct, frozen=True):
    """A statement of a block: where it is, as it is sent, and what shows its result."""

    statement: Statement
    submission: LexedSubmission
    script: str
    line: int
    run: Callable[[LexedSubmission, StatementBatch], Awaitable[None]]
    sent: Callable[[], None]
    """Called before it is sent; may raise ShellError, and then it is not sent."""
    identified: Callable[[str], None]


class Block(Struct):
    """An open \\parallel: `count` statements at once; `depth` is that of the script in which it began."""

    count: int
    depth: int
    collected: list[BlockStatement] = field(default_factory=list)
    size: int = 0

    def check(self, statement: Lexed) -> None:
        """Raise UsageError for a statement that cannot be in the block."""
        word = verb(statement)
        application = word == "BEGIN" and [token.word for token in statement.first(2)[:2]] == ["BEGIN", "APPLICATION"]
        if word in _SESSION_ONLY and not application:
            raise UsageError(
                f"{word} cannot be used in \\parallel: each statement may run in another session",
                f"write {word} before \\parallel or after \\end",
            )
        self.size += len(statement.text)
        if len(self.collected) >= MOST_STATEMENTS or self.size > MOST_CHARACTERS:
            raise UsageError(
                f"\\parallel: at most {MOST_STATEMENTS:,} statements with {MOST_CHARACTERS >> 20} Mi characters",
                "use several blocks",
            )


class ParallelRunner:
    """Runs a block. Each statement runs in one of the sessions that all blocks of the connection share."""

    def __init__(self, components: ShellComponents, failures: Failures, foreground: Foreground) -> None:
        self._components = components
        self._foreground = foreground
        self._failures = failures

    async def begin(self, count: int, depth: int) -> Block:
        """Raises UsageError where no block may begin."""
        session, diagnostics = self._components.session, self._components.diagnostics
        if session.transaction.state:
            raise UsageError(
                "\\parallel cannot be used in a transaction, whose statements run one after another",
                "end the transaction first",
            )
        most = session.options.max_parallel
        if count > most:
            diagnostics.warn_here(f"\\parallel {count}: at most {most} statements run at once (--max-parallel)")
        if not self._components.modes.rehearsal and await session.connection.client.is_legacy():
            raise UsageError("\\parallel requires the interface v2: the legacy interface has no sessions")
        if session.interactive and not self._components.position.in_file:
            diagnostics.report("statements are collected up to \\end", always=True)
        return Block(min(count, most), depth)

    async def run(self, block: Block) -> None:
        """Run the statements and show their results in order. Raises ShellError."""
        components, session = self._components, self._components.session
        items, state = block.collected, session.state
        if not items:
            return
        count = min(block.count, len(items))
        while len(state.parallel_sessions) < count:
            state.parallel_sessions.append(new_session_id())
        journal, context = session.connection.journal, session.context

        def identified(number: int, statement_id: str, ago: float) -> None:
            journal.record_start(statement_id, items[number].submission.statement, context, ago)
            items[number].identified(statement_id)

        batch = ConcurrentBatch(
            state.client,
            [item.submission for item in items],
            context,
            state.parallel_sessions[:count],
            ends=self._failures.ends_script,
            halted=lambda: self._foreground.interrupted,
            sent=lambda number: items[number].sent(),
            identified=identified,
        )
        failed, done = 0, 0
        try:
            for item in items:
                if not await batch.sends_next():
                    break
                done += 1
                with components.position.within(item.script):
                    components.position.at(item.line)
                    components.buffer.remember(item.statement)
                    try:
                        await item.run(item.submission, batch)
                    except ShellError as error:
                        if isinstance(error, Interrupted | Unread):
                            raise
                        failed += 1
                        self._failures.report(error)
        finally:
            await self._close(batch)
        left = len(items) - done
        if failed:
            many = f"{format_count(failed, 'statement')} failed"
            rest = not_run((left, "statement"), before=", ")
            raise AlreadyReported(self._failures.exit, f"\\parallel: {many}{rest}")

    async def _close(self, batch: ConcurrentBatch) -> None:
        """Cancel the running statements, and report their outcomes."""
        session = self._components.session
        journal = session.connection.journal
        unread = await batch.aclose(session.context, patient=self._foreground.patient)
        for item in unread:
            journal.record_end(item.statement_id, item.sql_state, item.message)
        journal.flush()
        if unread:
            self._components.diagnostics.warn(
                f"\\parallel: {format_count(len(unread), 'statement')} had already been sent; the service was asked to "
                f"cancel {'it' if len(unread) == 1 else 'them'}; \\jobs lists the outcomes"
            )
