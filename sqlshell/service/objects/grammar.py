"""Recognizes and parses the statements of the dialect: one list of forms, made for the first that may be one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from sqlshell.service.dialect.forms import Form, first_of
from sqlshell.service.dialect.lexer import BLANK, HEAD, Tokens
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import DialectStatement
from sqlshell.service.organizations.organizations import Organizations

READ_LENGTH = 1 << 20
"""Statements longer than this many characters are for the engine."""

_WORD = re.compile(r"[a-z]++(?!\w)", re.I)
FOR_ENGINE = re.compile(
    r"(?:select|with|from|values|explain)(?!\w)|insert\s++into\s++(?!entity\b)[\w\"`]|update\s++[\w\"`]++\s++set(?!\w)",
    re.I,
)
"""How statements begin that are certainly for the engine."""


class Dialect:
    """The statements that are the service's; all others are for the engine. `server`: on an engine that has statements
    of its own with the same first words."""

    def __init__(self, *, server: bool) -> None:
        self._server = server

    @cached_property
    def forms(self) -> Mapping[str, Sequence[Form[DialectStatement]]]:
        """The forms by their first word, in lower case."""
        from sqlshell.service.objects import kinds

        forms: dict[str, list[Form[DialectStatement]]] = {}
        for form in kinds.forms(server=self._server):
            forms.setdefault(form.first, []).append(form)
        return forms

    def read(self, sql: str) -> DialectStatement | None:
        """Parse a statement; None if it is for the engine. Raises Failure."""
        blank = BLANK.match(sql, 0, HEAD)
        start = blank.end() if blank else 0
        found = _WORD.match(sql, start, HEAD)
        if found is None or FOR_ENGINE.match(sql, start, HEAD) or len(sql) > READ_LENGTH:
            return None
        word = found[0].lower()
        if word not in self.forms:
            return None
        tokens = Tokens(sql)
        second = tokens[3 if tokens[1].upper == "OR" else 1].upper
        return first_of((form for form in self.forms[word] if not form.second or second in form.second), tokens)

    def is_for_engine(self, sql: str) -> bool:
        """Whether a statement is for the engine, rather than about objects of the service."""
        try:
            return self.read(sql) is None
        except Failure:
            return False


INTERFACE = Dialect(server=False)
"""The interface's statements, on an engine that has no statements of its own with the same first words."""

SERVER = Dialect(server=True)
"""The statements about the service's own objects, on an engine with its own databases, roles, functions and views."""


def dialect_of(organizations: Organizations) -> Dialect:
    """The statements that the service carries out itself."""
    return SERVER if organizations.server is not None else INTERFACE
