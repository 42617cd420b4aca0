"""Whole texts, as scripts."""

from __future__ import annotations

import copy

from sqlshell.sql.items import Command, Item, State
from sqlshell.sql.scanner import Scanner


def split(text: str, *, commands: bool = True) -> list[Item]:
    """Everything in a whole script, in order, as if no command sent a statement."""
    scanner = Scanner(commands=commands)
    return [*scanner.items(text), *scanner.items(None)]


def complete(text: str, after: Scanner | None = None) -> bool:
    """Whether Enter ends the text, which goes on with what another scanner has read.

    So it does where nothing is unfinished, and where the last line has a command, which acts at once.
    """
    scanner = Scanner() if after is None else copy.deepcopy(after)
    last = text.rstrip("\n").count("\n")
    acting = False
    for number, line in enumerate(text.rstrip("\n").split("\n")):
        items = [*scanner.items(line + "\n")]
        acting = number == last and any(isinstance(item, Command) for item in items)
    return acting or scanner.state is State.READY
