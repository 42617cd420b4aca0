"""Splits whole texts into statements and backslash commands."""

from __future__ import annotations

import copy

from msgspec.structs import replace

from sqlshell.errors import UsageError
from sqlshell.origin import Text
from sqlshell.sql.script.items import BackslashCommand, Item, State, Statement
from sqlshell.sql.script.scanner import Scanner


def split(text: str, *, commands: bool = True) -> list[Item]:
    """All items of a script, in order, as if no command sent a statement."""
    scanner = Scanner(commands=commands)
    return [*scanner.items(text), *scanner.items(None)]


def statements(text: Text) -> list[Statement]:
    """The statements of a text in which backslashes are ordinary characters.

    Raises UsageError if a value from a service turns one statement into several, which would run unseen.
    """
    items = _statements(text.text)
    if text.foreign:
        refuse_more(text, len(items), len(_statements(text.blanked)))
    return [replace(item, foreign=text.part(item.offset, item.offset + len(item.text)).foreign) for item in items]


def refuse_more(text: Text, count: int, written: int) -> None:
    """Raise the UsageError of statements() if a text has more statements than the user has `written`."""
    if count > max(1, written):
        raise UsageError(
            f"{text.source} came from the service and contains several statements",
            "use \\gexec with one statement per value",
        )


def _statements(text: str) -> list[Statement]:
    return [item for item in split(text, commands=False) if isinstance(item, Statement)]


def state_after(text: str, after: Scanner) -> State:
    """The state in which the next line begins after a text that continues what another scanner has read."""
    scanner = copy.deepcopy(after)
    for line in text.rstrip("\n").split("\n"):
        for _ in scanner.items(line + "\n"):
            scanner.discard_text()
    return scanner.state


def complete(text: str, after: Scanner | None = None) -> bool:
    """Whether Enter ends the text, which continues what another scanner has read.

    It does if no statement is unfinished, or if the last line contains a command, which takes effect at once.
    """
    scanner = Scanner() if after is None else copy.deepcopy(after)
    last = text.rstrip("\n").count("\n")
    acting = False
    for number, line in enumerate(text.rstrip("\n").split("\n")):
        items = [*scanner.items(line + "\n")]
        acting = number == last and any(isinstance(item, BackslashCommand) for item in items)
    return acting or scanner.state is State.READY
