"""Statements without their secrets: what is stored and shown of a statement that contains secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct

from sqlshell.service.statements.reading_thread import PIECE, SHORT, ReadingThread
from sqlshell.sql.analysis.lexed import Lexed, lexed

MAY_HOLD_SECRETS = re.compile(
    r"\s*+(?:--|/\*|\\|(?:create|update|alter|drop|attach|set|begin|copy|desc|describe|explain|pragma|call|prepare|do"
    r"|insert\s++into\s++entity)(?!\w))",
    re.I,
)
"""Beginnings of statements that may contain secrets anywhere. In other statements only options are searched."""

SEARCHED = 16 << 10
"""Characters that are searched for secrets at once: a regular expression makes other threads wait."""

OVERLAP = 4 << 10
"""Characters that are searched again together with the following piece."""

HEAD = 4 << 10
"""Maximum characters that are stored of a statement with secrets that is longer than SEARCHED."""

SEARCHED_IN_LOOP = 1 << 10
"""Characters of a submission that are searched for secrets in the event loop, which takes about a millisecond."""


class RedactedStatement(Struct, frozen=True):
    """A statement without its secrets, and their values.

    `cut` means that it is only the beginning of the statement, and that the values are unknown.
    """

    text: str
    values: Sequence[str]
    cut: bool = False

    def __repr__(self) -> str:
        return f"RedactedStatement({self.text!r})"


async def redacted_statements(
    given: Sequence[str], owner: str, thread: ReadingThread
) -> list[RedactedStatement | None]:
    """The text without secrets of each statement that contains secrets; None for the other statements."""
    redacted: list[RedactedStatement | None] = [None] * len(given)
    from sqlshell.sql.analysis.secrets import OPTIONS, may_hold_secrets

    candidates: Iterable[tuple[int, Lexed]] = ((number, lexed(sql)) for number, sql in enumerate(given))
    if sum(map(len, given)) <= SHORT:
        candidates = [
            item for item in candidates if MAY_HOLD_SECRETS.match(item[1].text) or OPTIONS.search(item[1].text)
        ]
        if sum(len(item.text) for _, item in candidates) <= SEARCHED_IN_LOOP:
            candidates = [item for item in candidates if may_hold_secrets(item[1])]
    piece: list[tuple[int, Lexed]] = []
    size = 0
    for number, statement in candidates:
        if len(statement.text) > SEARCHED:
            redacted[number] = await _redacted_beginning(statement.text, owner, thread)
            continue
        piece.append((number, statement))
        size += len(statement.text)
        if size >= PIECE:
            await _add(redacted, piece, owner, thread)
            piece, size = [], 0
    if piece:
        await _add(redacted, piece, owner, thread)
    return redacted


async def _add(
    redacted: list[RedactedStatement | None], piece: Sequence[tuple[int, Lexed]], owner: str, thread: ReadingThread
) -> None:
    results = await thread.run(owner, lambda: [_redacted(statement) for _, statement in piece])
    for (number, _), result in zip(piece, results, strict=True):
        redacted[number] = result


async def _redacted_beginning(sql: str, owner: str, thread: ReadingThread) -> RedactedStatement | None:
    """The beginning of a long statement without its secrets, or None if the statement contains no secrets."""
    anywhere = MAY_HOLD_SECRETS.match(sql) is not None
    for start in range(0, len(sql), SEARCHED):
        piece = sql[start : start + SEARCHED + OVERLAP]
        holds, anywhere = await thread.run(owner, partial(_searched, piece, anywhere))
        if holds:
            return await thread.run(owner, partial(_beginning, sql))
    return None


def _redacted(statement: Lexed) -> RedactedStatement | None:
    from sqlshell.sql.analysis.secrets import may_hold_secrets, redacted, redacted_options, removed_values

    sql = statement.text
    redact = redacted if MAY_HOLD_SECRETS.match(sql) else redacted_options
    shown = redact(statement) if may_hold_secrets(statement) else sql
    return RedactedStatement(shown, removed_values(statement, shown)) if shown != sql else None


def _searched(piece: str, anywhere: bool) -> tuple[bool, bool]:
    """Whether a piece of a statement contains secrets, and whether the following piece may contain secrets anywhere.

    `anywhere` says the same of this piece; otherwise only its options may contain secrets.
    """
    from sqlshell.sql.analysis.secrets import OPTIONS, may_hold_secrets, redacted

    if not anywhere:
        begun = OPTIONS.search(piece)
        if begun is None:
            return False, False
        piece = piece[begun.start() :]
    return may_hold_secrets(piece) and redacted(piece) != piece, True


def _beginning(sql: str) -> RedactedStatement:
    from sqlshell.sql.analysis.secrets import redacted

    return RedactedStatement(redacted(sql[:HEAD]), (), cut=True)
