"""Which statement is the dialect's, and what it asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlshell.service.dialect import changing, looking, making, running
from sqlshell.service.dialect.names import HEAD, Reader, plain, whole

_FIRST = re.compile(
    r"(use|list|create|drop|start|stop|terminate|describe|print|begin"
    # The engine has statements that begin with these words, and they may be long.
    r"|update(?=\s+(?:store|compute_pool|schema_registry|secret|entity)\b)|insert(?=\s+into\s+entity\b)"
    r"|alter(?=\s+(?:relation|stream|changelog)\b)|truncate(?=\s+relation\b)|test(?=\s+\w)|restart(?=\s+\w))\b",
    re.I,
)
READ_LENGTH = 64 << 10
APPLICATION_LENGTH = 1 << 20
"""Characters; a longer statement is the engine's."""

Own = (
    making.Use
    | making.Create
    | making.Drop
    | making.StartPool
    | changing.Update
    | changing.Test
    | changing.InsertEntity
    | changing.Truncate
    | changing.Alter
    | changing.Restart
    | changing.CreateFunction
    | changing.DropFunction
    | looking.List
    | looking.Describe
    | running.DescribeQuery
    | running.Terminate
    | running.TerminateSession
    | running.Print
    | running.Application
)

_FAMILIES: Sequence[Mapping[str, Sequence[Reader[Own]]]] = (
    running.READERS,
    looking.READERS,
    changing.READERS,
    making.READERS,
)
_READERS = {
    word: tuple(reader for family in _FAMILIES for reader in family.get(word, ()))
    for word in {word for family in _FAMILIES for word in family}
}
"""How the statements that begin with a word are read: the first pattern that is all of one decides."""


def read(sql: str) -> Own | None:
    """What a statement of the dialect asks for, None for the engine's own.

    Raises Failure for one of the dialect that says something impossible.
    """
    start = sql[:HEAD].lstrip()
    if not start[:1].isalpha():
        start = plain(start)
    first = _FIRST.match(start)
    if not first:
        return None
    word = first[1].lower()
    if word == "begin":
        return running.read_application(sql) if len(sql) <= APPLICATION_LENGTH else None
    if len(sql) > READ_LENGTH:
        return None
    text = plain(sql)
    for pattern, make in _READERS[word]:
        if found := whole(pattern, text):
            return make(found)
    return None


def takes_long(sql: str) -> bool:
    """Whether read() may take longer than an event loop may be held."""
    return len(sql) > HEAD and _FIRST.match(plain(sql[:HEAD])) is not None


def is_about_organizations(asked: Own | None) -> bool:
    """Whether a statement names organizations, makes, drops or lists them, or goes to one."""
    if isinstance(asked, looking.List):
        return asked.what == "organizations"
    return (
        isinstance(asked, making.Use | making.Create | making.Drop | looking.Describe) and asked.kind == "organization"
    )
