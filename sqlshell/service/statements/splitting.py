"""Splits the text of a submission into statements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlshell.service.bounds import limit_note
from sqlshell.service.refusals import ClientDisconnected, RequestTooLarge
from sqlshell.service.statements.reading_thread import PIECE, SHORT, ReadingThread
from sqlshell.sql.script.items import Item, Statement
from sqlshell.sql.script.scanner import Scanner


async def split(
    text: str, owner: str, thread: ReadingThread, most: int, is_disconnected: Callable[[], bool] = bool
) -> list[Item]:
    """The statements and commands of a text. `is_disconnected` says whether its sender has disconnected.

    Raises ClientDisconnected, and RequestTooLarge if there are more than `most` statements.
    """
    scanner = Scanner()
    items: list[Item] = []
    for start in range(0, len(text), PIECE):
        piece = text[start : start + PIECE]
        if len(text) <= SHORT:
            items += scanner.items(piece)
        else:
            items += await thread.run(owner, partial(_items, scanner, piece))
            if is_disconnected():
                raise ClientDisconnected("the client disconnected")
        _check(items, most)
    items += scanner.items(None)
    _check(items, most)
    return items


def _items(scanner: Scanner, piece: str) -> list[Item]:
    return [*scanner.items(piece)]


def _check(items: list[Item], most: int) -> None:
    if len(items) > most and sum(isinstance(item, Statement) for item in items) > most:
        cause = f"request.statement has more than {most} statements {limit_note('statements')}"
        raise RequestTooLarge(f"{cause}; split it into several requests")
