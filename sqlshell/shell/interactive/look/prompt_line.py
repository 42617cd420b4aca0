"""The prompt, the bottom line and the title of the window: what they show of the session, and the user's templates."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import TextIO

from sqlshell.output.text.cells import cells
from sqlshell.shell.interactive.look.context_line import (
    ALARMING,
    LONGEST_NAME,
    NOTED,
    QUIET,
    Fragments,
    Shown,
    context_line,
    short,
)
from sqlshell.shell.interactive.terminal import draws
from sqlshell.shell.options import FIELD, STYLE
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.transaction import FAILED, OPEN
from sqlshell.sql.script.scanner import State
from sqlshell.text import duration, one_line


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
    sign = {State.READY: "-", State.STATEMENT: "-"}.get(state, state.value)
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


MOST_READ = 1 << 16
"""Characters of a statement that are searched for secrets."""
DEFAULT_TITLE = "{statement} - {target}"
NO_TITLE = "off"


def fragments(template: str, session: Session) -> list[tuple[str, str]]:
    """The current template as (style, text) pairs."""
    parts = STYLE.split(template)
    looks = ["", *("" if look == "/" else look for look in parts[1::2])]
    return [(look, filled(text, session)) for look, text in zip(looks, parts[::2], strict=True) if text]


def filled(template: str, session: Session) -> str:
    """The current text of the template without styles; fields that are not set are empty."""
    return FIELD.sub(lambda match: short(_value(match[1], session)), STYLE.sub("", template))


def _value(field: str, session: Session) -> str:
    context = session.context
    match field:
        case "organization" | "role" | "database" | "schema" | "store" | "timezone":
            return str(getattr(context, field))
        case "pool":
            return context.compute_pool
        case "session":
            return context.session_id[:8]
        case "target":
            return session.target
        case "elapsed":
            return duration(session.elapsed) if session.elapsed is not None else ""
        case "jobs":
            jobs = session.state.background.running_count
            return f"{jobs} running" if jobs else ""
        case "transaction":
            return session.transaction.mark
        case "readonly":
            return "read-only" if session.connection.policy.read_only else ""
        case "statement":
            return _statement(session)
    return ""


def _statement(session: Session) -> str:
    """The running statement, shortened and without its secrets; `sqlshell` if none is running."""
    running = session.running
    if running is None or not running.statement:
        return "sqlshell"
    text = str(running.statement)
    return one_line(session.redact(running.statement), LONGEST_NAME) if len(text) <= MOST_READ else f"{text[:8]}…"


SAVE, RESTORE = "\x1b[22;2t", "\x1b[23;2t"
_WITHOUT_TITLE = ("linux", "vt", "ansi", "cons")
"""Terminals that have no title, and may show the sequence as text."""


class WindowTitle:
    """Sets the title of `stream`, if it is a terminal; restore() gives back the one that was found."""

    def __init__(self, session: Session, stream: TextIO, environ: Mapping[str, str] = os.environ) -> None:
        self._session = session
        self._stream = stream
        self._titled = draws(stream, environ)
        self._known = not environ.get("TERM", "").startswith(_WITHOUT_TITLE)
        self._shown = ""

    def update(self) -> None:
        """Show what runs now."""
        template = self._session.options.title
        if template == NO_TITLE or not self._titled or not (template or self._known):
            return
        text = filled(template or DEFAULT_TITLE, self._session)
        if text != self._shown:
            self._write(f"{'' if self._shown else SAVE}\x1b]2;{text}\x07")
            self._shown = text

    def restore(self) -> None:
        if self._shown:
            self._shown = ""
            self._write(RESTORE)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
