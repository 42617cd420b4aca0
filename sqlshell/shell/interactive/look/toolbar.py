"""The line at the bottom of the screen: information that is not in the prompt, and the current meaning of keys."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from sqlshell.output.text.cells import cells, printable
from sqlshell.shell.interactive.look.context_line import short
from sqlshell.shell.interactive.look.prompt_line import fragments
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.transaction import FAILED, OPEN
from sqlshell.sql.completion.catalog import Catalog
from sqlshell.sql.completion.signatures import call_at, parameters

Fragments = list[tuple[str, str]]


class Typing(Enum):
    """The state of the prompt, which determines the meaning of keys."""

    NOTHING = "nothing"
    UNFINISHED = "an unfinished statement"
    OPEN = "a statement whose end stands inside parentheses"
    DATA = "rows of COPY … FROM STDIN"
    COMPLETE = "a text that Enter runs"
    SUGGESTED = "a text with a suggestion behind it"
    MENU = "an open completion menu"
    CHOSEN = "an item chosen in the completion menu"
    SEARCH = "a search of the history"
    UNMATCHED = "a search that finds nothing"


_KEYS = {
    Typing.SEARCH: (("^R", "older"), ("Enter", "accepts"), ("Esc", "cancels")),
    Typing.UNMATCHED: (("no match", "in the history"), ("Esc", "cancels")),
    Typing.MENU: (("Tab", "next"), ("F2", "menu off")),
    Typing.CHOSEN: (("Tab", "next"), ("Enter", "accepts"), ("F2", "menu off")),
    Typing.SUGGESTED: (("→", "accepts the suggestion"), ("Ctrl-→", "one word")),
    Typing.UNFINISHED: (("Enter", "new line"), ("Alt-Enter", "sends"), ("^C", "discards")),
    Typing.OPEN: (("^C", "discards"),),
    Typing.DATA: (("\\.", "or ^D ends the data"), ("^C", "discards")),
    Typing.COMPLETE: (("Enter", "runs"), ("^X ^F", "formats"), ("^X ^E", "editor")),
}
_AT_REST = (("\\?", "help"), ("^R", "history"), ("F5", "browse result"), ("Tab", "complete"), ("^D", "exit"))


def toolbar_text(
    session: Session,
    columns: int,
    typing: Typing,
    vi: str = "",
    call: Sequence[tuple[str, str]] = (),
    *,
    unicode: bool = True,
) -> Fragments:
    """Information that is not in the prompt, then as many keys as fit; `vi` is the mode of the vi keys, or "".

    `call` is the signature of the function whose arguments are typed, or open_text(); `unicode` says whether the
    terminal shows more than ASCII.
    """
    if session.options.toolbar:
        return [("", " "), *fragments(session.options.toolbar, session)]
    parts: list[Fragments] = [[("bold", vi)]] if vi else []
    parts += [[*call]] if call else []
    parts += [[("", text)] for text in _context(session)]
    parts += [[("bold", key), ("", f" {does}")] for key, does in _keys(session, typing, vi=bool(vi))]
    between = " │ " if unicode else " | "
    shown: Fragments = []
    left = columns - 2
    for part in parts:
        part = part if unicode else [(look, text.replace("→", "Right")) for look, text in part]
        width = sum(cells(text) for _, text in part) + (3 if shown else 0)
        if width > left:
            break
        left -= width
        shown += [*([("", between)] if shown else []), *part]
    return [("", " "), *shown, ("", " ")]


def call_text(typed: str, catalog: Catalog) -> Fragments:
    """The signature of the function whose arguments a text ends in, with the current one bold; nothing if there is
    none."""
    call = call_at(typed)
    signature = catalog.signature(call[0]) if call is not None else ""
    if call is None or not signature:
        return []
    before, current, after = parameters(printable(signature), call[1])
    return [("", f"{call[0]}{before}"), ("bold", current), ("", after)]


def open_text(line: int) -> Fragments:
    """What keeps a statement from ending at its `;`: the parenthesis that is open since a line, counted from 1."""
    return [("bold", "("), ("", f" open since line {line}; "), ("bold", "Alt-Enter"), ("", " sends")]


def _context(session: Session) -> list[str]:
    """The parts of the context that the prompt does not show: those of a remote service, and what has changed."""
    context, changed = session.context, session.state.changed_parts
    running = session.state.background.running_count
    remote = not session.embedded
    parts = [
        ("pool", "compute_pool", context.compute_pool, remote),
        ("org", "organization", context.organization, remote),
        ("tz", "timezone", context.timezone, False),
    ]
    texts = [f"{running:,} running in the background"] if running else []
    # Parts that the last statement has changed are marked until the next statement.
    return texts + [
        f"{title} {short(value)}{'*' if name in changed else ''}"
        for title, name, value, always in parts
        if value and (always or name in changed)
    ]


def _keys(session: Session, typing: Typing, *, vi: bool) -> list[tuple[str, str]]:
    if typing is not Typing.NOTHING:
        return [*_KEYS[typing]]
    ends = {
        OPEN: [("COMMIT", "or ROLLBACK ends the transaction")],
        FAILED: [("ROLLBACK", "ends the failed transaction")],
    }.get(session.transaction.state, [])
    kept = [item for item in _AT_REST if item[0] != "F5" or session.state.result_history]
    return [*ends, *kept]
