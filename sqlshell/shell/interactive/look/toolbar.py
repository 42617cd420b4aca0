"""The prompt and the toolbar under it, made from the session; what a service named is made safe to print."""

from __future__ import annotations

from sqlshell.output.text.cells import cells
from sqlshell.shell.interactive.look.templates import fragments, short
from sqlshell.shell.results.humanize import duration
from sqlshell.shell.session import Session
from sqlshell.sql.script.scanner import State


def prompt_text(session: Session) -> list[tuple[str, str]]:
    """The profile's template, else `database.schema/store> ` of what is set; `sqlshell> ` where nothing is. `*> `
    is for an open transaction, `!> ` for one that failed, `@> ` where what is entered is passed over."""
    if session.options.prompt:
        return fragments(session.options.prompt, session)
    context = session.context
    text = ".".join(short(part) for part in (context.database, context.schema) if part)
    if context.store:
        text += f"/{short(context.store)}"
    return [("", f"{text or 'sqlshell'}{'@' if session.skipping else session.transaction.mark}> ")]


def continuation_text(state: State, width: int) -> str:
    """What stands before the next lines: what the text is inside of, as psql shows it."""
    sign = {State.READY: "-", State.STATEMENT: "-", State.COMMAND: "-"}.get(state, state.value)
    return f"{sign}> ".rjust(width)


def toolbar_text(session: Session, columns: int) -> list[tuple[str, str]]:
    """The whole context, the target and the last elapsed time; the least important parts go when it is too wide."""
    if session.options.toolbar:
        return [("", " "), *fragments(session.options.toolbar, session)]
    context = session.context
    running = session.state.background.running
    parts = [
        ("running", str(running) if running else ""),
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
    named = {"pool": "compute_pool", "org": "organization", "tz": "timezone", "session": "session_id"}
    # What the last statement changed is marked until the next.
    marks = {name: "*" if named.get(name, name) in session.state.changed else "" for name, _ in parts}
    shown = [f"{name} {short(value)}{marks[name]}" for name, value in parts if value]
    last = [duration(session.elapsed)] if session.elapsed is not None else []
    while shown and cells(_joined(shown, last)) > columns:
        shown.pop()
    return [("", _joined(shown, last))]


def _joined(shown: list[str], last: list[str]) -> str:
    return " " + " │ ".join([*shown, *last]) + " "
