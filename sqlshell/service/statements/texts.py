"""The texts of statements: read, split, and without their secrets, as they are stored and shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.failure import RequestTooLarge
from sqlshell.sql.script import items as script
from sqlshell.sql.script.lexical_rules import BLANKS
from sqlshell.sql.script.scanner import Scanner
from sqlshell.text import format_count

T = TypeVar("T")

LONG = 4 << 10
"""Texts of more characters are read in a thread: reading a text of this size takes up to 20 ms."""

PIECE = 16 << 10
"""Characters that are split before the number of statements is checked."""

LONG_SECRET = 16 << 10
"""Characters of a statement that names a secret, from which on only its beginning is stored."""

HEAD = 4 << 10
"""Characters that are stored of the beginning."""

MESSAGE = 2_000
"""Characters that are stored of an error message for a statement with secrets."""

WARNING_NOT_RECORDED: Final = "the warning is not recorded because it may contain secrets"

SentText = tuple[str, str]
"""The text of a statement as it was sent, and the semicolon after it, with the blanks between them."""

READERS = 8
"""Threads that read long texts. They share the interpreter with the event loop, which each delays by some 5 ms."""

_readers = ThreadPoolExecutor(READERS, thread_name_prefix="reading")
_turns: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()


async def read_text(size: int, work: Callable[[], T], whose: str) -> T:
    """Run a function that reads a text of `size` characters. Long texts are read in threads, so that the event loop
    goes on meanwhile, and one of an organization at a time: 4 MB can take 10 s, for which others do not wait."""
    if size <= LONG:
        return work()
    loop = asyncio.get_running_loop()
    turn = _turns.setdefault((id(loop), whose), asyncio.Lock())
    async with turn:
        return await loop.run_in_executor(_readers, work)


def split(text: str, most: int) -> list[script.Item]:
    """The statements and commands of a text. Raises RequestTooLarge if there are more than `most` statements."""
    scanner = Scanner()
    items: list[script.Item] = []
    for start in (*range(0, len(text), PIECE), None):
        items += scanner.items(text[start : start + PIECE] if start is not None else None)
        if len(items) > most and sum(isinstance(item, script.Statement) for item in items) > most:
            cause = f"request.statement has more than {format_count(most, 'statement')}"
            raise RequestTooLarge(f"{cause}; split it into several requests")
    return items


def split_semicolon(text: str) -> SentText:
    """A statement of a batch, and the semicolon after it."""
    bare = text.rstrip(BLANKS)
    if not bare.endswith(";"):
        return text, ""
    bare = bare[:-1].rstrip(BLANKS)
    return bare, text[len(bare) :]


class RedactedStatement(Struct, frozen=True):
    """A statement without its secrets, and their values.

    `cut` means that it is only the beginning of the statement, and that the values are unknown.
    """

    text: str
    values: Sequence[str]
    cut: bool = False

    def __repr__(self) -> str:
        return f"RedactedStatement({self.text!r})"

    def clean(self, state: str, message: str) -> str:
        """A message without the secrets of the statement. That of a success, such as `CREATE SECRET`, has none."""
        from sqlshell.sql.analysis.secrets import NOT_RECORDED, without_values

        if not message or state == sqlstate.DONE:
            return message
        if self.cut:
            return NOT_RECORDED if sqlstate.failed(state) else WARNING_NOT_RECORDED
        return without_values(message[:MESSAGE], self.values)


class Secret(Struct, frozen=True):
    """A secret value that a statement has created, and the name of its object."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"


def redacted_statements(given: Sequence[str]) -> list[RedactedStatement | None]:
    """Return the text without secrets of each statement that contains secrets; None for the other statements."""
    return [_redacted(sql) for sql in given]


def _redacted(sql: str) -> RedactedStatement | None:
    from sqlshell.sql.analysis.lexed import lexed
    from sqlshell.sql.analysis.secrets import names_secret, redacted, removed_values, without_its_values

    if not names_secret(sql):
        return None
    if len(sql) > LONG_SECRET:
        return RedactedStatement(without_its_values(sql[:HEAD]), (), cut=True)
    statement = lexed(sql)
    shown = redacted(statement)
    return RedactedStatement(shown, removed_values(statement, shown)) if shown != sql else None
