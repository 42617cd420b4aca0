"""Recognizes and parses the statements of the dialect."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlshell.service.dialect import changing, looking, making, refusing, running
from sqlshell.service.dialect.forms import Form, first_of
from sqlshell.service.dialect.names import HEAD, plain

READ_LENGTH = 1 << 20
"""Statements longer than this many characters are for the engine."""

Own = running.Running | running.Application | looking.Looking | changing.Changing | making.Making

_FAMILIES: tuple[Mapping[str, tuple[Form[Own], ...]], ...] = (
    refusing.FORMS,
    running.FORMS,
    looking.FORMS,
    changing.FORMS,
    making.FORMS,
)
_FORMS = {
    word: tuple(form for family in _FAMILIES for form in family.get(word, ()))
    for word in {word for family in _FAMILIES for word in family}
}
"""The forms by the first word of a statement, in the order in which they are tried."""

_FIRST = re.compile(
    # Most statements that begin with these words are for the engine.
    r"insert(?!\s+into\s+(?!entity\b)[\w\"`])\b|update(?!\s+[\w\"`]+\s+set\b)\b|"
    + "|".join(rf"{word}\b" for word in sorted({"begin", *_FORMS} - {"insert", "update"})),
    re.I,
)


def read(sql: str) -> Own | None:
    """Parse a statement of the dialect; None for a statement that is for the engine.

    Raises Failure for a syntax error in a statement of the dialect.
    """
    start = sql[:HEAD].lstrip()
    if not start[:1].isalpha():
        start = plain(start)
    first = _FIRST.match(start)
    if not first or len(sql) > READ_LENGTH:
        return None
    word = first[0].lower()
    if word == "begin":
        return running.read_application(sql)
    return first_of(_FORMS[word], sql)


def takes_long(sql: str) -> bool:
    """Whether read() may block the event loop for too long."""
    return len(sql) > HEAD and _FIRST.match(plain(sql[:HEAD])) is not None


def is_about_organizations(asked: Own | None) -> bool:
    """Whether a statement creates, drops, describes or lists organizations, or switches to one."""
    if isinstance(asked, looking.List):
        return asked.what == "organizations"
    return (
        isinstance(asked, making.Use | making.Create | making.Drop | looking.Describe) and asked.kind == "organization"
    )
