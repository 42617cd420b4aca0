"""Splits the text of a submission into statements."""

from __future__ import annotations

from sqlshell.service.refusals import RequestTooLarge
from sqlshell.sql.script.items import Item, Statement
from sqlshell.sql.script.scanner import Scanner

PIECE = 16 << 10
"""Characters that are split before the number of statements is checked."""


def split(text: str, most: int) -> list[Item]:
    """The statements and commands of a text. Raises RequestTooLarge if there are more than `most` statements."""
    scanner = Scanner()
    items: list[Item] = []
    for start in (*range(0, len(text), PIECE), None):
        items += scanner.items(text[start : start + PIECE] if start is not None else None)
        if len(items) > most and sum(isinstance(item, Statement) for item in items) > most:
            cause = f"request.statement has more than {most} statements"
            raise RequestTooLarge(f"{cause}; split it into several requests")
    return items
