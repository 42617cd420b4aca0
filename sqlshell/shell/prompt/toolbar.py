"""The prompt and the toolbar under it, made from the session; what a service named is made safe to print."""

from __future__ import annotations

from sqlshell.output.cells import cells, printable
from sqlshell.shell.session import Session
from sqlshell.shell.words import duration
from sqlshell.sql.scanner import State

LONGEST_NAME = 40


def prompt_text(session: Session) -> str:
    """`database.schema/store> `, without what is not set; `sqlshell> ` where nothing is."""
    context = session.context
    text = ".".join(_short(part) for part in (context.database, context.schema) if part)
    if context.store:
        text += f"/{_short(context.store)}"
    return f"{text or 'sqlshell'}> "


def continuation_text(state: State, width: int) -> str:
    """What stands before the next lines: what the text is inside of, as psql shows it."""
    sign = {State.READY: "-", State.STATEMENT: "-", State.COMMAND: "-"}.get(state, state.value)
    return f"{sign}> ".rjust(width)


def toolbar_text(session: Session, columns: int) -> str:
    """The whole context, the target and the last elapsed time; the least important parts go when it is too wide."""
    context = session.context
    parts = [
        ("target", session.target),
        ("database", context.database),
        ("schema", context.schema),
        ("store", context.store),
        ("role", context.role),
        ("pool", context.compute_pool),
        ("org", context.organization),
        ("tz", context.timezone),
        ("session", context.session_id[:8]),
    ]
    shown = [f"{name} {_short(value)}" for name, value in parts if value]
    last = [duration(session.elapsed)] if session.elapsed is not None else []
    while shown and cells(_joined(shown, last)) > columns:
        shown.pop()
    return _joined(shown, last)


def _joined(shown: list[str], last: list[str]) -> str:
    return " " + " │ ".join([*shown, *last]) + " "


def _short(text: str) -> str:
    safe = printable(text)
    return safe if len(safe) <= LONGEST_NAME else safe[: LONGEST_NAME - 1] + "…"
