"""The context in the prompt, `role@target:database.schema/store`. Names from a service are made safe to print."""

from __future__ import annotations

from msgspec import Struct

from sqlshell.output.text.cells import cells, printable

Fragments = list[tuple[str, str]]

QUIET, NOTED, ALARMING = "class:continuation", "class:spinner", "class:error"
"""The styles of what is seldom read, what is worth a look, and what is wrong."""

CUT = 12
"""Cells of a name in a narrow terminal."""

LONGEST_NAME = 40


class Shown(Struct, frozen=True):
    """The contents of the context line; "" is left out. `role` is "" if it is the default one."""

    target: str
    role: str = ""
    database: str = ""
    schema: str = ""
    store: str = ""


def context_line(shown: Shown, most: int) -> Fragments:
    """The parts that are set, or `sqlshell`. If it is longer than `most` cells, names are shortened."""
    for role, cut in ((shown.role, 0), ("", 0), ("", CUT)):
        line = _named(shown, role, cut)
        if cells("".join(text for _, text in line)) <= most:
            break
    return line


def short(text: str) -> str:
    """A name on one line, without control characters."""
    safe = printable(text)
    return safe if len(safe) <= LONGEST_NAME else safe[: LONGEST_NAME - 1] + "…"


def _named(shown: Shown, role: str, cut: int) -> Fragments:
    def name(text: str) -> str:
        text = short(text)
        return text if not cut or len(text) <= cut else f"{text[: cut - 1]}…"

    named: Fragments = [(NOTED, name(role)), (QUIET, "@")] if role else []
    place: Fragments = []
    for part in (shown.database, shown.schema):
        if part:
            place += [*([(QUIET, ".")] if place else []), ("", name(part))]
    if shown.store:
        place += [(QUIET, "/"), ("", name(shown.store))]
    if shown.target:
        named += [("bold", name(shown.target)), *([(QUIET, ":")] if place else [])]
    elif not place:
        named.append(("", "sqlshell"))
    return [*named, *place]
