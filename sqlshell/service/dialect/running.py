"""Statements about statements: queries, sessions, applications, and the rows of an entity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sqlshell.service.dialect.names import BLANK, DOTTED, HEAD, NAME, Names, Reader, compiled, names_of
from sqlshell.sql.items import Statement
from sqlshell.sql.scripts import split

_QUERY = r"""(?:'(?P<q1>[^']*)'|"(?P<q2>[^"]*)"|(?P<q3>[\w-]+))"""
_TERMINATE = rf"TERMINATE QUERY {_QUERY}"
_TERMINATE_SESSION = rf"TERMINATE SESSION {_QUERY}(?P<idle> WHEN IDLE)?"
_DESCRIBE_QUERY = rf"DESCRIBE QUERY(?: (?P<part>METRICS|EVENTS|STATE|HISTORY))? {_QUERY}"
_PRINT = rf"PRINT ENTITY (?P<name>{DOTTED})(?: IN STORE (?P<store>{NAME}))?(?P<begin> FROM BEGINNING)?"
_BEGIN = rf"BEGIN APPLICATION (?P<name>{NAME})"
_END = r"(?<!\w)END APPLICATION\Z"


class DescribeQuery(Struct, frozen=True):
    statement_id: str
    part: str = ""


class Terminate(Struct, frozen=True):
    statement_id: str


class TerminateSession(Struct, frozen=True):
    name: str
    when_idle: bool = False


class Print(Struct, frozen=True):
    names: Names
    store: str = ""
    from_beginning: bool = False


class Application(Struct, frozen=True):
    name: str
    statements: tuple[str, ...]


def _query(found: re.Match[str]) -> str:
    return found["q1"] or found["q2"] or found["q3"] or ""


def read_application(sql: str) -> Application | None:
    blank = BLANK.match(sql)
    text = sql[blank.end() if blank else 0 :].rstrip()
    head, tail = compiled(_BEGIN).match(text), compiled(_END).search(text, max(0, len(text) - HEAD))
    if not head or not tail or head.end() > tail.start():
        return None
    items = split(text[head.end() : tail.start()])
    return Application(names_of(head["name"])[0], tuple(item.text for item in items if isinstance(item, Statement)))


def _print(found: re.Match[str]) -> Print:
    return Print(names_of(found["name"]), "".join(names_of(found["store"] or "")), bool(found["begin"]))


READERS: Mapping[str, Sequence[Reader[DescribeQuery | Terminate | TerminateSession | Print]]] = {
    "terminate": (
        (_TERMINATE, lambda found: Terminate(_query(found))),
        (_TERMINATE_SESSION, lambda found: TerminateSession(_query(found), bool(found["idle"]))),
    ),
    "describe": ((_DESCRIBE_QUERY, lambda found: DescribeQuery(_query(found), (found["part"] or "").lower())),),
    "print": ((_PRINT, _print),),
}
