"""The prompt: where statements go and in what state, `role@target:database.schema/store[ro]*> `."""

from __future__ import annotations

from sqlshell.output.text.cells import cells
from sqlshell.shell.interactive.look.context_line import ALARMING, NOTED, QUIET, Fragments, Shown, context_line
from sqlshell.shell.interactive.look.templates import fragments
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.transaction import FAILED, OPEN
from sqlshell.sql.script.scanner import State


def prompt_text(session: Session, columns: int = 80) -> Fragments:
    """The user's template, otherwise the context with the parts that are set, or `sqlshell> `.

    The target is named for a remote service, the role if it is not the default one. `*` means an open transaction, `!`
    a failed one, `@` that input is skipped, `[ro]` read-only. In a narrow terminal names are shortened, so that half of
    the line is left for the statement.
    """
    if session.options.prompt:
        return fragments(session.options.prompt, session)
    if session.options.prompt_lines > 1:
        return [*_context(session, columns), *_state_in_words(session), ("", "\n"), *_end(session)]
    read_only: Fragments = [(QUIET, "[ro]")] if session.connection.policy.read_only else []
    return [*_context(session, columns // 2), *read_only, *_end(session)]


def last_line(text: Fragments) -> int:
    """The cells of the line of the prompt in which the statement begins."""
    return cells("".join(part for _, part in text).rpartition("\n")[2])


def continuation_text(state: State, width: int) -> str:
    """The prefix of continuation lines: what the text is inside of, as in psql."""
    sign = {State.READY: "-", State.STATEMENT: "-", State.COMMAND: "-"}.get(state, state.value)
    return f"{sign}> ".rjust(width)


def _context(session: Session, most: int) -> Fragments:
    context = session.context
    role = context.role if context.role != session.state.default_role else ""
    shown = Shown(session.connection.short_name, role, context.database, context.schema, context.store)
    return context_line(shown, most)


def _end(session: Session) -> Fragments:
    if session.skipping:
        return [(NOTED, "@"), ("", "> ")]
    mark, state = session.transaction.mark, session.transaction.state
    return [*([(ALARMING if state == FAILED else NOTED, mark)] if mark else []), ("", "> ")]


def _state_in_words(session: Session) -> Fragments:
    words: Fragments = [(QUIET, "  read-only")] if session.connection.policy.read_only else []
    words += {OPEN: [(NOTED, "  in a transaction")], FAILED: [(ALARMING, "  failed transaction")]}.get(
        session.transaction.state, []
    )
    return words
