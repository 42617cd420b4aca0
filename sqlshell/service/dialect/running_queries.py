"""Statements about running queries and sessions, and applications."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.names import BLANK, HEAD
from sqlshell.service.dialect.tokens import WORD, Tokens
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split

_END = re.compile(r"(?<!\w)END\s+APPLICATION\Z", re.I)


class DescribeQuery(Struct, frozen=True):
    statement_id: str
    part: str = ""


class Terminate(Struct, frozen=True):
    statement_id: str


class TerminateSession(Struct, frozen=True):
    name: str
    when_idle: bool = False


class Application(Struct, frozen=True):
    name: str
    statements: tuple[str, ...]


QueryStatement = DescribeQuery | Terminate | TerminateSession

FORMS: Mapping[str, tuple[Form[QueryStatement], ...]] = {
    "terminate": (
        Form("TERMINATE QUERY ! <statement_id:id>", Terminate),
        Form("TERMINATE SESSION ! <name:id> [ WHEN IDLE =when_idle ]", TerminateSession),
    ),
    "describe": (
        Form("DESCRIBE QUERY part:METRICS|EVENTS|STATE|HISTORY <statement_id:id>", DescribeQuery),
        Form("DESCRIBE QUERY <statement_id:id>", DescribeQuery),
    ),
}


def read_application(sql: str) -> Application | None:
    blank = BLANK.match(sql)
    text = sql[blank.end() if blank else 0 :].rstrip().rstrip(";").rstrip()
    head = Tokens(text)
    names, behind = head.dotted(2, 1)
    if head[1].upper != "APPLICATION" or head[1].kind != WORD or not names:
        return None
    begin, tail = head[behind - 1].end, _END.search(text, max(0, len(text) - HEAD))
    if not tail or begin > tail.start():
        return None
    items = split(text[begin : tail.start()])
    return Application(names[0], tuple(item.text for item in items if isinstance(item, Statement)))
