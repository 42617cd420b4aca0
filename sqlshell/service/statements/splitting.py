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
    found: list[Item] = []
    for start in range(0, len(text), PIECE):
        piece = text[start : start + PIECE]
        if len(text) <= SHORT:
            found += scanner.items(piece)
        else:
            found += await thread.run(owner, partial(_items, scanner, piece))
            if is_disconnected():
                raise ClientDisconnected("the client disconnected")
        _check(found, most)
    found += scanner.items(None)
    _check(found, most)
    return found


def _items(scanner: Scanner, piece: str) -> list[Item]:
    return [*scanner.items(piece)]


def _check(found: list[Item], most: int) -> None:
    if len(found) > most and sum(isinstance(item, Statement) for item in found) > most:
        said = f"request.statement has more than {most} statements {limit_note('statements')}"
        raise RequestTooLarge(f"{said}; split it into several requests")
