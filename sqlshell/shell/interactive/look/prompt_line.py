"""The prompt: where statements go and in what state, `role@target:database.schema/store[ro]*> `."""

from __future__ import annotations

from sqlshell.output.text.cells import cells
from sqlshell.shell.interactive.look.templates import fragments, short
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.transaction import FAILED, OPEN
from sqlshell.sql.script.scanner import State

Fragments = list[tuple[str, str]]

QUIET, NOTED, ALARMING = "class:continuation", "class:spinner", "class:error"
"""The styles of what is seldom read, what is worth a look, and what is wrong."""

CUT = 12
"""Cells of a name in a narrow terminal."""


def prompt_text(session: Session, columns: int = 80) -> Fragments:
    """The user's template, otherwise the context with the parts that are set, or `sqlshell> `.

    The target is named for a remote service, the role if it is not the default one. `*` means an open transaction, `!`
    a failed one, `@` that input is skipped, `[ro]` read-only. In a narrow terminal names are shortened, so that half of
    the line is left for the statement.
    """
    if session.options.prompt:
        return fragments(session.options.prompt, session)
    if session.options.prompt_lines > 1:
        return [*_context(session, columns, columns), *_state_in_words(session), ("", "\n"), *_end(session)]
    read_only: Fragments = [(QUIET, "[ro]")] if session.connection.policy.read_only else []
    return [*_context(session, columns, columns // 2), *read_only, *_end(session)]


def last_line(text: Fragments) -> int:
    """The cells of the line of the prompt in which the statement begins."""
    return cells("".join(part for _, part in text).rpartition("\n")[2])


def continuation_text(state: State, width: int) -> str:
    """The prefix of continuation lines: what the text is inside of, as in psql."""
    sign = {State.READY: "-", State.STATEMENT: "-", State.COMMAND: "-"}.get(state, state.value)
    return f"{sign}> ".rjust(width)


def _context(session: Session, columns: int, most: int) -> Fragments:
    role = session.context.role if session.context.role != session.state.default_role else ""
    for shown, cut in ((role, 0), ("", 0), ("", CUT)):
        found = _named(session, shown, cut)
        if cells("".join(text for _, text in found)) <= most:
            break
    return found


def _named(session: Session, role: str, cut: int) -> Fragments:
    context = session.context

    def name(text: str) -> str:
        text = short(text)
        return text if not cut or len(text) <= cut else f"{text[: cut - 1]}…"

    found: Fragments = [(NOTED, name(role)), (QUIET, "@")] if role else []
    target = session.connection.short_name
    place: Fragments = []
    for part in (context.database, context.schema):
        if part:
            place += [*([(QUIET, ".")] if place else []), ("", name(part))]
    if context.store:
        place += [(QUIET, "/"), ("", name(context.store))]
    if target:
        found += [("bold", name(target)), *([(QUIET, ":")] if place else [])]
    elif not place:
        found.append(("", "sqlshell"))
    return [*found, *place]


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
